"""Writes a site of many small pages, to see how the build grows with their number.

Each page has what the build asks of a real one: label, cards, cells with an assert, a
figure with its alt sentence, an entry and a card in the index of its folder, a claims
file. It computes little, so that what grows is the build and not the pages.
"""

from __future__ import annotations

import shutil
from pathlib import Path

PER_FOLDER = 10  # as on the site; a folder's pages run together, then the next folder's

PAGE = '''\
"""
.. _tut-{label}:

Walk {number} steps at random
{rule}

You will walk at random, see where the walk leads and how far it strays.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * walk {number} times a hundred steps
        * find the place that is farthest from the start

    .. grid-item-card:: You need

        * nothing but the home page (:ref:`install`)
"""

import matplotlib.pyplot as plt
import torch

_ = torch.manual_seed({number})
steps = torch.randint(0, 2, ({number} * 100,)) * 2 - 1
walk = steps.cumsum(0)
print(f"{{len(walk)}} steps, the last of them at {{walk[-1]}}")

# %%
# How far does it stray?
# ----------------------
#
# Each step leads up or down by one. So a walk is never farther from its start than it
# has steps, and its place is even after an even number of them.

farthest = walk.abs().max()
assert farthest <= len(walk)

# %%
# Notice the farthest point.

fig, ax = plt.subplots()
fig.set_label("A line of steps up and down, with a dot where it is farthest away.")
ax.plot(walk[:: len(walk) // 100])
ax.plot([walk.abs().argmax() / (len(walk) // 100)], [walk[walk.abs().argmax()]], "ko")
_ = ax.set(xlabel="share of the steps", ylabel="place")

# %%
# What you can rely on
# --------------------
#
# * A walk is never farther from its start than it has steps.
'''

CLAIMS = """\
[[claim]]
says = "A walk is never farther from its start than it has steps."
assert = "assert farthest <= len(walk)"
replace = "farthest = walk.abs().max()"
with = "farthest = len(walk) + 1"
"""

#: Settings of all pages: nothing that names one.
SETTINGS = {"limits.toml": "default = 60\n[raised]\n", "warnings.toml": ""}

INDEX = """\
.. _{label}:

{title}
{rule}

.. grid:: 1 1 2 2

{cards}
.. toctree::
    :hidden:

{entries}
"""

CARD = """\
    .. grid-item-card:: {title}
        :link: {label}
        :link-type: ref

        What the page shows, in a sentence.
"""


def write_index(
    file: Path, label: str, title: str, cards: list[tuple[str, str]], entries: list[str]
) -> None:
    """Write a page with a card for each (title, label) and a table of contents."""
    text = INDEX.format(
        label=label,
        title=title,
        rule="=" * len(title),
        cards="\n".join(
            CARD.format(title=name, label=target) for name, target in cards
        ),
        entries="\n".join(f"    {entry}" for entry in entries),
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def write_page(root: Path, number: int) -> tuple[str, str, Path]:
    """Write one page and its claims file; returns title, label and script."""
    folder = f"part{(number - 1) // PER_FOLDER + 1:02}"
    script = root / "tutorials" / folder / f"{number:03}_walk.py"
    title, label = f"Walk {number} steps at random", f"walk-{number}"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(PAGE.format(label=label, number=number, rule="=" * len(title)))
    claims = root / "tests" / "claims" / f"{folder}_{script.stem}.toml"
    claims.parent.mkdir(parents=True, exist_ok=True)
    claims.write_text(CLAIMS)
    return title, f"tut-{label}", script


def write_site(root: Path, count: int) -> None:
    """Give a copy of the repository ``count`` synthetic pages in place of its own."""
    for name in ("tutorials", "tests/claims", "docs/reference"):
        shutil.rmtree(root / name, ignore_errors=True)
    folders: dict[Path, list[tuple[str, str, Path]]] = {}
    for number in range(1, count + 1):
        page = write_page(root, number)
        folders.setdefault(page[2].parent, []).append(page)
    cards = []
    for folder, written in folders.items():
        title = f"Walks of {folder.name}"
        links = [(name, label) for name, label, _ in written]
        stems = [script.stem for *_, script in written]
        write_index(folder / "index.rst", folder.name, title, links, stems)
        cards.append((title, folder.name))
    tutorials = root / "tutorials"
    for name, text in SETTINGS.items():
        (tutorials / name).write_text(text)
    entries = [f"{folder.name}/index" for folder in folders]
    write_index(tutorials / "index.rst", "tutorials", "Tutorials", cards, entries)
    home = root / "docs" / "index.rst"
    write_index(home, "install", "Walks", [("All", "tutorials")], ["tutorials/index"])
