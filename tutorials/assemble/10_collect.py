"""
.. _tut-collect:

Collect your first batch
========================

You will collect 200 steps of CartPole and tell every trajectory in them from the next.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * collect a batch of exactly 200 steps
        * see where each trajectory ends
        * follow one across a batch edge
        * add up rewards without a loop

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`); no earlier page
"""

import warnings

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)  # seed the env first, then build the collector

# %%
# Episodes differ in length; on this page, from 11 steps to 63. A learner wants the same
# amount of work each time: one shape, known memory, an update at a known moment. So a
# :class:`~torchrl.collectors.Collector` counts steps, not episodes.

collector = Collector(
    env,
    RandomPolicy(env.action_spec),
    frames_per_batch=200,
    total_frames=-1,  # no end: you decide when to stop
)
batches = iter(collector)
batch = next(batches)
print(f"{len(batch)} steps along {batch.names}")

# %%
# That is the whole promise: ``frames_per_batch`` steps along one dimension, named
# ``time``.

assert batch.shape == (200,) and batch.names == ["time"]

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
# Which trajectory does a step belong to?
# ---------------------------------------
#
# Time runs from left to right. Each band is one :term:`trajectory`: steps that follow
# each other in the env, starting at a reset. Notice the right edge.

fig, ax = plt.subplots(figsize=(5.4, 1.5))
fig.set_label(
    "Ten bands, one after the other, 10 to 63 steps long. Nine end with"
    " a notch; the tenth is torn off at the right edge of the batch."
)
ribbon(ax, batch)
ax.plot([], [], "v", c="black", label="terminated")
ax.scatter([], [], 99, "k", marker=r"$\wr$", label="torn: runs on")
ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
_ = ax.set(xlabel="step of the batch", yticks=[], xlim=(0, 203))

# %%
# The collector numbers trajectories as they start and stamps the number on every step,
# under ``("collector", "traj_ids")``. The numbers in the bands are those.

ids = batch["collector", "traj_ids"]
runs, lengths = ids.unique_consecutive(return_counts=True)
print("lengths", lengths.tolist())
assert runs.tolist() == list(range(10))

# %%
# Ten runs, numbered 0 to 9: no trajectory is interrupted by another one. The batch
# holds *stretches*, not a mix. With the seeds of the first cell they are always these:

assert lengths.tolist() == [11, 12, 17, 12, 63, 16, 16, 30, 13, 10]

# %%
# What does one step hold?
# ------------------------
#
# A batch is a :class:`~tensordict.TensorDict`: named tensors that share their first
# dimension.

print(batch)

# %%
# The second dimension is their own. Notice that the action has two columns, one for
# each direction. It is one-hot: exactly one of them is 1.

entries = ["observation", "action", "done"]
sizes = [tuple(batch[key].shape) for key in entries]
assert sizes == [(200, 4), (200, 2), (200, 1)]
assert (batch["action"].sum(-1) == 1).all()

# %%
# Read it as a sentence. The policy saw ``observation`` and chose ``action``; what the
# env answered stands under ``next``. Notice that the reward is there and only there.

answered = batch["next"].keys()
flags = {"done", "terminated", "truncated"}
assert set(answered) == {"observation", "reward"} | flags
assert "reward" not in batch

# %%
# Where does an episode end?
# --------------------------
#
# The flags come twice: at the root, and under ``next``.
#
# .. admonition:: Predict
#
#     Nine episodes end in this batch. At how many steps is the root ``done`` True?
#
#     .. dropdown:: Then look
#
#         At none. When an episode is done, the collector resets the env *before* it
#         records the next step. The root flags tell you how a step starts, and no step
#         starts in an env that is done.

root_done = batch["done"]
assert not root_done.any()

# %%
# So read ``("next", "done")``. It is True at the last step of each finished trajectory
# and nowhere else:

next_done = batch["next", "done"].squeeze(-1)
last_steps = lengths.cumsum(0) - 1
ends = next_done.nonzero().squeeze(-1)
assert torch.equal(ends, last_steps[:-1])

# %%
# "How many episodes are in this batch?" now has two answers. Nine were
# :term:`completed`; ten were :term:`touched`. Say which one you count.

completed = next_done.sum().item()
touched = len(runs)
assert (completed, touched) == (9, 10)

# %%
# What happens at the edge of a batch?
# ------------------------------------
#
# The last trajectory was cut by the batch, not by the env. No flag says so:

last = batch["next"][-1]
assert not any(last[flag] for flag in flags)

# %%
# Take the next batch. Trajectory 9 goes on where it stopped, under the same id, for two
# more steps. Then 10 starts.

second = next(batches)
assert second["collector", "traj_ids"][:3].tolist() == [9, 9, 10]

# %%
# And nothing happened in between. What the env answered to the last step of the first
# batch is what the policy sees in the first step of the second:

seen = batch["next", "observation"][-1]
assert torch.equal(seen, second["observation"][0])

# %%
# Here is the angle of the pole across the edge. Notice where the line breaks: two steps
# later, at the reset.

both = torch.cat([batch, second])[185:215]
fig, ax = plt.subplots()
fig.set_label(
    "The pole's angle runs on through the batch edge at step 200; it"
    " jumps back only at step 202, where trajectory 10 starts."
)
steps, angle = torch.arange(185, 215), both["observation"][:, 2]
owner = both["collector", "traj_ids"]
for run in owner.unique().tolist():
    mine, colour = owner == run, f"C{run % 6}.-"
    ax.plot(steps[mine], angle[mine], colour, label=f"id {run}")
ax.axvline(199.5, c="black", ls=":", label="batch edge")
ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step", ylabel="angle (rad)")

# %%
# .. alive:: recut
#     :steps: torch.cat([batch, second])
#     :start: len(batch)
#     :cart:
#     :alt: The ribbon of both batches. The edge at step 200 tears trajectory 9 apart.
#
#     Both batches, 400 steps; each bar on top is one batch. Another
#     ``frames_per_batch`` cuts the same episodes elsewhere: torn edges move, notches
#     stay. A dashed edge tears nothing. The cart is drawn from your observations.
#
# A batch edge is not an episode edge. The collector is a window that moves along one
# endless stream; :ref:`your own windows <tut-collect-try>` may be of any size.
#
# How much did each trajectory earn?
# ----------------------------------
#
# The ids are all you need: add each reward to the sum of its trajectory.

reward = batch["next", "reward"].squeeze(-1)
returns = torch.zeros(touched).index_add_(0, ids, reward)
assert returns.tolist() == lengths.tolist()

# %%
# CartPole pays 1 a step, so the sums are the lengths. But one of them is not a return
# yet: trajectory 9 is :term:`in flight` and still earning. Averaged in, it pulls the
# score down.

finished = returns[ids[ends]]
print(f"touched {returns.mean():.1f}, completed {finished.mean():.1f}")
assert finished.mean() > returns.mean()

# %%
# When does a collector stop?
# ---------------------------
#
# At ``total_frames``, rounded up to whole batches. Ask for 500 in batches of 200:

collector.shutdown()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    counted = Collector(
        GymEnv("CartPole-v1"),
        RandomPolicy(env.action_spec),
        frames_per_batch=200,
        total_frames=500,
    )
delivered = [len(part) for part in counted]
counted.shutdown()
assert delivered == [200, 200, 200]

# %%
# It warns you when it is built:

messages = " ".join(str(warning.message) for warning in caught)
assert "100 additional frames will be collected" in messages

# %%
# .. _tut-collect-try:
#
# Try it
# ------
#
# The window can be of any size. Which ``frames_per_batch`` makes the first batch end
# exactly where the third trajectory ends, so that nothing is torn? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of frames"
    _ = torch.manual_seed(0)
    env = GymEnv("CartPole-v1")
    _ = env.set_seed(0)
    policy = RandomPolicy(env.action_spec)
    window = Collector(env, policy, frames_per_batch=answer)
    first = next(iter(window))
    window.shutdown()
    assert first["next", "done"].sum() == 3, "not three endings"
    assert first["next", "done"][-1], "the last band is torn"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 40  # 11 + 12 + 17
#
# In practice
# -----------
#
# Older code imports ``SyncDataCollector``. It was removed in TorchRL 0.13
# (`pull request 3805 <https://github.com/pytorch/rl/pull/3805>`__). Import
# ``Collector`` instead.

message = None
try:
    from torchrl.collectors import SyncDataCollector  # noqa: F401
except ImportError as error:
    message = str(error)
assert "cannot import name 'SyncDataCollector'" in str(message)

# %%
# What you can rely on
# --------------------
#
# * From one env, a batch holds exactly ``frames_per_batch`` steps, along a dimension
#   named ``time``.
# * Trajectories of one env are numbered as they start and stand one after the other.
# * The same seeds give the same trajectories.
# * CartPole's entries have 4 (observation), 2 (action) and 1 (flag) columns.
# * The action is one-hot.
# * What the env answered stands under ``next``: observation, reward and three flags.
# * The reward stands under ``next`` only.
# * The root ``done`` of a batch is never True.
# * ``("next", "done")`` is True at the last step of each finished trajectory, and
#   nowhere else.
# * Nine trajectories are completed here and ten are touched.
# * No flag marks the last step of a trajectory that the batch edge cuts.
# * The trajectory goes on in the next batch under the same id.
# * Its observations join across the edge.
# * Adding rewards by id gives one sum per trajectory.
# * Here, the trajectory in flight pulls the mean return down.
# * ``total_frames`` is rounded up to whole batches.
# * A collector that will deliver more than ``total_frames`` warns when it is built.
# * ``SyncDataCollector`` can no longer be imported.
#
# Next
# ----
#
# The official reference of :class:`~torchrl.collectors.Collector` lists its arguments;
# the :ref:`glossary <glossary>` holds the terms of this page.
