"""
.. _tut-recurrent-targets:

Keep a recurrent target inside its slice
========================================

You will draw slices for a recurrent DQN whose targets see nothing but their own slice.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * see the errors of one slice change with another
        * find the flag that nobody sets
        * close the leak in two ways
        * rebuild the loss by hand

    .. grid-item-card:: You need

        * :ref:`tut-recurrent-leaks`: modes and stored states
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv
from torchrl.modules import GRUModule, QValueModule, set_recurrent_mode
from torchrl.objectives import DQNLoss, SoftUpdate

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)
env = GymEnv("CartPole-v1")
_ = env.set_seed(seed)

# %%
# The agent of :ref:`tut-recurrent-leaks`: a GRU, action values, the highest one. One
# seed, one thread, and no training.

gru = GRUModule(
    4,
    16,
    in_keys=["observation", "state"],
    out_keys=["features", ("next", "state")],
)
policy = TensorDictSequential(
    gru,
    TensorDictModule(nn.Linear(16, 2), ["features"], ["action_value"]),
    QValueModule(spec=env.action_spec),
)

# %%
# It collects 200 steps, and the collector adds the transforms that a memory needs. A
# buffer hands out two slices of eight steps.

auto = {"auto_register_policy_transforms": True}
collector = Collector(env, policy, frames_per_batch=200, **auto)
buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(200),
    sampler=SliceSampler(slice_len=8),
    batch_size=16,
)
_ = buffer.extend(next(iter(collector)))
collector.shutdown()
slices = buffer.sample()
starts = slices["is_init"].flatten().nonzero().flatten()
print("is_init at steps", starts.tolist())

# %%
# The draw is flat. The buffer has marked both starts with ``is_init``
# (:ref:`tut-slice-ends`), and the memory is cut there.

assert starts.tolist() == [0, 8]

# %%
# Does a slice mind its neighbour?
# --------------------------------
#
# TorchRL's DQNLoss_ runs the network over the slices, and the target network over what
# stands under ``next``. For each step it writes the squared error to ``td_error``. Ask
# for the errors of two draws: in the second, the *first slice* saw something else.
#
# .. _DQNLoss:
#    https://docs.pytorch.org/rl/stable/reference/generated/torchrl.objectives.DQNLoss.html


def errors(drawn, double=False):
    drawn, spec = drawn.clone(), env.action_spec
    how = {"delay_value": True, "double_dqn": double}
    loss = DQNLoss(policy, action_space=spec, **how)
    loss.make_value_estimator(gamma=0.9)
    _ = SoftUpdate(loss, tau=0.02)  # without it, the loss warns
    _ = loss(drawn)
    return drawn["td_error"].flatten()


other = slices.clone()
other["observation"][:8] += 1
other["next", "observation"][:8] += 1
leak = (errors(other) - errors(slices)).abs()

# %%
# .. admonition:: Predict
#
#     Do the errors of the second slice change?
#
#     .. dropdown:: Then look
#
#         They do, although ``is_init`` is True between the two.

fig, ax = plt.subplots()
fig.set_label(
    "Another first slice changes the errors of the first slice, and"
    " those of the second too, most right behind the seam."
)
bars = leak.tolist()
_ = ax.bar(range(8), bars[:8], color="C0", label="first slice")
_ = ax.bar(range(8, 16), bars[8:], color="C1", label="second slice")
ax.axvline(7.5, c="black", ls=":", label="seam")
ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the draw", ylabel="change of the error")

# %%
# Notice the orange bars. Memory flows over the seam, and fades. Only where an episode
# ended is there no change: such a step has no next value.

ended = slices["next", "terminated"].flatten()
assert torch.equal(leak[8:] > 1e-5, ~ended[8:])
assert leak[8] > 2 * leak[14]

# %%
# Double DQN asks two networks about ``next``. It leaks too.

twice = (errors(other, double=True) - errors(slices, double=True)).abs()
assert torch.equal(twice[8:] > 1e-5, ~ended[8:])

# %%
# Which flag is missing?
# ----------------------
#
# The target network reads what stands under ``next``, so it reads ``("next",
# "is_init")``. A step that an action leads to is never the first of an episode, and the
# buffer marks no slice there. For the target, the draw is one long episode.

assert not slices["next", "is_init"].any()

# %%
# One line marks the starts for the target too.


def marked(drawn):
    drawn = drawn.clone()
    drawn["next", "is_init"] = drawn["is_init"].clone()
    return drawn


cured = (errors(marked(other)) - errors(marked(slices))).abs()
assert cured[8:].max() < 1e-6 < cured[:8].max()

# %%
# Now the second slice does not care what the first one saw. How wrong was the draw
# before? The errors of its first slice were right, those of the second were not:

wrong = (errors(slices) - errors(marked(slices))).abs()
for name, part in ("first", wrong[:8]), ("second", wrong[8:]):
    print(f"{name:6}", *(f"{step:.4f}" for step in part))
assert wrong[:8].max() < 1e-6 and wrong[8:].max() > 1e-3

# %%
# Will rows do?
# -------------
#
# If all slices are equally long, you can cut the draw into rows. No row has another
# before it, and the errors are those of the marked draw.

rows = slices.reshape(-1, 8)
assert torch.allclose(errors(rows), errors(marked(slices)), atol=1e-6)

# %%
# What does the loss compute?
# ---------------------------
#
# Rebuild it, one slice at a time. Before the first update the target network is a copy,
# so one network will do for both.


def by_hand(row):
    with torch.no_grad(), set_recurrent_mode(True):
        value = policy(row.clone())["action_value"]
        after = policy(row["next"].exclude("state"))["action_value"]
    taken = (value * row["action"]).sum(-1, keepdim=True)
    future = after.amax(-1, keepdim=True) * ~row["next", "terminated"]
    target = row["next", "reward"] + 0.9 * future
    return (target - taken).square().flatten()


def in_pieces(rows):
    return torch.cat([by_hand(row) for row in rows])


right = errors(marked(slices))
assert torch.allclose(in_pieces(rows), right, atol=1e-5)

# %%
# The ``exclude`` shows where the target starts: from zero, whatever state is stored.
# The network itself starts from the stored one (:ref:`tut-recurrent-leaks`). At the
# first steps of a slice the two do not know the same past.
#
# What if an episode ends inside?
# -------------------------------
#
# Take 16 steps around the second reset in the buffer as one slice, and compare with the
# pieces before and after it, by hand.

resets = buffer[:]["is_init"].flatten().nonzero().flatten()
stretch = buffer[resets[1] - 8 : resets[1] + 8]
right = in_pieces(stretch.reshape(-1, 8))
off = (errors(stretch) - right).abs()
assert off[:8].max() < 1e-5 and off[8:].max() > 1e-3

# %%
# One slice, and it leaks over the reset. No row helps here. The mark does:

assert torch.allclose(errors(marked(stretch)), right, atol=1e-5)

# %%
# Try it
# ------
#
# Your draw comes from a plain ``ReplayBuffer``, which marks nothing. Prepare it so that
# both passes restart at each slice. Replace ``None`` by a function of the draw.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function of a draw"
    plain = slices.clone()
    plain["is_init"][:] = False
    made = errors(answer(plain))
    right = errors(marked(slices))
    assert torch.allclose(made, right, atol=1e-6), "it still leaks"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         def answer(drawn):
#             drawn["is_init"][::8] = True
#             return marked(drawn)
#
# In practice
# -----------
#
# * TorchRL's `recurrent DQN tutorial`_ is good at the parts: what the state is, who
#   carries it, how a loss runs through time. It draws flat slices that may be short, so
#   nothing is padded, and hands them to ``DQNLoss`` as they are. There its target has
#   the leak of this page, unless a release has changed it since. ``marked`` is a cure
#   for such draws; rows need one length.
# * Which return the leak costs is not measured here. It fades along the slice, so long
#   slices suffer less.
# * What a state from elsewhere does to predictions: :ref:`tut-seams`.
# * Set another ``seed``: other episodes, bars of another size, the same leak.
#
# .. _recurrent DQN tutorial:
#    https://docs.pytorch.org/rl/stable/tutorials/dqn_with_rnn.html
#
# What you can rely on
# --------------------
#
# * The buffer marks the first step of each slice with ``is_init``.
# * Yet on a flat draw, the errors of ``DQNLoss`` depend on the slice before, wherever
#   there is a next value.
# * That fades along the slice.
# * Double DQN leaks as well.
# * Nobody marks a start under ``next``.
# * With ``is_init`` copied there, no slice depends on another.
# * Without, the errors of the first slice are right, those of the second are not.
# * Rows of equal length give the errors of the marked draw.
# * In these, the target starts each slice from zero, the network from the stored state.
# * A reset inside a slice leaks as well.
# * The mark cures that too.
#
# Next
# ----
#
# Back to the agent: :ref:`tut-recurrent-dqn`. Or choose another page from the
# :ref:`tutorials`.
