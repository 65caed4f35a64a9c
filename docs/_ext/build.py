"""Builds the site and says in a few lines how it went: ``python docs/_ext/build.py``.

Sphinx runs in a process of its own. What it leaves behind (a record for each page, a
list of warnings) is judged here, because a page can end Sphinx in ways that look like
success. A ledger remembers which page ran with which text, pins and extensions; the
same key decides whether a page has to run again.
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
from dataclasses import dataclass, field
from pathlib import Path

import address
import psutil
import warned
from gate import complaints
from installed import compiled_part
from messages import (
    GENERATED,
    at,
    crash_line,
    ending_line,
    failure_line,
    stuck,
    warning_lines,
)
from page_run import Record, limits, page_name, pages, records
from sitefacts import commit_date

ROOT = Path(__file__).parents[2]
SETTINGS = ("requirements.txt", "constraints.txt", "conf.py", warned.LIST)
DEADLINE = 45 * 60  # seconds for all pages and the site, under the 60 minutes of CI
ENDINGS = 8  # pages that may end Sphinx in one build, before the build gives up

#: For Sphinx and for the workers of its gallery, which never read conf.py.
ENVIRONMENT = {
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "2",  # or each worker would choose by its number of cores
    "RL_LOGGING_LEVEL": "WARNING",  # torchrl's info lines carry the time of day
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
    folders = ("docs", "tutorials", "tests/claims", "benchmarks/results")
    for file in sorted(file for name in folders for file in root.glob(f"{name}/**/*")):
        if file.is_file() and not made.match(file.relative_to(root).as_posix()):
            files.append(file)
    # The home page shows the date, every page the address; no tutorial reads them.
    return f"{digest_of(root, files)} {commit_date(root)} {address.from_environment()}"


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


@dataclass
class Pages:
    """Which pages of a build run, and how.

    Attributes
    ----------
    alone : str or None
        The one page to run, None for all.
    ended : dict of str to str
        Pages that must not run again in this build: each ended a process. With the
        line that says so.
    workers : int or None
        How many pages run at a time, None for what ``conf.py`` says.
    """

    alone: str | None = None
    ended: dict[str, str] = field(default_factory=dict)
    workers: int | None = None

    @property
    def pattern(self) -> str:
        """Regular expression for the paths of the scripts that are to run."""
        barred = "|".join(re.escape(f"/{page}.py") for page in self.ended)
        wanted = re.escape(f"/{self.alone}.py") if self.alone else r"\.py"
        return (f"^(?!.*({barred})$).*" if barred else "") + f"{wanted}$"


def run_sphinx(root: Path, which: Pages, deadline: float) -> int:
    """Run Sphinx, keep its messages in ``build/``, return its exit code.

    Raises
    ------
    Failure
        If Sphinx outlives the deadline, a time of the monotonic clock.
    """
    build = root / "build"
    shutil.rmtree(build / "html", ignore_errors=True)  # nothing of an earlier site
    for name in ("warnings.log", "sphinx.log"):
        (build / name).unlink(missing_ok=True)
    # All pages are written (-a): of those that are not, the search index forgets part.
    command = [sys.executable, "-m", "sphinx", "-a", "-q", "-n", "-W", "--keep-going"]
    command += ["-b", "html", "-c", ".", "-d", "build/doctrees"]
    command += ["-w", "build/warnings.log"]
    command += ["-D", f"sphinx_gallery_conf.filename_pattern={which.pattern}"]
    if which.alone is not None:
        command += ["-D", "page_alone=1"]
    command += ["docs", "build/html"]
    env = os.environ | ENVIRONMENT
    if workers := (1 if which.alone else which.workers):
        env["GALLERY_WORKERS"] = str(workers)
    with (build / "sphinx.log").open("w") as log:
        process = subprocess.Popen(
            command,
            cwd=root,
            env=env,
            stderr=log,
            start_new_session=True,  # so that the workers of a page end with it
        )
        try:
            return process.wait(timeout=deadline - time.monotonic())
        except subprocess.TimeoutExpired:
            raise Failure(f"build: Sphinx did not end within {DEADLINE} s") from None
        finally:
            end_group(process.pid)
            process.wait()
            sweep(build / "run")


def end_group(group: int) -> None:
    """End a process group: first those that use semaphores, then who removes them."""
    trackers = []
    for member in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(member.pid) != group:
                continue
            if "resource_tracker" in " ".join(member.cmdline()):
                trackers.append(member)
            else:
                member.kill()
    psutil.wait_procs(trackers, timeout=5)  # each ends when nobody needs it any more
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def sweep(folder: Path) -> None:
    """End what still runs in the pages' working folders, and remove them."""
    if not folder.exists():
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd().startswith(str(folder)):
                process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def run_pages(root: Path, which: Pages, keys: dict[str, str], ledger: dict) -> int:
    """Run Sphinx until no page is left that was kept from running by another.

    A page can end the process that runs it, and with it Sphinx. Then Sphinx runs
    again without that page, so that every other page is reported too. Of two that ran
    at that moment it is not known which one did it: they run again one at a time.

    Parameters
    ----------
    root : Path
        The repository.
    which : Pages
        What to run; gets an entry for each page that ended a process.
    keys : dict of str to str
        The key of each page.
    ledger : dict
        Gets an entry for each page that passed.

    Returns
    -------
    int
        Exit code of the last Sphinx.
    """
    deadline = time.monotonic() + DEADLINE
    while True:
        code = run_sphinx(root, which, deadline)
        # A digest that depends on where the packages lie, for builds that continue.
        (root / "build" / "html" / ".buildinfo").unlink(missing_ok=True)
        for record in (found := records(root)):
            if record.passed:
                ledger[record.page] = {
                    "key": keys[record.page],
                    "seconds": round(record.seconds, 3),
                    "allowed": record.allowed,
                }
        if (root / GENERATED).is_dir():
            (root / GENERATED / "ledger.json").write_text(json.dumps(ledger, indent=1))
        forget_stale(root, ledger, keys)
        running = [record for record in found if record.seconds is None]
        for record in running:  # it runs again, or is known to have ended a process
            record.path(root).unlink()
        if not running:
            return code
        log = (root / "build" / "sphinx.log").read_text(errors="replace")
        if hang := stuck(log):
            limit = "over its time limit (tutorials/limits.toml), and no exception"
            kept = keep_log(root, hang[0])
            ended = {hang[0]: at(*hang, f"{limit} could end it; see {kept}")}
        elif len(running) == 1:
            page = running[0].page
            ended = {page: ending_line(root, page, running[0].line)}
        else:
            which.workers, ended = 1, {}
        which.ended |= ended
        if len(which.ended) >= ENDINGS or which.alone:
            return code or 1


def keep_log(root: Path, page: str) -> str:
    """Keep the stack of a page that hung; the next run overwrites the log."""
    name = f"build/stack-{page.replace('/', '-')}.log"
    shutil.copy(root / "build" / "sphinx.log", root / name)
    return name


def page_lines(record: Record) -> list[str]:
    """One line for each complaint about the run of a page."""
    lines = [failure_line(record.page, record.error)] if record.error else []
    return lines + [at(record.page, line, what) for line, what in record.wrong]


def write_junit(path: Path, seconds: dict[str, float], wrong: dict[str, list]) -> None:
    """Write one test case per page of the site, run now or remembered.

    Parameters
    ----------
    path : Path
        The file to write.
    seconds : dict of str to float
        How long each page ran; 0 for one that ended its process.
    wrong : dict of str to list of str
        The complaints about each page that did not pass.
    """
    suite = ET.Element("testsuite", name="tutorials")
    names = sorted(seconds)
    for page in names:
        case = ET.SubElement(suite, "testcase", classname="tutorials", name=page)
        case.set("time", f"{seconds[page]:.3f}")
        if lines := wrong.get(page):
            ET.SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    suite.set("tests", str(len(names)))
    suite.set("failures", str(sum(1 for _ in suite.iter("failure"))))
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def judge(root: Path, which: Pages, wrong: dict, ledger: dict, code: int) -> list[str]:
    """One line for each thing that is wrong after a build.

    Parameters
    ----------
    root : Path
        The repository.
    which : Pages
        Which pages were to run.
    wrong : dict of str to list of str
        The complaints about each page.
    ledger : dict
        The runs that passed, by page.
    code : int
        Exit code of Sphinx.
    """
    lines = [line for page in sorted(wrong) for line in wrong[page]]
    if (root / "build/warnings.log").exists():
        text = (root / "build/warnings.log").read_text(errors="replace")
        lines += warning_lines(text, root)
    asked = [which.alone] if which.alone else [page_name(p) for p in pages(root)]
    lines += [
        at(page, 1, "rendered but never run")
        for page in asked
        if page not in ledger and page not in wrong
    ]
    if which.alone is None and (root / "build/html/index.html").exists():
        used = {name for run in ledger.values() for name in run["allowed"]}
        lines += complaints(root, used)
    if code and not lines:
        log = (root / "build" / "sphinx.log").read_text(errors="replace")
        lines.append(crash_line(log))
    return list(dict.fromkeys(lines))


def time_in_pages(found: list[Record]) -> float:
    """Seconds in which at least one page ran."""
    total, until = 0.0, 0.0
    for record in sorted(found, key=lambda record: record.began):
        end = record.began + record.seconds
        total += max(0.0, end - max(record.began, until))
        until = max(until, end)
    return total


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
        If ``limits.toml``, ``warnings.toml`` or ``SITE_URL`` is broken.
    """
    address.from_environment()
    scripts = {page_name(script): script for script in pages(root)}
    if page is not None and page not in scripts:
        raise Failure(
            f"build: no page tutorials/{page}.py; there is {', '.join(scripts)}"
        )
    raised = limits(root)[1]
    warned.allowed(root)
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
    (root / "build").mkdir(exist_ok=True)
    if line := compiled_part(root):
        return [line]

    print(f"building {page or 'the site'}", flush=True)
    stamp.unlink(missing_ok=True)
    (root / "build" / "junit.xml").unlink(missing_ok=True)
    shutil.rmtree(root / "build" / "runs", ignore_errors=True)
    for log in (root / "build").glob("stack-*.log"):
        log.unlink()
    which = Pages(page)
    code = run_pages(root, which, keys, ledger)
    found = records(root)
    failed = {record.page: page_lines(record) for record in found if not record.passed}
    failed |= {name: [line] for name, line in which.ended.items()}
    seconds = {name: run["seconds"] for name, run in ledger.items()}
    seconds |= {record.page: record.seconds for record in found}
    seconds |= dict.fromkeys(which.ended, 0.0)
    write_junit(root / "build" / "junit.xml", seconds, failed)
    wrong = judge(root, which, failed, ledger, code)
    if not wrong and page is None:
        stamp.write_text(site)

    total = time.monotonic() - begin
    print(
        f"pages run: {len(found)}, unchanged: {remembered}; "
        f"{sum(record.seconds for record in found):.1f} s in tutorials, "
        f"{total - time_in_pages(found):.1f} s outside, {total:.1f} s together\n"
        "raised limits: "
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
