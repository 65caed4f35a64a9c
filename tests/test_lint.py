"""Each hook of `make lint` fails for what it is there for, and no other with it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGE = "tutorials/assemble/10_collect.py"
TEMPLATE = "tests/template/10_template.py"
CHECK = ".github/workflows/check.yml"
FOLDERS = [".ci", ".github", "benchmarks", "docs", "tests", "tutorials"]
MADE = shutil.ignore_patterns("__pycache__", ".*cache")
TYPO = "Lixence".replace("x", "s")  # codespell reads this file, too


def settings(tree: Path) -> dict[str, str]:
    """An environment in which only the tree and these tools count."""
    kept = {name: text for name, text in os.environ.items() if name[:4] != "GIT_"}
    return kept | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "HOME": str(tree / "build"),
        "PRE_COMMIT_HOME": str(tree / "build" / "pre-commit"),
        "VENV": sys.prefix,
    }


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of the repository as git sees it after a commit of everything."""
    copy = tmp_path / "tree"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=MADE)
    for file in filter(Path.is_file, ROOT.iterdir()):
        shutil.copy(file, copy)
    shutil.rmtree(copy / "docs" / "tutorials", ignore_errors=True)  # generated
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(
            ["git", *command], cwd=copy, env=settings(copy), check=True, timeout=60
        )
    return copy


def run(tree: Path, *command: str) -> subprocess.CompletedProcess:
    """Run a command in the tree."""
    return subprocess.run(
        command,
        cwd=tree,
        env=settings(tree),
        capture_output=True,
        text=True,
        timeout=120,
    )


def failed(tree: Path) -> tuple[list[str], str]:
    """The hooks that fail, and what they print."""
    done = run(tree, sys.executable, "-m", "pre_commit", "run", "--all-files")
    hooks = re.findall(r"^- hook id: (\S+)$", done.stdout, re.MULTILINE)
    assert bool(hooks) == bool(done.returncode), done.stdout + done.stderr
    return hooks, done.stdout


def test_the_repository_is_clean_and_lint_leaves_nothing(tree):
    before = run(tree, "git", "status", "--short").stdout
    hooks, printed = failed(tree)
    assert hooks == [], printed
    assert run(tree, "git", "status", "--short").stdout == before
    assert {path.name for path in (tree / "build").iterdir()} == {"pre-commit"}


@pytest.mark.parametrize(
    ("hook", "file", "old", "new", "said"),
    [
        ("format", "new.py", "", '"""Doc."""\n\nx  = 1\n', "run: make format"),
        ("ruff", "new.py", "", '"""Doc."""\n\nimport os\n', "F401"),
        ("ruff", PAGE, "not root_done.any()", "not 1 > 1", "PLR0133"),
        ("ruff", TEMPLATE, "except KeyError", "except Exception", "BLE001"),
        ("codespell", "README.md", "Licence:", f"{TYPO}:", f"{TYPO} ==>"),
        ("sphinx-lint", "docs/new.rst", "", "Some `role`.\n", "docs/new.rst:1"),
        ("yamllint", ".github/new.yml", "", "a:   1\n", "too many spaces"),
        ("actionlint", CHECK, "needs: check", "needs: gone", "does not exist"),
        ("zizmor", CHECK, "persist-credentials: false", "fetch-depth: 1", "artipacked"),
        ("page-frame", "tests/claims/assemble_99_gone.toml", "", "\n", "a page that"),
        ("page-frame", "tutorials/assemble/99_new.py", "", TEMPLATE, "not in the toc"),
    ],
)
def test_a_violation_fails_its_hook_alone(tree, hook, file, old, new, said):
    path = tree / file
    assert path.exists() == bool(old)  # the new files are ones that git does not know
    if old:
        assert path.read_text().count(old) == 1
        new = path.read_text().replace(old, new)
    elif new == TEMPLATE:
        new = (tree / TEMPLATE).read_text()
    path.write_text(new)
    hooks, printed = failed(tree)
    assert hooks == [hook], printed
    assert said in printed


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("E722", "try:\n    x = 1\nexcept:\n    x = 2"),
        ("BLE001", "try:\n    x = 1\nexcept Exception:\n    x = 2"),
        ("S110", "try:\n    x = 1\nexcept KeyError:\n    pass"),
        ("PLR0124", "x = 1\nassert x == x"),
        ("PLW0129", 'assert "it holds"'),
        ("F631", 'x = 1\nassert (x, "text")'),
        ("PT017", "try:\n    x = 1\nexcept KeyError as e:\n    assert str(e)"),
        ("A001", "id = 1"),
        ("TID251", 'import warnings\n\nwarnings.filterwarnings("ignore")'),
        ("TID251", "import time\n\nbegin = time.time()"),
        ("TID251", "import sys\n\nsys.exit(0)"),
        ("PLW1510", 'import subprocess\n\nsubprocess.run(["true"])'),
    ],
)
@pytest.mark.parametrize("page", [PAGE, TEMPLATE])
def test_what_a_page_must_not_do(page, rule, code):
    command = [sys.executable, "-m", "ruff", "check", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--no-cache", "--stdin-filename", page, "-"],
        cwd=ROOT,
        input=code + "\n",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert set(re.findall(r": ([A-Z]+\d+) ", done.stdout)) == {rule}, done.stdout


def test_outside_a_repository_there_is_one_clear_line(tree):
    shutil.rmtree(tree / ".git")
    command = ["make", "--no-print-directory", "lint", f"VENV={sys.prefix}"]
    done = run(tree, *command)
    assert done.returncode
    said = [line for line in done.stderr.splitlines() if "Error" not in line]
    assert said == [
        "make lint: this folder is no git repository of its own, which pre-commit"
        " needs (git init && git add .)"
    ]


def test_without_an_environment_there_is_one_clear_line(tree):
    done = subprocess.run(
        [".ci/in-environment", "ruff"],
        cwd=tree,
        env=settings(tree) | {"VENV": "gone"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "no environment gone; run: make environment\n"
