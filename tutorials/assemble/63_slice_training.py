"""
.. _tut-slice-training:

Train on slices
===============

You will train a value network on slices while a collector runs, and measure it on
episodes that it never saw.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * write the loop: collect, store, draw, learn
        * measure against returns that were really earned
        * count how often a step is replayed
        * see what a longer slice teaches

    .. grid-item-card:: You need

        * :ref:`tut-slice-ends`: why the buffer marks slices
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy
from torchrl.objectives.value import GAE

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# The network shall learn how much reward is still to come, at a discount of 0.9 a step.
# The batch of :ref:`tut-collect` serves as the test and is never trained on. Its
# finished episodes tell what was earned after each step.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batches = iter(collector)
batch = next(batches)
ends = batch["next", "done"].squeeze(-1).nonzero().squeeze(-1)
test = batch[: ends[-1] + 1]

earned, ahead = torch.zeros(len(test)), 0.0
for step in reversed(range(len(test))):
    ahead = 0.0 if step in ends else ahead
    ahead = 1 + 0.9 * ahead
    earned[step] = ahead
print(f"{len(ends)} episodes, {len(test)} steps")

# %%
# Seen from its last step an episode earns 1. The longer it still runs, the closer it
# comes to 10.

assert (earned[ends] == 1).all() and 9 < earned.max() < 10

# %%
# What does the loop look like?
# -----------------------------
#
# A network of one hidden layer, targets from
# :class:`~torchrl.objectives.value.GAE`, and a buffer that draws 16 slices of 8 steps.

hidden = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
net = TensorDictModule(hidden, ["observation"], ["state_value"])
gae = GAE(gamma=0.9, lmbda=0.95, value_network=net)


def make_buffer(slice_len=8, batch_size=128):
    return TensorDictReplayBuffer(
        storage=LazyTensorStorage(5000),
        sampler=SliceSampler(slice_len=slice_len),
        batch_size=batch_size,
    )


def error():
    value = net(test.clone())["state_value"].squeeze(-1)
    return (value - earned).square().mean().sqrt().item()


# %%
# Ten times, collect a batch, store it, and learn from ten draws. Notice the order of
# the inner lines: the estimator writes ``value_target`` into the draw, then the network
# is asked for its value once more, now with gradients.

buffer = make_buffer()
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
first, drawn = error(), 0
for _ in range(10):
    _ = buffer.extend(next(batches))
    for _ in range(10):
        slices = gae(buffer.sample())
        value = net(slices)["state_value"]
        loss = (value - slices["value_target"]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        drawn += len(slices)
collector.shutdown()
last = error()
print(f"error {first:.2f} before, {last:.2f} after")

# %%
# The error on the unseen episodes falls to less than half.

assert last < first / 2

# %%
# What has it learned?
# --------------------
#
# Here are the test episodes, one after the other. Notice what happens before each
# failure: the orange line sinks with the blue one, although nothing tells the network
# how long the episode will last.

value = net(test.clone())["state_value"].squeeze(-1).detach()
fig, ax = plt.subplots()
fig.set_label(
    "What was still earned falls to 1 at the end of each episode. The"
    " learned value falls with it, later and less far."
)
ax.plot(earned, "C0", label="earned")
ax.plot(value, "C1", label="learned")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the test", ylabel="reward to come")

# %%
# It sees the pole tip over. At the last steps its value is lower than elsewhere.

assert value[ends].mean() < value.mean() - 1

# %%
# Did the loop touch what is stored?
# ----------------------------------
#
# No. A draw is a copy. Values, advantages and targets are computed anew each time, with
# the network as it is now, and thrown away.

assert "value_target" in slices and "value_target" not in buffer[:]

# %%
# So old steps get fresh targets. That is why they can be used again:

print(f"{len(buffer)} steps collected, {drawn} replayed")
assert len(buffer) == 2000 and drawn / len(buffer) == 6.4

# %%
# This is the mean. How unequally it is spread stands in :ref:`tut-slice-odds`.
#
# Why slices, and not single steps?
# ---------------------------------
#
# .. admonition:: Predict
#
#     Set the network back, so that it answers 0 to everything. What are its targets on
#     slices of one step?
#
#     .. dropdown:: Then look
#
#         All are 1: one reward, and nothing to come. Only the rewards inside the slice
#         are real; the rest is the network's own guess.

_ = nn.init.zeros_(hidden[2].weight), nn.init.zeros_(hidden[2].bias)
lengths, means = [1, 2, 4, 8], []
for length in lengths:
    some = make_buffer(length)
    some.extend(test)
    means.append(gae(some.sample())["value_target"].mean().item())
print("mean target", *(f"{mean:.2f}" for mean in means))
assert means[0] == 1

# %%
# By hand: with ``n`` steps left in the slice, the target is a sum of ``n`` rewards,
# each weighted by ``gamma * lmbda`` once more than the one before.

weights = torch.full((8,), 0.9 * 0.95).cumprod(0) / (0.9 * 0.95)
by_hand = [weights.cumsum(0)[:length].mean() for length in lengths]
assert torch.allclose(torch.tensor(means), torch.stack(by_hand))

# %%
# The longer the slice, the more real rewards are in its targets, and the earlier a
# network learns from them.

fig, ax = plt.subplots()
fig.set_label(
    "For a network that answers 0, the mean target grows with the"
    " slice, from 1 at one step to over 3 at eight; 6.5 was earned."
)
ax.bar(range(4), means, color="C1", label="mean target")
ax.axhline(earned.mean(), c="C0", label="earned")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set_xticks(range(4), lengths)
_ = ax.set(xlabel="steps of a slice", ylabel="reward to come")
assert means == sorted(means) and means[3] > 3

# %%
# Try it
# ------
#
# You want every step of a 200-step buffer to be replayed 12 times on average in ten
# draws. Which ``batch_size`` does that? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    small = make_buffer(8, answer)
    small.extend(batch)
    seen = sum(len(small.sample()) for _ in range(10))
    assert seen == 12 * 200, f"{seen / 200} times"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 12 * 200 // 10
#
# In practice
# -----------
#
# * Here the policy never changes, so old steps stay valid. If yours learns, the
#   rewards in a slice are those of an older policy, and the longer the slice, the
#   more they weigh.
# * A buffer that holds no trajectory of ``slice_len`` steps raises an error at the
#   first draw: :ref:`tut-slices`.
# * Use :class:`~torchrl.data.TensorDictReplayBuffer`. With the plain buffer the targets
#   leak from slice to slice: :ref:`tut-slice-ends`.
#
# What you can rely on
# --------------------
#
# * Discounted by 0.9, the reward to come is 1 at the last step and stays below 10.
# * After a hundred updates on slices, the error on unseen episodes is less than half.
# * The learned value is lower at the last steps of an episode.
# * Targets are written into the draw, not into the buffer.
# * The loop replays each step 6.4 times on average.
# * For a network that answers 0, slices of one step give targets of 1.
# * Its targets are the rewards left in the slice, weighted by powers of
#   ``gamma * lmbda``.
# * They grow with the slice, to a mean above 3 at eight steps.
#
# Next
# ----
#
# Next page: :ref:`tut-slice-variants`. If several collectors fill your buffer, read
# :ref:`tut-crossings` first.
