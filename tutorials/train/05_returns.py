"""
.. _tut-returns:

Compute returns from whole episodes
===================================

You will know which of your return targets are too small, and how to get them right.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * count the wrong targets of a batch
        * compute returns by hand
        * see the error grow as the policy improves
        * get every target right

    .. grid-item-card:: You need

        * what a batch edge does: :ref:`tut-collect`
        * how to ask for whole episodes: :ref:`tut-complete`
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, SerialEnv
from torchrl.objectives.value.functional import reward2go

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)
gamma = 0.99


def collect(policy, num_envs, frames, frames_per_batch=200, **options):
    env = SerialEnv(num_envs, lambda: GymEnv("CartPole-v1"))
    _ = env.set_seed(seed)
    options["frames_per_batch"] = frames_per_batch
    collector = Collector(env, policy, total_frames=frames, **options)
    parts = list(collector)
    collector.shutdown()
    torch.set_num_threads(1)  # keep to one thread
    return parts


# %%
# REINFORCE trains each step towards a :term:`target`, its :term:`return-to-go`: its
# reward and those that follow in the episode, discounted by ``gamma``. ``reward2go``
# adds them up. Everything here is collected while the page is built, with one seed and
# one thread.


def returns(td):
    reward, done = td["next", "reward"], td["next", "done"]
    return reward2go(reward, done, gamma).squeeze(-1)


batch, later = collect(None, 1, 400)  # None: random actions
cut = returns(batch)[0]
known = returns(torch.cat([batch, later], 1))[0]
wrong = (known[:200] - cut).abs() > 1e-3
print(f"{wrong.sum()} of {len(cut)} targets are wrong")

# %%
# Why are my targets too small?
# -----------------------------
#
# Here are the returns of one batch, twice: from the batch alone, and with the steps
# that came after it. The gray stripe ends at the batch edge.

fig, ax = plt.subplots()
fig.set_label("Near the edge, the batch alone falls too early.")
ax.plot(known[:220], "C0", label="with later steps")
ax.plot(cut, "C1--", label="batch alone")
ax.axvspan(200 - int(wrong.sum()), 200, fc="lightgray", label="wrong")
ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step", ylabel="return-to-go")

# %%
# Each ramp is an episode. Notice the last one before the edge: it still runs, and the
# batch knows nothing of the reward to come. So you can find the wrong targets without
# collecting on: they are those after the last ``done``.


def unfinished(td):
    ends_to_come = td["next", "done"].flip(-2).cumsum(-2).flip(-2)
    return (ends_to_come == 0).squeeze(-1)


assert torch.equal(wrong, unfinished(batch)[0])

# %%
# As rewards are positive here, each of them is too small.

assert (cut < known[:200])[wrong].all()

# %%
# What does ``reward2go`` add up?
# -------------------------------
#
# One loop, backwards through time. A ``done`` empties the sum.


def by_hand(td):
    after, running = td["next"], 0.0
    total = torch.zeros_like(after["reward"])
    for t in reversed(range(total.shape[1])):
        keep = gamma * ~after["done"][:, t]
        running = total[:, t] = after["reward"][:, t] + keep * running
    return total.squeeze(-1)


assert torch.allclose(by_hand(batch), returns(batch), atol=1e-3)

# %%
# The sum starts at 0 behind the last step. That is the cut: the end of the tensor
# counts as the end of an episode. A ``done`` on the last step changes nothing.

marked = batch.clone()
marked["next", "done"][:, -1] = True
assert torch.equal(returns(marked), returns(batch))

# %%
# Does a better policy help?
# --------------------------
#
# No, it makes things worse. Compare random actions with the steady policy of
# :ref:`tut-bootstrap`, made to reach the time limit of 500 steps. And compare one env
# with eight, where 200 frames are 25 steps of each env. Steps whose episode never ends
# in the data are left out; their return is unknown.


def steady(td):
    angle, speed = td["observation"][..., 2:].unbind(-1)
    right = angle + speed > 0
    return td.set("action", torch.stack([~right, right], -1).long())


names, means, shares = [], [], []
for name, policy in (("random", None), ("steady", steady)):
    for num_envs in (1, 8):
        parts = collect(policy, num_envs, 4_000)
        stream = torch.cat(parts, 1)
        ended = ~unfinished(stream)
        true = returns(stream)[ended]
        cut = torch.cat([returns(part) for part in parts], 1)[ended]
        wrong = (true - cut).abs() > 1e-3
        means.append((true.mean().item(), cut.mean().item()))
        shares.append(wrong.float().mean().item())
        names.append(f"{name}, {num_envs}\n{shares[-1]:.0%} wrong")

# %%
# Each pair of bars is the mean target, true and cut. The better the policy, the longer
# its episodes, and the more of their steps lie before an edge.

earned, seen = zip(*means, strict=True)
fig, ax = plt.subplots()
fig.set_label("Eight envs, long episodes: cut targets are tiny.")
left = torch.arange(4)
ax.bar(left - 0.2, earned, 0.4, color="C0", label="true")
ax.bar(left + 0.2, seen, 0.4, color="C1", label="cut")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xticks=left, xticklabels=names, ylabel="mean target")
_ = ax.set(xlabel="policy, number of envs")

# %%
# In one env, the better policy turns a blemish into the rule.

random_1, random_8, steady_1, steady_8 = shares
assert random_1 < 0.15 and steady_1 > 0.6

# %%
# With eight envs both are worse off. Of an episode of 500 steps, only those in its last
# batch are right: 25 at most.

assert random_8 > 0.3 and steady_8 > 0.9

# %%
# And the targets are not a little too small. For the steady policy in eight envs, the
# mean falls from above 70 to below 20.

assert earned[3] > 70 and seen[3] < 20

# %%
# What else can go wrong?
# -----------------------
#
# Three things in what you hand over. Time is expected in the second dimension from the
# right, as a collector delivers it. A plain vector fails, and wants ``time_dim``:

reward = torch.ones(6)
done = torch.tensor([0, 0, 1, 0, 0, 1]).bool()

message = None
try:
    reward2go(reward, done, gamma=1.0)
except IndexError as error:
    message = str(error)
assert "Dimension out of range" in str(message)

right = reward2go(reward, done, gamma=1.0, time_dim=-1)
assert right.tolist() == [3, 2, 1, 3, 2, 1]

# %%
# The other two fail in silence.
#
# .. admonition:: Predict
#
#     In these six steps, the first episode is stopped by a time limit, and the second
#     terminates. You pass ``terminated`` in place of ``done``. What is the first
#     return?
#
#     .. dropdown:: Then look
#
#         6. No flag stops the sum at the limit, and the first episode gets the rewards
#         of the second.

terminated = torch.tensor([0, 0, 0, 0, 0, 1]).bool()
leaking = reward2go(reward, terminated, gamma=1.0, time_dim=-1)
assert leaking.tolist() == [6, 5, 4, 3, 2, 1]

# %%
# So pass ``done``. And pass floats: with integer rewards the discount is rounded down
# to 0, and each return is one reward.

rounded = reward2go(reward.long(), done, gamma=0.9, time_dim=-1)
assert rounded.tolist() == [1, 1, 1, 1, 1, 1]

# %%
# How do I get every target right?
# --------------------------------
#
# Ask the collector for whole episodes (:ref:`tut-complete`). Here are the steps of the
# worst case again, the steady policy in eight envs. They arrive in another order, so
# sort both by trajectory.

options = {"trajs_per_batch": 1, "traj_format": "cat"}
yields = collect(steady, 8, 4_000, **options)
trajs = torch.cat([td.set("target", returns(td)) for td in yields])
earlier = stream.set("target", returns(stream))[ended]
trajs, earlier = (
    td[td["collector", "traj_ids"].argsort(stable=True)]
    for td in (trajs, earlier)
)
assert torch.equal(trajs["observation"], earlier["observation"])

# %%
# The steps are the same, and each target is now the true return.

assert torch.allclose(trajs["target"], earlier["target"], atol=1e-3)

# %%
# Try it
# ------
#
# You keep the eight envs, the random policy and fixed batches. Choose
# ``frames_per_batch``, at most 2000, so that less than a tenth of the targets are
# wrong. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of frames"
    assert answer <= 2000, "at most 2000"
    parts = collect(None, 8, 3 * answer, answer)
    wrong = torch.cat([unfinished(part) for part in parts], 1)
    assert wrong.float().mean() < 0.1, f"{wrong.float().mean():.0%}"


# %%
# .. dropdown:: Solution
#
#     An edge is as rare as in one env if each env makes 200 steps:
#
#     .. code-block:: python
#
#         answer = 8 * 200
#
# In practice
# -----------
#
# * Your targets are too small? Print the share of ``unfinished(batch)``.
# * Whole episodes have a price: you wait, and what is in flight at the end of a run is
#   lost. See :ref:`tut-complete` and :ref:`tut-complete-traps`.
# * If you cannot wait, let a critic stand for the missing rest: :ref:`tut-bootstrap`.
#   Do so too if a time limit ends your episodes and the task would go on. ``done`` cuts
#   the sum there as well.
# * ``collect`` sets the number of threads again. ``SerialEnv`` changes it when it is
#   closed, to no more than there were when TorchRL was imported (`batched_envs.py`_).
# * Set ``gamma = 1.0`` in the first cell and run the page again. Which pair of bars
#   moves furthest apart?
#
# .. _batched_envs.py:
#    https://github.com/pytorch/rl/blob/main/torchrl/envs/batched_envs.py
#
# What you can rely on
# --------------------
#
# * The wrong targets of a batch are those after its last ``done``.
# * With positive rewards they are too small.
# * ``reward2go`` is a sum that runs backwards and is emptied by ``done``.
# * The end of the tensor counts as an end.
# * In one env and batches of 200, less than 15 % of the targets are wrong for random
#   actions, and more than 60 % for a steady policy.
# * In eight envs it is more than 30 % and more than 90 %.
# * The mean target of the steady policy then falls from above 70 to below 20.
# * A vector without ``time_dim`` is an ``IndexError``.
# * With ``time_dim=-1`` its returns are right.
# * Given ``terminated``, the sum runs on over a truncation.
# * Integer rewards give returns of one reward each, without an error.
# * ``trajs_per_batch=1`` yields the same finished episodes as fixed batches do.
# * On whole episodes, each target is the true return.
#
# Next
# ----
#
# :ref:`tut-reinforce` trains on these targets, whole and cut. If you have a critic,
# read :ref:`tut-bootstrap`.
