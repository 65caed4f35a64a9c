"""
.. _tut-slices:

Replay slices, not frames
=========================

You will draw slices of 16 steps from a replay buffer, and know what a draw holds.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * store the flat batch and draw slices
        * see why a padded tensor cannot be sliced
        * choose length and number
        * count the trajectories in a draw

    .. grid-item-card:: You need

        * :ref:`tut-collect`: the batch and its ids
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.data import (
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# A replay buffer that draws single frames tears neighbours apart. A network with a
# memory, or a return over several steps, needs steps in a row. So draw a
# :term:`slice`: steps that follow each other. Here is the batch of :ref:`tut-collect`,
# stored as it came.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batch = next(iter(collector))
collector.shutdown()
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(1000),
    sampler=SliceSampler(slice_len=16),
    batch_size=32,
)
_ = buffer.extend(batch)
slices = buffer.sample()
rows = slices["index"].reshape(-1, 16)
for first, *_, last in rows.tolist():
    print(f"rows {first} to {last}")

# %%
# ``batch_size`` counts steps. The 32 steps come flat: two slices, one after the other.
# The buffer adds ``index``, the row where each step is stored. Cut it at every 16 steps
# and you see that no row is skipped.

assert slices.shape == (32,) and rows.shape == (2, 16)
assert (rows.diff(dim=1) == 1).all()

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
# What does a draw look like?
# ---------------------------
#
# Here is the whole buffer, and above it four more draws. Each bracket is a slice, two
# to a draw. Notice where the brackets end: none reaches from one band into the next.

fig, ax = plt.subplots(figsize=(5.4, 2.6))
fig.set_label(
    "Four draws of two slices, as brackets over the ten bands of the"
    " buffer. Every bracket lies inside one band; short bands get none."
)
ribbon(ax, buffer[:])
draws = torch.stack([buffer.sample() for _ in range(4)])
for draw, part in enumerate(draws, 1):
    for lift, row in enumerate(part["index"].reshape(-1, 16)):
        a, b, y = row[0], row[-1] + 1, draw - 0.15 + 0.4 * lift
        ax.plot([a, a, b, b], [y - 0.2, y, y, y - 0.2], "k", lw=1.5)
names = ["buffer", *(f"draw {number}" for number in range(1, 5))]
_ = ax.set(xlabel="row of the buffer", xlim=(0, 203), ylim=(-0.6, 4.7))
_ = ax.set_yticks(range(5), names)

# %%
# The sampler finds the ids that the collector stored, and keeps each slice inside one
# :term:`trajectory`. There are setups in which it cannot: see :ref:`tut-crossings`.

owners = draws["collector", "traj_ids"].reshape(-1, 16)
assert (owners == owners[:, :1]).all()

# %%
# You get pieces, not episodes, and that is the point. Every draw has one shape, and a
# long episode is not replayed from end to end. For whole episodes see
# :ref:`tut-complete`.
#
# Why not store the padded tensor?
# --------------------------------
#
# ``split_trajectories`` makes one row for each trajectory. That looks tidy, so you may
# want to store it.

padded = split_trajectories(batch)


def filled(data, batch_size=32, ndim=1, **options):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(1000, ndim=ndim),
        sampler=SliceSampler(**options),
        batch_size=batch_size,
    )
    buffer.extend(data)
    return buffer


message = None
try:
    filled(padded, slice_len=16).sample()
except RuntimeError as error:
    message = str(error)
print(message)

# %%
# The buffer took the data without a word. The first draw fails, because the ids now
# have two dimensions, trajectory and time, and the storage has one.

wanted = "Expected the end-of-trajectory signal to be 1-dimensional"
assert wanted in str(message)

# %%
# A storage with ``ndim=2`` silences the error. It is worse: zeros are drawn like steps.
# Of a large draw, more than half is padding.

many = filled(padded, batch_size=1600, ndim=2, slice_len=16).sample()
padding = (~many["collector", "mask"]).float().mean()
print(f"{padding:.0%} padding")
assert padding > 0.5

# %%
# The cure is the mask. It gives you the flat steps back, and those can be sliced.

steps = padded[padded["collector", "mask"]]
again = filled(steps, slice_len=16)
assert len(again) == 200 and len(again.sample()) == 32

# %%
# How long, and how many?
# -----------------------
#
# Length times number is ``batch_size``. You name one of the two; the other follows. Ask
# for four slices and each has eight steps.

four = filled(batch, num_slices=4).sample()
assert (four["index"].reshape(4, 8).diff(dim=1) == 1).all()

# %%
# Three requests cannot be met: a size that does not divide, both numbers at once, and a
# length that no trajectory has.

said = []
for size, options in (
    (33, {"slice_len": 16}),
    (32, {"slice_len": 16, "num_slices": 2}),
    (64, {"slice_len": 64}),
):
    message = None
    try:
        filled(batch, size, **options).sample()
    except (RuntimeError, TypeError) as error:
        message = str(error)
    said.append(str(message))
print(*said, sep="\n")

# %%
# Notice the last one: it tells you the range of lengths that the buffer holds.

assert "must be divisible by the slice length" in said[0]
assert "must be not None, and not both" in said[1]
assert "(length range: 10 - 63 / required=64)" in said[2]

# %%
# Do two slices come from two trajectories?
# -----------------------------------------
#
# .. admonition:: Predict
#
#     The buffer holds ten trajectories. How often do both slices of a draw come from
#     the same one?
#
#     .. dropdown:: Then look
#
#         Once in five draws, not once in ten. Only five trajectories have 16 steps or
#         more. Each slice picks one of those five, whatever the other one picked.

ids = batch["collector", "traj_ids"]
lengths = ids.unique_consecutive(return_counts=True)[1]
enough = lengths[lengths >= 16]
print("long enough:", enough.tolist())
assert len(enough) == 5

# %%
# .. alive:: starts
#     :steps: buffer[:]
#     :start: rows.shape[1]
#     :alt: Light over the rows of five bands where 16 steps fit; five bands are faded.
#
#     All rows of the buffer. A slice may start where a light is on above the band, and
#     nowhere else. A faded trajectory is too short: none of its rows is ever drawn.
#
# Look at the id of each slice's first step, in a thousand draws:

firsts = [buffer.sample()[::16] for _ in range(1000)]
picked = torch.stack(firsts)["collector", "traj_ids"]
same = (picked[:, 0] == picked[:, 1]).float().mean()
print(f"both from one trajectory: {same:.1%} of the draws")
assert abs(same - 1 / 5) < 0.04

# %%
# So never count on two different trajectories in a draw. And do not expect the
# 63-step trajectory more often than a 16-step one: each comes as one slice in five.

counts = torch.bincount(picked.flatten(), minlength=10)
shares = counts[lengths >= 16] / picked.numel()
assert (abs(shares - 1 / 5) < 0.04).all()

# %%
# That has consequences for single frames: some never come up. The next page counts
# them: :ref:`tut-slice-odds`.
#
# Try it
# ------
#
# Choose a ``slice_len`` with which *half* of the draws of two slices come from one
# trajectory. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    buffer = filled(batch, 2 * answer, slice_len=answer)
    key = ("collector", "traj_ids")
    pairs = [buffer.sample()[key][::answer] for _ in range(1000)]
    same = sum((a == b).item() for a, b in pairs)
    assert 440 < same < 560, f"one trajectory in {same} of 1000 draws"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 24  # only those with 30 and 63 steps are long enough
#
# In practice
# -----------
#
# * A batch of a batched env has two dimensions, and raises the error of the padded
#   tensor. Two ways to store it stand in :ref:`tut-boundaries`.
# * So does ``add`` with a step that still has a batch dimension of size 1: pass the
#   step without it (`issue 2948 <https://github.com/pytorch/rl/issues/2948>`__).
# * At the start of a training the buffer may hold no trajectory that is long enough.
#   Collect some episodes before the first draw.
#
# What you can rely on
# --------------------
#
# * ``batch_size`` counts steps; the slices of a draw come flat, one after the other.
# * A slice is made of consecutive rows of the buffer.
# * Filled by one collector, no slice leaves its trajectory.
# * A padded tensor in a one-dimensional storage raises a ``RuntimeError`` at the draw.
# * In a storage with ``ndim=2``, more than half of what is drawn here is padding.
# * The mask gives back 200 flat steps, which can be sliced.
# * ``num_slices=4`` with 32 steps gives slices of eight.
# * A ``batch_size`` that the slice length does not divide raises a ``RuntimeError``.
# * ``slice_len`` and ``num_slices`` together raise a ``TypeError``.
# * If no trajectory is long enough, the error names the range of lengths.
# * Five trajectories of this batch have 16 steps or more.
# * Both slices come from one trajectory in about one draw in five.
# * Each trajectory that is long enough is picked equally often, whatever its length.
#
# Next
# ----
#
# Next page: :ref:`tut-slice-odds`. If you need whole episodes instead:
# :ref:`tut-complete`.
