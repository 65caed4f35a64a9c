"""
.. _tut-boundaries:

See the boundaries that the sampler sees
========================================

You will list the trajectories of any buffer, full or not, as a slice sampler finds
them.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * call the sampler's own boundary finder
        * follow a trajectory around the end of a full buffer
        * store data with one flag, and data from several envs
        * cut a draw into its slices

    .. grid-item-card:: You need

        * :ref:`tut-crossings`: when slices cross
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.data import (
    DEFAULT_DONE_KEYS,
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
    find_start_stop_traj,
)
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# Before it draws, a slice sampler asks one function where trajectories start and stop.
# You can ask it too. Here it answers for the batch of :ref:`tut-collect`.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batches = iter(collector)
batch = next(batches)
ids = batch["collector", "traj_ids"]
starts, stops, lengths = find_start_stop_traj(
    trajectory=ids, at_capacity=False
)
print("lengths", *lengths.tolist())

# %%
# A boundary is where the id changes. So the lengths are those of the runs of equal ids,
# and ``stops`` names the last row, not the one after it.

runs = ids.unique_consecutive(return_counts=True)[1]
assert torch.equal(lengths, runs)
assert torch.equal(stops, starts + lengths.unsqueeze(1) - 1)

# %%
# Given flags instead of ids, it finds the same ten. The last one has no flag: where a
# buffer is not full, its last row counts as an end.

done = batch["next", "done"].squeeze(-1)
by_flag = find_start_stop_traj(end=done, at_capacity=False)[1]
assert torch.equal(by_flag, stops) and not done[-1]

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
# What happens when the buffer is full?
# -------------------------------------
#
# A full buffer goes on writing at row 0, over the oldest steps. Give it room for 130
# and two batches of the collector, 50 steps at a time. In the figure, the dotted
# line is the row where it will write next.


def filled(parts, size=1000, ndim=1, **options):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(size, ndim=ndim),
        sampler=SliceSampler(slice_len=8, **options),
        batch_size=4000,
    )
    for part in parts:
        buffer.extend(part)
    return buffer


parts = torch.cat([batch, next(batches)]).split(50)
collector.shutdown()
ring = filled(parts, size=130)
head = 400 % 130
rows = ring.sample()["index"].reshape(500, 8)
around = rows[(rows.diff(dim=1) < 0).any(dim=1)]

# %%
# The dots mark the rows of one slice.

fig, ax = plt.subplots(figsize=(5.4, 1.6))
fig.set_label(
    "A trajectory and a slice run around the edge of a full buffer."
)
ribbon(ax, ring[:])
ax.axvline(head, c="black", ls=":", label="next write")
ax.plot(around[0] + 0.5, [0.7] * 8, "k.", label="one slice")
ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
_ = ax.set(xlabel="row of the buffer", yticks=[], ylim=(-0.5, 0.9))

# %%
# Row 129 and row 0 belong to one trajectory, so a slice may run around the edge. Tell
# the function that the buffer is full and where it wrote last, and it finds that
# trajectory: its start is *behind* its stop.

ids = ring[:]["collector", "traj_ids"]
starts, stops, lengths = find_start_stop_traj(
    trajectory=ids, at_capacity=True, cursor=head - 1
)
assert (starts[0].item(), stops[0].item()) == (127, 7)
assert lengths.sum() == 130

# %%
# At the dashed line the newest step meets the oldest one, whose beginning is
# overwritten. The sampler stops there too. Of 500 slices none crosses.


def crossings(buffer):
    slices = buffer.sample().reshape(500, 8)
    after, before = slices["next"][:, :-1], slices[:, 1:]
    jump = after["observation"] != before["observation"]
    return jump.flatten(1).any(dim=1).sum().item()


assert len(around) > 0 and crossings(ring) == 0

# %%
# What if the data has one flag only?
# -----------------------------------
#
# Data from elsewhere may have no ids, and mark its ends in ``truncated`` alone. The
# sampler then reads ``("next", "done")``, finds nothing there, and takes all for one
# trajectory.

lone = batch.exclude("collector", ("next", "terminated")).clone()
lone["next", "truncated"] = lone["next", "done"]
lone["next", "done"] = torch.zeros_like(lone["next", "done"])
assert crossings(filled([lone])) > 50

# %%
# Pass all three flags as ``end_keys``. An end is where any of them is True.

keys = [("next", key) for key in DEFAULT_DONE_KEYS]
assert crossings(filled([lone], end_keys=keys)) == 0

# %%
# Your own numbering works as well. The argument is ``traj_key``; some examples in
# circulation write ``trajectory_key``, which is refused.

message = None
try:
    SliceSampler(slice_len=8, trajectory_key="episode")
except TypeError as error:
    message = str(error)
assert "unexpected keyword argument 'trajectory_key'" in str(message)

# %%
# How do you store a batched env?
# -------------------------------
#
# Two envs that step together give batches of two rows. Stored as they are, the draw
# fails with the error of the padded tensor (:ref:`tut-slices`).

pair = SerialEnv(2, [lambda: GymEnv("CartPole-v1")] * 2)
_ = pair.set_seed(0)
policy = RandomPolicy(pair.action_spec)
collector = Collector(pair, policy, frames_per_batch=100)
wide = [part for part, _ in zip(collector, range(4))]
collector.shutdown()
message = None
try:
    filled(wide).sample()
except RuntimeError as error:
    message = str(error)
assert "to be 1-dimensional" in str(message)

# %%
# Two ways work: a storage of two dimensions, or flat batches with their ids. Flat, the
# two envs take turns in the buffer, and each trajectory is cut at each batch edge.

flat = [part.reshape(-1) for part in wide]
assert crossings(filled(wide, ndim=2)) == 0
assert crossings(filled(flat)) == 0

# %%
# How do you cut a draw into its slices?
# --------------------------------------
#
# By ``reshape``, as above. ``split_trajectories`` goes by ids, and two slices may share
# one. Side by side they are merged; apart they are too much for it.

buffer = filled([batch])
four = [buffer.sample()[:32] for _ in range(100)]
shapes, errors = set(), 0
for slices in four:
    try:
        shapes.add(tuple(split_trajectories(slices).shape))
    except RuntimeError:
        errors += 1
print("shapes", *sorted(shapes), "and", errors, "errors")
assert len(shapes) > 1 and errors > 0

# %%
# Try it
# ------
#
# The ids are what misleads it. :class:`~torchrl.data.TensorDictReplayBuffer` marks the
# end of each slice. Write a function that takes a draw and calls ``split_trajectories``
# such that each slice becomes a row. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function"
    for slices in four:
        rows = answer(slices)
        assert rows.shape == (4, 8), f"shape {tuple(rows.shape)}"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         def answer(slices):
#             return split_trajectories(
#                 slices.exclude("collector"), done_key="done"
#             )
#
# In practice
# -----------
#
# * The position of the last write is kept by the buffer; you need it only when you call
#   the function yourself on a full buffer.
# * A buffer that several collectors fill can hide boundaries: :ref:`tut-crossings`.
# * ``help(find_start_stop_traj)`` describes its arguments.
#
# What you can rely on
# --------------------
#
# * The boundaries of a buffer are where the id changes.
# * ``stops`` names the last row of each trajectory.
# * Given ``done``, it finds the same boundaries; the last row counts as an end.
# * In a full buffer a trajectory may start near the end and stop near row 0.
# * All rows of a full buffer belong to one of the trajectories found.
# * Slices run around the edge, and none crosses.
# * Without ids, and with ends in ``truncated`` only, slices cross by default.
# * With all three flags as ``end_keys`` none crosses.
# * ``SliceSampler`` has no argument ``trajectory_key``.
# * A batch of two rows in a one-dimensional storage raises a ``RuntimeError``.
# * In a storage with ``ndim=2`` no slice crosses.
# * Flat, with ids, none crosses either.
# * ``split_trajectories`` merges slices of a draw, or raises a ``RuntimeError``.
#
# Next
# ----
#
# Next page: :ref:`tut-background`. For samplers that choose differently, see
# :ref:`tut-slice-variants`.
