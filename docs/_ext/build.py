"""Builds the site and says in a few lines how it went: ``python docs/_ext/build.py``.

Sphinx runs in a process of its own. What it leaves behind (a JUnit file, a list of
warnings) is judged here, because a page can end Sphinx in ways that look like success.
A ledger remembers which page ran with which text, pins and extensions; the same key
decides whether a page has to run again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

from page_run import limits, page_name, pages

ROOT = Path(__file__).parents[2]
GENERATED = "docs/tutorials"
SETTINGS = ("requirements.txt", "constraints.txt", "conf.py")
DEADLINE = 45 * 60  # seconds for one run of Sphinx, under the 60 minutes of CI

#: For Sphinx and for the workers of its gallery, which never read conf.py.
ENVIRONMENT = {
    "MPLBACKEND": "agg",
    "RL_LOGGING_LEVEL": "WARNING",  # torchrl's info lines carry the time of day
}


_GENERATED = re.compile(rf"^{GENERATED}/(\S+?)\.rst(?::(\d+))?(?=:)")

#: What to do about a warning whose text does not say it.
HINTS = {
    "isn't included in any toctree": "list it in the index.rst of its folder",
    "term not in glossary": "add it to docs/reference/glossary.rst",
}


class Failure(Exception):
    """One clear line about what is wrong and where."""


def digest_of(root: Path, files: list[Path]) -> str:
    """Digest of names and contents of files, and of the Python that reads them."""
    digest = hashlib.sha256(sys.version.encode())
    for file in files:
        name = file.relative_to(root).as_posix()
        digest.update(name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def shared_key(root: Path) -> str:
    """Digest of all that can change a page's output besides its own text."""
    files = [root / name for name in SETTINGS]
    return digest_of(root, files + sorted((root / "docs" / "_ext").glob("*.*")))


def site_key(root: Path) -> str:
    """Digest of all that can change the site."""
    files = [root / name for name in SETTINGS]
    made = re.compile(rf"{GENERATED}/|.*/__pycache__/")
    for file in sorted([*root.glob("docs/**/*"), *root.glob("tutorials/**/*")]):
        if file.is_file() and not made.match(file.relative_to(root).as_posix()):
            files.append(file)
    return digest_of(root, files)


def page_key(script: Path, shared: str) -> str:
    """Digest under which a page's run is remembered."""
    return hashlib.sha256(shared.encode() + script.read_bytes()).hexdigest()


def read_ledger(root: Path) -> dict[str, dict]:
    """The remembered runs by page: key and seconds. Empty if there are none."""
    try:
        return json.loads((root / GENERATED / "ledger.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}


def forget_stale(root: Path, ledger: dict[str, dict], keys: dict[str, str]) -> dict:
    """Drop what no longer holds: from the ledger, and from sphinx-gallery's cache.

    sphinx-gallery compares a page's own text only. Without its ``.md5`` file a page
    runs again. Nothing of a page that is gone may stay on the site.
    """
    generated = root / GENERATED
    gone = [file for file in generated.glob("*/*.py") if page_name(file) not in keys]
    for script in gone:
        for pattern in ("{}.*", "images/**/sphx_glr_{}_*"):
            for file in script.parent.glob(pattern.format(script.stem)):
                file.unlink()
    if gone:
        shutil.rmtree(root / "build" / "doctrees", ignore_errors=True)
    kept = {page: run for page, run in ledger.items() if run["key"] == keys.get(page)}
    for stamp in generated.glob("*/*.py.md5"):
        if page_name(stamp.with_suffix("")) not in kept:
            stamp.unlink()
    return kept


def run_sphinx(root: Path, page: str | None) -> int:
    """Run Sphinx, keep its messages in ``build/``, return its exit code.

    Raises
    ------
    Failure
        If Sphinx outlives the deadline.
    """
    build = root / "build"
    build.mkdir(exist_ok=True)
    shutil.rmtree(build / "html", ignore_errors=True)  # nothing of an earlier site
    left = ("gallery-junit.xml", "junit.xml", "warnings.log", "sphinx.log", "running")
    for name in left:
        (build / name).unlink(missing_ok=True)
    # All pages are written (-a): of those that are not, the search index forgets part.
    command = [sys.executable, "-m", "sphinx", "-a", "-q", "-n", "-W", "--keep-going"]
    command += ["-b", "html", "-c", ".", "-d", "build/doctrees"]
    command += ["-w", "build/warnings.log"]
    if page is not None:
        pattern = re.escape(f"/{page}.py") + "$"
        command += ["-D", f"sphinx_gallery_conf.filename_pattern={pattern}"]
        command += ["-D", "page_alone=1"]
    command += ["docs", "build/html"]
    with (build / "sphinx.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=os.environ | ENVIRONMENT,
            stderr=log,
            start_new_session=True,  # so that the workers of a page end with it
        )
        try:
            return process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            raise Failure(f"build: Sphinx did not end within {DEADLINE} s") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def read_junit(path: Path) -> dict[str, tuple[float, str]]:
    """Seconds and traceback ("" if it passed) of each page that ran in this build."""
    if not path.exists():
        return {}
    runs = {}
    for case in ET.parse(path).iter("testcase"):
        failure = case.find("failure")
        text = "" if failure is None else failure.text or "failed"
        runs[page_name(case.get("file"))] = (float(case.get("time")), text)
    return runs


def failure_line(page: str, traceback: str) -> str:
    """One line for a failed page: file, line, error, and the text of an assert."""
    error = traceback.strip().splitlines()[-1]
    if figure := re.match(
        rf"figures\.FigureError: {re.escape(page)}\.py:(\d+)-", error
    ):
        return f"tutorials/{page}.py:{figure[1]}: {error.split(': ', 2)[2]}"
    frames = re.findall(
        rf'File "[^"]*{re.escape(page)}\.py", line (\d+)[^\n]*\n\s*([^\n]*)', traceback
    )
    line, code = frames[-1] if frames else ("1", "")
    if error == "AssertionError":
        error = f"AssertionError: {code}"
    return f"tutorials/{page}.py:{line}: {error}"


def crash_line(code: int, log: str, running: str) -> str:
    """One line for a Sphinx that ended without a verdict on its pages.

    Parameters
    ----------
    code : int
        Exit code of Sphinx.
    log : str
        What it wrote to stderr.
    running : str
        Name of the page that was running when it ended, "" if none was.
    """
    if "Timeout (" in log:
        stuck = re.findall(r'File "[^"]*/tutorials/(\S+?)\.py", line (\d+)', log)
        if stuck:
            page, line = stuck[-1]
            what = "over its time limit (tutorials/limits.toml)"
            return f"tutorials/{page}.py:{line}: {what}; stack in build/sphinx.log"
    if running:
        return f"tutorials/{running}.py:1: ended the whole build, with exit code {code}"
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
    return f"build: Sphinx stopped: {(errors or lines or ['without a word'])[-1]}"


def warning_lines(text: str, root: Path) -> list[str]:
    """Sphinx's warnings, one line each, at the place a person can mend.

    Failing pages are left out: `failure_line` tells them better.
    """
    lines = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines():
        if re.search(r"(WARNING|ERROR|CRITICAL): ", line) and line[-1] not in " :":
            line = line.replace(f"{root}/", "")
            line = _GENERATED.sub(lambda m: script_place(root, m), line)
            hints = [hint for text, hint in HINTS.items() if text in line]
            lines.append("; ".join([line, *hints]))
    return lines


def script_place(root: Path, match: re.Match) -> str:
    """Turn a line of a generated page into the line of its script."""
    page, line = match[1], int(match[2] or 1)
    script = root / "tutorials" / f"{page}.py"
    if not script.exists():
        return f"tutorials/{page}.rst:{line}"  # a hand-written index, copied
    before = (root / f"{GENERATED}/{page}.rst").read_text().splitlines()[:line]
    for number in range(len(before), 0, -1):
        start = re.match(
            r"\.\. GENERATED FROM PYTHON SOURCE LINES (\d+)-", before[number - 1]
        )
        if start:
            return f"tutorials/{page}.py:{int(start[1]) + max(line - number - 2, 0)}"
    return f"tutorials/{page}.py:1"


def write_junit(path: Path, ledger: dict[str, dict], runs: dict) -> None:
    """Write one test case per page of the site, run now or remembered.

    Parameters
    ----------
    path : Path
        The file to write.
    ledger : dict
        The runs that passed, by page.
    runs : dict
        What `read_junit` says of this build.
    """
    suite = ET.Element("testsuite", name="tutorials")
    names = sorted(ledger.keys() | runs.keys())
    for page in names:
        passed = ledger.get(page, {}).get("seconds", 0.0), ""
        seconds, text = runs.get(page, passed)
        case = ET.SubElement(
            suite, "testcase", classname="tutorials", name=page, time=f"{seconds:.3f}"
        )
        if text:
            line = failure_line(page, text)
            ET.SubElement(case, "failure", message=line).text = text
    suite.set("tests", str(len(names)))
    suite.set("failures", str(sum(1 for _ in suite.iter("failure"))))
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def judge(root: Path, asked: list[str], ledger: dict, runs: dict, code: int) -> list:
    """One line for each thing that is wrong after a run of Sphinx.

    Parameters
    ----------
    root : Path
        The repository.
    asked : list of str
        Pages that must have run, now or before.
    ledger : dict
        The runs that passed, by page.
    runs : dict
        What `read_junit` says of this build.
    code : int
        Exit code of Sphinx.
    """
    build = root / "build"
    wrong = [failure_line(page, text) for page, (_, text) in runs.items() if text]
    if (build / "warnings.log").exists():
        text = (build / "warnings.log").read_text(errors="replace")
        wrong += warning_lines(text, root)
    ended = (build / "running").read_text() if (build / "running").exists() else ""
    if ended:
        print()  # its progress line was never finished
    if ended or (code and not wrong):
        log = (build / "sphinx.log").read_text(errors="replace")
        wrong.append(crash_line(code, log, ended))
    if not wrong:
        wrong = [
            f"tutorials/{page}.py:1: rendered but never run"
            for page in asked
            if page not in ledger
        ]
    return wrong


def build(root: Path, page: str | None = None) -> list[str]:
    """Build the site, or one page of it; print progress and a summary.

    Returns
    -------
    list of str
        One line for each thing that is wrong; empty if the site may be published.

    Raises
    ------
    Failure
        If there is no such page or Sphinx hangs.
    ValueError
        If ``tutorials/limits.toml`` is broken.
    """
    scripts = {page_name(script): script for script in pages(root)}
    if page is not None and page not in scripts:
        raise Failure(
            f"build: no page tutorials/{page}.py; there is {', '.join(scripts)}"
        )
    raised = limits()[1]
    begin = time.monotonic()
    shared = shared_key(root)
    keys = {name: page_key(script, shared) for name, script in scripts.items()}
    ledger = forget_stale(root, read_ledger(root), keys)
    remembered = len(ledger)
    site, stamp = site_key(root), root / "build" / "site.key"
    current = stamp.exists() and stamp.read_text() == site
    if page is None and current and (root / "build/html/index.html").exists():
        print(f"nothing has changed; pages: {remembered}")
        return []

    print(f"building {page or 'the site'}", flush=True)
    stamp.unlink(missing_ok=True)
    code = run_sphinx(root, page)
    # A digest that depends on where the packages lie, for builds that continue.
    (root / "build" / "html" / ".buildinfo").unlink(missing_ok=True)

    runs = read_junit(root / "build" / "gallery-junit.xml")
    for name, (seconds, text) in runs.items():
        if not text:
            ledger[name] = {"key": keys[name], "seconds": round(seconds, 3)}
    if (root / GENERATED).is_dir():
        (root / GENERATED / "ledger.json").write_text(json.dumps(ledger, indent=1))
    write_junit(root / "build" / "junit.xml", ledger, runs)
    wrong = judge(root, [page] if page else list(scripts), ledger, runs, code)
    if not wrong and page is None:
        stamp.write_text(site)

    inside = sum(seconds for seconds, _ in runs.values())
    outside = time.monotonic() - begin - inside
    print(
        f"pages run: {len(runs)}, unchanged: {remembered}; "
        f"{inside:.1f} s in tutorials, {outside:.1f} s outside\nraised limits: "
        + (", ".join(f"{name} {s} s" for name, s in raised.items()) or "none")
    )
    if page is not None and (bare := sorted(scripts.keys() - ledger.keys() - {page})):
        print(f"shown without their outputs, as only one page ran: {', '.join(bare)}")
    return wrong


def main() -> int:
    """Command line: build, report, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", help="build and run this page alone: folder/stem")
    arguments = parser.parse_args()
    page = arguments.page
    if page is not None:
        page = page.removesuffix(".py").removeprefix("tutorials/")
    try:
        wrong = build(ROOT, page)
    except (Failure, ValueError) as failure:
        print(failure, file=sys.stderr)
        return 2
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(f"failures: {len(wrong)}; do not publish build/html", file=sys.stderr)
        return 1
    print(f"open build/html/{f'tutorials/{page}' if page else 'index'}.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
