"""
.. _tut-split-keys:

Split any data: several envs, own ids, no ids
=============================================

You will tell ``split_trajectories`` where a trajectory ends, whatever data you have.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * split the batch of two envs
        * split by flags, and see where flags mislead
        * repair ids that come twice
        * compute advantages at the right moment

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`)
        * the page before: :ref:`tut-split`
"""

import warnings

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import RandomPolicy
from torchrl.objectives.value import GAE

_ = torch.manual_seed(0)

# %%
# :class:`~torchrl.envs.SerialEnv` steps two envs in turn. Their 200 steps come in two
# lines of 100.


def collect(env, **options):
    _ = torch.manual_seed(0)
    _ = env.set_seed(0)
    policy = RandomPolicy(env.action_spec)
    return Collector(env, policy, frames_per_batch=200, **options)


pair = collect(SerialEnv(2, lambda: GymEnv("CartPole-v1")))
two = next(iter(pair))
pair.shutdown()
split = split_trajectories(two)
print(f"{list(two.shape)} becomes {list(split.shape)}")

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
# Which rows come from which env?
# -------------------------------
#
# Above, the two lines; below, their rows, a bit apart. Notice the numbers: a new
# trajectory takes the next free one, in whichever env it starts.

fig, ax = plt.subplots(figsize=(5.4, 3.6))
fig.set_label(
    "Two lines of 100 steps hold bands 0, 2, 5 and 1, 3, 4, 6, 7. Below"
    " them stand eight rows in that order."
)
ribbon(ax, two[0], y=11)
ribbon(ax, two[1], y=10)
for row, trajectory in enumerate(split):
    steps = trajectory[trajectory["collector", "mask"]]
    ribbon(ax, steps, y=8 - row - (row > 2) / 2)
_ = ax.set(xlabel="step", xlim=(0, 103))
_ = ax.set_yticks(
    [11, 10, 7, 2.5], ["env 0", "env 1", "rows 0", "rows 1"]
)

# %%
# No number is given twice. The rows of env 0 come first, then those of env 1.

first_ids = split["collector", "traj_ids"][:, 0]
ids = two["collector", "traj_ids"]
assert len(first_ids.unique()) == len(split)
in_order = torch.cat([line.unique_consecutive() for line in ids])
assert torch.equal(first_ids, in_order)

# %%
# What if there are no ids?
# -------------------------
#
# Then the function falls back on ``("next", "done")``. Here that gives the same rows:

bare = two.exclude("collector")
by_flag = split_trajectories(bare)
assert torch.equal(by_flag["observation"], split["observation"])

# %%
# Mask and new ids now stand at the root:

assert set(by_flag.keys()) - set(bare.keys()) == {"mask", "traj_ids"}

# %%
# You may name another flag with ``done_key``. None of these episodes was truncated, so
# each env is one row:

by_limit = split_trajectories(bare, done_key="truncated")
assert by_limit.shape == (2, 100)

# %%
# But ids go before flags. As long as there are ids, ``done_key`` is not read:

ignored = split_trajectories(two, done_key="truncated")
assert ignored.shape == split.shape

# %%
# And the flag is looked up under ``next``. If you write that yourself, you get an error
# that does not say so:

message = None
try:
    split_trajectories(bare, done_key=("next", "done"))
except TypeError as error:
    message = str(error)
assert "'NoneType' object is not subscriptable" in str(message)

# %%
# When do flags mislead?
# ----------------------
#
# .. admonition:: Predict
#
#     The first batch of one env stops in the middle of trajectory 9. You reset the
#     collector and take another batch. Joined, the two hold 21 trajectories. How many
#     rows do the flags give?
#
#     .. dropdown:: Then look
#
#         20. A reset from outside leaves no flag. Where the batches meet, the end of
#         one trajectory and the start of another become one row.

collector = collect(GymEnv("CartPole-v1"))
batches = iter(collector)
batch = next(batches)
collector.reset()
joined = torch.cat([batch, next(batches)])
collector.shutdown()
rows = {"by ids": split_trajectories(joined)}
rows["by flags"] = split_trajectories(joined.exclude("collector"))
assert [len(row) for row in rows.values()] == [21, 20]

# %%
# Without ids, mark the seam yourself:

marked = joined.exclude("collector").clone()
marked["next", "done"][len(batch) - 1] = True
assert len(split_trajectories(marked)) == 21

# %%
# What if an id comes twice?
# --------------------------
#
# Each collector counts from 0. Join data of two collectors, and the split fails. Here
# the batch stands in for both:

twice = torch.cat([batch, batch])
message = None
try:
    split_trajectories(twice)
except RuntimeError as error:
    message = str(error)
assert "split_with_sizes expects split_sizes to sum" in str(message)

# %%
# Write ids of your own, unique this time, and name the entry. The mask then stands
# beside it.

source = torch.arange(2).repeat_interleave(len(batch))
twice["episode"] = 100 * source + twice["collector", "traj_ids"]
own = split_trajectories(twice, trajectory_key="episode")
assert len(own) == 20 and "mask" in own

# %%
# .. _tut-split-advantages:
#
# Advantages: before the split or after?
# --------------------------------------
#
# Before. :class:`~torchrl.objectives.value.GAE` looks one step ahead. On the line, the
# last step of a torn trajectory has no step after it. In a row, it has padding.

net = torch.nn.Linear(4, 1)
keys = {"in_keys": ["observation"], "out_keys": ["state_value"]}
value = TensorDictModule(net, **keys)
gae = GAE(gamma=0.99, lmbda=0.95, value_network=value)
before = split_trajectories(gae(batch.clone()))
after = gae(split_trajectories(batch))
error = (after["advantage"] - before["advantage"]).squeeze(-1).abs()
error = error * before["collector", "mask"]
wrong = (error.amax(1) > 0.001).nonzero().squeeze(-1)
assert wrong.tolist() == [9]

# %%
# The error runs backwards along row 9 from the padding, and no mask can take it out
# again. Where an episode is done, GAE stops; so the other rows are right.
#
# Why not let the collector split?
# --------------------------------
#
# It can, with ``split_trajs=True``. But it splits each batch on its own, so trajectory
# 9 still comes in two rows, and what you get cannot be joined: each batch is as wide as
# its longest row.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    splitting = collect(GymEnv("CartPole-v1"), split_trajs=True)
batches = iter(splitting)
shapes = [next(batches).shape for _ in range(2)]
splitting.shutdown()
assert shapes == [(10, 63), (12, 55)]

# %%
# TorchRL advises against it when the collector is built:

advice = " ".join(str(warning.message) for warning in caught)
assert "will become a DeprecationWarning" in advice

# %%
# Try it
# ------
#
# ``two.reshape(-1)`` puts the line of env 1 behind that of env 0. Without ids, the last
# trajectory of the first and the first of the second melt into one. At which step do
# you set ``("next", "done")`` to get the eight rows back? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by the index of a step"
    line = two.reshape(-1).exclude("collector").clone()
    line["next", "done"][answer] = True
    rows = split_trajectories(line)
    same = rows["mask"].sum(1).tolist() == (
        split["collector", "mask"].sum(1).tolist()
    )
    assert same, f"{len(rows)} rows, but not the eight of split"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = two.shape[1] - 1  # the last step of env 0
#
# In practice
# -----------
#
# Keep the ids as long as you can; they know of cuts that no flag marks. A sample from a
# replay buffer is not in order of time: :ref:`tut-slices` says how to take it
# apart. What a torn trajectory does to the targets of a learner is told in
# :ref:`tut-bootstrap`.
#
# What you can rely on
# --------------------
#
# * The envs of one collector share the ids; each is given once.
# * Of several envs, the rows of the first come first, then those of the second.
# * Without ids, ``("next", "done")`` gives the rows.
# * Mask and new ids then stand at the root.
# * ``done_key`` names another flag.
# * Ids go before flags: with ids, ``done_key`` is not read.
# * ``done_key`` is looked up under ``next``; a tuple that says so is an error.
# * Flags join what a reset from outside has cut.
# * A flag set at the seam separates it.
# * An id that comes twice makes the split fail.
# * ``trajectory_key`` names ids of your own; the mask stands beside them.
# * Advantages computed on rows are wrong for the trajectory that is in flight.
# * ``split_trajs=True`` splits each batch on its own.
# * It warns that it will be deprecated.
#
# Next
# ----
#
# :ref:`tut-ends` tells how the last step of each row ended. Rows are one layout
# among several: :ref:`tut-layouts`.
