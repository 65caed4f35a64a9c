"""The gate: a gallery of pages that are wrong, each in its way, is built for real.

A page in ``planted/`` says above a line, after ``# !!``, what the build must say about
that line; ``# !!3`` means the third line below. Above the docstring it means line 1.
Everything else the build says is one complaint too many.
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest
from gallery import build, copy_site, write_indexes

PLANTED = sorted((Path(__file__).parent / "planted").glob("*.py"))
LIMITS = """default = 30
[raised]
"planted/20_endless" = 2
"planted/21_queue" = 2
"planted/22_swallowed" = 2
"planted/23_hang" = 2
"planted/24_stubborn" = 2
"planted/29_deadlock" = 2
"""
WARNINGS = """[[allow]]
category = "FutureWarning"
module = "__main__"
message = "allowed in this gallery"
reason = "a page of the gallery gives it"

[[allow]]
category = "UserWarning"
module = "torch"
message = "nobody gives this"
reason = "was given once"
"""
OTHER_LINES = [
    "tutorials/warnings.toml:7: no page gives this warning "
    "(UserWarning torch: nobody gives this); remove it",
    # Where a comment with the text would be the first line with that text.
    *(
        f"tutorials/planted/60_no_alt.py:9: {text}"
        for text in (
            'figure without alt sentence: fig.set_label("….")',
            "figure without an alt sentence; state its finding with "
            'fig.set_label("…."), ending with a full stop',
        )
    ),
    "tutorials/planted/62_markup.py:13: markup shows in the notebook: :::",
    "tutorials/planted/70_link.py:13: '../assemble/nothing.html' leads to no file of "
    "the site",
    "tutorials/planted/70_link.py:14: '#nowhere' names no anchor of this page",
    # A page that cannot be read has no label.
    "tutorials/planted/index.rst:22: WARNING: undefined label: 'tut-14-not-python' "
    "[ref.ref]",
]


def expected(script: Path) -> list[str]:
    """What the build must say about a planted page."""
    wanted, waiting, has_begun = [], [], False
    for number, line in enumerate(script.read_text().splitlines(), 1):
        if match := re.match(r"\s*# !!(\d*) (.*)", line):
            waiting.append((int(match[1] or 1) - 1, match[2]))
            continue
        for ahead, text in waiting:
            where = number + ahead if has_begun else 1
            wanted.append(f"tutorials/planted/{script.stem}.py:{where}: {text}")
        has_begun, waiting = has_begun or line.startswith('"""'), []
    return wanted


@pytest.mark.timeout(700)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_each_planted_page_is_told_at_its_line_and_nothing_else(tmp_path, workers):
    root = copy_site(tmp_path)
    (root / "tutorials" / "limits.toml").write_text(LIMITS)
    (root / "tutorials" / "warnings.toml").write_text(WARNINGS)
    shutil.copytree(PLANTED[0].parent, root / "tutorials" / "planted")
    names = [script.stem for script in PLANTED]
    write_indexes(root, "planted", [name for name in names if name != "65_unlisted"])
    (root / "tests" / "claims" / "planted_66_no_claims.toml").unlink()

    built = build(root, GALLERY_WORKERS=workers)

    wanted = [line for script in PLANTED for line in expected(script)] + OTHER_LINES
    assert sorted(built.wrong[:-1]) == sorted(wanted)
    assert built.wrong[-1] == f"failures: {len(wanted)}; do not publish build/html"
    assert built.code == 1
    cases = ET.parse(root / "build" / "junit.xml").iter("testcase")
    passed = {case.get("name") for case in cases if case.find("failure") is None}
    assert {"planted/31_allowed", "planted/80_good", "planted/81_good_alone"} <= passed
    assert not (root / "build" / "run").exists()
    assert not (root / "build" / "site.key").exists()
    here = [p for p in psutil.process_iter(["cwd"]) if str(root) in str(p.info["cwd"])]
    assert here == []
