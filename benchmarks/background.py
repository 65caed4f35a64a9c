"""Measures background collection; writes ``results/background.json``.

The same work, collecting steps and training on draws from the buffer, is done in turns
(a loop over the collector) and at once (with ``start()``). Training is sized to last as
long as collecting: the best case for doing both at once, which could then halve the
time. Short measurements alternate, since a shared machine drifts, and only the ratios
of neighbours are kept.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import gymnasium
import torch
from report import write_ratios
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import EnvBase, GymEnv, GymWrapper

ROUNDS = 9
BATCHES = 5  # after one to warm up
DEADLINE = 120  # seconds for one measurement
PACKAGES = ("torch", "torchrl", "tensordict", "gymnasium")


class Waiting(gymnasium.Wrapper):
    """An env that waits in each step, as for a simulator or a robot."""

    def __init__(self, env: gymnasium.Env, seconds: float):
        super().__init__(env)
        self.seconds = seconds

    def step(self, action):
        """Wait, then step."""
        time.sleep(self.seconds)
        return self.env.step(action)


@dataclass(frozen=True)
class Case:
    """An env and the steps of a batch; ``wait`` is in milliseconds a step."""

    name: str
    wait: int
    frames: int

    def env(self) -> EnvBase:
        """CartPole, all Python, or CartPole that waits in each step."""
        if not self.wait:
            return GymEnv("CartPole-v1")
        return GymWrapper(Waiting(gymnasium.make("CartPole-v1"), self.wait / 1000))


CASES = [
    Case("Python env", wait=0, frames=100),
    Case("env that waits 2 ms a step", wait=2, frames=100),
    Case("env that waits 20 ms a step", wait=20, frames=25),
]


class Learner:
    """A small training step on draws from a buffer."""

    def __init__(self, buffer: ReplayBuffer):
        self.buffer = buffer
        self.net = torch.nn.Sequential(
            torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
        )
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def train(self, steps: int) -> None:
        """Take a number of optimizer steps."""
        for _ in range(steps):
            loss = self.net(self.buffer.sample()["observation"]).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def new_collector(case: Case, buffer: ReplayBuffer) -> Collector:
    """A collector with a random policy that writes into the buffer."""
    return Collector(case.env, replay_buffer=buffer, frames_per_batch=case.frames)


def new_buffer() -> ReplayBuffer:
    """A buffer that holds all steps of a measurement many times over."""
    return ReplayBuffer(storage=LazyTensorStorage(50_000), batch_size=256)


def wait_for_steps(buffer: ReplayBuffer, count: int) -> None:
    """Wait until so many steps have been written.

    Raises
    ------
    SystemExit
        After the deadline: a collector that died measures nothing.
    """
    deadline = time.monotonic() + DEADLINE
    while buffer.write_count < count:
        if time.monotonic() > deadline:
            raise SystemExit("bench: the collector does not write")
        time.sleep(0.001)


def calibrate(case: Case) -> int:
    """How many training steps last as long as collecting one batch."""
    buffer = new_buffer()
    collector, learner = new_collector(case, buffer), Learner(buffer)
    batches = iter(collector)
    next(batches)
    learner.train(20)
    begin = time.perf_counter()
    for _ in range(5):
        next(batches)
    middle = time.perf_counter()
    learner.train(200)
    end = time.perf_counter()
    collector.shutdown()
    return max(1, round(200 * (middle - begin) / 5 / (end - middle)))


def in_turns(case: Case, steps: int) -> float:
    """Seconds of the work as a loop: collect a batch, train, and so on."""
    buffer = new_buffer()
    collector, learner = new_collector(case, buffer), Learner(buffer)
    batches = iter(collector)
    next(batches)
    learner.train(20)
    begin = time.perf_counter()
    for _ in range(BATCHES):
        next(batches)
        learner.train(steps)
    seconds = time.perf_counter() - begin
    collector.shutdown()
    return seconds


def at_once(case: Case, steps: int) -> float:
    """Seconds of the same work with ``start()``: until both parts are done."""
    buffer = new_buffer()
    collector, learner = new_collector(case, buffer), Learner(buffer)
    collector.start()
    wait_for_steps(buffer, case.frames)
    learner.train(20)
    wait_for_steps(buffer, buffer.write_count + 1)  # begin where a batch begins
    first = buffer.write_count
    begin = time.perf_counter()
    learner.train(steps * BATCHES)
    wait_for_steps(buffer, first + BATCHES * case.frames)
    seconds = time.perf_counter() - begin
    collector.async_shutdown()
    return seconds


def measure(case: Case) -> float:
    """One round: seconds at once as a share of the seconds in turns."""
    steps = calibrate(case)
    before = in_turns(case, steps)
    both = at_once(case, steps)
    after = in_turns(case, steps)
    return 2 * both / (before + after)


def main() -> None:
    """Measure in rounds that alternate between cases; write ratios to taking turns."""
    torch.set_num_threads(1)
    rounds = []
    for number in range(1, ROUNDS + 1):
        print(f"  round {number} of {ROUNDS}", file=sys.stderr)
        rounds.append({case.name: measure(case) for case in CASES})
    key = "seconds_relative_to_taking_turns"
    write_ratios("background", PACKAGES, key, rounds)


if __name__ == "__main__":
    main()
