"""What happens around the run of a page: style, time limit, progress.

sphinx-gallery calls `around` before and after each page and `start` in between, in the
process that runs the page. Both are named in ``conf.py``.
"""

from __future__ import annotations

import faulthandler
import sys
import time
import tomllib
from pathlib import Path

from figures import STYLE

ROOT = Path(__file__).parents[2]
TUTORIALS = ROOT / "tutorials"

#: Holds the name of the page that runs. Left behind only if the page ends Sphinx.
RUNNING = ROOT / "build" / "running"

_started: dict[str, float] = {}


def limits() -> tuple[float, dict[str, float]]:
    """The default time limit of a page in seconds, and the raised ones by page.

    Raises
    ------
    ValueError
        If ``tutorials/limits.toml`` is broken, in one line.
    """
    try:
        table = tomllib.loads((TUTORIALS / "limits.toml").read_text())
        return table["default"], table["raised"]
    except (OSError, KeyError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"tutorials/limits.toml: {error!r}") from None


def pages(root: Path) -> list[Path]:
    """The tutorial scripts of a repository, in the order of the site."""
    return sorted((root / "tutorials").glob("*/*.py"))


def page_name(script: str | Path) -> str:
    """Name of a page, ``folder/stem``, from the path of its script."""
    script = Path(script)
    return f"{script.parent.name}/{script.stem}"


def start(gallery_conf: dict, script_vars: dict) -> list[str]:
    """Announce a page and start its clock; returns the page's (empty) arguments."""
    page = page_name(script_vars["src_file"])
    default, raised = limits()
    _started["time"] = time.monotonic()
    RUNNING.parent.mkdir(exist_ok=True)
    RUNNING.write_text(page)
    print(f"  {page} …", end="", file=sys.__stdout__, flush=True)
    # Ends the build with the stack of the stuck line, which build.py reads.
    faulthandler.dump_traceback_later(
        raised.get(page, default), exit=True, file=sys.__stderr__
    )
    return []


def around(gallery_conf: dict, fname: str, when: str) -> None:
    """Apply the figure style before a page; stop its clock after it."""
    if when == "after" and _started:
        faulthandler.cancel_dump_traceback_later()
        RUNNING.unlink(missing_ok=True)
        seconds = time.monotonic() - _started.pop("time")
        print(f" {seconds:.1f} s", file=sys.__stdout__, flush=True)
    # Late import: a build in which no page runs does not pay for it.
    import matplotlib.pyplot as plt

    plt.close("all")
    plt.style.use(STYLE)
