"""
.. _tut-bootstrap:

Bootstrap the right value
=========================

You will know which value each step is trained towards, and which flag decides it.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * see a time limit ruin good targets
        * write GAE by hand
        * find values that leak between trajectories
        * stop the leak with one flag

    .. grid-item-card:: You need

        * :ref:`tut-ends`: terminated, truncated, in flight
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv
from torchrl.objectives import ClipPPOLoss, ValueEstimators
from torchrl.objectives.value import GAE

_ = torch.manual_seed(0)

# %%
# A policy that keeps the pole up, and a function that collects one batch.


def steady(td):
    angle, speed = td["observation"][..., 2:].unbind(-1)
    right = angle + speed > 0
    return td.set("action", torch.stack([~right, right], -1).long())


def collect(frames, policy, env=None, **options):
    env = GymEnv("CartPole-v1") if env is None else env
    _ = env.set_seed(0)
    collector = Collector(
        env, policy, frames_per_batch=frames, **options
    )
    td = next(iter(collector))
    collector.shutdown()
    return td


# %%
# The pole stands, and each step earns 1. Discounted by 0.99, an endless row of ones is
# worth 1 / (1 - 0.99) = 100. So here is a perfect critic: it always says 100.


def always_100(seen):
    return torch.full_like(seen[..., :1], 100.0)


critic = TensorDictModule(always_100, ["observation"], ["state_value"])
gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic)


def targets(td):
    return gae(td.clone())["value_target"].squeeze(-1)


batch = collect(600, steady)
right = targets(batch)
print(f"targets from {right.min():.1f} to {right.max():.1f}")

# %%
# :class:`~torchrl.objectives.value.GAE` agrees: it gives 100 at each of the 600 steps.
# One of them is the time limit of CartPole, and one the edge of the batch. There the
# rewards stop, and GAE takes the critic's word for the rest. It :term:`bootstraps
# <bootstrap>`.

assert torch.allclose(right, torch.tensor(100.0))

# %%
# What if a time limit is taken for an end?
# -----------------------------------------
#
# Say that your env has one flag for both, and writes it into ``terminated``.

mistaken = batch.clone()
mistaken["next", "terminated"] = batch["next", "done"]
wrong = targets(mistaken)

fig, ax = plt.subplots()
fig.set_label(
    "The right targets stay at 100. With the limit taken for an end"
    " they bend down well before it and fall to 1 at step 499."
)
ax.plot(right[:500], label="truncated: bootstrapped")
ax.plot(wrong[:500], "--", label="limit taken for an end")
ax.legend(loc="lower left")
_ = ax.set(
    xlim=(400, 505), ylim=(0, 106), xlabel="step", ylabel="target"
)

# %%
# At the limit the target is 1 where it should be 100. Notice that the error reaches
# back: ten steps earlier it is still 46.

assert wrong[499].round() == 1
assert wrong[489].round() == 46

# %%
# The critic learns that a standing pole is about to fall, though the observation says
# nothing of the kind. The same happens when ``terminated`` is missing: ``done`` then
# stands in for it.

missing = batch.exclude(("next", "terminated"))
assert torch.equal(targets(missing), wrong)

# %%
# What does each flag do?
# -----------------------
#
# Take forty steps of a trajectory in flight. Write flags on the last one, and look at
# its target.

stands = collect(40, steady)


def final(*flags):
    td = stands.clone()
    for flag in flags:
        td["next", flag][-1] = True
    return targets(td)[-1].round().item()


# %%
# Without a flag you get the same target as with ``truncated``. The trajectory is
# incomplete, and the critic's value of its next state stands for the rest. That is what
# you want.

assert final() == final("truncated", "done") == 100

# %%
# Only ``terminated`` removes the bootstrap. If the pole falls on the very step that
# reaches the limit, two flags are True, and the fall decides.

both = ("terminated", "truncated", "done")
assert final("terminated", "done") == final(*both) == 1

# %%
# And ``truncated``? GAE does not read it at all. Without the key, nothing changes.

unread = batch.exclude(("next", "truncated"))
assert torch.equal(targets(unread), right)

# %%
# So what is ``done`` for? Write the estimator yourself, and you see.


def by_hand(td, gamma=0.99, lmbda=0.95):
    after = td["next"]
    future = after["state_value"] * ~after["terminated"]
    delta = after["reward"] + gamma * future - td["state_value"]
    advantage, running = torch.zeros_like(delta), 0.0
    for t in reversed(range(len(delta))):
        keep = gamma * lmbda * ~after["done"][t]
        running = advantage[t] = delta[t] + keep * running
    return advantage


def tip(td):
    action = torch.tensor([0, 1]).expand(*td.batch_size, 2)
    return td.set("action", action)  # always to the right


td = gae(collect(200, tip, max_frames_per_traj=10))
assert torch.allclose(by_hand(td), td["advantage"], atol=1e-4)

# %%
# ``terminated`` takes away the value of the next state. ``done`` stops the sum that
# runs backwards through time.
#
# What if something follows?
# --------------------------
#
# An unmarked last step is harmless, as long as it is the last. Now put ten steps of
# another policy behind it: it tips the pole over.
#
# .. admonition:: Predict
#
#     Do the targets of the first forty steps change?
#
#     .. dropdown:: Then look
#
#         Yes. No ``done`` stands between the two, so the sum runs on: from the fall
#         back into steps that have nothing to do with it.

tips = collect(10, tip)
leaking = targets(torch.cat([stands, tips]))
marked = collect(40, steady, set_truncated=True)
tight = targets(torch.cat([marked, tips]))

fig, ax = plt.subplots()
fig.set_label("Without a mark, targets sink towards the seam, to 46.")
ax.plot(tight, label="done at the seam")
ax.plot(leaking, "--", label="no mark")
ax.axvline(39.5, c="black", ls=":", label="seam")
ax.legend(loc="lower left")
_ = ax.set(xlabel="step", ylabel="target")

# %%
# Notice the dashed line left of the seam. The fall of one pole is charged to another:
# the last standing step is trained towards 46.

assert leaking[39].round() == 46

# %%
# ``set_truncated=True`` marks the last step as done and keeps its bootstrap
# (:ref:`tut-ends`). The leak is closed.

assert torch.allclose(tight[:40], torch.tensor(100.0))

# %%
# That is the one rule: **wherever two unrelated steps become neighbours in time,
# ``done`` must be True there.**
#
# Where do such seams come from?
# ------------------------------
#
# Mostly from a ``reshape``. Two envs give a batch of two rows, and a learner wants it
# flat.


def pair():
    return SerialEnv(2, lambda: GymEnv("CartPole-v1"))


rows = collect(100, tip, pair())
kept, flat = targets(rows), targets(rows.reshape(-1))
off = (flat.reshape(2, 50) - kept).abs().amax(-1)

# %%
# The end of row 0 meets the start of row 1, and row 0 is wrong.

assert off[0] > 10 and off[1] == 0

# %%
# Two ways out. Either mark the seam:

cut = collect(100, tip, pair(), set_truncated=True)
closed = targets(cut.reshape(-1)).reshape(2, 50)
assert torch.allclose(closed, kept)

# %%
# Or estimate first and flatten later. While each row stands alone, the mark changes
# nothing: an unfinished last step is bootstrapped with it and without it.

assert torch.equal(targets(cut), kept)

# %%
# Try it
# ------
#
# Two collectors each gave you a piece. This function marks the seam before the targets
# are made. It runs, and it marks nothing. Find out why, and write a better one. Replace
# ``None``.


def join(pieces):
    td = torch.cat(pieces)
    ids = td["collector", "traj_ids"]
    td["next", "done"][:-1, 0] |= ids[1:] != ids[:-1]
    return td


answer = None


def check(answer):
    assert answer is not None, "replace None by a function of pieces"
    made = targets(answer([collect(40, steady), collect(10, tip)]))
    assert len(made) == 50, "a step was lost"
    assert (made[:40].round() == 100).all(), "the fall still leaks"
    assert made[49] == 1, "the fall is no longer an end"


# %%
# .. dropdown:: Solution
#
#     Each collector numbers from 0, so both pieces have id 0. Mark by place, not by id:
#
#     .. code-block:: python
#
#         def answer(pieces):
#             for piece in pieces:
#                 piece["next", "done"][-1] = True
#             return torch.cat(pieces)
#
# In practice
# -----------
#
# Does PPO bootstrap at a time limit? Yes, without code of yours: its loss uses GAE by
# default.

assert ClipPPOLoss.default_value_estimator == ValueEstimators.GAE

# %%
# Padding is a neighbour too: :ref:`tut-split`. So is the next slice of a sample:
# :ref:`tut-slices`.
#
# What you can rely on
# --------------------
#
# * GAE bootstraps at a time limit and at the edge of a batch.
# * A limit taken for an end: the target there is 1 where it should be 100.
# * Ten steps earlier the target is still 46.
# * Without the key ``terminated``, ``done`` stands in for it.
# * A last step in flight is bootstrapped as a truncated one is.
# * ``terminated`` removes the bootstrap, also if ``truncated`` is True as well.
# * GAE does not read ``truncated``.
# * ``terminated`` removes the next value and ``done`` stops the sum: the estimator
#   written so equals GAE.
# * At a seam without ``done``, targets leak backwards.
# * ``set_truncated=True`` closes the seam and keeps the bootstrap.
# * Flattening the rows of two envs spoils the first row and not the second.
# * Rows that end with a mark may be flattened.
# * While rows stand alone, the mark changes nothing.
# * The loss of PPO uses GAE by default.
#
# Next
# ----
#
# :ref:`tut-layouts` shows the same trajectories flat, padded and nested. If you
# need whole episodes only, go to :ref:`tut-complete`.
