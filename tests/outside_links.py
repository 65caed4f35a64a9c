"""Follows every link to the outside: ``make links``; ``--issue`` files the result.

Sphinx's linkcheck reads a copy of the sources and runs no tutorial, so neither the
generated pages nor the memory of which page ran is touched. It leaves
``build/links/output.txt`` and, once it came to an end, ``report.md``: the broken links,
or nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEADLINE = 20 * 60  # seconds; each link may take three tries of 20
TITLE = "Broken links"
LABEL = "broken-links"  # by which the one issue is found again

#: Added to the copy of conf.py, as Sphinx's command line takes no lists.
SETTINGS = """
linkcheck_timeout = 20
linkcheck_retries = 3
linkcheck_rate_limit_timeout = 120
# GitHub makes its anchors with a script, which linkcheck does not run.
linkcheck_anchors_ignore_for_url = ["https://github.com/.*"]
sphinx_gallery_conf["plot_gallery"] = False
"""
LEFT_OUT = shutil.ignore_patterns(".*", "build", "__pycache__", "tests", "benchmarks")


class Failure(Exception):
    """One clear line about what is wrong."""


def copy_sources(root: Path, target: Path) -> None:
    """Copy what Sphinx reads, without what the build made of it."""
    generated = str(root / "docs")

    def left_out(folder: str, names: list[str]) -> set[str]:
        made = {"tutorials"} if folder == generated else set()
        return LEFT_OUT(folder, names) | made

    shutil.copytree(root, target, ignore=left_out, dirs_exist_ok=True)
    with (target / "conf.py").open("a") as file:
        file.write(SETTINGS)


def run_linkcheck(source: Path, out: Path) -> int:
    """Run linkcheck, and return Sphinx's exit code: 1 if a link is broken.

    Raises
    ------
    Failure
        If it does not end.
    """
    command = [sys.executable, "-m", "sphinx", "-b", "linkcheck", "-q", "-c", "."]
    command += ["-d", str(out / "doctrees")]
    with (out / "sphinx.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "docs", str(out)],
            cwd=source,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            raise Failure(f"links: not done after {DEADLINE} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def read_output(path: Path) -> list[dict]:
    """What linkcheck found: one table for each link on each page.

    Raises
    ------
    Failure
        If it left no such file.
    """
    try:
        return [json.loads(line) for line in path.read_text().splitlines()]
    except (OSError, json.JSONDecodeError):
        raise Failure("links: linkcheck failed; see build/links/sphinx.log") from None


def broken_lines(found: list[dict]) -> list[str]:
    """One Markdown line for each link without an answer, with the file to mend."""
    lines = []
    for link in found:
        if link["status"] in ("broken", "timeout"):
            name = Path("docs", link["filename"])
            if name.parts[1] == "tutorials":  # generated; a person mends its source
                name = Path(link["filename"])
                name = name if name.stem == "index" else name.with_suffix(".py")
            info = " ".join(link["info"].split())[:200].replace("`", "'")
            lines.append(f"- `{name}`: <{link['uri']}> `{info or 'no answer'}`")
    return sorted(set(lines))


def check(root: Path = ROOT) -> int:
    """Check, leave the report, and return the exit code: 1 if a link is broken.

    Raises
    ------
    Failure
        If linkcheck did not come to its end.
    """
    out = root / "build" / "links"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    print("following links ...", flush=True)
    with tempfile.TemporaryDirectory() as source:
        copy_sources(root, Path(source))
        code = run_linkcheck(Path(source), out)
    found = read_output(out / "output.json")
    lines = broken_lines(found)
    # Another code is a crash, and no link at all a site that was not read.
    if code != bool(lines) or not found:
        raise Failure("links: linkcheck failed; see build/links/sphinx.log")
    (out / "report.md").write_text("".join(f"{line}\n" for line in lines))
    for line in lines:
        print(line)
    print(f"links: {len(found)}, broken: {len(lines)}; see build/links/output.txt")
    return 1 if lines else 0


def gh(*arguments: str, text: str = "") -> str:
    """What GitHub's command line answers.

    Raises
    ------
    Failure
        With its last line, if it fails or is missing.
    """
    try:
        done = subprocess.run(
            ["gh", *arguments], input=text, capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"links: gh: {error}") from None
    if done.returncode:
        said = (done.stderr.strip() or "no word").splitlines()[-1]
        raise Failure(f"links: gh {arguments[0]} {arguments[1]}: {said}")
    return done.stdout.strip()


def file_issue(root: Path, run: str) -> str:
    """Open, renew or close the one issue; return what was done.

    Parameters
    ----------
    root : Path
        The repository, with the report of a check.
    run : str
        Address of the run, for the reader of the issue.
    """
    try:
        report = (root / "build" / "links" / "report.md").read_text()
    except FileNotFoundError:  # no all-clear: nobody followed the links
        report = "The check itself did not come to its end; see the run.\n"
    search = ["--label", LABEL, "--state", "open", "--limit", "1"]
    number = gh("issue", "list", *search, "--json", "number", "--jq", ".[].number")
    if not report:
        if not number:
            return "no broken link, no issue"
        gh("issue", "close", number, "--comment", f"Every link answers again: {run}")
        return f"closed issue {number}"
    body = f"{report}\nChecked by {run}; the next check renews or closes this issue.\n"
    if number:
        gh("issue", "edit", number, "--body-file", "-", text=body)
        return f"renewed issue {number}"
    gh("label", "create", LABEL, "--force", "--description", "Found by the weekly run")
    opened = ["--title", TITLE, "--label", LABEL, "--body-file", "-"]
    return f"opened {gh('issue', 'create', *opened, text=body)}"


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Command line: check the links, or file what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--issue", metavar="URL", help="file the result of this run")
    options = parser.parse_args(arguments)
    try:
        if options.issue:
            print(file_issue(root, options.issue))
            return 0
        return check(root)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
