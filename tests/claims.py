"""The claims harness: makes a claim false and demands that its assert notices.

Each page has ``tests/claims/<folder>_<page>.toml`` with one ``[[claim]]`` for each
bullet of "What you can rely on": ``says`` (the bullet), ``assert`` (the assert that
pins it), ``replace`` and ``with`` (one line of the page, and what makes the claim
false).
"""

from __future__ import annotations

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pageparts import Page
from running import run_quickly

FOLDER = Path(__file__).parent / "claims"
KEYS = {"says", "assert", "replace", "with"}


@dataclass(frozen=True)
class Claim:
    """One claim of a page; ``pin`` is its assert in normal form."""

    says: str
    pin: str
    replace: str
    by: str


def read(path: Path) -> list[Claim]:
    """The claims of a file, in order.

    Raises
    ------
    ValueError
        If the file has other keys than the four, or an assert is not Python.
    """
    claims = []
    for number, table in enumerate(tomllib.loads(path.read_text())["claim"], 1):
        if set(table) != KEYS:
            wanted = ", ".join(sorted(KEYS))
            raise ValueError(f"{path.name}: claim {number} needs exactly {wanted}")
        try:
            pin = ast.unparse(ast.parse(table["assert"]))
        except SyntaxError as error:
            raise ValueError(f"{path.name}: claim {number}: {error}") from None
        says = " ".join(table["says"].split())
        claims.append(Claim(says, pin, table["replace"], table["with"]))
    return claims


def mismatches(page: Page, claims: list[Claim]) -> list[str]:
    """Where bullets, asserts and claims do not match one to one, in order."""
    found = []
    for name, ours, theirs in (
        ("bullet", page.bullets(), [claim.says for claim in claims]),
        ("assert", [a.text for a in page.asserts()], [claim.pin for claim in claims]),
    ):
        found += [
            f"{name} without a claim: {text}" for text in ours if text not in theirs
        ]
        found += [
            f"claim without a {name}: {text}" for text in theirs if text not in ours
        ]
        found += [f"{name} twice: {text}" for text in set(ours) if ours.count(text) > 1]
        if not found and ours != theirs:
            found.append(f"claims and {name}s stand in different orders")
    lines = page.path.read_text().splitlines()
    for claim in claims:
        if lines.count(claim.replace) != 1:
            times = lines.count(claim.replace)
            found.append(f"line to replace stands {times} times: {claim.replace}")
        if claim.by == claim.replace:
            found.append(f"mutation changes nothing: {claim.replace}")
        if claim.replace.strip().startswith("assert "):
            found.append(f"mutation changes an assert itself: {claim.replace}")
    return found


def verdict(page: Page, claim: Claim, folder: Path) -> str:
    """Run the page with the claim made false; "" if exactly its assert failed."""
    lines = page.path.read_text().splitlines()
    lines[lines.index(claim.replace)] = claim.by
    mutated = folder / page.path.name
    mutated.write_text("\n".join(lines) + "\n")
    ran = run_quickly(mutated, folder, page)
    pins = [item for item in page.asserts() if item.text == claim.pin]
    if ran.code == 0:
        return f"nothing failed with: {claim.by.strip()}"
    if not ran.error.startswith("AssertionError"):
        return f"line {ran.line} raised {ran.error}, not the assert"
    if not any(pin.line <= ran.line <= pin.end for pin in pins):
        return f"line {ran.line} failed, not the assert in line {pins[0].line}"
    return ""
