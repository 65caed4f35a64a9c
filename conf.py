"""Settings of the site. Anything with logic lives in docs/_ext, with unit tests."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from downloads import install_cell  # noqa: E402  (found through the line above)

# -- Project ---------------------------------------------------------------------------

project = "TorchRL Trajectories"
author = "The TorchRL Trajectories authors"
copyright = author  # no year: two builds of one commit must not differ
root_doc = "index"
exclude_patterns = ["_ext", "_inventories", "_static", "_templates"]
extensions = [
    "sphinx.ext.intersphinx",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "alive",
    "downloads",
    "figures",
    "folds",
    "lean",
    "learned",
    "measured",
    "metadata",
    "pagehead",
    "sections",
    "sitefacts",
    "thumbnails",
]

# -- Strictness ------------------------------------------------------------------------

nitpicky = True
nitpick_ignore: list[tuple[str, str]] = []  # each entry needs a reason beside it

# -- Links to other documentation ------------------------------------------------------
# Read from committed files, so that a build fetches nothing.

intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", "_inventories/python.inv"),
    "torch": ("https://docs.pytorch.org/docs/stable/", "_inventories/torch.inv"),
    "torchrl": ("https://docs.pytorch.org/rl/stable/", "_inventories/torchrl.inv"),
    "tensordict": (
        "https://docs.pytorch.org/tensordict/stable/",
        "_inventories/tensordict.inv",
    ),
    "gymnasium": ("https://gymnasium.farama.org/", "_inventories/gymnasium.inv"),
}

# -- Tutorials -------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../tutorials",
    "gallery_dirs": "tutorials",
    "filename_pattern": r"\.py$",  # every page runs; `make html PAGE=` narrows it
    "within_subsection_order": "FileNameSortKey",
    "copyfile_regex": r"index\.rst",  # hand-written: the stock index fails axe
    "image_scrapers": ("figures.svg_pair", "alive.after_cell", "page_run.after_cell"),
    # Pages at a time. A page that needs the machine for itself, or spawns, says
    # `# sphinx_gallery_parallel = False` and runs before the others, alone.
    "parallel": int(os.environ.get("GALLERY_WORKERS", "2")),
    "reset_modules": ("matplotlib", "page_run.around"),
    "reset_modules_order": "both",
    "reset_argv": "page_run.start",
    "pypandoc": False,  # downloads.py converts the prose, better
    "first_notebook_cell": install_cell(ROOT / "requirements.txt"),
    "download_all_examples": True,
    "remove_config_comments": True,
    "show_signature": False,
    "css": ("sg_gallery",),
    # A page must not show a measured time, and the stock times page loads three CDNs.
    "min_reported_time": 10**9,
    "write_computation_times": False,
}

# -- Look ------------------------------------------------------------------------------

templates_path = ["docs/_templates"]
html_theme = "pydata_sphinx_theme"
html_title = project
html_baseurl = os.environ.get("SITE_URL", "")  # where it will be published, if known
html_additional_pages = {"404": "404.html"}
html_static_path = ["docs/_static"]
html_css_files = ["site.css"]
html_favicon = "docs/_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_sidebars = {"**": ["sidebar-nav-bs"]}  # the button to fold it needs Bootstrap
html_theme_options = {
    "logo": {"text": "TorchRL Trajectories"},
    "navbar_end": ["color-mode"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 2,
}
html_context = {"default_mode": "auto"}
pygments_style = "sphinx"
