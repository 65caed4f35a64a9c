"""Says which claims of which page do not hold in this environment: ``make newest``.

Runs each page alone, in a fresh process and an empty folder, with every assert noted
instead of fatal, so that one broken claim does not hide the next. Writes Markdown to
the file that ``GITHUB_STEP_SUMMARY`` names, and to stdout. A broken claim is news, not
a failure: the exit code is 0.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from newest import FREED  # noqa: E402  (all three found through the line above)
from page_run import page_name, pages  # noqa: E402
from pageparts import Assertion, Page  # noqa: E402
from running import DEADLINE, run  # noqa: E402

#: Runs first in every Python that the page starts.
SITE = "import claim_recorder\nclaim_recorder.install()\n"

_WARNING = re.compile(r"^\S*?([^/\s]+:\d+: \w*Warning: .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Broken:
    """A false claim: line and text of its assert, its bullet, the error."""

    line: int
    text: str
    says: str
    error: str


@dataclass(frozen=True)
class Report:
    """What became of a page; ``ended`` is its early end in words, "" if it had none."""

    page: str
    claims: int
    broken: list[Broken]
    unchecked: int
    ended: str
    warnings: list[str]

    @property
    def well(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.broken or self.unchecked or self.ended or self.warnings)


def rewritten(source: str, asserts: list[Assertion]) -> str:
    """The page with each assert noted, on the line where it stands.

    An assert that shares its line with other code is left as it is: it still ends the
    page, which the report then says.
    """
    lines = source.splitlines()
    for claim in asserts:
        text = "\n".join(lines[claim.line - 1 : claim.end]).lstrip()
        if alone(text):
            first = lines[claim.line - 1]
            indent = first[: len(first) - len(first.lstrip())]
            noted = f"{indent}with _claim({claim.line}): {first.lstrip()}"
            lines[claim.line - 1] = noted
    return "\n".join(lines) + "\n"


def alone(text: str) -> bool:
    """Whether a text is one assert and nothing else."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return len(body) == 1 and isinstance(body[0], ast.Assert)


def bullets(page: Page, asserts: list[Assertion]) -> list[str]:
    """The bullet of each assert, "" for all if they do not match one to one."""
    found = page.bullets()
    return found if len(found) == len(asserts) else [""] * len(asserts)


def early_end(script: Path, code: int, stderr: str) -> str:
    """What ended a page, from the last traceback: the page's line, and the error."""
    frames = rf'^  File "{re.escape(str(script))}", line (\d+)'
    lines = re.findall(frames, stderr, re.MULTILINE)
    place = f"line {lines[-1]}: " if lines else ""
    error = re.split(r"^  .*\n", stderr, flags=re.MULTILINE)[-1].strip()
    return f"{place}{error or f'exit code {code}, without a word'}"


def read_record(record: Path) -> dict[int, str]:
    """The error of each assert that was reached, by line; "" if it always held."""
    outcomes: dict[int, str] = {}
    for line, error in map(json.loads, record.read_text().splitlines()):
        outcomes[line] = outcomes.get(line) or error
    return outcomes


def report(script: Path, deadline: float = DEADLINE) -> Report:
    """Run a page and say what became of its claims.

    Raises
    ------
    SyntaxError
        If the page is not Python.
    """
    page = Page(script)
    asserts = page.asserts()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "page").mkdir()
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE)
        recorder = Path(__file__).with_name("claim_recorder.py")
        (folder / "site" / recorder.name).write_bytes(recorder.read_bytes())
        copy = folder / "page" / script.name
        copy.write_text(rewritten(script.read_text(), asserts))
        record = folder / "record"
        record.touch()
        ended, stderr = "", ""
        try:
            ran = run(
                copy,
                copy.parent,
                deadline,
                PYTHONPATH=str(folder / "site"),
                CLAIM_RECORD=str(record),
            )
            stderr = ran.stderr
            ended = early_end(copy, ran.code, stderr) if ran.code else ""
        except subprocess.TimeoutExpired:
            ended = f"it did not end within {deadline:g} s"
        outcomes = read_record(record)
    broken = [
        Broken(claim.line, claim.text, says, outcomes[claim.line])
        for claim, says in zip(asserts, bullets(page, asserts), strict=True)
        if outcomes.get(claim.line)
    ]
    unchecked = len(asserts) - len(outcomes)
    warnings = sorted(set(_WARNING.findall(stderr)))
    return Report(page_name(script), len(asserts), broken, unchecked, ended, warnings)


def code(text: str) -> str:
    """Text as Markdown code, whatever backticks and line breaks it has."""
    text = " ".join(text.split())[:400]
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"


def versions() -> str:
    """The versions of the packages that a newest environment sets free."""
    found = []
    for package in FREED:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {package}")
    return ", ".join(found)


def markdown(found: Report) -> str:
    """The section of a page that has something to tell."""
    count = f"broken: {len(found.broken)}, not checked: {found.unchecked}"
    lines = [f"### tutorials/{found.page}.py", "", f"{count}, of {found.claims}.", ""]
    for claim in found.broken:
        says = claim.says or "no bullet"
        lines.append(f"- line {claim.line}: {says}")
        lines.append(f"  {code(claim.text)} gave {code(claim.error)}")
    if found.ended:
        lines += ["", f"The page ended early: {code(found.ended)}"]
    if found.warnings:
        lines += ["", "It warned:", ""]
        lines += [f"- {code(text)}" for text in found.warnings]
    return "\n".join([*lines, ""])


def summary(reports: list[Report]) -> str:
    """The whole report: versions, one line of verdict, a section for each page."""
    claims = sum(found.claims for found in reports)
    broken = sum(len(found.broken) for found in reports)
    unchecked = sum(found.unchecked for found in reports)
    verdict = f"Pages: {len(reports)}, claims: {claims}, broken: {broken}, "
    told = [markdown(found) for found in reports if not found.well]
    head = [f"## {versions()}", "", f"{verdict}not checked: {unchecked}.", ""]
    return "\n".join(head + told)


def chosen(names: list[str], root: Path) -> list[Path]:
    """The scripts of the pages that are named, or of all.

    Raises
    ------
    ValueError
        If there is no such page, or no page at all.
    """
    scripts = {page_name(script): script for script in pages(root)}
    if not scripts:
        raise ValueError("no page in tutorials/")
    names = [name.removeprefix("tutorials/").removesuffix(".py") for name in names]
    if unknown := [name for name in names if name not in scripts]:
        raise ValueError(f"no page tutorials/{unknown[0]}.py")
    return [scripts[name] for name in names] or list(scripts.values())


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Report, and return the exit code: 2 if the pages could not be read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="folder/stem; without, all pages")
    parser.add_argument(
        "--deadline", type=float, default=DEADLINE, help="seconds for a page"
    )
    options = parser.parse_args(arguments)
    reports = []
    try:
        for script in chosen(options.pages, root):
            print(f"  {page_name(script)}", file=sys.stderr, flush=True)
            reports.append(report(script, options.deadline))
    except SyntaxError as error:
        place = f"tutorials/{page_name(script)}.py:{error.lineno}"
        print(f"{place}: not Python: {error.msg}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"claim_report: {error}", file=sys.stderr)
        return 2
    text = summary(reports)
    print(text)
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
