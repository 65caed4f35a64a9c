"""
.. _tut-complete:

Ask for complete trajectories
=============================

You will have batches in which every trajectory is whole, from its reset to its end.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * get exactly five episodes at a time
        * choose a layout
        * build the mechanism by hand
        * count what the end of a run costs

    .. grid-item-card:: You need

        * what a batch edge does: :ref:`tut-collect`
        * what padding and mask are: :ref:`tut-split`
"""

import warnings
from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy


def collect(frames_per_batch=200, total_frames=400, **settings):
    _ = torch.manual_seed(0)
    env = GymEnv("CartPole-v1")
    _ = env.set_seed(0)
    settings["frames_per_batch"] = frames_per_batch
    settings["total_frames"] = total_frames
    policy = RandomPolicy(env.action_spec)
    collector = Collector(env, policy, **settings)
    yield from collector
    collector.shutdown()


# %%
# A batch of fixed size is cut after a number of steps, whatever is running. For the
# return of an episode you want it cut after an ending. ``collect`` takes 400 steps from
# the same seeds each time: first in fixed batches, then with ``trajs_per_batch``.

batches = list(collect())
yielded = list(collect(trajs_per_batch=5, traj_format="cat"))
for trajs in yielded:
    ended = trajs["next", "done"].sum().item()
    print(f"{ended} complete trajectories, {len(trajs)} steps")

# %%
# You asked for five, and each :term:`yield` holds five. Now the number of steps varies.

counts = [part["next", "done"].sum() for part in yielded]
assert counts == [5, 5, 5, 5]

# %%
# Drawing
# -------
#
# The figures of this site draw steps as a ribbon, with this function.


def ribbon(ax, td, y=0, x=0):
    ids, after = td["collector", "traj_ids"], td["next"]
    key = torch.where(td.get(("collector", "mask"), ids >= 0), ids, -1)
    end, saw = 0, [(i % 2 - 1, i - 6) for i in range(13)] + [(1, 0)]
    runs, sizes = key.unique_consecutive(return_counts=True)
    for run, size in zip(runs.tolist(), sizes.tolist()):
        end, x = end + size, x + size
        if run < 0:  # padding
            ax.barh(y, -size, 0.8, x, fc="w", ec="gray", hatch="////")
            continue
        bar = ax.barh(y, size, 0.8, x - size, fc=f"C{run % 6}", ec="w")
        if size > 7:
            ax.bar_label(bar, [run], label_type="center", c="w")
        if after["done"][end - 1]:
            face = "k" if after["terminated"][end - 1] else "w"
            ax.plot(x - 0.5, y + 0.36, "kv", mfc=face)
        else:  # its band ends in teeth
            ax.plot(x, y, "w", marker=saw, ms=66)[0].set_clip_path(*bar)


# %%
# How do I get exactly N complete episodes?
# -----------------------------------------
#
# With ``trajs_per_batch=N``. Here are the first 216 steps, cut in both ways. Notice
# trajectory 9: the edge of a batch tears it, the second yield holds all of it.

fig, ax = plt.subplots()
fig.set_label(
    "The batch edge at step 200 tears trajectory 9. The first yield has"
    " trajectories 0 to 4 and the second 5 to 9, all of them whole."
)
ribbon(ax, batches[0], 2)
ribbon(ax, batches[1][:16], 2, 200)
ribbon(ax, yielded[0], 1)
ribbon(ax, yielded[1], 0, len(yielded[0]))
rows = ["yield 2", "yield 1", "batches"]
_ = ax.set(xlabel="step", yticks=[0, 1, 2], yticklabels=rows)

# %%
# The collector holds a trajectory back until it has ended. So each yield stops at an
# ending:

last_steps = [part[-1] for part in yielded]
assert all(step["next", "done"] for step in last_steps)

# %%
# Nothing else changes. Put the yields together, and you have the steps of the fixed
# batches again: the same observations, flags and ids, in the same order.

stream, whole = torch.cat(batches), torch.cat(yielded)
assert (whole == stream[: len(whole)]).all()

# %%
# Padded or concatenated?
# -----------------------
#
# ``"cat"`` puts the five one after the other. It pads nothing, so it has no mask.

first = yielded[0]
assert ("collector", "mask") not in first.keys(True)

# %%
# ``"padded"`` gives each trajectory a row. Notice how much of the rectangle is hatched.

padded, *_ = collect(trajs_per_batch=5, traj_format="padded")
fig, ax = plt.subplots()
fig.set_label(
    "Five rows of 63 steps. The longest trajectory fills its row; the"
    " other four rows are mostly padding."
)
for row, trajectory in enumerate(padded):
    ribbon(ax, trajectory, -row)
_ = ax.set(xlabel="step of the trajectory", yticks=[])

# %%
# The trajectories are the same. ``"padded"`` is what
# :func:`~torchrl.collectors.utils.split_trajectories` makes of ``"cat"``:

assert padded.shape == (5, 63)
again = split_trajectories(first)
assert (padded == again).all()

# %%
# Say which one you want. If you do not, you get ``"padded"`` today, and a warning that
# this will change:

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    unset, *_ = collect(trajs_per_batch=5)
messages = " ".join(str(warning.message) for warning in caught)
assert unset.shape == padded.shape
assert "it will change to 'cat' in torchrl v0.16" in messages

# %%
# How does the collector do it?
# -----------------------------
#
# It cuts each batch after its endings, and keeps the rest for the next one. By hand:


def assemble(batches, number):
    rest, done = [], []
    for batch in batches:
        ends = batch["next", "done"].flatten().nonzero() + 1
        cuts = [0, *ends.flatten().tolist(), len(batch)]
        *parts, tail = [batch[a:b] for a, b in pairwise(cuts)]
        for part in parts:
            done.append(torch.cat([*rest, part]))
            rest = []
        rest.append(tail)
        while len(done) >= number:
            yield torch.cat(done[:number])
            del done[:number]


by_hand = assemble(batches, 5)
mine = [part["observation"].tolist() for part in by_hand]
theirs = [part["observation"].tolist() for part in yielded]
assert mine == theirs

# %%
# So ``frames_per_batch`` no longer shapes what you get. Set it to 5, and the yields
# stay the same:

tiny = list(collect(5, trajs_per_batch=5, traj_format="cat"))
assert [part["observation"].tolist() for part in tiny] == theirs

# %%
# What is lost at the end of a run?
# ---------------------------------
#
# ``total_frames`` counts the steps that are taken, not those that you get.
#
# .. admonition:: Predict
#
#     In these 400 steps, 20 trajectories end. You ask for 100 at a time. What do you
#     get?
#
#     .. dropdown:: Then look
#
#         Nothing. The 20 wait for 80 others. When ``total_frames`` is reached, they are
#         dropped, without a word.

ended = stream["next", "done"].sum()
assert ended == 20

lost = {}
for number in (5, 7, 100):
    parts = collect(trajs_per_batch=number, traj_format="cat")
    lost[number] = 400 - sum(len(part) for part in parts)
    print(f"{number:3} at a time: {lost[number]} of 400 steps lost")
assert lost == {5: 2, 7: 88, 100: 400}

# %%
# Two things are dropped: the trajectory in flight (the 2 steps), and complete ones that
# do not make up a full set (six of them when you ask for seven).

remainder = ended % 7
assert remainder == 6

# %%
# Try it
# ------
#
# You want three yields of five, and no step lost. What must ``total_frames`` be, if
# ``frames_per_batch`` is 1? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    settings = {"trajs_per_batch": 5, "traj_format": "cat"}
    run = collect(1, answer, **settings)
    parts = [len(part) for part in run]
    assert len(parts) == 3, f"{len(parts)} yields"
    assert sum(parts) == answer, f"{answer - sum(parts)} steps lost"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = sum(len(part) for part in yielded[:3])
#
# In practice
# -----------
#
# Ask for few trajectories at a time: the fewer, the less is lost. With
# ``total_frames=-1`` the run has no end, and you stop when you have enough.
#
# ``traj_format`` is new in TorchRL 0.14
# (`pull request 3876 <https://github.com/pytorch/rl/pull/3876>`__). It needs
# ``trajs_per_batch``:

message = None
try:
    _ = list(collect(traj_format="cat"))
except ValueError as error:
    message = str(error)
assert "no effect unless trajs_per_batch is set" in str(message)

# %%
# You may have read of a ``TrajectoryBatcher``
# (`pull request 3584 <https://github.com/pytorch/rl/pull/3584>`__). This release has no
# such class; ``trajs_per_batch`` does its work.

message = None
try:
    from torchrl.collectors import TrajectoryBatcher  # noqa: F401
except ImportError as error:
    message = str(error)
assert "cannot import name 'TrajectoryBatcher'" in str(message)

# %%
# What you can rely on
# --------------------
#
# * ``trajs_per_batch=5`` yields exactly five complete trajectories at a time.
# * Each yield stops at an ending.
# * The yields, put together, are the steps of the fixed batches: nothing is left out in
#   between, and ids stay as they are.
# * ``"cat"`` has no mask.
# * ``"padded"`` has a row for each trajectory and the length of the longest.
# * ``"padded"`` is what ``split_trajectories`` makes of ``"cat"``.
# * Without ``traj_format`` you get ``"padded"`` in this release.
# * And a warning that ``"cat"`` becomes the default in 0.16.
# * Cutting after endings and keeping the rest, by hand, gives the same yields.
# * ``frames_per_batch`` does not change the yields.
# * In these 400 steps, 20 trajectories end.
# * ``total_frames`` counts steps taken; what is not a full set by then is lost.
# * Complete trajectories are lost too, if they do not make up a full set.
# * ``traj_format`` without ``trajs_per_batch`` is a ``ValueError``.
# * There is no ``TrajectoryBatcher``.
#
# Next
# ----
#
# :ref:`tut-complete-buffer` puts whole episodes into a replay buffer. Or read
# first what can go wrong: :ref:`tut-complete-traps`.
