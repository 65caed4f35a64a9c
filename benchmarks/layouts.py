"""Measures what it takes to lay out trajectories; writes ``results/layouts.json``.

The same flat batch is split into padded rows and into nested ones, for batches of few
and of many trajectories. The two alternate within a round, since a shared machine
drifts, and only ratios of neighbours are kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from report import write_ratios
from tensordict import TensorDict
from torchrl.collectors.utils import split_trajectories

ROUNDS = 9
REPEAT = 20  # calls in one measurement
PACKAGES = ("torch", "torchrl", "tensordict")
#: Not all of one length: such a batch would come as an ordinary tensor, not nested.
CASES = {
    "10 trajectories of about 20 steps": [20] * 9 + [21],
    "50 trajectories of about 20 steps": [20] * 49 + [21],
    "500 trajectories of about 20 steps": [20] * 499 + [21],
    "49 of 20 steps and one of 500": [20] * 49 + [500],
}
FLAGS = ("done", "terminated", "truncated")


def batch(lengths: list[int]) -> TensorDict:
    """A flat batch as a collector delivers it, of trajectories of these lengths."""
    sizes = torch.tensor(lengths)
    steps = int(sizes.sum())
    after = {"observation": torch.zeros(steps, 4), "reward": torch.ones(steps, 1)}
    after |= {name: torch.zeros(steps, 1, dtype=torch.bool) for name in FLAGS}
    ids = torch.arange(len(lengths)).repeat_interleave(sizes)
    root = {"observation": torch.zeros(steps, 4), "action": torch.zeros(steps, 2)}
    return TensorDict({**root, "next": after, "collector": {"traj_ids": ids}}, [steps])


def seconds(call: Callable[[], object]) -> float:
    """Seconds of one call, from many."""
    begin = time.perf_counter()
    for _ in range(REPEAT):
        call()
    return (time.perf_counter() - begin) / REPEAT


def measure(td: TensorDict) -> float:
    """One round: time for nested rows as a share of the time for padded ones."""
    before = seconds(lambda: split_trajectories(td))
    nested = seconds(lambda: split_trajectories(td, as_nested=True))
    after = seconds(lambda: split_trajectories(td))
    return 2 * nested / (before + after)


def main() -> None:
    """Measure in rounds that alternate between cases; write the ratios."""
    torch.set_num_threads(1)
    batches = {name: batch(lengths) for name, lengths in CASES.items()}
    for td in batches.values():  # warm up
        measure(td)
    rounds = [
        {name: measure(td) for name, td in batches.items()} for _ in range(ROUNDS)
    ]
    write_ratios("layouts", PACKAGES, "seconds_relative_to_padded", rounds)


if __name__ == "__main__":
    main()
