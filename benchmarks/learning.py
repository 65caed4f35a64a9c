"""Trains the tutorials' learners from several seeds; writes ``results/learning.json``.

Each run is the script of a tutorial with another seed, and for a variant with one more
of its settings changed. So what is compared is what the page does, and nothing else.
Each seed is kept. How long a run takes plays no part: as many run at a time as there
are cores, each with the one thread that its page asks for.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from report import RESULTS, origin

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "docs" / "_ext"), str(ROOT / "tests")]

import running  # noqa: E402  (found through the line above)

SEEDS = range(10)
SEED = "seed = 0"  # the line of a page that is replaced
DEADLINE = 1200  # seconds for one run
PACKAGES = ("torch", "torchrl", "tensordict", "gymnasium")


@dataclass(frozen=True)
class Experiment:
    """A tutorial as it is, or with settings changed.

    Attributes
    ----------
    name : str
        In the file of results and in the directive that shows it.
    page : str
        Name of the tutorial. In the end its ``scores`` hold, for each learner, the
        returns of its evaluation episodes.
    settings : dict
        Lines of the page and what stands there instead.
    """

    name: str
    page: str
    settings: dict[str, str] = field(default_factory=dict)


#: In place of the learner on cut batches, one on whole episodes whose targets end every
#: 25 steps: the same steps meet in an update, and only the targets differ.
CONTROL = {
    'near = train("cut", to_go)': (
        'near = train("in pieces", lambda td: to_go(td, ((torch.arange(len(td)) + '
        "torch.randint(25, ())) % 25 == 24).unsqueeze(-1)), **whole)"
    )
}

EXPERIMENTS = [
    Experiment("recurrent-dqn", "train/40_recurrent_dqn"),
    Experiment("actor-critic", "train/20_actor_critic"),
    Experiment(
        "actor-critic-own-limit", "train/20_actor_critic", {"limit = 50": "limit = 200"}
    ),
    Experiment("limit-values", "train/25_values"),
    Experiment("end-reward", "train/15_end_reward"),
    Experiment("reinforce", "train/10_reinforce"),
    Experiment(
        "reinforce-one-env", "train/10_reinforce", {"num_envs = 8": "num_envs = 1"}
    ),
    Experiment(
        "reinforce-long-rows",
        "train/10_reinforce",
        {"frames_per_batch = 200": "frames_per_batch = 1600"},
    ),
    Experiment("reinforce-control", "train/10_reinforce", CONTROL),
]

#: Appended to a script. Scores come through a file: a page may print what it likes.
HAND_OVER = """
import json
import pathlib

pathlib.Path("scores.json").write_text(json.dumps(scores))
"""


def changed(text: str, settings: dict[str, str]) -> str:
    """A script with lines replaced, each of which it must hold exactly once.

    Raises
    ------
    ValueError
        If it does not.
    """
    lines = text.splitlines()
    for old, new in settings.items():
        if lines.count(old) != 1:
            raise ValueError(f"the line `{old}` stands {lines.count(old)} times")
        lines[lines.index(old)] = new
    return "\n".join(lines) + "\n"


def run(experiment: Experiment, seed: int, root: Path = ROOT) -> dict:
    """Run a page from a seed.

    Returns
    -------
    dict
        ``scores``, the returns of each learner; and ``holds``, whether every assert of
        the page held. After one that did not, the page is run once more without any.

    Raises
    ------
    SystemExit
        If the page fails otherwise, does not end, or leaves no scores: one line.
    """
    name = f"{experiment.name}, seed {seed}"
    script = root / "tutorials" / f"{experiment.page}.py"
    settings = {SEED: f"seed = {seed}"} | experiment.settings
    try:
        text = changed(script.read_text(), settings) + HAND_OVER
    except (OSError, ValueError) as error:
        raise SystemExit(f"bench: {name}: {script.name}: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, script.name)
        copy.write_text(text)
        done = finished(copy, name)
        holds = done.code == 0
        if done.error.startswith("AssertionError"):
            done = finished(copy, name, PYTHONOPTIMIZE="1")  # without asserts
        if done.code:
            said = f"line {done.line}: {done.error or 'it said nothing'}"
            raise SystemExit(f"bench: {name}: {script.name}: {said}")
        scores = json.loads(Path(folder, "scores.json").read_text())
    return {"scores": scores, "holds": holds}


def finished(script: Path, name: str, **more: str) -> running.Run:
    """How a script ended, alone in its folder."""
    try:
        return running.run(script, script.parent, DEADLINE, **more)
    except subprocess.TimeoutExpired:
        raise SystemExit(f"bench: {name}: over {DEADLINE} seconds") from None


def summary(experiment: Experiment, runs: list[dict]) -> dict:
    """What the file keeps of the runs of an experiment, one entry a seed.

    Raises
    ------
    SystemExit
        If the learners differ from seed to seed, or have no returns.
    """
    learners = list(runs[0]["scores"])
    if any(list(part["scores"]) != learners for part in runs) or not learners:
        raise SystemExit(f"bench: {experiment.name}: not the same learners each time")
    returns = {
        name: [list(map(float, part["scores"][name])) for part in runs]
        for name in learners
    }
    return {
        "page": experiment.page,
        "changed": experiment.settings,
        "episodes": len(returns[learners[0]][0]),
        "asserts_held": [part["holds"] for part in runs],
        "learners": {
            name: {
                "mean": [round(statistics.fmean(seed), 1) for seed in seeds],
                "lowest": [round(min(seed), 1) for seed in seeds],
                "highest": [round(max(seed), 1) for seed in seeds],
            }
            for name, seeds in returns.items()
        },
    }


def main() -> None:
    """Run everything, then write the file; a failure leaves the old one."""
    jobs = [(experiment, seed) for experiment in EXPERIMENTS for seed in SEEDS]

    def one(job: tuple[Experiment, int]) -> dict:
        done = run(*job)
        print(f"  {job[0].name}, seed {job[1]}", flush=True)
        return done

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(one, job) for job in jobs]
        try:
            done = [future.result() for future in futures]
        finally:  # after a failure, what has not begun does not begin
            pool.shutdown(wait=False, cancel_futures=True)
    count = len(SEEDS)
    results = {
        **origin(PACKAGES),
        "seeds": list(SEEDS),
        "experiments": {
            experiment.name: summary(experiment, done[at * count : (at + 1) * count])
            for at, experiment in enumerate(EXPERIMENTS)
        },
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "learning.json").write_text(json.dumps(results, indent=2) + "\n")
    print(f"wrote {RESULTS.name}/learning.json")


if __name__ == "__main__":
    main()
