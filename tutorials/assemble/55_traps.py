"""
.. _tut-complete-traps:

Avoid the traps of complete trajectories
========================================

You will recognise five ways in which "complete" goes wrong, and know what to do.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * unmask fragments that pass for episodes
        * end a wait that has no end
        * see two setups favour short episodes
        * tell which policy played an episode

    .. grid-item-card:: You need

        * ``trajs_per_batch``: :ref:`tut-complete`
        * what the flags mean: :ref:`tut-ends`
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv
from torchrl.modules import RandomPolicy


def collect(env, policy, update=False, **settings):
    _ = torch.manual_seed(0)
    _ = env.set_seed(0)
    base = {"frames_per_batch": 200, "trajs_per_batch": 1}
    base |= {"total_frames": 1_000, "traj_format": "cat"}
    base["auto_register_policy_transforms"] = False  # needs none
    collector = Collector(env, policy, **(base | settings))
    for yielded in collector:
        yield yielded
        if update:  # here goes your optimizer step, and then
            collector.update_policy_weights_()
    collector.shutdown()


# %%
# Below, ``steady`` pushes the cart to where the pole leans. It never drops the pole, so
# its episodes of CartPole last until the time limit, at 500 steps. See what one setting
# does to them. (``trajs_per_batch`` is 1 where nothing else is said.)


def follow_the_lean(observation):
    right = observation[..., 2:].sum(-1) > 0  # angle + its speed
    return torch.stack([~right, right], -1).long()


steady = TensorDictModule(follow_the_lean, ["observation"], ["action"])
env = GymEnv("CartPole-v1")
parts = list(collect(env, steady, set_truncated=True))
pieces = []
for part in parts:
    owner = part["collector", "traj_ids"][0].item()
    pieces.append((owner, len(part)))
    print(f"trajectory {owner}: {len(part)} steps")

# %%
# Six "complete trajectories", and only two ids. These are fragments.

assert pieces[:3] == [(0, 200), (0, 200), (0, 100)]

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
# Why does one episode come in pieces?
# ------------------------------------
#
# Here are the first three yields. The number is the id; a hollow notch is a truncation.

fig, ax = plt.subplots(figsize=(5.4, 1.9))
fig.set_label(
    "Three bands of 200, 200 and 100 steps, each ending in a hollow"
    " notch. All three are trajectory 0."
)
for number, part in enumerate(parts[:3]):
    ribbon(ax, part, -number)
rows = ["yield 3", "yield 2", "yield 1"]
_ = ax.set(xlabel="step", yticks=[-2, -1, 0], yticklabels=rows)
_ = ax.set_xlim(0, 205)  # room for the last notch

# %%
# ``set_truncated=True`` flags the last step of each inner batch. The collector takes
# the flag for an ending and hands over what it has. Leave the setting out:

env = GymEnv("CartPole-v1")
whole = list(collect(env, steady))
assert [len(part) for part in whole] == [500, 500]

# %%
# Why does my loop never get anything?
# ------------------------------------
#
# Because nothing ends. Take the time limit away, and the collector waits without a
# word. Only ``total_frames`` gets you out of the loop:

env = GymEnv("CartPole-v1", max_episode_steps=-1)
waited = list(collect(env, steady))
assert waited == []

# %%
# Set a limit of your own. ``max_frames_per_traj`` truncates a trajectory and resets the
# env:

env = GymEnv("CartPole-v1", max_episode_steps=-1)
limited = list(collect(env, steady, max_frames_per_traj=100))
assert [len(part) for part in limited] == [100] * 10

# %%
# Why are all my episodes short?
# ------------------------------
#
# Did you set ``reset_at_each_iter=True``? Each inner batch then starts with a reset,
# and what was running is thrown away. What survives is short.


def lengths(policy=None, **settings):
    env = GymEnv("CartPole-v1")
    policy = policy or RandomPolicy(env.action_spec)
    run = collect(env, policy, frames_per_batch=20, **settings)
    return [len(part) for part in run]


usual, reset = lengths(), lengths(reset_at_each_iter=True)
for name, found in {"usual": usual, "reset": reset}.items():
    print(f"{name}: longest {max(found)}, {sum(found)} of 1000 kept")
assert max(usual) == 63
assert max(reset) == 20

# %%
# .. admonition:: Predict
#
#     Now ``steady`` plays, again with a reset every 20 steps. How many episodes do you
#     get?
#
#     .. dropdown:: Then look
#
#         None. None of its episodes ends within 20 steps, so all are thrown away.

survivors = lengths(steady, reset_at_each_iter=True)
assert survivors == []

# %%
# If you need the resets, *here* is the place for ``set_truncated=True``. The piece that
# a reset cuts off is then handed over too, with a flag, and no step is lost:

flagged = lengths(reset_at_each_iter=True, set_truncated=True)
assert sum(flagged) == 1_000

# %%
# Why are the first episodes so short?
# ------------------------------------
#
# Do you collect from several envs? They start together, and the first to end are the
# short ones. Here are eight. Ask for four trajectories, and you get those that have
# ended at the line.

envs = SerialEnv(8, lambda: GymEnv("CartPole-v1"))
coin = RandomPolicy(envs.action_spec)
fixed = {"trajs_per_batch": None, "traj_format": None}
batch, *_ = collect(envs, coin, frames_per_batch=1_000, **fixed)
fig, ax = plt.subplots(figsize=(5.4, 3.2))
fig.set_label(
    "Eight rows, one for each env. At step 19 four trajectories have"
    " ended; those that will last longer are still running."
)
for row, steps in enumerate(batch):
    ribbon(ax, steps[:45], -row)
ax.axvline(19, c="black", zorder=0, label="four have ended")
ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of each env", yticks=[])

# %%
# With inner batches of one step per env, the first yield is a selection:


def first_yield(number, frames=8):
    envs = SerialEnv(8, lambda: GymEnv("CartPole-v1"))
    turn = {"frames_per_batch": frames, "trajs_per_batch": number}
    yielded, *_ = collect(envs, coin, **turn)
    return yielded["collector", "traj_ids"]


hasty = first_yield(4).unique(return_counts=True)[1]
assert sorted(hasty.tolist()) == [11, 12, 13, 19]

# %%
# The cure is an inner batch that is longer than an episode. What has ended in it is
# handed over env by env, whatever its length. Here are the first four envs:

patient = first_yield(4, frames=1_000).unique(return_counts=True)[1]
assert patient.tolist() == [19, 25, 24, 11]

# %%
# Which policy played this episode?
# ---------------------------------
#
# Perhaps two. An episode that runs while you update the policy goes on with the new
# one. ``track_policy_version=True`` writes a number on each step, and
# ``update_policy_weights_()`` raises it. Here, after every yield:


def learn(frames):
    env = GymEnv("CartPole-v1")
    settings = {"total_frames": 2_000, "frames_per_batch": frames}
    settings["track_policy_version"] = True
    return list(collect(env, steady, update=True, **settings))


def versions(run, key=("next", "policy_version")):
    return [trajs[key].unique().tolist() for trajs in run]


mixed = versions(learn(200))
assert mixed == [[0], [0, 1], [2], [2, 3]]

# %%
# The second episode began before the first update and ended after it. Larger inner
# batches do not help. With 1000 steps, two episodes are ready at once. You get both
# before another step is taken, so the second is out of date when it arrives:

late = learn(1_000)
stale = versions(late)
assert stale == [[0], [0], [2], [2]]

# %%
# If your method needs data of the current policy only, compare the number and drop the
# rest.
#
# Try it
# ------
#
# From the eight envs: how many trajectories must you ask for, so that the first yield
# holds the first episode of each env, and not one trajectory more than that takes?
# Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number"
    firsts = set(range(8))  # their ids
    assert firsts <= set(first_yield(answer).tolist()), "one is missing"
    fewer = set(first_yield(answer - 1).tolist())
    assert not firsts <= fewer, "fewer would do"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         done = batch["next", "done"].squeeze(-1)
#         slowest = (done.cumsum(-1) == 0).sum(-1).max()
#         answer = done[:, : slowest + 1].sum().item()
#
# In practice
# -----------
#
# Read the version under ``next``. The one at the root is a step behind. Here, the third
# episode was played by version 2 from its first step, but at the root that step says 0:

root = versions(late, key="policy_version")
assert root == [[0], [0], [0, 2], [2]]

# %%
# While you look for a trap, always set ``total_frames``. It turns an endless wait into
# a loop that ends with nothing. What it costs you: :ref:`tut-complete`.
#
# All of this holds with a replay buffer too. There you would sample the fragments, the
# short ones or the old ones without a hint: :ref:`tut-complete-buffer`.
#
# What you can rely on
# --------------------
#
# * With ``set_truncated=True`` an episode is handed over in pieces that share its id.
# * Without it, each episode comes whole.
# * From an env that never ends you get nothing.
# * ``max_frames_per_traj`` gives each trajectory an end.
# * These episodes of the random policy last up to 63 steps.
# * With ``reset_at_each_iter=True`` none is longer than the inner batch.
# * If no episode ends within an inner batch, you get nothing.
# * With ``set_truncated=True`` added, no step is lost.
# * From several envs and short inner batches, the first yield holds the shortest.
# * From a long inner batch, trajectories come env by env, short or long.
# * A trajectory that is in flight during an update is played by two policies.
# * Trajectories that are ready at once are yielded before another step is taken: all
#   but the first are out of date.
# * The version at the root is a step behind.
#
# Next
# ----
#
# :ref:`tut-slices` takes pieces on purpose. Or go back to the flags behind two of
# these traps: :ref:`tut-ends`.
