"""
.. _tut-memory:

Train a recurrent model on slices
=================================

You will train an LSTM on replayed slices, until it knows velocities that nobody shows
it.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * hide both velocities of CartPole
        * unroll a network over slices
        * compare it with a twin that has no memory
        * see how long a slice must be

    .. grid-item-card:: You need

        * :ref:`tut-slice-ends`: how a slice says where it starts
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv, InitTracker, SerialEnv, TransformedEnv
from torchrl.modules import MLP, LSTMModule, set_recurrent_mode

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)

# %%
# One seed, one thread; all networks are trained while this page is built.
#
# Eight envs play. A controller keeps the pole up, but some of its actions are turned
# round: few in the first env, nearly half in the last. So episodes are short and long.
# A network will see positions (scaled up) and actions, and shall say the two speeds
# that follow.


def shaky(td):
    lean = td["observation"] @ torch.tensor([0.1, 0.3, 1.0, 0.5])
    flip = torch.rand(8) < torch.linspace(0.1, 0.45, 8)
    right = (lean > 0) ^ flip
    return td.set("action", torch.stack([~right, right], -1).long())


def collect(frames, first):
    env = SerialEnv(8, lambda: GymEnv("CartPole-v1"))
    env = TransformedEnv(env, InitTracker())
    _ = env.set_seed(first)
    collector = Collector(env, shaky, frames_per_batch=frames)
    td = next(iter(collector))
    collector.shutdown()
    torch.set_num_threads(1)  # closing a SerialEnv may raise it
    places = td["observation"][..., [0, 2]] * torch.tensor([4.0, 30.0])
    td["seen"] = torch.cat([places, td["action"]], -1)
    td["speed"] = td["next", "observation"][..., [1, 3]]
    return td


# %%

train, test = collect(6400, seed), collect(3200, seed + 10_000)
_, steps = train["collector", "traj_ids"].unique(return_counts=True)
print(
    f"{len(steps)} trajectories of {steps.min()} to {steps.max()} steps"
)

# %%
# What is hidden?
# ---------------
#
# Each point is one of those steps: what a network sees of the pole, and what it does
# not see.

angle, turning = train["observation"][..., 2:].reshape(-1, 2).T
fig, ax = plt.subplots()
fig.set_label("At each angle the pole turns this way and that.")
ax.plot(angle[::40], turning[::40], "C0.")
_ = ax.set(xlabel="angle, seen", ylabel="velocity, hidden")

# %%
# The cloud is no line: the angle alone does not tell the velocity. The past does.
# CartPole moves on by 0.02 seconds a step, so two positions in a row give the velocity
# between them.

before, after = train["observation"], train["next", "observation"]
moved = (after - before)[..., [0, 2]] / 0.02
assert torch.allclose(moved, before[..., [1, 3]], atol=1e-4)

# %%
# A network that remembers one position could know it.
#
# How does a network read a slice?
# --------------------------------
#
# :class:`~torchrl.modules.LSTMModule` keeps a state from step to step. Its twin is a
# feed-forward network without one.


def make_lstm():
    lstm = LSTMModule(4, 27, in_key="seen", out_key="out")
    head = TensorDictModule(torch.nn.Linear(27, 2), ["out"], ["guess"])
    return TensorDictSequential(lstm, head)


def make_twin():
    mlp = MLP(4, 2, num_cells=[58, 58])
    return TensorDictModule(mlp, ["seen"], ["guess"])


def size(net):
    return sum(weight.numel() for weight in net.parameters())


assert size(make_lstm()) < size(make_twin())

# %%
# It even has a few parameters more. The error of a guess is squared and divided by the
# variance: to guess the mean all the time costs 1 on the training data.

spread, mean = torch.std_mean(train["speed"], dim=(0, 1))


def error(net, td, recurrent=True):
    with set_recurrent_mode(recurrent):
        guess = net(td.select("seen", "is_init"))["guess"]
    return ((guess - td["speed"]) / spread).square().mean(-1)


def fill(td, slice_len):
    sampler = SliceSampler(slice_len=slice_len)
    storage = LazyTensorStorage(td.numel())
    buffer = TensorDictReplayBuffer(storage=storage, sampler=sampler)
    buffer.extend(td.reshape(-1))
    return buffer


# %%
# A draw of 256 steps holds 16 slices of 16 steps, one behind the other. In *recurrent
# mode* the module takes that row as time, and its state runs along each slice. Forget
# the mode, and nothing complains: each step is taken alone. Here, step 8 of a slice
# gets the same error as if it were all you have.

lstm, slices = make_lstm(), fill(train, 16).sample(256)
drawn = error(lstm, slices, recurrent=False)
lone = error(lstm, slices[8:9], recurrent=False)
assert torch.allclose(drawn[8:9], lone, atol=1e-5)

# %%
# So the mode stays on. What ``is_init`` does in it is told in :ref:`tut-seams`.
#
# Does it recover the velocities?
# -------------------------------
#
# One loop trains every network of this page.


def learn(make, slice_len=16, td=train):
    _ = torch.manual_seed(seed)
    net, buffer = make(), fill(td, slice_len)
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(400):
        loss = error(net, buffer.sample(256)).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return net


# %%
# For the test, draw 256 windows of 32 steps from episodes that no network was trained
# on. A window starts anywhere in an episode, and the memory starts empty.
#
# .. admonition:: Predict
#
#     At which step of a window are the two networks equally good?
#
#     .. dropdown:: Then look
#
#         At the first, step 0. There the memory is empty, and both know the same: one
#         position, one angle, one action.

windows = fill(test, 32).sample(32 * 256).reshape(256, 32)


def curve(net, td=windows):
    return error(net, td).mean(0).detach()


with_memory, without = curve(learn(make_lstm)), curve(learn(make_twin))
guessed = ((windows["speed"] - mean) / spread).square().mean((0, 2))

fig, ax = plt.subplots()
fig.set_label("The LSTM's error falls after step 0, the twin's rises.")
ax.plot(guessed, ":", c="gray", label="guess the mean")
ax.plot(without, "C1--", label="twin")
ax.plot(with_memory, "C0", label="LSTM")
ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the window", ylabel="error", ylim=0)

# %%
# Read it from the left. At step 0 neither has a memory, and their errors are within a
# factor of two.

assert 0.5 < with_memory[0] / without[0] < 2

# %%
# From then on only one of them gets better. Over the whole window the error of the LSTM
# is small, and less than a quarter of the twin's.

print(f"LSTM {with_memory.mean():.3f}, twin {without.mean():.3f}")
assert with_memory.mean() < min(0.2, without.mean() / 4)

# %%
# After twelve steps the memory is warm.

assert with_memory[12:16].mean() < 0.1

# %%
# Why does the twin get worse to the right? Follow the dotted line: to guess the mean
# gets worse as well. A late step of a window lies nearer to the end of its episode,
# where everything moves faster. So compare two networks at the same step, and not one
# step of a curve with another.

assert guessed[28:].mean() > 1.5 * guessed[0]

# %%
# How long must a slice be?
# -------------------------
#
# Train again on as many steps, cut into slices of 2 and of 8. The windows of the test
# stay as they are.

two, eight = curve(learn(make_lstm, 2)), curve(learn(make_lstm, 8))
fig, ax = plt.subplots()
fig.set_label("Slices of 2 steps fail from step 2 on; 8 and 16 last.")
ax.plot(two, "C2:", label="2 steps")
ax.plot(eight, "C3--", label="8 steps")
ax.plot(with_memory, "C0", label="16 steps")
ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the window", ylabel="error", yscale="log")

# %%
# Two steps are enough to learn what a velocity is: at step 1 that network is good. One
# step later it costs more than 1, and it stays there. Its state never had to last.
# Notice that the axis is logarithmic.

assert two[1] < 0.2 and two[2] > 1 and two[12:16].mean() > 1

# %%
# With slices of eight steps the state lasts, even over windows four times as long.

assert eight.mean() < 0.3

# %%
# Try it
# ------
#
# Why are the positions scaled up? Two in a row hardly differ, and that difference is
# all the memory has to go by. Train an LSTM on ``seen`` without the scale and draw its
# curve. Replace ``None`` by that curve.

answer = None


def check(answer):
    assert answer is not None, "replace None by a curve"
    assert answer[3:6].mean() > 2 * with_memory[3:6].mean()


# %%
# .. dropdown:: Solution
#
#     Early in the window the error is more than twice as high: the memory warms up
#     later.
#
#     .. code-block:: python
#
#         rescale = torch.tensor([1 / 4, 1 / 30, 1, 1])
#
#
#         def raw(td):
#             return td.clone().set("seen", td["seen"] * rescale)
#
#
#         answer = curve(learn(make_lstm, td=raw(train)), raw(windows))
#
# In practice
# -----------
#
# * Two positions in a row tell a velocity, so here you could also show the twin two
#   steps at once. A memory pays when you do not know how far back to look.
# * The policy here has no memory, so no state is stored with the steps. To act with an
#   LSTM, the env needs a primer for its state: :ref:`tut-recurrent-dqn`.
# * Windows come from episodes of at least 32 steps, and slices from those of at least
#   ``slice_len``: :ref:`tut-slice-odds`.
# * Change the 400 in ``learn``, or the 2 and the 8, and see what becomes of the curves.
#
# What you can rely on
# --------------------
#
# * Two positions in a row, divided by the time step, give the velocity between them.
# * The twin has at least as many parameters as the LSTM.
# * Outside of recurrent mode, each step is taken alone, without an error.
# * At step 0 of a window the errors of both are within a factor of two.
# * The mean error of the LSTM is below 0.2, and below a quarter of the twin's.
# * After twelve steps it is below 0.1.
# * Late steps of a window are harder, also for guessing the mean.
# * Trained on slices of two steps, it is good at step 1 and useless from step 2 on.
# * Slices of eight steps are enough here.
#
# Next
# ----
#
# Next page: :ref:`tut-seams`, where two slices meet. For targets that reach beyond
# a slice, go back to :ref:`tut-slice-training`.
