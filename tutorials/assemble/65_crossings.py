"""
.. _tut-crossings:

Keep slices inside one trajectory
=================================

You will test a buffer for slices that cross into another trajectory, and prevent them.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * detect a crossing from the observations alone
        * see ids collide, and make them unique
        * learn what ``end_key`` switches off
        * choose the cure that fits your setup

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

_ = torch.manual_seed(0)


def steady(td):
    angle, speed = td["observation"][..., 2:].unbind(-1)
    right = (angle + speed > 0).long()
    return td.set("action", torch.stack([1 - right, right], -1))


def collect(seed, **options):
    env = GymEnv("CartPole-v1")
    env.set_seed(seed)
    return Collector(env, steady, frames_per_batch=50, **options)


# %%
# A good policy keeps the pole up, and one episode lasts for many batches. Let two
# collectors take turns to fill one buffer, as two machines would, and draw slices.


def turns(*collectors, rounds=4):
    streams = [iter(collector) for collector in collectors]
    parts = [next(stream) for _ in range(rounds) for stream in streams]
    for collector in collectors:
        collector.shutdown()
    return torch.cat(parts)


def crossings(data, **options):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(2000),
        sampler=SliceSampler(slice_len=8, **options),
        batch_size=8 * 1000,
    )
    buffer.extend(data)
    slices = buffer.sample().reshape(1000, 8)
    after, before = slices["next"][:, :-1], slices[:, 1:]
    jump = after["observation"] != before["observation"]
    return jump.flatten(1).any(dim=1).sum().item()


two = turns(collect(0), collect(1))
found = crossings(two)
print(f"{found} of 1000 slices cross")

# %%
# How do you see a crossing?
# --------------------------
#
# What the env answered to one step is what the policy sees at the next. Where that
# fails inside a slice, two steps became neighbours that never were. ``crossings``
# counts the slices with such a jump. Here it is more than every tenth.

assert found > 100

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
# Why do the ids not help?
# ------------------------
#
# Above, the angle of the pole, blue from one collector and orange from the other.
# Below, the ribbon of the same rows. The angle has breaks; the ribbon is one band.

angle = two["observation"][:, 2]
fig, (top, low) = plt.subplots(
    2, figsize=(5.4, 2.6), sharex=True, height_ratios=(3, 1)
)
fig.set_label(
    "The pole's angle jumps at every 50th row, where the collectors"
    " take turns. The ribbon below is one band: all rows have the id 0."
)
for rows in torch.arange(200).split(50):
    top.plot(rows, angle[rows], "C0" if rows[0] % 100 == 0 else "C1")
_ = top.set(ylabel="angle (rad)")
ribbon(low, two[:200])
_ = low.set(xlabel="row of the buffer", yticks=[])

# %%
# Ids count the trajectories of one collector, from 0. Both collectors play their first
# episode, so both write 0. Between equal ids the sampler sees no boundary.

ids = two["collector", "traj_ids"]
assert (ids == 0).all()

# %%
# Make them unique: add a number of its own to the ids of each collector.

unique = two.clone()
second = torch.arange(400) // 50 % 2
unique["collector", "traj_ids"] += 1_000_000 * second
assert crossings(unique) == 0

# %%
# What does ``end_key`` switch off?
# ---------------------------------
#
# Many examples name the flag where a trajectory ends. Take one collector, which is
# reset before each batch, so that every batch has an id of its own. Without a name, the
# sampler goes by ids, and all is well.

done = ("next", "done")
reset = turns(collect(0, reset_at_each_iter=True))
assert crossings(reset) == 0

# %%
# Name the flag, and it goes by the flag *instead*. The episodes that the resets cut
# short carry none.

assert not reset[done].any()
assert crossings(reset, end_key=done) > 50

# %%
# Do flags at the batch edge help?
# --------------------------------
#
# With ``set_truncated=True`` every batch ends with ``done``.
#
# .. admonition:: Predict
#
#     Two collectors, both writing the id 0, with ``done`` at the end of each batch.
#     Does the sampler stop there by default?
#
#     .. dropdown:: Then look
#
#         No. It found ids, so it does not look at flags. It must be told to, with
#         ``end_key``.

cut = {"set_truncated": True}
flagged = turns(collect(0, **cut), collect(1, **cut))
assert flagged[done].sum() == 8
assert crossings(flagged) > 50

# %%
# So a flag helps with ``end_key``, and an id without it. Neither sees the other.

assert crossings(flagged, end_key=done) == 0

# %%
# Which setup needs what?
# -----------------------
#
# Two setups remain: one collector that runs on, and two that deliver whole episodes.
# Here is the share of crossing slices in each, by ids and by flag.

whole = {"trajs_per_batch": 1, "traj_format": "cat"}
setups = {
    "one collector": turns(collect(0)),
    "one, reset each batch": reset,
    "two": two,
    "two, unique ids": unique,
    "two, set_truncated": flagged,
    "two, whole episodes": turns(
        collect(0, **whole), collect(1, **whole), rounds=1
    ),
}
by_id = [crossings(data) for data in setups.values()]
by_flag = [crossings(data, end_key=done) for data in setups.values()]
for name, first, second in zip(setups, by_id, by_flag):
    print(
        f"{name:22} ids {first / 10:4.1f} %  flag {second / 10:4.1f} %"
    )

# %%
# Read each row: a zero is a setup that is safe with that sampler.

fig, ax = plt.subplots(figsize=(5.4, 2.8))
fig.set_label(
    "Share of slices that cross, by setup. Only one collector that runs"
    " on is safe both ways; two that collide are safe neither way."
)
place = torch.arange(6)
ax.barh(place - 0.2, [n / 10 for n in by_id], 0.4, label="by ids")
ax.barh(place + 0.2, [n / 10 for n in by_flag], 0.4, label="by flag")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set_yticks(place, list(setups))
_ = ax.set(xlabel="slices that cross (%)", ylim=(5.6, -0.6))

# %%
# Whole episodes end with a flag, so ``end_key`` is safe there. Their ids can collide
# like all others: here episode 0 of one collector follows episode 0 of the other.

safe_by_id = [number == 0 for number in by_id]
safe_by_flag = [number == 0 for number in by_flag]
assert safe_by_id == [True, True, False, True, False, False]
assert safe_by_flag == [True, False, False, False, True, True]

# %%
# Try it
# ------
#
# ``two`` has colliding ids and no flags. Number its stretches yourself, from the
# observations alone: one number a row, which changes where a slice must not cross.
# Replace ``None`` by that tensor.

answer = None


def check(answer):
    assert answer is not None, "replace None by a tensor of 400 numbers"
    data = two.clone()
    data["stretch"] = answer
    assert len(answer.unique()) == 8, "there are eight stretches"
    assert crossings(data, traj_key="stretch") == 0, (
        "slices still cross"
    )


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         seen, told = two["observation"], two["next", "observation"]
#         breaks = (told[:-1] != seen[1:]).any(dim=-1)
#         answer = torch.cat([torch.zeros(1), breaks.cumsum(0)])
#
# In practice
# -----------
#
# * With one collector, leave ``end_key`` away. With several, make ids unique, or use
#   flags *and* name them.
# * Run the test of this page once on your own buffer. It works whenever observations
#   differ from step to step.
# * The workers of one collector share a counter, so their ids do not collide:
#   :ref:`tut-workers`.
# * ``set_truncated=True`` stops nothing in the env; what it marks:
#   :ref:`tut-ends`.
#
# What you can rely on
# --------------------
#
# * Two collectors in one buffer can give slices that cross.
# * The ids of two collectors both start at 0 and collide.
# * With unique ids no slice crosses.
# * Resets of one collector make new ids: by ids, no slice crosses.
# * A reset in mid-episode leaves no flag.
# * With ``end_key`` the sampler ignores the ids, and slices cross.
# * ``set_truncated=True`` puts ``done`` at the end of each batch.
# * By default the sampler ignores those flags, and slices cross.
# * With ``end_key`` it stops at them.
# * By ids, safe are: one collector, with or without resets, and unique ids.
# * By flag, safe are: one collector that runs on, ``set_truncated``, whole episodes.
#
# Next
# ----
#
# Next page: :ref:`tut-boundaries`. If all is well in your setup, go on to
# :ref:`tut-background`.
