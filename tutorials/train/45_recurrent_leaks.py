"""
.. _tut-recurrent-leaks:

Find the silent leaks of a recurrent agent
==========================================

You will know three places where an agent loses its memory, or takes a wrong one, and
no error tells you.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * see an agent without memory that looks as if it had one
        * catch slices that are read in the wrong mode
        * tell which state a slice starts from

    .. grid-item-card:: You need

        * :ref:`tut-slice-ends`: what a buffer marks
        * a recurrent agent: :ref:`tut-recurrent-dqn`
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
from torchrl.envs import Compose, GymEnv, InitTracker, TransformedEnv
from torchrl.modules import GRUModule, QValueModule, set_recurrent_mode

torch.set_num_threads(1)
seed = 0
_ = torch.manual_seed(seed)
env = GymEnv("CartPole-v1")
_ = env.set_seed(seed)

# %%
# A small agent: a GRU, a layer that makes action values of its features, and the action
# with the highest value. It reads its memory from ``state`` and writes the new one to
# ``("next", "state")``. One seed, one thread, and no training: an agent
# leaks before it has learned anything.

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
print("reads", *gru.in_keys)

# %%
# It also reads ``is_init``, which says where an episode starts.
#
# Does the agent remember?
# ------------------------
#
# Two transforms serve the memory: :class:`~torchrl.envs.InitTracker` writes
# ``is_init``, and a primer announces ``state`` to the env. Collect with both, and once
# without the primer. Then ask the policy again without its memory, and measure how far
# the values are apart.


def collect(*transforms, auto=False):
    env = TransformedEnv(GymEnv("CartPole-v1"), Compose(*transforms))
    _ = env.set_seed(seed)
    collector = Collector(
        env,
        policy,
        frames_per_batch=200,
        auto_register_policy_transforms=auto,
    )
    batch = next(iter(collector))
    collector.shutdown()
    return batch


def apart(batch):
    cold = policy(batch.select("observation", "is_init"))
    off = batch["action_value"] - cold["action_value"]
    return off.abs().amax(-1).detach()


batch = collect(InitTracker(), gru.make_tensordict_primer())
forgetful = collect(InitTracker())

# %%
# .. admonition:: Predict
#
#     Without the primer the policy writes ``("next", "state")`` all the same, and
#     neither run complains. Does the policy find its state at the next step?
#
#     .. dropdown:: Then look
#
#         No. On the way to the next step, a key that the env does not know is dropped.
#         A policy that finds no state takes zeros.

fig, ax = plt.subplots()
fig.set_label(
    "With the primer, values leave those of a memoryless call after"
    " each reset and return at the next. Without it they never do."
)
ax.plot(apart(batch)[:60], "C0", label="with primer")
ax.plot(apart(forgetful)[:60], "C1--", label="without")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the batch", ylabel="effect of memory")

# %%
# Notice the flat line. **Leak one: without a primer, the agent has no memory at all.**

assert "state" in forgetful["next"] and "state" not in forgetful
assert apart(forgetful).max() < 1e-5

# %%
# With the primer the memory counts at every step but the first of an episode.

assert torch.equal(apart(batch) > 1e-5, ~batch["is_init"].squeeze(-1))

# %%
# What if the other transform is missing?
# ---------------------------------------
#
# Then you hear of it, whatever else you did.

message = None
try:
    env.rollout(1, policy)
except KeyError as error:
    message = str(error)
assert 'key "is_init" not found' in str(message)

# %%
# Or leave both to the collector. With ``auto_register_policy_transforms=True`` and no
# transform of yours, the values are the same.

auto = collect(auto=True)
assert torch.equal(auto["action_value"], batch["action_value"])

# %%
# Which mode reads the slices?
# ----------------------------
#
# Store the good batch and draw two slices of eight steps. A recurrent module has two
# ways to read them. In *sequential* mode, the default, each step is read by itself,
# from the state stored with it. In *recurrent* mode the module runs along the slice.

buffer = TensorDictReplayBuffer(
    storage=LazyTensorStorage(200),
    sampler=SliceSampler(slice_len=8),
    batch_size=16,
)
_ = buffer.extend(batch)
slices = buffer.sample()


def read(slices, recurrent):
    with set_recurrent_mode(recurrent):
        return policy(slices.clone())["action_value"]


def modes_apart():
    off = read(slices, True) - read(slices, False)
    return off.detach().abs().amax(-1).reshape(2, 8).amax(0)


fresh = modes_apart()
assert (fresh[1:] < 1e-5).all()

# %%
# From the second step on they agree. **Leak two: if you forget the mode, nothing looks
# wrong** until the weights change. Update them once, on anything:

optimiser = torch.optim.Adam(policy.parameters(), lr=0.01)
read(slices, True).square().mean().backward()
optimiser.step()
stale = modes_apart()
for name, off in ("before", fresh), ("after", stale):
    print(f"{name:6}", *(f"{step:.3f}" for step in off))
assert (stale > 1e-3).all()

# %%
# Now the stored states are those of an older network, and sequential mode goes on
# reading them. It also learns no memory: ask which observations the last step of a
# slice has a gradient for.


def reach(recurrent):
    seen = slices.clone()
    seen["observation"].requires_grad_()
    read(seen, recurrent)[7].sum().backward()
    return seen["observation"].grad[:8].any(-1)


assert reach(True).all() and reach(False).nonzero().tolist() == [[7]]

# %%
# In recurrent mode it reaches all eight, in sequential mode only its own. So write
# ``with set_recurrent_mode(True):`` around your own calls on slices. Losses of TorchRL
# do that for you: :class:`~torchrl.modules.set_recurrent_mode`.
#
# What does a slice start from?
# -----------------------------
#
# The first step differed even before the update. The buffer has set ``is_init`` there
# (:ref:`tut-slice-ends`). Change the state that is stored at that step, and see
# whether the values change.

moved = slices.clone()
moved["state"][::8] += 1


def changed(recurrent):
    off = read(moved, recurrent) - read(slices, recurrent)
    return off.abs().amax(-1) > 1e-6


assert changed(True).all()

# %%
# **Leak three: in recurrent mode, is_init does not set the memory to zero.** It cuts a
# slice off from the one before, and the slice starts from the state stored at its first
# step. All its steps feel that. It is often what you want, as the slice starts in the
# middle of an episode; but the state is that of an older network. In sequential mode it
# would be zero:

assert not changed(False).any()

# %%
# Try it
# ------
#
# You want recurrent mode to start each slice from zero, as the first step of an episode
# does. Write a function that prepares a draw for that. Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a function of slices"
    zero = slices.clone()
    zero["state"] *= 0
    made = read(answer(moved.clone()), True)
    assert made.shape == (16, 2), "a step was lost"
    assert torch.equal(made, read(zero, True)), "a state still counts"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         def answer(slices):
#             return slices.exclude("state")
#
# In practice
# -----------
#
# * An env for evaluation needs both transforms too. Without the primer you evaluate an
#   agent that has no memory.
# * Which start is better, zero or the stored state? Zero knows nothing of the past, and
#   the stored one is old. What a wrong state does to predictions: :ref:`tut-seams`.
# * On a batched env, give ``QValueModule`` the spec of a single one,
#   ``env.action_spec_unbatched``.
# * Set another ``seed``: other episodes, the same leaks.
# * To watch for leak one, look for your state in ``batch``. For leak two, look at the
#   gradient of an early observation, as above.
#
# What you can rely on
# --------------------
#
# * Without a primer, the policy writes its state and does not find it again.
# * Its values are then those of an agent without memory.
# * With a primer, memory counts at each step but the first of an episode.
# * Without ``InitTracker``, a recurrent policy raises a ``KeyError``.
# * The collector can add both transforms, with the same result.
# * Until the weights change, both modes agree from the second step of a slice on.
# * After one update they differ at each step.
# * In recurrent mode the gradient reaches back to the start of the slice, in sequential
#   mode nowhere.
# * In recurrent mode a slice starts from its stored state.
# * In sequential mode that state is zeroed by ``is_init``.
#
# Next
# ----
#
# Next page: :ref:`tut-recurrent-targets`, the leak that the loss itself has. Or train
# the agent: :ref:`tut-recurrent-dqn`.
