"""
.. _tut-complete-buffer:

Fill a buffer with whole episodes
=================================

You will have a replay buffer that stores whole episodes, and know which one is not.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * write whole episodes to a buffer
        * choose how often it is written
        * find the episode that a full buffer beheads
        * fill it from several envs

    .. grid-item-card:: You need

        * how a collector holds trajectories back: :ref:`tut-complete`
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import GymEnv, InitTracker, SerialEnv, TransformedEnv
from torchrl.modules import RandomPolicy


def fill(buffer, env=None, **settings):
    _ = torch.manual_seed(0)
    env = env or GymEnv("CartPole-v1")
    _ = env.set_seed(0)
    policy = RandomPolicy(env.action_spec)
    settings = {"frames_per_batch": 200, "total_frames": 400} | settings
    collector = Collector(env, policy, replay_buffer=buffer, **settings)
    try:
        for yielded in collector:
            yield yielded, len(buffer)
    finally:
        collector.shutdown()


# %%
# Give the collector a ``replay_buffer``. It then writes what it collects and yields
# ``None``. ``fill`` notes the length of the buffer at each :term:`yield`. First in
# batches of fixed size, then with ``trajs_per_batch``:

fixed = ReplayBuffer(storage=LazyTensorStorage(1_000))
print("fixed", list(fill(fixed)))
buffer = ReplayBuffer(storage=LazyTensorStorage(1_000))
turns = list(fill(buffer, trajs_per_batch=5))
print("whole", turns)

# %%
# With ``trajs_per_batch``, fewer steps are stored than were taken. That is the point.

assert turns == [(None, 190), (None, 398)]

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
# What lies in the buffer?
# ------------------------
#
# Here are both buffers, from step 300 on. Notice the right end.

fig, ax = plt.subplots(figsize=(5.4, 1.9))
fig.set_label(
    "Both buffers hold the same steps up to row 398. Fixed batches add"
    " two steps of trajectory 20, which is torn."
)
ribbon(ax, fixed[:][300:], 1, 300)
ribbon(ax, buffer[:][300:], 0, 300)
_ = ax.set(xlabel="row", yticks=[0, 1], yticklabels=["whole", "fixed"])

# %%
# Both are flat: one step a row, no padding, no mask. The only difference is the
# trajectory in flight. It is written when it has ended, not before.

steps = buffer[:]
assert (steps == fixed[:398]).all()
last = steps[-1]
assert last["next", "done"]

# %%
# Does N still matter?
# --------------------
#
# No. Without a buffer, ``trajs_per_batch=N`` says how many trajectories a yield holds.
# With one, the loop turns once per ``frames_per_batch``, and any N does the same:


def growth(number, **settings):
    buffer = ReplayBuffer(storage=LazyTensorStorage(1_000))
    turns = fill(buffer, trajs_per_batch=number, **settings)
    return [length for _, length in turns]


grown = [growth(number) for number in (1, 5, 1_000)]
assert grown == [[190, 398]] * 3

# %%
# .. admonition:: Predict
#
#     The loop turns every 10 steps. The first episode lasts 11. What happens if you
#     sample at the first turn?
#
#     .. dropdown:: Then look
#
#         It fails. Nothing has ended, so nothing has been written.

early = growth(1, frames_per_batch=10)
assert early[:2] == [0, 11]

empty = ReplayBuffer(storage=LazyTensorStorage(1_000))
message = None
try:
    empty.sample(4)
except RuntimeError as error:
    message = str(error)
assert message == "Cannot sample from an empty storage."

# %%
# So start the body of your loop with ``if len(buffer) < 256: continue``, or whatever
# you need to begin.
#
# How often is it written?
# ------------------------
#
# Once per turn. ``trajs_per_write`` makes smaller writes. To see them, count:


class Counting(ReplayBuffer):
    def extend(self, data, **settings):
        writes.append(len(data))
        return super().extend(data, **settings)


for limit in (None, 7, 1):
    writes = []
    counting = Counting(storage=LazyTensorStorage(1_000))
    _ = list(fill(counting, trajs_per_batch=5, trajs_per_write=limit))
    print(f"trajs_per_write={limit}: {len(writes)} writes")

# %%
# With 1, each write is one trajectory:

lengths = steps["collector", "traj_ids"].bincount()
assert writes == lengths.tolist()

# %%
# What happens when the buffer is full?
# -------------------------------------
#
# A buffer is a ring: new steps overwrite the oldest, *step* by step. Take one of 150
# rows, and find the trajectory without its head. The env gets an
# :class:`~torchrl.envs.transforms.InitTracker`, which you will need in a moment.

ring = ReplayBuffer(storage=LazyTensorStorage(150))
tracked = TransformedEnv(GymEnv("CartPole-v1"), InitTracker())
_ = list(fill(ring, tracked, trajs_per_batch=1))
fig, ax = plt.subplots(figsize=(5.4, 1.6))
fig.set_label(
    "A ring of 150 rows. At the next write, the newest trajectory, 19,"
    " meets what is left of the oldest, 12."
)
ribbon(ax, ring[:])
cursor = ring.write_count % 150
ax.axvline(cursor, c="black", ls=":", label="next write")
ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="row", yticks=[])

# %%
# It is 12, to the right of the line. (13 is whole: it goes on from the last row to the
# first.) No other trajectory in the ring misses a step:

ids = ring[:]["collector", "traj_ids"]
kept = ids.bincount()
headless = ((kept > 0) & (kept < lengths)).nonzero().flatten()
assert headless.tolist() == [12]

# %%
# Its ending is still there, so no flag shows the loss:

ended = ids[ring[:]["next", "done"].flatten()]
assert 12 in ended

# %%
# A slice of it is as good as any. Its return is not: it would be too small.
# ``InitTracker`` stores ``is_init``, True at the first step of an episode. A trajectory
# that has no such step has lost its head:

started = ids[ring[:]["is_init"].flatten()]
whole = set(ids.tolist()) & set(started.tolist())
assert whole == {13, 14, 15, 16, 17, 18, 19}

# %%
# Can I fill it from several envs?
# --------------------------------
#
# Yes, and here whole episodes are the easy way. Each is written as one run of rows,
# though the envs step side by side:

pair = ReplayBuffer(storage=LazyTensorStorage(1_000))
envs = SerialEnv(2, lambda: GymEnv("CartPole-v1"))
_ = list(fill(pair, envs, trajs_per_batch=1))
owners = pair[:]["collector", "traj_ids"]
runs = owners.unique_consecutive()
assert len(runs) == len(owners.unique())

# %%
# In batches of fixed size, one row of such a buffer would be a stretch of 100 steps:

blocks = ReplayBuffer(storage=LazyTensorStorage(1_000))
envs = SerialEnv(2, lambda: GymEnv("CartPole-v1"))
_ = list(fill(blocks, envs))
assert blocks[:].shape == (4, 100)

# %%
# Fixed batches therefore want a storage with ``ndim=2``. Whole episodes do not fit into
# one, and the error does not tell you why:

message = None
wrong = ReplayBuffer(storage=LazyTensorStorage(1_000, ndim=2))
try:
    _ = list(fill(wrong, trajs_per_batch=1))
except ValueError as error:
    message = str(error)
assert "dim0 and dim1 must be within the range" in str(message)

# %%
# Try it
# ------
#
# How many rows must the ring have at least, so that trajectories 10 to 19 are whole?
# Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of rows"
    ring = ReplayBuffer(storage=LazyTensorStorage(answer))
    _ = list(fill(ring, trajs_per_batch=1))
    kept = ring[:]["collector", "traj_ids"].bincount(minlength=20)
    assert (kept[10:] == lengths[10:]).all(), "too few rows"
    assert kept[:10].sum() == 0, "more rows than needed"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = lengths[10:].sum().item()
#
# In practice
# -----------
#
# Size the ring for the episodes that you expect later. The better an agent balances
# the pole, the fewer of its episodes fit.
#
# ``traj_format`` does not matter here: what is written is always flat, and you need not
# set it.

assert growth(1, traj_format="padded") == [190, 398]

# %%
# At the end of the run, the trajectory in flight is dropped, as :ref:`tut-complete`
# shows. The same two arguments work in worker processes: :ref:`tut-workers`.
#
# What you can rely on
# --------------------
#
# * With a buffer and ``trajs_per_batch``, the collector yields ``None`` and writes only
#   what has ended.
# * What it writes are the steps of the fixed batches, flat, in the same order.
# * The last row is an ending.
# * The value of ``trajs_per_batch`` does not matter; the loop turns once per
#   ``frames_per_batch``.
# * At the first turns the buffer can be empty.
# * To sample from an empty buffer is a ``RuntimeError``.
# * With ``trajs_per_write=1`` each write is one trajectory.
# * A full ring has one trajectory that misses its first steps: the oldest.
# * It keeps its ending.
# * A trajectory without ``is_init`` has lost its head; the others are whole.
# * From several envs, each trajectory is one run of rows.
# * In fixed batches from several envs, a row of a one-dimensional storage is a stretch
#   of steps.
# * Whole episodes into a storage with ``ndim=2`` are a ``ValueError``.
# * ``traj_format`` does not change what is written.
#
# Next
# ----
#
# :ref:`tut-slices` draws from such a buffer. Or read first what can go wrong:
# :ref:`tut-complete-traps`.
