"""
.. _tut-slice-odds:

See which frames a slice sampler draws
======================================

You will know how often each frame of a buffer comes up, and reach those that never do.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * find the frames that never come up
        * rebuild the sampler in eight lines
        * compute each frame's chance
        * let short trajectories in

    .. grid-item-card:: You need

        * :ref:`tut-slices`: how to draw a slice
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
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
# Who draws at random expects every frame in the end. Here is the batch of
# :ref:`tut-collect` once more, and a buffer that draws 10,000 slices at a time.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batch = next(iter(collector))
collector.shutdown()


def filled(slices, **options):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(1000),
        sampler=SliceSampler(slice_len=16, **options),
        batch_size=16 * slices,
    )
    buffer.extend(batch)
    return buffer


drawn = filled(10_000).sample()["index"].flatten()
counts = torch.bincount(drawn, minlength=200)
never = counts == 0
print(f"{never.sum()} of 200 frames never came up")

# %%
# That is not bad luck. With 16 steps a slice, 58 frames are out of reach: those of the
# trajectories that are shorter than a slice.

ids = batch["collector", "traj_ids"]
lengths = ids.unique_consecutive(return_counts=True)[1]
assert never.sum() == 58
assert torch.equal(never, lengths[ids] < 16)

# %%
# The sampler says nothing about it. This is ``strict_length=True``, the default.
#
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
# How often does a frame come up?
# -------------------------------
#
# Above each frame of the buffer you see the share of slices that held it. Notice the
# gaps, the plateaus and the slopes.

fig, (top, low) = plt.subplots(
    2, figsize=(5.4, 2.8), sharex=True, height_ratios=(3, 1)
)
fig.set_label(
    "Share of slices that hold each frame: one in five where the"
    " trajectory has 16 steps, less in longer ones, none in shorter."
)
top.plot(torch.arange(200) + 0.5, counts / 10_000, "C0")
_ = top.set(ylabel="share of slices")
ribbon(low, batch)
_ = low.set(xlabel="row of the buffer", yticks=[], xlim=(0, 203))

# %%
# A trajectory of exactly 16 steps can only be drawn whole, so all its frames come up
# together. The one of 63 steps comes up no more often, but each time with a different
# quarter of its frames. Mean against mean:

mean = torch.zeros(10).index_add_(0, ids, counts.float()) / lengths
ratio = mean[lengths == 16].mean() / mean[lengths == 63].item()
print(f"16 steps against 63: {ratio:.2f} times as often")
assert abs(ratio - 63 / 16) < 0.3

# %%
# A replayed frame of a short episode counts almost four times as much. If short
# episodes are failures, you train on failures.
#
# Can you build it by hand?
# -------------------------
#
# The sampler needs two random numbers a slice. One picks a trajectory among those that
# are long enough, all with the same chance. The other picks a start, such that the
# slice still fits.


def draw(lengths, slice_len, slices):
    firsts, fits = lengths.cumsum(0) - lengths, lengths >= slice_len
    firsts, room = firsts[fits], (lengths - slice_len + 1)[fits]
    pick = torch.randint(len(room), (slices,))
    shift = (torch.rand(slices) * room[pick]).long()
    start = firsts[pick] + shift
    return start[:, None] + torch.arange(slice_len)


# %%
# Rewind the random numbers between the two, and both draw the same rows, all of them.

buffer = filled(1000)
state = torch.get_rng_state()
theirs = buffer.sample()["index"].reshape(-1, 16)
torch.set_rng_state(state)
ours = draw(lengths, 16, 1000)
assert torch.equal(ours, theirs)

# %%
# What is the chance of a single frame?
# -------------------------------------
#
# Now you can compute it, without a draw: lay a slice at every possible start and add up
# the chances.
#
# .. admonition:: Predict
#
#     The last frame of the 63-step trajectory is where it failed. Does it come up more
#     often than one in its middle, or less?
#
#     .. dropdown:: Then look
#
#         Less, by a factor of 16. Only the last possible start reaches it. A frame in
#         the middle lies in 16 different slices.

chance = torch.zeros(200)
firsts, room = lengths.cumsum(0) - lengths, lengths - 15
for first, starts in zip(firsts, room):
    for start in range(first, first + starts):
        chance[start : start + 16] += 1 / (room > 0).sum() / starts
assert ((counts / 10_000 - chance).abs() < 0.02).all()

# %%
# ``chance`` is the shape of the figure. At the end of the long trajectory it falls to
# one sixteenth:

middle, last = chance[52 + 31], chance[52 + 62]
assert torch.isclose(last, middle / 16)

# %%
# How do you let short trajectories in?
# -------------------------------------
#
# With ``strict_length=False``, a trajectory that is too short is drawn whole. Every
# frame comes up.

loose = filled(10_000, strict_length=False).sample()["index"].flatten()
more = torch.bincount(loose, minlength=200)
assert (more > 0).all()

# %%
# But a draw no longer has one size. You asked for 32 steps and get fewer:

pair = filled(2, strict_length=False)
sizes = {len(pair.sample()) for _ in range(200)}
print("sizes of a draw:", *sorted(sizes))
assert min(sizes) == 2 * lengths.min() and max(sizes) == 32

# %%
# And the imbalance stays. Now all ten trajectories share the slices equally. The filled
# shape is what you get, the line what you had.

fig, ax = plt.subplots()
fig.set_label(
    "With strict_length=False every frame comes up, and those of short"
    " trajectories more than twice as often as any of the longest."
)
ax.stairs(
    more / 10_000, range(201), color="C1", fill=True, label="not strict"
)
ax.stairs(counts / 10_000, range(201), color="C0", label="strict")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="row of the buffer", ylabel="share of slices")
gap = (more[lengths[ids] < 16].min() / more[52:115].max()).item()
assert gap > 2

# %%
# Where the next step needs one shape, ``pad_output=True`` repeats the last frame of a
# short slice and marks the repeats with False under ``("collector", "mask")``.

full = filled(100, strict_length=False, pad_output=True).sample()
mask, row = full["collector", "mask"], full["index"].squeeze(-1)
assert len(full) == 1600 and not mask.all()
assert torch.equal(row[1:][~mask[1:]], row[:-1][~mask[1:]])

# %%
# Try it
# ------
#
# What is the longest ``slice_len`` at which every frame comes up, with
# ``strict_length=True``? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    rows = draw(lengths, answer, 10_000)
    assert len(rows.unique()) == 200, "some frames never come up"
    rows = draw(lengths, answer + 1, 10_000)
    assert len(rows.unique()) < 200, "a longer slice does it too"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = lengths.min().item()
#
# In practice
# -----------
#
# * Print the share of frames out of reach once, when the buffer is full:
#   ``(lengths[ids] < slice_len).float().mean()`` here.
# * ``pad_output`` needs ``strict_length=False``. A draw without a short trajectory then
#   carries no mask: :ref:`tut-slice-variants`.
#
# What you can rely on
# --------------------
#
# * With slices of 16 steps, 58 of the 200 frames never come up.
# * Those are exactly the frames of trajectories shorter than a slice.
# * A frame of a 16-step trajectory comes up about 63/16 times as often as one of the
#   63-step trajectory.
# * The sampler picks a trajectory, then a start, both uniformly; done by hand, it draws
#   the same rows.
# * The chances computed from all possible starts are those observed.
# * The last frame of a long trajectory comes up a sixteenth as often as its middle.
# * With ``strict_length=False`` every frame comes up.
# * A draw then shrinks, down to two shortest trajectories.
# * Frames of short trajectories then come up more than twice as often as any frame of
#   the longest.
# * ``pad_output=True`` keeps the size, and marks what it added.
# * What it adds is the last frame of the slice, again.
#
# Next
# ----
#
# Next page: :ref:`tut-slice-ends`. For other samplers, skip to
# :ref:`tut-slice-variants`.
