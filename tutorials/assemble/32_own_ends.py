"""
.. _tut-own-ends:

Flag the ends of your own env
=============================

You will write an env whose flags say what really happened, and catch one whose flags
do not.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * write a small env
        * flag its ends in four ways
        * see which two go wrong
        * leave the limit to TorchRL

    .. grid-item-card:: You need

        * :ref:`tut-ends`: what the flags mean
"""

import matplotlib.pyplot as plt
import torch
from tensordict import TensorDict
from torchrl.collectors import Collector
from torchrl.data import Binary, Composite, Unbounded
from torchrl.envs import EnvBase, StepCounter, check_env_specs

_ = torch.manual_seed(0)
FLAGS = ["terminated", "truncated", "done"]

# %%
# An env that climbs stairs, one at each step. It declares the three flags in its
# ``done_spec``. Which of them it *writes* is up to the function ``mark``.


class Stairs(EnvBase):
    def __init__(self, mark, flags=FLAGS):
        super().__init__()
        self.mark = mark
        self.observation_spec = Composite(observation=Unbounded(1))
        self.action_spec = self.reward_spec = Unbounded(1)
        flag = Binary(1, dtype=torch.bool)
        self.done_spec = Composite(dict.fromkeys(flags, flag))

    def _reset(self, tensordict):
        return TensorDict(observation=torch.zeros(1))

    def _step(self, tensordict):
        n = tensordict["observation"] + 1
        return TensorDict(observation=n, reward=n, **self.mark(n))

    def _set_seed(self, seed):
        pass


# %%
# The top is stair 5: the task is over there. But you want to stop at stair 3: a limit.
# Here are four ways to say so. Each run collects twelve steps.


def climb(td):
    return td.set("action", torch.zeros(1))


def collect(env, **options):
    collector = Collector(env, climb, frames_per_batch=12, **options)
    td = next(iter(collector))
    collector.shutdown()
    return td


ways = {
    "no limit": lambda n: {"terminated": n >= 5},
    "both flags": lambda n: {"terminated": n >= 5, "truncated": n >= 3},
    "done alone": lambda n: {"done": n >= 3},
    "truncated alone": lambda n: {"truncated": n >= 3},
}
got = {name: collect(Stairs(mark)) for name, mark in ways.items()}
for name, td in got.items():
    print(f"{name}: up to stair {td['next', 'observation'].max():.0f}")

# %%
# Three of them stop. The last one climbs past the limit, and past the top.
#
# What does each way record?
# --------------------------
#
# Look at the three limits. Each dot is a step, as high as the stair that it reaches. A
# solid notch is ``terminated``, a hollow one ``truncated``. Only the first picture is
# what you wanted.

fig, axes = plt.subplots(1, 3, sharey=True)
fig.set_label(
    "Both flags: back to the ground after stair 3, hollow notches."
    " Done alone: the same with solid notches. Truncated alone: up to"
    " stair 12, with a hollow notch at each step from stair 3 on."
)
for ax, name in zip(axes, list(got)[1:]):
    after = got[name]["next"]
    stair = after["observation"]
    ax.plot(stair, "o:")
    for flag, face in ("truncated", "w"), ("terminated", "k"):
        at = after[flag].nonzero()[:, 0]
        ax.plot(at, stair[at] + 1.4, "kv", mfc=face)
    ax.set_title(name, weight="normal", size=10)
_ = axes[0].set(xlabel="step", ylabel="stair", yticks=[3, 12])

# %%
# Write ``terminated`` and ``truncated``, and TorchRL makes ``done`` from them. That is
# the rule: an env is done if the task is over *or* if somebody stops it.

after = got["both flags"]["next"]
assert after["truncated"].nonzero()[:, 0].tolist() == [2, 5, 8, 11]
either = after["terminated"] | after["truncated"]
assert torch.equal(after["done"], either)

# %%
# What if you write ``done`` alone?
# ---------------------------------
#
# It stops where you want, and says the wrong thing: ``done`` without its reason counts
# as ``terminated``. Your learner is told that stair 3 is the end of the world.

after = got["done alone"]["next"]
assert torch.equal(after["terminated"], after["done"])
assert not after["truncated"].any()

# %%
# That is what you get, too, from an env that sets ``terminated`` for whatever reason.
# :ref:`tut-bootstrap` shows the price.
#
# What if you write ``truncated`` alone?
# --------------------------------------
#
# .. admonition:: Predict
#
#     ``truncated`` is True at stair 3. Does the collector reset the env?
#
#     .. dropdown:: Then look
#
#         No. A collector resets what is ``done``, and nobody said that.

td = got["truncated alone"]
assert not td["next", "done"].any()
assert td["next", "observation"][-1] == 12

# %%
# Notice the hollow notches in the last picture. The ids do listen to them: from there
# on each step is a trajectory of its own, of an env that was never reset.

ids = td["collector", "traj_ids"].tolist()
assert ids == [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]

# %%
# And ``truncated`` with ``done``? TorchRL refuses to guess the third.

message = None
try:
    collect(Stairs(lambda n: {"truncated": n >= 3, "done": n >= 3}))
except RuntimeError as error:
    message = str(error)
assert "Cannot infer the value of terminated" in str(message)

# %%
# Where should a limit live?
# --------------------------
#
# Outside. Your env knows when the task is over; let it write ``terminated`` and nothing
# else. Put the limit on top, with :class:`~torchrl.envs.StepCounter`.

limited = Stairs(ways["no limit"]).append_transform(StepCounter(3))
outside, inside = collect(limited), got["both flags"]
for flag in FLAGS:
    assert torch.equal(outside["next", flag], inside["next", flag])

# %%
# Nothing is left to get wrong. ``max_frames_per_traj`` of the collector does the same,
# so use one of the two. Together they are refused.

message = None
try:
    collect(limited, max_frames_per_traj=3)
except ValueError as error:
    message = str(error)
assert "A 'step_count' key is already present" in str(message)

# %%
# Does anybody warn you?
# ----------------------
#
# :func:`~torchrl.envs.check_env_specs` compares an env with its specs. It finds a flag
# that you write and have not declared.

plain = Stairs(ways["both flags"], flags=["terminated", "done"])
message = None
try:
    check_env_specs(plain)
except AssertionError as error:
    message = str(error)
assert "('next', 'truncated')" in str(message)

# %%
# Without the check you would not notice: the collector drops that flag.

kept = collect(plain)["next"].keys()
assert "terminated" in kept and "truncated" not in kept

# %%
# But it has no quarrel with an env that never ends.

silent = True
try:
    check_env_specs(Stairs(ways["truncated alone"]))
except AssertionError:
    silent = False
assert silent

# %%
# Try it
# ------
#
# Old versions of Gym returned one flag, ``over``, and told in ``info`` whether the time
# ``limit`` was the reason. Write a function of these two that returns the right flags.
# Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function"
    cut = collect(Stairs(lambda n: answer(n >= 3, n > 0)))["next"]
    assert cut["truncated"].sum() == cut["done"].sum() == 4, "the limit"
    top = collect(Stairs(lambda n: answer(n >= 5, n < 0)))["next"]
    assert top["terminated"].sum() == top["done"].sum() == 2, "the top"
    assert not cut["terminated"].any() and not top["truncated"].any()


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         def answer(over, limit):
#             return {"terminated": over & ~limit, "truncated": over & limit}
#
# In practice
# -----------
#
# An env of Gymnasium returns the two flags apart (:meth:`gymnasium.Env.step`).
# :class:`~torchrl.envs.GymEnv` takes them over, as on :ref:`tut-ends`. So you need this
# page for envs that you write for TorchRL, and for old ones.
#
# A short test of your own is worth having: collect a few episodes, and assert that
# ``done`` is ``terminated | truncated`` at every step. It finds ``truncated`` alone. No
# test can find a limit that calls itself an end: only you know why your env stopped.
#
# What you can rely on
# --------------------
#
# * An env that writes ``terminated`` and ``truncated`` stops at its limit.
# * ``done`` is made from the two.
# * ``done`` alone counts as ``terminated``.
# * It leaves ``truncated`` False.
# * ``truncated`` alone makes no step ``done``.
# * The env is not reset then.
# * Each step from there on gets an id of its own.
# * ``truncated`` with ``done``, without ``terminated``, is an error.
# * A ``StepCounter`` on top gives the same flags as a limit inside.
# * A ``StepCounter`` and ``max_frames_per_traj`` together are refused.
# * ``check_env_specs`` finds a flag that is written and not declared.
# * The collector drops such a flag.
# * ``check_env_specs`` accepts an env that writes ``truncated`` alone.
#
# Next
# ----
#
# :ref:`tut-bootstrap` shows what a wrong flag does to your targets. The flags of other
# envs are in the table of :ref:`tut-ends`.
