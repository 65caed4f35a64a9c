"""
.. _tut-ends:

Know how an episode ends
========================

You will tell from three flags how a trajectory ended, or that it has not ended yet.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * run ten ways in which a record can stop
        * read them in one table
        * find the last observation
        * mark a cut of your own

    .. grid-item-card:: You need

        * :ref:`tut-collect`: batches, ids, batch edges
"""

import math

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, StepCounter

_ = torch.manual_seed(0)
FLAGS = ["terminated", "truncated", "done"]

# %%
# Why does a trajectory stop? A learner has to know. After a fall no reward can follow;
# after a time limit, many would have.
#
# Here are two policies, written by hand. One tips the pole over, the other keeps it up.


def tip(td):
    return td.set("action", torch.tensor([0, 1]))  # always to the right


def steady(td):
    angle, speed = td["observation"][2:]
    right = angle + speed > 0
    return td.set("action", torch.stack([~right, right]).long())


# %%
# Each run on this page collects two batches from a fresh env and joins them.


def collect(frames, policy=steady, env=None, **options):
    env = GymEnv("CartPole-v1") if env is None else env
    _ = env.set_seed(0)
    sizes = {"frames_per_batch": frames, "total_frames": 2 * frames}
    collector = Collector(env, policy, **sizes, **options)
    td = torch.cat(list(collector))
    collector.shutdown()
    return td


falls = collect(30, tip)
limited = collect(30, max_frames_per_traj=25)
runs = collect(30)
for td in (falls, limited, runs):
    print(len(td), "steps,", td["next", "done"].sum().item(), "ends")

# %%
# Six episodes ended, then two, then none.

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
# Who ended the episode?
# ----------------------
#
# Above, the pole falls: a solid notch. In the middle, we allow 25 steps: a hollow one.
# Below, nothing ends. The batch edge at step 30 leaves no trace, and at step 60 the
# trajectory is still :term:`in flight`: a torn edge.

fig, ax = plt.subplots(figsize=(5.4, 2.4))
fig.set_label(
    "Above, six short bands end with solid notches. In the middle, two"
    " bands of 25 steps end with hollow notches and a third is torn."
    " Below, one band of 60 steps has no notch and is torn."
)
for y, td in enumerate((runs, limited, falls)):
    ribbon(ax, td, y)
ax.set_yticks(range(3), ["in flight", "truncated", "terminated"])
_ = ax.set(xlabel="step", xlim=(0, 63))

# %%
# :term:`terminated` says: the task is over. There is no future to earn from.

terminated, truncated, done = (falls["next", flag] for flag in FLAGS)
assert torch.equal(terminated, done) and not truncated.any()

# %%
# :term:`truncated` says: somebody stopped watching. The pole still stood.

terminated, truncated, done = (limited["next", flag] for flag in FLAGS)
assert torch.equal(truncated, done) and not terminated.any()

# %%
# A batch edge says nothing. All three flags are False, at step 30 and at step 60.

assert not any(runs["next", flag].any() for flag in FLAGS)

# %%
# All this stands under ``next``. The flags at the root tell how a step *starts*, and
# none starts in an env that is done (:ref:`tut-collect`).

roots = [td[flag] for td in (falls, limited) for flag in FLAGS]
assert not torch.cat(roots).any()

# %%
# Where does a limit come from?
# -----------------------------
#
# From three places. The task may have its own: CartPole-v1 stops after 500 steps.


def ends(td):
    return td["next", "done"].flatten().nonzero().flatten().tolist()


own = collect(300)
assert ends(own) == [499]

# %%
# You may put one on the env, with :class:`~torchrl.envs.StepCounter`, or on the
# collector, with ``max_frames_per_traj``. They do the same. Notice that the batches
# have 60 steps and the limit is 100: the count runs on across the batch edge.

counted = GymEnv("CartPole-v1").append_transform(StepCounter(100))
on_env = collect(60, env=counted)
on_collector = collect(60, max_frames_per_traj=100)
assert ends(on_env) == ends(on_collector) == [99]

# %%
# With two limits, the smaller one wins. CartPole's own stays in force:

both = collect(300, max_frames_per_traj=600)
assert ends(both) == [499]

# %%
# What do the flags say in each case?
# -----------------------------------
#
# Ten ways to stop, and the step at which each one does:

mark, anew = {"set_truncated": True}, {"reset_at_each_iter": True}
stops = {
    "pole falls": (falls, 9),
    "CartPole's own limit": (own, 499),
    "StepCounter": (on_env, 99),
    "max_frames_per_traj": (on_collector, 99),
    "falls at the limit": (collect(9, tip, max_frames_per_traj=10), 9),
    "batch edge": (runs, 29),
    "set_truncated": (collect(30, **mark), 29),
    "reset_at_each_iter": (collect(30, **anew), 29),
    "these two together": (collect(30, **mark, **anew), 29),
    "falls, set_truncated": (collect(10, tip, **mark), 9),
}

# %%
# Read the three flags of each. The fourth entry is no flag: it compares what the env
# answered with what the policy saw next. If they differ, the env was reset.

table = {}
for name, (td, at) in stops.items():
    table[name] = [td["next", flag][at].item() for flag in FLAGS]
    answered, seen = td["next", "observation"], td["observation"]
    reset = not torch.equal(answered[at], seen[at + 1])
    table[name].append(reset)

# %%
# A full circle is True. Notice the two rows in another colour.

fig, ax = plt.subplots(figsize=(4.8, 3.4))
fig.set_label(
    "Ten ways to stop. In eight, done and reset agree. With"
    " set_truncated alone, done is True and nothing is reset; with"
    " reset_at_each_iter alone, the env is reset and no flag says so."
)
for y, row in enumerate(table.values()):
    colour = "C0" if row[2] == row[3] else "C1"
    for x, value in enumerate(row):
        face = colour if value else "w"
        ax.plot(x, y, "o", c=colour, mfc=face, ms=10)
ax.set_xticks(range(4), [*FLAGS, "(reset)"])
ax.set_yticks(range(10), table)
ax.tick_params(length=0, labeltop=True, labelbottom=False)
ax.spines[:].set_visible(False)
_ = ax.set(xlim=(-0.5, 3.5), ylim=(9.5, -0.5))

# %%
# In every row ``done`` is True exactly if one of the other two is.

rows = table.values()
assert all(row[2] == (row[0] or row[1]) for row in rows)

# %%
# Both can be True at once: the pole falls on the very step that reaches the limit. Then
# the fall counts; there is no future (:ref:`tut-bootstrap`).

assert table["falls at the limit"][:2] == [True, True]

# %%
# ``reset_at_each_iter`` starts each batch with a fresh env. It abandons the trajectory
# before it, and no flag says so.

assert table["reset_at_each_iter"] == [False, False, False, True]

# %%
# Only two rows are at odds with the env, and they err in opposite directions.

odd = [name for name, row in table.items() if row[2] != row[3]]
assert odd == ["set_truncated", "reset_at_each_iter"]

# %%
# What does ``set_truncated`` change?
# -----------------------------------
#
# .. admonition:: Predict
#
#     With ``set_truncated=True`` each batch ends with ``done``. Which id does the first
#     step of the second batch have: 0 or 1?
#
#     .. dropdown:: Then look
#
#         0. The flag is a mark in the batch that you get. The env never hears of it: it
#         runs on, and the trajectory keeps its id.

pieces = collect(100, set_truncated=True)
assert pieces["collector", "traj_ids"].unique().tolist() == [0]

# %%
# What is such a mark good for? :ref:`tut-bootstrap` needs one wherever unrelated steps
# meet. A step that really terminates keeps that flag.

assert table["falls, set_truncated"][:2] == [True, True]

# %%
# Where is the last observation?
# ------------------------------
#
# Between two episodes stand two observations. The one in which the pole lies down is
# under ``next`` of the last step. The root of the next step already holds the fresh
# start.

last = falls["next", "observation"][9]
fresh = falls["observation"][10]
for seen in (last, fresh):
    print(f"{math.degrees(seen[2]):6.1f} degrees")

# %%
# CartPole gives up beyond 12 degrees and starts within 0.05 of zero.

assert last[2].abs() > math.radians(12)
assert fresh.abs().max() <= 0.05

# %%
# Try it
# ------
#
# The policy ``tip`` with ``max_frames_per_traj=10``: some episodes end by a fall, some
# by the limit, some by both at once. Write a function that counts those which the limit
# stopped while the pole still stood. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function of a batch"
    td = collect(100, tip, max_frames_per_traj=10)
    angle = td["next", "observation"][ends(td), 2]
    standing = (angle.abs() < math.radians(12)).sum()
    assert answer(td) == standing, f"it is {standing}"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         def answer(td):
#             after = td["next"]
#             return (after["truncated"] & ~after["terminated"]).sum()
#
# In practice
# -----------
#
# The official tutorial on this subject says that the last step of an unfinished
# trajectory is ``truncated``. It is so with ``set_truncated=True``, which is not the
# default: :ref:`tut-official-numbers`.
#
# Once you mark cuts, other tools may take them for ends. See
# :ref:`tut-complete` for whole episodes and :ref:`tut-crossings` for slices.
#
# What you can rely on
# --------------------
#
# * A fall is ``terminated`` and ``done``, not ``truncated``.
# * A limit is ``truncated`` and ``done``, not ``terminated``.
# * A batch edge sets no flag.
# * The flags at the root are never True.
# * CartPole-v1 has a limit of its own, at step 500.
# * ``StepCounter`` and ``max_frames_per_traj`` do the same, and count across batch
#   edges.
# * With two limits, the smaller one wins.
# * In each of the ten cases, ``done`` is ``terminated`` or ``truncated``.
# * A fall on the step that reaches the limit sets both flags.
# * ``reset_at_each_iter`` abandons a trajectory without a flag.
# * ``done`` tells whether the env is reset, but for ``set_truncated`` alone and for
#   ``reset_at_each_iter`` alone.
# * ``set_truncated`` keeps the trajectory's id.
# * ``set_truncated`` leaves ``terminated`` as it was.
# * The last observation of an episode is under ``next`` of its last step.
# * The root of the step after it holds the new start.
#
# Next
# ----
#
# :ref:`tut-bootstrap` shows what these flags do to your targets. If you write an env of
# your own, first see that :ref:`it sets them right <tut-own-ends>`.
