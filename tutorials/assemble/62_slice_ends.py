"""
.. _tut-slice-ends:

Mark where a slice ends
=======================

You will draw slices that no advantage, and no memory, can leak out of.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * compare what two buffers write at the end of a slice
        * see advantages go wrong at a seam, and right again
        * tell a memory where to restart

    .. grid-item-card:: You need

        * :ref:`tut-slices`: how to draw a slice
"""

import matplotlib.pyplot as plt
import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    ReplayBuffer,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv, InitTracker, TransformedEnv
from torchrl.modules import RandomPolicy
from torchrl.objectives.value import GAE

_ = torch.manual_seed(0)
env = TransformedEnv(GymEnv("CartPole-v1"), InitTracker())
_ = env.set_seed(0)

# %%
# A draw of slices is flat: the first step of one slice stands right after the last step
# of another. Something has to mark that seam. Draw the same six slices from two kinds
# of buffer, and see who does.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batch = next(iter(collector))
collector.shutdown()


def filled(kind, data, **options):
    buffer = kind(
        storage=LazyTensorStorage(1000),
        sampler=SliceSampler(slice_len=8, **options),
        batch_size=48,
    )
    buffer.extend(data)
    return buffer


# %%
# The random numbers are rewound in between, so both draw the same rows.

state = torch.get_rng_state()
plain = filled(ReplayBuffer, batch).sample()
torch.set_rng_state(state)
buffer = filled(TensorDictReplayBuffer, batch)
marked = buffer.sample()
for slices in (plain, marked):
    steps = slices["next", "done"].squeeze(-1).nonzero()
    print("done at steps", steps.flatten().tolist())

# %%
# Both drew the same steps. Only the second says where each slice stops.

assert torch.equal(plain["observation"], marked["observation"])

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
# What stands at the end of a slice?
# ----------------------------------
#
# Each row is one draw of six slices, pulled apart so that you see the seams. A torn
# edge carries no flag, a hollow notch is ``truncated``. The first slice ends where its
# episode failed: the solid notch is the env's own ``terminated``.

fig, ax = plt.subplots(figsize=(5.4, 1.6))
fig.set_label(
    "The same six slices twice. The first ends with a solid notch. The"
    " others end torn from ReplayBuffer, and with a hollow notch from"
    " TensorDictReplayBuffer."
)
for y, slices in enumerate((marked, plain)):
    for place, piece in enumerate(slices.reshape(-1, 8)):
        ribbon(ax, piece, y, 11 * place)
ax.set_yticks([0, 1], ["TensorDict-\nReplayBuffer", "ReplayBuffer"])
_ = ax.set(xticks=[], xlim=(0, 66))

# %%
# :class:`~torchrl.data.TensorDictReplayBuffer` sets ``done`` and ``truncated`` on the
# last step of every slice. It leaves ``terminated`` alone: the episode did not end
# there.

end = torch.arange(48) % 8 == 7
after = marked["next"]
assert torch.equal(after["truncated"].squeeze(-1), end)
assert after["done"].squeeze(-1)[end].all()
assert torch.equal(after["terminated"], plain["next", "terminated"])

# %%
# :class:`~torchrl.data.ReplayBuffer` hands out what was stored. The marks exist there
# too, but only in the ``info`` that you have to ask for.

_, info = filled(ReplayBuffer, batch).sample(return_info=True)
assert not plain["next", "truncated"].any()
assert torch.equal(info["next", "truncated"].squeeze(-1), end)

# %%
# The marks are written on the drawn copy. What is stored stays as it was.

assert not buffer[:]["next", "truncated"].any()

# %%
# What does a seam do to an advantage?
# ------------------------------------
#
# :class:`~torchrl.objectives.value.GAE` adds up errors backwards in time until it meets
# ``done``. As the truth, take the slices as six rows, so that nothing can flow from
# one to another. Then give it both flat draws.
#
# .. admonition:: Predict
#
#     Which of the six slices come out right without the marks?
#
#     .. dropdown:: Then look
#
#         The first and the last. The first ends where its episode failed, and the env
#         said so. The last has nothing behind it. Into each of the others flows the
#         slice behind it.

critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
net = TensorDictModule(critic, ["observation"], ["state_value"])
gae = GAE(gamma=0.9, lmbda=0.95, value_network=net)
truth = gae(plain.reshape(6, 8).clone())["advantage"].flatten()
leaky = gae(plain.clone())["advantage"].flatten()
sound = gae(marked.clone())["advantage"].flatten()
wrong = (leaky - truth).abs().reshape(6, 8).amax(dim=1) > 0.1
assert wrong.tolist() == [False, True, True, True, True, False]
assert torch.allclose(sound, truth, atol=1e-5)

# %%
# With marks, the flat draw gives the same numbers as the rows. Without, each slice is
# credited with what happens in the next, and the line hardly falls.

fig, ax = plt.subplots()
fig.set_label(
    "With marks the advantages lie on the truth and fall towards each"
    " seam. Without, slices two to five run through at a high level."
)
ax.plot(truth, "o", c="gray", label="truth")
ax.plot(sound, "C0", label="with marks")
ax.plot(leaky, "C1--", label="without")
for seam in range(8, 48, 8):
    ax.axvline(seam - 0.5, c="black", lw=1, ls=":")
ax.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlabel="step of the draw", ylabel="advantage")

# %%
# A slice may also end where its episode really failed. Then its last step carries all
# three flags, and ``terminated`` decides: :ref:`tut-bootstrap`.

tails = torch.cat([buffer.sample()[7::8] for _ in range(50)])["next"]
failed = tails[tails["terminated"].squeeze(-1)]
assert (
    len(failed) and failed["done"].all() and failed["truncated"].all()
)

# %%
# What does a memory need?
# ------------------------
#
# A recurrent network must forget the slice before. It restarts where ``is_init`` is
# True. :class:`~torchrl.envs.InitTracker`, in the env of this page, stores that flag at
# each reset; the buffer adds the first step of each slice.

begin = end.roll(1)
assert torch.equal(marked["is_init"].squeeze(-1), begin)

# %%
# Once more the plain buffer stays with what was stored: True at a reset, and nowhere
# else. No slice of this draw starts at one.

rows = marked["index"].squeeze(-1)
assert torch.equal(plain["is_init"], batch["is_init"][rows])
assert not plain["is_init"].any()

# %%
# And without the transform there is nothing to set. The buffer does not invent the
# flag, so the memory would run through all slices.

bare = filled(TensorDictReplayBuffer, batch.exclude("is_init"))
assert "is_init" not in bare.sample()

# %%
# Try it
# ------
#
# You want the marks, but your loss reads ``("next", "truncated")`` as "time limit", so
# that flag must stay as stored. Which option of :class:`~torchrl.data.SliceSampler`
# switches the marks off? Then cut the draw into rows yourself. Replace ``None`` by the
# two: a dictionary of options, and the shape of the rows.

answer = None


def check(answer):
    assert answer is not None, "replace None by ({...}, (..., ...))"
    options, shape = answer
    drawn = filled(TensorDictReplayBuffer, batch, **options).sample()
    assert not drawn["next", "truncated"].any(), (
        "marks are still written"
    )
    pieces = drawn["index"].reshape(shape)
    assert (pieces.diff(dim=1) == 1).all(), "a row holds a seam"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = {"truncated_key": None}, (6, 8)
#
# In practice
# -----------
#
# * Rows are the other way to keep slices apart: ``reshape(-1, slice_len)``, as above.
#   That needs slices of one length, so ``strict_length=True``.
# * Splitting a draw with ``split_trajectories`` does not work reliably: it goes by ids,
#   and two slices may share one. See :ref:`tut-boundaries`.
#
# What you can rely on
# --------------------
#
# * Both buffers draw the same steps from the same random numbers.
# * ``TensorDictReplayBuffer`` sets ``truncated`` on the last step of each slice.
# * It sets ``done`` there too.
# * It leaves ``terminated`` as stored.
# * ``ReplayBuffer`` hands out the flags as stored.
# * Its marks are in the ``info`` of ``sample(return_info=True)``.
# * The stored data carries no marks.
# * Without marks, the advantages of every slice that stops mid-episode are wrong, but
#   for the last.
# * With marks, a flat draw gives the advantages of separate rows.
# * A slice that ends at a failure carries all three flags on its last step.
# * ``TensorDictReplayBuffer`` sets ``is_init`` on the first step of each slice.
# * ``ReplayBuffer`` hands out ``is_init`` as stored.
# * In this draw, that leaves every slice without a restart.
# * Where ``is_init`` was not stored, it is not added.
#
# Next
# ----
#
# Next page: :ref:`tut-slice-training`. For slices that leave their trajectory, see
# :ref:`tut-crossings`.
