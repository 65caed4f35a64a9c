"""
.. _tut-split:

Put episodes back together
==========================

You will turn a flat batch into one row per trajectory, and never count the padding.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * lay out ten trajectories as ten rows
        * build those rows by hand
        * average real steps only
        * join a trajectory that two batches hold

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`)
        * the page before: :ref:`tut-collect`
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# A batch is one long line of steps. To plot episodes, or to feed them to a recurrent
# network side by side, you want a row for each. Here is the batch of
# :ref:`tut-collect`, the one after it, and one call.

collector = Collector(
    env,
    RandomPolicy(env.action_spec),
    frames_per_batch=200,
    total_frames=-1,
)
batches = iter(collector)
batch = next(batches)
second = next(batches)
collector.shutdown()
split = split_trajectories(batch)
print(f"{list(batch.shape)} becomes {list(split.shape)}")

# %%
# :func:`~torchrl.collectors.utils.split_trajectories` makes one row for each trajectory
# that the batch :term:`touches <touched>`, and as many columns as the longest has
# steps.

ids = batch["collector", "traj_ids"]
lengths = ids.unique_consecutive(return_counts=True)[1]
assert split.shape == (10, 63) == (len(lengths), lengths.max())

# %%
# The rows are copies. Your batch stays flat, and nothing is added to it:

assert ("collector", "mask") not in batch

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
# What stands in the empty places?
# --------------------------------
#
# Here are the ten bands, one to a row. Notice how little of the rectangle is colour.

fig, ax = plt.subplots(figsize=(5.4, 3.4))
fig.set_label(
    "Ten bands, one to a row, start at the left edge; only one reaches"
    " the right edge. Hatched padding fills the rest, most of the area."
)
for row, trajectory in enumerate(split):
    ribbon(ax, trajectory, y=-row)
_ = ax.set(xlabel="step of the trajectory", yticks=[], xlim=(0, 66))

# %%
# The hatched places are :term:`padding`. A new entry, the :term:`mask`, is True where a
# step is real. Its sum along a row is the length of the trajectory.

mask = split["collector", "mask"]
print(f"{mask.sum()} of {mask.numel()} places hold a step")
assert mask.sum(-1).tolist() == lengths.tolist()

# %%
# Everywhere else stands zero: in every entry, floats, integers and flags alike.

padding = split[~mask]
entries = padding.values(include_nested=True, leaves_only=True)
assert not any(entry.any() for entry in entries)

# %%
# Nothing is lost on the way. Index the rows with the mask, and the flat batch is back,
# step for step:

back = split[mask].exclude(("collector", "mask"))
assert (back == batch).all()

# %%
# Can you build it by hand?
# -------------------------
#
# Yes: take a rectangle of zeros and write each trajectory to the start of its row.

by_hand = batch.new_zeros(len(lengths), lengths.max())
pieces = batch.split(lengths.tolist())
for row, piece in enumerate(pieces):
    by_hand[row, : len(piece)] = piece
assert (by_hand == split.exclude(("collector", "mask"))).all()

# %%
# That is the whole function, the mask aside.
#
# Why not look for the id?
# ------------------------
#
# .. admonition:: Predict
#
#     Trajectory 0 has 11 steps. At how many places of ``split`` is the id 0?
#
#     .. dropdown:: Then look
#
#         At 441. The padding of *every* row is zero, and the ids are padded like the
#         rest. 430 places pretend to belong to trajectory 0.

row_ids = split["collector", "traj_ids"]
zeros = (row_ids == 0).sum().item()
padded = (~mask).sum().item()
assert (zeros, padded) == (441, 430)

# %%
# An id says nothing about padding; only the mask does. Take a row, then its mask:

first = split[0][mask[0]]
assert len(first) == 11

# %%
# How do you average over rows?
# -----------------------------
#
# Each step of CartPole pays 1. So the mean reward is 1. Is it?

reward = split["next", "reward"].squeeze(-1)
print(f"over all places: {reward.mean():.3f}")
print(f"over real steps: {reward[mask].mean():.3f}")
assert reward[mask].mean() == 1
assert round(reward.mean().item(), 3) == 0.317

# %%
# A plain mean divides by all places. So does ``(reward * mask).mean()``, although it
# looks careful. If you multiply by the mask, divide by its sum:

multiplied = (reward * mask).mean()
divided = (reward * mask).sum() / mask.sum()
assert multiplied == reward.mean() and divided == 1

# %%
# Multiplying has a second trap. Zeros of the padding may turn into NaN on the way, here
# as 0 / 0, and NaN times zero is NaN. An index leaves the padding out altogether:

state = split["observation"]
direction = state / state.norm(dim=-1, keepdim=True)
weighted = (direction * mask.unsqueeze(-1)).sum()
indexed = direction[mask].sum()
assert weighted.isnan() and indexed.isfinite()

# %%
# The padding bends curves, too. How far does the pole lean at each step, averaged over
# the rows? Notice where the lines part.

lean = state[..., 2].abs()
plain = lean.mean(0)
masked = (lean * mask).sum(0) / mask.sum(0)
fig, ax = plt.subplots()
fig.set_label(
    "The two means agree for ten steps. Then the plain mean sinks, as"
    " row after row ends; at step 62 it is a tenth of the other."
)
ax.plot(masked, label="with the mask")
ax.plot(plain, "--", label="plain mean")
ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
_ = ax.set(xlabel="step of the trajectory", ylabel="|angle| (rad)")

# %%
# They agree until the shortest row ends:

agree = torch.isclose(plain, masked)
assert agree.sum() == lengths.min() == 10

# %%
# Only one of the ten rows reaches the last step. There the plain mean is a tenth of
# the true one:

assert torch.isclose(plain[-1], masked[-1] / 10)

# %%
# Why is one episode in two rows?
# -------------------------------
#
# ``split_trajectories`` lays out what you give it, and nothing else. Trajectory 9 runs
# on :ref:`across the batch edge <tut-collect>`. Split each batch on its own, and it
# comes in two rows:

early, late = split, split_trajectories(second)
halves = [early[-1], late[0]]
steps = [int(half["collector", "mask"].sum()) for half in halves]
assert steps == [10, 2]

# %%
# Join first, then split. The halves carry the same id, so they become one row:

joined = split_trajectories(torch.cat([batch, second]))
whole = joined[9][joined[9]["collector", "mask"]]
assert len(whole) == 12

fig, ax = plt.subplots(figsize=(5.4, 1.8))
fig.set_label(
    "Split apart, trajectory 9 is a torn row of 10 steps and a row of 2"
    " that ends with a notch; joined first, it is one row of 12."
)
for y, row in enumerate([whole, late[0, :2], early[-1, :10]]):
    ribbon(ax, row, y=y)
names = ["joined first", "second batch", "first batch"]
_ = ax.set(xlabel="step of the row", xlim=(0, 16))
_ = ax.set_xticks([0, 2, 10, 12])
_ = ax.set_yticks(range(3), names)

# %%
# Joining works for batches that follow each other. The episode that the *last* batch
# cuts is still torn. If you never want pieces, let the collector wait for the end of
# each episode: :ref:`tut-complete`.
#
# Try it
# ------
#
# How far from the middle was the cart at the last real step of each row of ``split``?
# The position is entry 0 of the observation. Replace ``None`` by a tensor of ten
# positions.

answer = None


def check(answer):
    assert answer is not None, "replace None by ten positions"
    assert answer.shape == (10,), "one position for each row"
    final = [piece["observation"][-1, 0] for piece in pieces]
    wrong = answer != torch.stack(final)
    assert not wrong.any(), f"wrong rows: {wrong.nonzero()[:, 0]}"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         final = mask.sum(-1) - 1  # column of the last real step
#         answer = split["observation"][torch.arange(10), final, 0]
#
# In practice
# -----------
#
# You may not need rows at all: :ref:`tut-collect` adds up rewards per trajectory in the
# flat batch. What the rectangle costs, and what else there is, stands in
# :ref:`tut-layouts`. Compute advantages before you split; :ref:`here is why
# <tut-split-advantages>`.
#
# What you can rely on
# --------------------
#
# * There is one row for each trajectory that the batch touches, and one column for each
#   step of the longest.
# * The batch that you split does not change.
# * The mask counts the steps of each row.
# * Padding is zero in every entry.
# * The rows, indexed with the mask, are the flat batch.
# * A rectangle of zeros, filled row by row, gives the same rows.
# * In the rows of this batch, 441 ids are 0, of which 430 are padding.
# * A row, indexed with its mask, is one trajectory.
# * The mean reward over the real steps is 1.
# * The mean reward over all places is 0.317.
# * Multiplied by the mask, a mean is right only if you divide by the sum of the mask.
# * NaN in the padding survives a product with the mask, but not an index.
# * The plain mean of a step is right until the shortest row ends.
# * Where one row of ten is left, the plain mean is a tenth of the masked one.
# * A trajectory that two batches hold gives a row in each.
# * Batches that are joined first give one row for it.
#
# Next
# ----
#
# Several envs, or data without ids? Go on with :ref:`tut-split-keys`. Otherwise,
# :ref:`tut-ends` tells how the last step of each row ended.
