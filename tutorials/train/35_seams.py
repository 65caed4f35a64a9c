"""
.. _tut-seams:

Reset the memory at every seam
==============================

You will measure what a memory does where two unrelated pieces of data meet, and keep it
from doing harm.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * send an LSTM across a seam, with and without a reset
        * train from the wrong buffer, and repair it
        * see what burn-in does, and what it does not
        * judge an effect that one run cannot show

    .. grid-item-card:: You need

        * :ref:`tut-memory`: the task and the network
        * :ref:`tut-slice-ends`: who marks slices
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    ReplayBuffer,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv, InitTracker, SerialEnv, TransformedEnv
from torchrl.modules import LSTMModule, set_recurrent_mode

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)

# %%
# One seed, one thread, trained while this page is built. The data are those of
# :ref:`tut-memory`: a shaky controller plays in eight envs, and a network shall say
# speeds that it cannot see.


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


def fill(td, slice_len=16, kind=TensorDictReplayBuffer, **options):
    sampler = SliceSampler(slice_len=slice_len, **options)
    storage = LazyTensorStorage(td.numel())
    buffer = kind(storage=storage, sampler=sampler)
    buffer.extend(td.reshape(-1))
    return buffer


train, test = collect(6400, seed), collect(3200, seed + 10_000)
windows = fill(test, 32).sample(32 * 256).reshape(256, 32)

# %%
# What is a seam?
# ---------------
#
# Take the first half of each of these 256 test windows, and put the first half of
# another behind it. How much does the angle of the pole change from one step to the
# next?

half = windows[:, :16]
joined = torch.cat([half, half.roll(1, 0)], 1)
change = joined["observation"][..., 2].diff(dim=1).abs()
print(f"within a half: {change[:, 14].mean():.3f}")
print(f"from one half to the other: {change[:, 15].mean():.3f}")
assert change[:, 15].mean() > 3 * change[:, 14].mean()

# %%
# Between step 15 and step 16 it jumps: there is the :term:`seam`. A memory that reads
# velocities out of such changes must take the jump for a huge velocity.
#
# What happens after a seam?
# --------------------------
#
# Train an LSTM the right way, and read the joined rows twice: with ``is_init`` at step
# 16, where the buffer has set it, and without.

spread = train["speed"].std((0, 1))


def error(net, td):
    with set_recurrent_mode(True):
        guess = net(td.select("seen", "is_init"))["guess"]
    return ((guess - td["speed"]) / spread).square().mean(-1)


def learn(buffer, shape=256, burn=0):
    lstm = LSTMModule(4, 27, in_key="seen", out_key="out")
    head = TensorDictModule(torch.nn.Linear(27, 2), ["out"], ["guess"])
    net = TensorDictSequential(lstm, head)
    adam = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(400):
        errors = error(net, buffer.sample(256).reshape(shape))
        adam.zero_grad()
        errors.reshape(-1, 16)[:, burn:].mean().backward()
        adam.step()
    return net.requires_grad_(False)


# %%

marked, lost = fill(train), joined.clone()
net = learn(marked)
lost["is_init"][:, 16] = False
reset, leaked = error(net, joined), error(net, lost)

fig, ax = plt.subplots()
fig.set_label("Without is_init the error soars after the seam.")
ax.plot(leaked.mean(0), "C1--", label="no is_init at step 16")
ax.plot(reset.mean(0), "C0", label="is_init")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the joined row", ylabel="error", ylim=0)

# %%
# An error of 1 is what you pay for always guessing the mean. With the flag, the second
# half starts as the first did. The network gives the numbers that it gives when that
# half is read alone.

single = error(net, half.roll(1, 0))
assert torch.allclose(reset[:, 16:], single, atol=1e-4)

# %%
# Without it, the state goes on. One step after the seam the error is more than three
# times as high as with the flag, and worse than guessing the mean.

after = leaked.mean(0)[16:]
assert after[1] > max(3 * single.mean(0)[1], 1.5)

# %%
# Is it really the jump? Then wide jumps must do more harm than narrow ones.

wide = change[:, 15] > change[:, 15].median()
assert leaked[wide, 17].mean() > 2 * leaked[~wide, 17].mean()

# %%
# They do: more than twice as much. And the harm passes. Ten steps on, the LSTM has
# forgotten what came before.

assert after[10:].mean() < 0.3

# %%
# Which buffer resets the memory?
# -------------------------------
#
# A flat draw of 16 slices has 15 seams. ``TensorDictReplayBuffer`` marks them and
# ``ReplayBuffer`` does not (:ref:`tut-slice-ends`). Train from each, and a third time
# from the plain buffer with its draw cut into rows. All three start alike and draw the
# same steps.
#
# .. admonition:: Predict
#
#     The same steps, the same network, and not one warning. How much worse is the plain
#     buffer?
#
#     .. dropdown:: Then look
#
#         Its error is more than one and a half times as high. In rows it is as good as
#         the other: no state flows from row to row.

plain, means = fill(train, kind=ReplayBuffer), []
for buffer, shape in (marked, 256), (plain, 256), (plain, (16, 16)):
    _ = torch.manual_seed(seed)
    means.append(error(learn(buffer, shape), windows).mean())
print("marked {:.2f}, plain {:.2f}, in rows {:.2f}".format(*means))
assert means[1] > 1.5 * means[0]

# %%
# The third run differs from the second in nothing but the seams, and it ends where the
# first one does. So the seams are the reason.

assert torch.allclose(means[2], means[0], atol=0.01)

# %%
# Does burn-in help?
# ------------------
#
# A reset has its price: a cold memory. Compare the first step of a window with steps 12
# to 15.

usual = error(net, windows).mean(0)
cold, warm = usual[0], usual[12:16].mean()
assert cold > 4 * warm

# %%
# To leave the first steps of a slice out of the score is called :term:`burn-in`. In a
# test it is right: the cold start says nothing about the network. Does it help in
# training too? Here the loss leaves out the first four steps of each slice.

burnt = error(learn(marked, burn=4), windows).mean(0)
print(f"cold {cold:.2f}, with burn-in {burnt[0]:.2f}")
print(f"warm {warm:.3f}, with burn-in {burnt[12:16].mean():.3f}")
assert burnt[0] > 1.3 * cold

# %%
# The cold step, which no loss looks at now, gets worse. The error of the warm steps
# stays within a factor of three. Whether they gain, one run cannot tell: networks that
# are trained alike differ too, as you see below.

assert warm / 3 < burnt[12:16].mean() < 3 * warm

# %%
# What if slices cross?
# ---------------------
#
# Now give all steps one and the same id, and erase ``is_init``. Slices then run across
# the ends of episodes, and the memory with them. Most slices still have no seam, but
# some do.

erased = train.clone().set("same", torch.zeros(8, 800))
erased["is_init"][:] = False
crossing = fill(erased, traj_key="same")
ids = crossing.sample(5120)["collector", "traj_ids"].reshape(-1, 16)
share = (ids != ids[:, :1]).any(1).float().mean()
assert 0.08 < share < 0.4

# %%
# Train three networks from each buffer, and compare the means.

for buffer in marked, crossing:
    runs = [error(learn(buffer), windows).mean() for _ in "123"]
    means.append(sum(runs) / 3)
    print("errors", *(f"{run:.3f}" for run in runs))
assert means[4] < 3 * means[3]

# %%
# The damage is small. Only some of the slices have a seam, and behind each seam only
# about ten steps are spoilt. The page shows no more than that: the mean error grows by
# less than a factor of three, and right after a seam it grows by more. It does not show
# by how much, nor even that it grows at all: the runs of one kind differ among
# themselves, and three of them are few.
#
# Try it
# ------
#
# How long does the harm last? Count the steps from the seam on until, for the first
# time, the error without the flag is less than double the error with it. Replace
# ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    double = after > 2 * single.mean(0)
    assert double[:answer].all() and not double[answer]


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         ratio = leaked.mean(0)[16:] / reset.mean(0)[16:]
#         answer = (ratio <= 2).nonzero()[0].item()
#
# In practice
# -----------
#
# * Store ``is_init`` (:class:`~torchrl.envs.InitTracker`), draw from a
#   ``TensorDictReplayBuffer``, and the memory restarts where it must.
# * A plain buffer with slices of one length: ``reshape(-1, slice_len)``.
# * Slices that cross on purpose, as in :ref:`tut-recurrent-dqn`, need their
#   ``is_init`` inside the slice. If yours cross by accident, see :ref:`tut-crossings`.
# * Lengthen the ``"123"``, and see how far the runs of one kind lie apart.
#
# What you can rely on
# --------------------
#
# * At a seam the angle changes more than three times as much as one step before.
# * With ``is_init`` at the seam, the network answers as if what follows stood alone.
# * Without it, the error one step later is more than tripled, and above 1.5.
# * Wide jumps do more than twice the harm of narrow ones.
# * Ten steps after the seam the harm has passed.
# * Trained from the plain buffer, the error is more than one and a half times as high.
# * Cut into rows, the plain draw trains as well as the marked one.
# * With a cold memory, the error is more than four times that of a warm one.
# * Burn-in in the loss makes the cold step worse.
# * For the warm steps it changes the error by less than a factor of three.
# * With one id for all steps, 8 to 40 % of the slices have a seam.
# * On average, slices that cross do not triple the error.
#
# Next
# ----
#
# Next page: :ref:`tut-recurrent-dqn`, an agent that remembers. For seams in
# advantages, in place of memories, see :ref:`tut-bootstrap`.
