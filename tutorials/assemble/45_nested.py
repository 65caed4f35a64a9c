"""
.. _tut-nested:

Compute on nested trajectories
==============================

You will see what PyTorch computes on rows of different length, and what to do where it
cannot.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * try 14 operations on nested rows
        * make a jagged tensor, which can do more
        * get a loss, and a rectangle, out of nested rows

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`)
        * the page before: :ref:`tut-layouts`
"""

import warnings

import matplotlib.pyplot as plt
import torch
from torch import nn
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# Nested rows are views of the flat batch, without padding: :ref:`tut-layouts`. Here are
# those of the batch that you know.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
flat = next(iter(collector))
collector.shutdown()
nested = split_trajectories(flat, as_nested=True)
strided = nested["observation"]
lengths = [len(row) for row in strided.unbind(0)]
print(f"{strided.size(0)} rows, their lengths {lengths}")

# %%
# Is it a strided or a jagged tensor?
# -----------------------------------
#
# PyTorch has two kinds of nested tensor: *strided*, the older one, and *jagged*. This
# one is strided, and you get it even if you ask for the other:

asked = split_trajectories(flat, as_nested=torch.jagged)
assert asked["observation"].layout == torch.strided

# %%
# A jagged tensor you make yourself, entry by entry, from a list of pieces. It holds the
# same rows:

pieces = flat["observation"].split(lengths)
jagged = torch.nested.as_nested_tensor(
    list(pieces), layout=torch.jagged
)
rows = zip(jagged.unbind(0), pieces, strict=True)
assert all(torch.equal(row, piece) for row, piece in rows)

# %%
# Which operations work?
# ----------------------
#
# Try them. Here ``x`` is a tensor of observations with ten rows.

gru = nn.GRU(4, 8, batch_first=True)
operations = {
    "x[0]": lambda x: x[0],
    "x[:2]": lambda x: x[:2],
    "x.shape": lambda x: x.shape,
    "x + 1": lambda x: x + 1,
    "x * x": lambda x: x * x,
    "x ** 2": lambda x: x**2,
    "x.tanh()": lambda x: x.tanh(),
    "x.argmax(-1)": lambda x: x.argmax(-1),
    "x.sum()": lambda x: x.sum(),
    "x.mean(1)": lambda x: x.mean(1),
    "x.cumsum(1)": lambda x: x.cumsum(1),
    "nn.Linear": nn.Linear(4, 1),
    "nn.GRU": lambda x: gru(x),
    "mse_loss": lambda x: nn.functional.mse_loss(x, x),
}

# %%
# Each operation either returns or raises an error:


def works(operation, x):
    try:
        operation(x)
    except (RuntimeError, ValueError):
        return False
    return True


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    table = {
        name: (works(operation, strided), works(operation, jagged))
        for name, operation in operations.items()
    }

# %%
# Notice which squares are filled on the right only.

fig, ax = plt.subplots(figsize=(5.4, 4))
fig.set_label(
    "Of 14 operations five work on both kinds, five on jagged tensors"
    " only, among them the sum and the mean, and four on neither."
)
for y, answers in enumerate(table.values()):
    for x, answer in enumerate(answers):
        face = "C0" if answer else "w"
        ax.plot(x, y, "s", c="C0", mfc=face, ms=10)
ax.plot([], [], "s", c="C0", label="works")
ax.plot([], [], "s", c="C0", mfc="w", label="fails")
ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
_ = ax.set(xlim=(-0.6, 1.6), ylim=(13.6, -0.6))
_ = ax.set_xticks([0, 1], ["strided", "jagged"])
_ = ax.set_yticks(range(14), table)

# %%
# What treats each number alone mostly works on both. Strided rows have no shape and no
# sum; jagged ones do:

more = [name for name in table if table[name] == (False, True)]
sums = ["x.sum()", "x.mean(1)"]
assert more == ["x.shape", "x ** 2", "x.argmax(-1)", *sums]

# %%
# So one number per trajectory, for instance its return, comes from a jagged tensor:

rewards = flat["next", "reward"].split(lengths)
rewards = torch.nested.as_nested_tensor(
    list(rewards), layout=torch.jagged
)
assert rewards.sum(1).flatten().tolist() == lengths

# %%
# Some operations work on neither:

neither = [name for name in table if not any(table[name])]
assert neither == ["x[:2]", "x.cumsum(1)", "nn.GRU", "mse_loss"]

# %%
# No squared error, and no recurrent network, for which one wants rows in the first
# place. PyTorch warns, once in a program, that all this may change:

texts = {str(warning.message) for warning in caught}
assert all("in prototype stage" in text for text in texts)

# %%
# How do you get a loss?
# ----------------------
#
# Leave the rows first. A network that treats steps one by one runs on nested rows.
# Unbind what it returns and join it: these are the values of the flat batch.

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
values = torch.cat(net(strided).unbind(0))
assert torch.allclose(values, net(flat["observation"]))

# %%
# .. admonition:: Predict
#
#     The network ran. Will ``values.sum().backward()`` run, too?
#
#     .. dropdown:: Then look
#
#         No. ``Tanh`` has a way forward on strided rows, but none back.

message = None
try:
    values.sum().backward()
except NotImplementedError as error:
    message = str(error)
assert "aten::tanh_backward" in str(message)

# %%
# A forward pass proves nothing about training. So train on the flat batch; the values
# are the same.
#
# How do you get a rectangle?
# ---------------------------
#
# ``to_padded_tensor`` makes of the nested rows what ``split_trajectories`` makes of the
# flat batch, mask and all. Name the entry for the mask:

key = ("collector", "mask")
padded = nested.to_padded_tensor(mask_key=key)
assert (padded == split_trajectories(flat)).all()

# %%
# The docstring of ``split_trajectories`` calls the argument ``mask``. That fails:

message = None
try:
    nested.to_padded_tensor(mask=key)
except TypeError as error:
    message = str(error)
assert "unexpected keyword argument 'mask'" in str(message)

# %%
# When is it not nested at all?
# -----------------------------
#
# When a batch holds a single trajectory, as it may once your policy is good. Then you
# get ordinary tensors and a mask. Ask ``is_nested`` before you rely on it:

alone = split_trajectories(flat[: lengths[0]], as_nested=True)
assert not alone["observation"].is_nested and key in alone

# %%
# Try it
# ------
#
# How far from the middle did the cart get in each trajectory? Compute the ten largest
# distances from ``jagged``, without a loop. The position is entry 0 of an observation.
# Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by ten distances"
    distance = [piece[:, 0].abs().max() for piece in pieces]
    assert torch.equal(answer.flatten(), torch.stack(distance))


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = jagged.abs().amax(1)[:, 0]
#
# In practice
# -----------
#
# The picture shows the versions that this site is built with; each build draws it anew.
# The PyTorch manual on :mod:`torch.nested` recommends the jagged layout for new code.
#
# You may need none of this. A loop over trajectories splits the flat batch
# and a recurrent network takes padded rows (:ref:`tut-layouts`). Sums per trajectory
# come from the ids (:ref:`tut-collect`).
#
# What you can rely on
# --------------------
#
# * ``as_nested=torch.jagged`` gives strided tensors, as ``as_nested=True`` does.
# * A jagged tensor made from pieces holds them as rows.
# * Shape, square, argmax, sum and mean work on jagged tensors only.
# * The sum along a jagged row is the return of its trajectory.
# * Slices of rows, ``cumsum``, ``GRU`` and ``mse_loss`` work on neither.
# * All that PyTorch warns of is that nested tensors are a prototype.
# * A network that treats steps one by one gives the values of the flat batch.
# * ``Tanh`` runs forward on strided rows, not backward.
# * ``to_padded_tensor`` gives the same rectangle as ``split_trajectories``.
# * It knows ``mask_key`` and not ``mask``.
# * A batch of one trajectory gives ordinary tensors and a mask.
#
# Next
# ----
#
# :ref:`tut-complete` lets the collector wait for whole episodes.
# :ref:`tut-slices` trains on pieces of equal length, and needs no rows.
