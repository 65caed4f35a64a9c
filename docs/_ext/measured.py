"""Shows what ``make bench`` measured: sentences, tables and a figure, from its JSON.

Everything that a reader sees of a number comes from the file at build time, so a page
cannot say what was not measured. What the directives write depends on nothing else: no
clock, no machine, so two builds give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import figures
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

RESULTS = "/../benchmarks/results/build.json"  # seen from the source folder

#: Names in the file of what was measured on the site, and what the page calls them.
COSTS = {
    "cold": "First build, from nothing",
    "outside tutorials": "Of that, outside tutorials",
    "unchanged": "Nothing has changed",
    "home page edited": "Home page edited",
    "one page edited": "One tutorial edited and built alone",
}

TIMES = dict.fromkeys(("cold", "in tutorials", "outside tutorials", "unchanged"), float)
ONE_PAGE = {"one page edited": float}
MEASURES = {
    "pages": int,
    "workers": int,
    "rounds": int,
    "seconds": TIMES,
    "ratio_to_cold": TIMES,
    "peak_memory_mib": float,
}
RATIOS = ("cold, to one worker", "cold, to fewest pages")
ROW = MEASURES | {"ratio": dict.fromkeys(RATIOS, float)}
#: What the directives read of the file; it may hold more.
SHAPE = MEASURES | {
    "date": str,
    "machine": str,
    "python": str,
    "versions": {},
    "seconds": dict.fromkeys(COSTS, float),
    "ratio_to_cold": dict.fromkeys(COSTS, float),
    "growth": [ROW],
}

#: The same of a file that compares two ways of doing one thing.
COMPARED = {"date": str, "machine": str, "python": str, "versions": {}, "rounds": int}

SPACE = "\N{NO-BREAK SPACE}"


class ResultsError(Exception):
    """A file of results that cannot be shown, and why."""


def check(value, shape, name: str = "the file") -> None:
    """Compare a value with what is expected in its place.

    Parameters
    ----------
    value : object
        Read from JSON.
    shape : dict, list or type
        The keys that it must have, the shape of each of its items, or its type.
    name : str
        How to call the value.

    Raises
    ------
    ResultsError
        If they differ.
    """
    if isinstance(shape, dict):
        kind = dict
    elif isinstance(shape, list):
        kind = list
    else:
        kind = (int, float) if shape is float else shape
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ResultsError(f"{name} is {json.dumps(value)[:40]}")
    if isinstance(shape, dict):
        for key, part in shape.items():
            if key not in value:
                raise ResultsError(f"{name} has no '{key}'")
            check(value[key], part, f"'{key}'")
    elif isinstance(shape, list):
        if not value:
            raise ResultsError(f"{name} is empty")
        for item in value:
            check(item, shape[0], f"an item of {name}")
    elif shape is not str and not 0 <= value < float("inf"):
        raise ResultsError(f"{name} is {value}")


def load(path: Path) -> dict:
    """Load a JSON file.

    Raises
    ------
    ResultsError
        If it is missing or broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError("no such file") from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"not JSON: {error}") from None


def read(path: Path) -> dict:
    """Read the file about the build.

    Raises
    ------
    ResultsError
        If it is missing, broken, or not what ``make bench`` writes today.
    """
    results = load(path)
    check(results, SHAPE)
    by_key = rows(results)
    for pages in sizes(results):
        for workers in (least(results), most(results)):
            if (pages, workers) not in by_key:
                raise ResultsError(f"'growth' lacks {pages} pages, {workers} workers")
        alone = by_key[pages, least(results)]
        for key in ("seconds", "ratio_to_cold"):
            check(alone[key], ONE_PAGE, f"'{key}' of {pages} pages")
    return results


def rows(results: dict) -> dict[tuple[int, int], dict]:
    """The rows of the growth by pages and workers."""
    return {(row["pages"], row["workers"]): row for row in results["growth"]}


def sizes(results: dict) -> list[int]:
    """The numbers of pages that were measured, fewest first."""
    return sorted({row["pages"] for row in results["growth"]})


def least(results: dict) -> int:
    """The fewest workers that were measured."""
    return min(row["workers"] for row in results["growth"])


def most(results: dict) -> int:
    """The most workers that were measured."""
    return max(row["workers"] for row in results["growth"])


def named(count: int) -> str:
    """How the page speaks of a number of workers."""
    return {1: "one page at a time", 2: "two at a time"}.get(
        count, f"{count} at a time"
    )


def count(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def origin(results: dict) -> str:
    """When, where and with what it was measured, in two sentences."""
    versions = [f"{name} {number}" for name, number in results["versions"].items()]
    packages = ", ".join([f"Python {results['python']}", *versions])
    return (
        f"Measured on {results['date']} on a machine with {results['machine']}. "
        f"Installed: {packages}."
    )


def memory(results: dict) -> str:
    """How much memory the first build of the site took, in a sentence."""
    amount = f"{results['peak_memory_mib']:.0f}{SPACE}MiB"
    return f"At its peak the first build held {amount}, all its processes together."


def finding(results: dict) -> str:
    """What the figure shows, in words that hold whichever way the numbers go."""
    low, high = sizes(results)[0], sizes(results)[-1]
    one, all_ = least(results), most(results)
    single, several = (rows(results)[high, workers] for workers in (one, all_))
    times = single["ratio"]["cold, to fewest pages"]
    edited = single["ratio_to_cold"]["one page edited"]
    share = several["ratio"]["cold, to one worker"]
    return (
        f"{named(one).capitalize()}, {high} pages take {times:.1f} times as long as "
        f"{low}. {named(all_).capitalize()}, they take {share:.0%} of that time, and "
        f"one page edited and built alone takes {edited:.0%} of it."
    )


def draw(results: dict, salt: str) -> str:
    """Draw the growth as SVG text, in the site's style."""
    # Late imports: a build that reads no page of results does not pay for them.
    from matplotlib import style
    from matplotlib.figure import Figure

    x, by_key = sizes(results), rows(results)
    # From the defaults: tutorials that ran before leave their settings behind.
    with style.context(figures.STYLE, after_reset=True):
        figure = Figure()
        ax = figure.subplots()
        lines = [(named(n), "cold", n) for n in (least(results), most(results))]
        lines.append(("one page edited", "one page edited", least(results)))
        for label, key, workers in lines:
            y = [by_key[pages, workers]["seconds"][key] for pages in x]
            ax.plot(x, y, "o-", label=label)
        ax.set(xlabel="pages", ylabel="seconds", xticks=x)
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        ax.legend(loc="upper left")  # free, as the lines rise from the lower left
        return figures.to_svg(figure, salt)


def table(title: str, body: list[list[str]]) -> list[str]:
    """The lines of a table whose first row and column are headings."""
    lines = [f".. list-table:: {title}", "    :header-rows: 1", "    :stub-columns: 1"]
    lines += ["    :align: left", ""]
    for row in body:
        for mark, cell in zip("*" + " " * len(row), row):
            lines.append(f"    {mark} - {cell}")
    return [*lines, ""]


def costs(results: dict) -> list[str]:
    """The lines of the table about the site itself."""
    seconds, ratio = results["seconds"], results["ratio_to_cold"]
    pages = count(results["pages"], "tutorial")
    rounds = count(results["rounds"], "round")
    body = [["Build", "Time", "Share"]]
    for key, label in COSTS.items():
        body.append([label, f"{seconds[key]:.1f}{SPACE}s", f"{ratio[key]:.0%}"])
    return table(
        f"This site with {pages}, {named(results['workers'])}; medians of {rounds}",
        body,
    )


def ratios(results: dict) -> list[str]:
    """The lines of the table about the growth."""
    one, all_, by_key = least(results), most(results), rows(results)
    rounds = sorted({row["rounds"] for row in results["growth"]})
    made = f"{rounds[0]} to " if len(rounds) > 1 else ""
    made += count(rounds[-1], "round")
    title = f"First builds, {named(one)}; medians of {made}"
    body = [
        ["Pages"],
        [f"Times as long as {count(sizes(results)[0], 'page')}"],
        [named(all_).capitalize()],
        ["Outside tutorials"],
        ["One page edited and built alone"],
    ]
    for pages in sizes(results):
        single, several = by_key[pages, one], by_key[pages, all_]
        shares = single["ratio_to_cold"]
        cells = [
            f"{pages}",
            f"{single['ratio']['cold, to fewest pages']:.1f}",
            f"{several['ratio']['cold, to one worker']:.0%}",
            f"{shares['outside tutorials']:.0%}",
            f"{shares['one page edited']:.0%}",
        ]
        for row, cell in zip(body, cells, strict=True):
            row.append(cell)
    return table(title, body)


@dataclass(frozen=True)
class Comparison:
    """A file of ratios: its name, the key that holds them, what the table calls them.

    Attributes
    ----------
    name : str
        Of the file, as ``<name>.json``.
    key : str
        Under it stand the cases, each with median, lowest and highest ratio.
    case, title : str
        Head of the first column, and of the table.
    """

    name: str
    key: str
    case: str
    title: str

    def read(self, path: Path) -> dict:
        """Read the file.

        Raises
        ------
        ResultsError
            If it is missing, broken, or not what ``make bench`` writes today.
        """
        results = load(path)
        check(results, COMPARED | {self.key: {}})
        for case, row in results[self.key].items():
            check(row, dict.fromkeys(SPREAD, float), f"'{case}'")
        return results

    def lines(self, results: dict) -> list[str]:
        """The lines of its table."""
        body = [[self.case, *map(str.capitalize, SPREAD)]]
        for case, row in results[self.key].items():
            body.append([case, *(f"{row[key]:.2f}" for key in SPREAD)])
        return table(f"{self.title}; {count(results['rounds'], 'round')}", body)


SPREAD = ("median", "lowest", "highest")

BACKGROUND = Comparison(
    name="background",
    key="seconds_relative_to_taking_turns",
    case="Env",
    title="Time at once, divided by time in turns",
)
LAYOUTS = Comparison(
    name="layouts",
    key="seconds_relative_to_padded",
    case="Batch",
    title="Time for nested rows, divided by time for padded ones",
)


class Measured(SphinxDirective):
    """What the directives share: they read a file, or say why they cannot."""

    file = RESULTS
    writer = "make bench"
    read = staticmethod(read)

    def run(self) -> list[nodes.Node]:
        """Show the results; complain once on a page if there are none to show."""
        relative, path = self.env.relfn2path(self.file)
        self.env.note_dependency(relative)
        try:
            results = self.read(Path(path))
        except ResultsError as error:
            if self.env.current_document.get("measured_complained"):
                return []
            self.env.current_document["measured_complained"] = True
            file = relative.removeprefix("../")
            raise self.error(f"{file}: {error}; `{self.writer}` writes it") from None
        return list(self.show(results))

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """The nodes that take the place of the directive."""
        raise NotImplementedError

    def drawn(self, name: str, svg: str, alt: str) -> list[str]:
        """Keep a drawing where the build keeps its own; the lines that show it."""
        light = Path(self.env.doctreedir, "measured", f"{name}.svg")
        light.parent.mkdir(parents=True, exist_ok=True)
        light.write_text(svg, encoding="utf-8")
        figures.dark_file(light).write_text(figures.dark(svg), encoding="utf-8")
        source = Path(os.path.relpath(light, self.env.srcdir)).as_posix()
        return [f".. figure-pair:: /{source}", f"    :alt: {alt}", ""]

    def parse(self, lines: list[str]) -> list[nodes.Node]:
        """Turn reStructuredText into nodes."""
        return self.parse_text_to_nodes("\n".join(lines))


class Origin(Measured):
    """``.. build-origin::``: when, where and with what it was measured."""

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """One paragraph."""
        yield nodes.paragraph("", origin(results))


class Costs(Measured):
    """``.. build-costs::``: what the site takes to build."""

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """A table and a sentence."""
        yield from self.parse(costs(results))
        yield nodes.paragraph("", memory(results))


class Growth(Measured):
    """``.. build-growth::``: how the time grows with the number of pages."""

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """A figure and a table."""
        name = "build_growth"
        pair = self.drawn(name, draw(results, salt=name), finding(results))
        yield from self.parse(pair + ratios(results))


class Compared(Measured):
    """A comparison: a paragraph and a table."""

    comparison: Comparison

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """When and where it was measured, then the ratios."""
        yield nodes.paragraph("", origin(results))
        yield from self.parse(self.comparison.lines(results))


def compared(comparison: Comparison) -> type[Compared]:
    """The directive ``.. <name>-ratios::`` of a comparison."""
    file = RESULTS.replace("build.json", f"{comparison.name}.json")
    own = {"comparison": comparison, "file": file, "read": comparison.read}
    return type(f"Compared{comparison.name.title()}", (Compared,), own)


def setup(app) -> dict:
    """Register the directives."""
    app.setup_extension("figures")
    app.add_directive("build-origin", Origin)
    app.add_directive("build-costs", Costs)
    app.add_directive("build-growth", Growth)
    for comparison in (BACKGROUND, LAYOUTS):
        app.add_directive(f"{comparison.name}-ratios", compared(comparison))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
