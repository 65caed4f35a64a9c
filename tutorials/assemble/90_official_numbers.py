"""
.. _tut-official-numbers:

Check the official numbers
==========================

You will have run each number of the official tutorial on trajectories, and know which
of its statements to keep.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * reproduce its numbers
        * tell luck from law in one of them
        * test its statements

    .. grid-item-card:: You need

        * the terms of :ref:`tut-collect` and :ref:`tut-complete`
        * slices: :ref:`tut-slices`
"""

import time
from importlib.metadata import version

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.data import LazyTensorStorage, ReplayBuffer, SliceSampler
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)
policy = RandomPolicy(env.action_spec)

# %%
# TorchRL has a `tutorial on trajectory assembly`_. It is good at what matters first: it
# says why a collector counts steps and not episodes, it names each tool, and it runs.
# But a script that runs checks its code, not its sentences. So here each number and
# statement of it is put to a test. A table takes the results:
#
# .. _tutorial on trajectory assembly:
#    https://docs.pytorch.org/rl/stable/tutorials/collector_trajectory_assembly.html

table = []


def enter(what, there, here, by_chance=False):
    verdict = "luck" if by_chance else "reproduced"
    verdict = verdict if here == there else "not so"
    table.append(f"{what:30} {there!s:>8} {here!s:>8}  {verdict}")
    print(table[-1])


collector = Collector(env, policy, frames_per_batch=200)
batch = next(iter(collector))
done, ids = batch["next", "done"], batch["collector", "traj_ids"]
enter("steps in the batch", 200, len(batch))
enter("episodes in the batch", 9, done.sum().item())

# %%
# Left is what the tutorial says, right what came out here. The nine are those that
# *end* in the batch; a tenth is running, as :ref:`tut-collect` shows.

assert (len(batch), done.sum()) == (200, 9)

# %%
# Do the other numbers come out?
# ------------------------------
#
# The same steps, split: padded, then nested.

padded = split_trajectories(batch)
nested = split_trajectories(batch, as_nested=True)
enter("shape after the split", (10, 63), tuple(padded.shape))
enter("batch size, nested", (10, -1), tuple(nested.batch_size))

# %%
# More collectors take over the same env and ask for five complete trajectories. A
# buffer stores the batch.

for layout, shape in {"padded": (5, 55), "cat": (137,)}.items():
    five = {"trajs_per_batch": 5, "traj_format": layout}
    second = Collector(env, policy, frames_per_batch=200, **five)
    trajs = next(iter(second))
    second.shutdown()
    enter(f"five trajectories, {layout}", shape, tuple(trajs.shape))
enter("endings in them", 5, trajs["next", "done"].sum().item())

sampler = SliceSampler(slice_len=16, end_key=("next", "done"))
storage = LazyTensorStorage(10_000)
buffer = ReplayBuffer(storage=storage, sampler=sampler, batch_size=32)
_ = buffer.extend(batch)
enter("steps in the buffer", 200, len(buffer))

# %%
# All come out as printed there, with these versions:

packages = ["torch", "torchrl", "tensordict", "gymnasium"]
print(*(f"{name} {version(name)}" for name in packages), sep=", ")
assert all(line.endswith("reproduced") for line in table)

# %%
# Does a draw hold two trajectories?
# ----------------------------------
#
# The buffer draws 32 steps, which is two slices of 16. The tutorial counts the distinct
# trajectories in them, and prints two.
#
# .. admonition:: Predict
#
#     Five trajectories are long enough for a slice. How many of 1000 draws hold only
#     one?
#
#     .. dropdown:: Then look
#
#         About 200. The second slice comes from the same trajectory as the first with
#         probability 1/5.

samples = torch.cat([buffer.sample() for _ in range(1_000)])
pairs = samples["collector", "traj_ids"].reshape(-1, 2, 16)[..., 0]
alone = (pairs[:, 0] == pairs[:, 1]).sum().item()
enter("trajectories a draw", 2, pairs[0].unique().numel(), alone > 0)

fig, ax = plt.subplots(figsize=(5.4, 2))
fig.set_label("About 200 of 1000 draws hold one trajectory only.")
ax.barh([1, 2], [alone, 1_000 - alone], color="C0")
ax.plot([200, 800], [1, 2], "|", c="black", ms=30, mew=3)
_ = ax.set(xlabel="draws", ylabel="trajectories", yticks=[1, 2])

# %%
# The strokes are what chance predicts. So two is the likely result, not a property of
# the sampler. Do not build on it.

assert 150 < alone < 250

# %%
# What do the flags say at the edge of a batch?
# ---------------------------------------------
#
# The tutorial says: where a batch cuts a trajectory, the last step is done and
# truncated. It is a natural wish, and one setting grants it. By default, no flag is
# set.

last = batch["next"][-1]
enter("cut by the batch: done", True, last["done"].item())
enter("cut by the batch: truncated", True, last["truncated"].item())
assert not last["done"] and not last["truncated"]

third = Collector(env, policy, frames_per_batch=200, set_truncated=True)
marked = next(iter(third))
asked = marked["next", "truncated"][-1].item()
enter("the same with set_truncated", True, asked)
assert asked

# %%
# Hence its next sentence: after a split, the flags tell natural ends from cuts. They do
# for nine rows. The tenth ends without a flag, and only the mask shows where. What a
# value target makes of that: :ref:`tut-bootstrap`.

rows = padded["next", "done"].any(1).sum().item()
enter("rows with a flagged end", 10, rows)
assert rows == 9

# %%
# Can a slice join two trajectories?
# ----------------------------------
#
# Never, says the tutorial, because the sampler looks at ``done``. That holds for the
# batch it stores. Store the batch of another collector behind it, and the seam has no
# flag. A slice crosses it if what the env answered is not what the policy sees next:


def crossings():
    samples = torch.cat([buffer.sample() for _ in range(300)])
    slices = samples.reshape(-1, 16)
    answered = slices["next", "observation"][:, :-1]
    jumps = (answered != slices["observation"][:, 1:]).any(-1)
    return jumps.any(-1).sum().item()


enter("slices that cross, one batch", 0, crossings())
_ = buffer.extend(marked)
joined = crossings()
enter("slices that cross, two batches", 0, joined)
assert joined > 0

# %%
# For the one batch of the tutorial the sentence holds. What else is safe, and what is
# not: :ref:`tut-crossings`.
#
# Which wider statements hold?
# ----------------------------
#
# Batches are said to *interleave* fragments. From one env, each trajectory is one
# unbroken run:

runs = len(ids.unique_consecutive())
enter("trajectories interleave", True, runs > len(ids.unique()))
assert runs == 10

# %%
# You are told to multiply by the mask or to index with it. Only the second one gives
# you a mean; :ref:`tut-split` shows why. Each step here earns 1:

mask = padded["collector", "mask"]
reward = padded["next", "reward"].squeeze(-1)
weighted, indexed = (reward * mask).mean(), reward[mask].mean()
enter("times the mask is enough", True, weighted.item() == 1)
enter("indexing is enough", True, indexed.item() == 1)
assert weighted < 0.32 and indexed == 1

# %%
# With ``start()`` you train while a collector works in the background. The buffer is
# said to be always fresh then. It changes, but once per ``frames_per_batch``, not with
# each step.

fresh = ReplayBuffer(storage=LazyTensorStorage(1_000))
limits = {"total_frames": 400, "replay_buffer": fresh}
behind = Collector(env, policy, frames_per_batch=200, **limits)
behind.start()
seen, deadline = set(), time.monotonic() + 30
while behind.is_running() and time.monotonic() < deadline:
    seen.add(len(fresh))
    time.sleep(0.001)
behind.async_shutdown()
enter("fresh at each step", True, not seen <= {0, 200, 400})
assert seen <= {0, 200, 400}

# %%
# How fast training and collecting go together: :ref:`tut-background`.
#
# What is the verdict?
# --------------------
#
# All together: what is tested, what the tutorial says, what came out. The design holds:
# fixed batches, ids, whole trajectories on request. Seven details want care.

print(*table, sep="\n")
for used in (collector, third):
    used.shutdown()
assert sum(line.endswith("not so") for line in table) == 7

# %%
# Try it
# ------
#
# Slices of 16 steps fit into five trajectories, so the chance that both come from the
# same one is 1/5. What is it for slices of 12? Replace ``None``.

answer = None


def check(answer):
    settings = {"sampler": SliceSampler(slice_len=12), "batch_size": 24}
    twelve = ReplayBuffer(storage=LazyTensorStorage(200), **settings)
    _ = twelve.extend(batch)
    samples = torch.cat([twelve.sample() for _ in range(300)])
    fit = samples["collector", "traj_ids"].unique().numel()
    assert answer == 1 / fit, "how many trajectories are long enough?"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 1 / (mask.sum(-1) >= 12).sum().item()
#
# In practice
# -----------
#
# The official page may change with a release. The table is about its text
# `as of TorchRL 0.14
# <https://docs.pytorch.org/rl/0.14/tutorials/collector_trajectory_assembly.html>`__.
#
# Two of its hints are left out here, because they are advice and no statement: when to
# use nested tensors (:ref:`tut-layouts`), and to train while a collector runs in
# the background (:ref:`tut-background`).
#
# What you can rely on
# --------------------
#
# * The batch has 200 steps, and nine episodes end in it.
# * All shapes and lengths of the tutorial come out as printed, and its five
#   trajectories are complete.
# * About one draw in five holds a single trajectory, so "two" is luck.
# * At the edge of a batch, the last step is neither done nor truncated.
# * With ``set_truncated=True`` it is truncated.
# * Nine of the ten rows after the split have an end with a flag.
# * With ``end_key`` and two batches from two collectors, slices cross the seam.
# * Trajectories of one env do not interleave.
# * The mean of reward times mask is too small; the mean under the mask is right.
# * With ``start()``, the buffer grows once per ``frames_per_batch``.
# * Seven lines of the table are not so.
#
# Next
# ----
#
# :ref:`tut-collect` starts the path of this site. Or read the reference of
# :class:`~torchrl.data.replay_buffers.SliceSampler`.
