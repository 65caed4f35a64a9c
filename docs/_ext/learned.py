"""Shows what ``make bench-learning`` found: each seed a point, from its JSON.

``.. learning-origin::`` says when and with what, ``.. learning-points:: name`` shows an
experiment: a figure, a table of means, and what differs from the tutorial. A tutorial
shows the figure alone, with ``.. learning-figure:: name`` and a caption. As in
`measured`, whose helpers it uses, every number comes from the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import figures
from docutils import nodes
from measured import (
    RESULTS,
    Measured,
    ResultsError,
    check,
    count,
    load,
    origin,
    table,
)

#: What the directives read of the file; it may hold more.
SHAPE = {
    "date": str,
    "machine": str,
    "python": str,
    "versions": {},
    "seeds": [int],
    "experiments": {},
}
EXPERIMENT = {"page": str, "changed": {}, "episodes": int, "learners": {}}
NUMBERS = ("mean", "lowest", "highest")


def read(path: Path) -> dict:
    """Read the file about the learners.

    Raises
    ------
    ResultsError
        If it is missing, broken, or not what ``make bench-learning`` writes today.
    """
    results = load(path)
    check(results, SHAPE)
    seeds = len(results["seeds"])
    for name, experiment in results["experiments"].items():
        check(experiment, EXPERIMENT, f"'{name}'")
        held = experiment.get("asserts_held")
        if not isinstance(held, list) or {type(item) for item in held} != {bool}:
            raise ResultsError(f"'{name}' does not say whether its asserts held")
        for learner, row in experiment["learners"].items():
            told = f"'{learner}' of '{name}'"
            lists = [row.get(key) for key in NUMBERS] if isinstance(row, dict) else []
            if not lists or any(not isinstance(values, list) for values in lists):
                raise ResultsError(f"{told} lacks one of {', '.join(NUMBERS)}")
            if any(len(values) != seeds for values in lists):
                raise ResultsError(f"{told} lacks a seed")
            if not all(is_number(value) for values in lists for value in values):
                raise ResultsError(f"{told} holds something that is no number")
    return results


def is_number(value: object) -> bool:
    """Whether a value from JSON is a finite number; returns may be negative."""
    return type(value) in (int, float) and math.isfinite(value)


def finding(experiment: dict, seeds: int) -> str:
    """What the figure shows, in words that hold whichever way the numbers go."""
    ranges = [
        f"{name} {min(row['mean']):.0f} to {max(row['mean']):.0f}"
        for name, row in experiment["learners"].items()
    ]
    episodes = count(experiment["episodes"], "episode")
    return (
        f"Mean return over {episodes}, lowest to highest of {count(seeds, 'seed')}: "
        f"{'; '.join(ranges)}."
    )


def differences(experiment: dict) -> str:
    """What was changed in the tutorial, and whether its asserts held, in sentences."""
    held = experiment["asserts_held"]
    lines = [
        f"``{old}`` became ``{new}``" for old, new in experiment["changed"].items()
    ]
    if lines:
        return f"In the tutorial, {' and '.join(lines)}."
    return (
        f"Every assert of the tutorial held with {sum(held)} of "
        f"{count(len(held), 'seed')}."
    )


def means(experiment: dict, seeds: list[int]) -> list[str]:
    """The lines of the table: a row for each learner, a column for each seed."""
    body = [["Seed", *map(str, seeds)]]
    for name, row in experiment["learners"].items():
        body.append(
            [name, *(f"{value:.0f}".replace("-", "−") for value in row["mean"])]
        )
    return table(f"Mean return over {count(experiment['episodes'], 'episode')}", body)


def draw(experiment: dict, salt: str) -> str:
    """Draw an experiment as SVG text: a point a seed, a line over its episodes."""
    # Late imports: a build that reads no page of results does not pay for them.
    from matplotlib import style
    from matplotlib.figure import Figure

    learners = experiment["learners"]
    with style.context(figures.STYLE, after_reset=True):
        figure = Figure()
        ax = figure.subplots()
        for at, row in enumerate(learners.values()):
            seeds = len(row["mean"])
            x = [at + 0.5 * ((k + 0.5) / seeds - 0.5) for k in range(seeds)]
            ax.vlines(x, row["lowest"], row["highest"], f"C{at}", linewidth=1)
            ax.plot(x, row["mean"], f"C{at}o")
        ax.set_xticks(range(len(learners)), learners)
        ax.set_xlim(-0.5, len(learners) - 0.5)
        ax.set_ylabel("return")
        return figures.to_svg(figure, salt)


class LearningOrigin(Measured):
    """``.. learning-origin::``: when, where and with what, and from which seeds."""

    file = RESULTS.replace("build.json", "learning.json")
    writer = "make bench-learning"
    read = staticmethod(read)

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """One paragraph."""
        yield nodes.paragraph("", origin(results))


class LearningFigure(LearningOrigin):
    """``.. learning-figure:: name``: one experiment, each seed a point; a caption."""

    required_arguments = 1
    has_content = True

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """A figure and what stands below it."""
        yield from self.parse(self.figure(self.experiment(results), results["seeds"]))
        yield from self.parse_content_to_nodes()

    def experiment(self, results: dict) -> dict:
        """The experiment that is asked for."""
        experiment = results["experiments"].get(self.arguments[0])
        if experiment is None:
            raise self.error(f"learning.json holds no experiment '{self.arguments[0]}'")
        return experiment

    def figure(self, experiment: dict, seeds: list[int]) -> list[str]:
        """The lines that show its figure."""
        drawing = f"learning_{self.arguments[0].replace('-', '_')}"
        svg = draw(experiment, salt=drawing)
        return self.drawn(drawing, svg, finding(experiment, len(seeds)))


class LearningPoints(LearningFigure):
    """``.. learning-points:: name``: one experiment, with all of its means."""

    has_content = False

    def show(self, results: dict) -> Iterator[nodes.Node]:
        """What differs from the tutorial, a figure, and the means."""
        experiment, seeds = self.experiment(results), results["seeds"]
        pair = self.figure(experiment, seeds)
        yield from self.parse([differences(experiment), "", *pair])
        yield from self.parse(means(experiment, seeds))


def setup(app) -> dict:
    """Register the directives."""
    app.setup_extension("measured")
    app.add_directive("learning-origin", LearningOrigin)
    app.add_directive("learning-points", LearningPoints)
    app.add_directive("learning-figure", LearningFigure)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
