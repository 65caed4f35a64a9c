"""
.. _tut-slice-variants:

Choose among the slice samplers
===============================

You will know what the other slice samplers, and three options, change in a draw.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * draw each trajectory once per pass
        * draw slices by priority
        * let slices start before their trajectory
        * cache boundaries, and know when not to

    .. grid-item-card:: You need

        * :ref:`tut-slice-odds`: what the plain sampler draws
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import torch
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    PrioritizedSliceSampler,
    SliceSampler,
    SliceSamplerWithoutReplacement,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
np.random.seed(0)  # for the sampler that goes by priority
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# The plain sampler picks a trajectory, then a start. Two relatives choose differently.
# Here is how often each gives you a step of the batch of :ref:`tut-collect`, with
# slices of 8.

policy = RandomPolicy(env.action_spec)
collector = Collector(env, policy, frames_per_batch=200)
batch = next(iter(collector))
collector.shutdown()


def filled(sampler, slices=4):
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(200),
        sampler=sampler,
        batch_size=8 * slices,
    )
    buffer.extend(batch)
    return buffer


plain = filled(SliceSampler(slice_len=8))
once = filled(SliceSamplerWithoutReplacement(slice_len=8))
options = {"max_capacity": 200, "alpha": 1.0, "beta": 1.0}
ranked = filled(PrioritizedSliceSampler(slice_len=8, **options))

# %%
# Notice the long trajectory, rows 52 to 114. Only the prioritized sampler gives it a
# share that fits its length.

fig, axes = plt.subplots(3, figsize=(5, 3.2), sharex=True, sharey=True)
fig.set_label(
    "Draws of 150 steps under three samplers. The plain one and the one"
    " without replacement favour short trajectories; the prioritized"
    " one draws all alike, but for the ends."
)
long, names = [], ["plain", "without replacement", "prioritized"]
for ax, name, buffer in zip(axes, names, (plain, once, ranked)):
    rows = torch.cat([buffer.sample()["index"] for _ in range(600)])
    counts = torch.bincount(rows.flatten(), minlength=200)
    long.append((counts[52:115].sum() / counts.sum()).item())
    ax.plot(torch.arange(150) + 0.5, counts[:150], "C0")
    ax.set_title(name, size=11, weight="normal")
_ = axes[1].set(ylabel="draws")
_ = axes[2].set(xlabel="row of the buffer", xlim=(0, 150))
assert max(long[:2]) < 0.12 and abs(long[2] - 56 / 130) < 0.05

# %%
# With equal priorities, all 130 places where a slice can start are alike. 56 of them
# lie in the long trajectory.
#
# Do you want each trajectory once per pass?
# ------------------------------------------
#
# That is :class:`~torchrl.data.SliceSamplerWithoutReplacement`. A loop over the buffer
# ends when each of the ten trajectories has given one slice. The last draw is smaller.

buffer = filled(SliceSamplerWithoutReplacement(slice_len=8))
passed = list(buffer)
ids = torch.cat(passed)["collector", "traj_ids"]
assert [len(slices) for slices in passed] == [32, 32, 16]
assert Counter(ids[::8].tolist()) == Counter(range(10))

# %%
# "Without replacement" speaks of trajectories, not of steps. A pass shows 80 steps of
# 200; the next pass shows others.

rows = torch.cat(passed)["index"]
assert len(rows.unique()) == 80

# %%
# It does not mix well with trajectories that are too short. A draw that picks some is
# smaller, and one that picks only such raises an error. With
# ``strict_length=False`` the short ones come whole (:ref:`tut-slice-odds`).

buffer = filled(SliceSamplerWithoutReplacement(slice_len=16), slices=4)
sizes = Counter()
for _ in range(200):
    try:
        sizes[len(buffer.sample())] += 1
    except RuntimeError:
        sizes["error"] += 1
print(dict(sizes))
assert sizes[32] and sizes[16] and sizes["error"]

# %%
# Do you want some steps more often?
# ----------------------------------
#
# :class:`~torchrl.data.PrioritizedSliceSampler` draws the *start* of a slice by
# priority. New steps all have the same one. Give step 100 a hundred times that of the
# others: it starts almost half of the slices.


def starts(buffer):
    drawn = [buffer.sample()["index"][::8] for _ in range(300)]
    return torch.cat(drawn).flatten()


priority = torch.full((200,), 0.01)
priority[100] = 1.0
ranked.update_priority(torch.arange(200), priority)
share = (starts(ranked) == 100).float().mean()
assert abs(share - 100 / (100 + 129)) < 0.07

# %%
# A step so close to the end that no slice fits behind it never starts one, whatever its
# priority. Step 110 is five steps from the end of its trajectory.

priority[110] = 1e6
ranked.update_priority(torch.arange(200), priority)
assert not (starts(ranked) == 110).any()

# %%
# Give the priority to a step early enough before the one that matters.
#
# Do you want the edges more often?
# ---------------------------------
#
# The first step of a long trajectory is rarely drawn, as only one slice reaches it.
# ``span`` lets slices start before the trajectory, and leaves away what is not there.
#
# .. admonition:: Predict
#
#     What does that do to the size of a draw?
#
#     .. dropdown:: Then look
#
#         It varies. A slice that starts five steps early is five steps shorter.

early = filled(SliceSampler(slice_len=8, span=(True, False)), 4000)
usual = filled(SliceSampler(slice_len=8), 4000).sample()["index"]
drawn = early.sample()["index"]
assert len(drawn) < len(usual)
assert (drawn == 52).sum() > 4 * (usual == 52).sum()

# %%
# The two values are for the left and the right. On the right, True may leave a slice
# with no step at all. A draw of one slice then fails, now and again:

late = filled(SliceSampler(slice_len=8, span=(False, True)), slices=1)
message = None
for _ in range(500):
    try:
        late.sample()
    except IndexError as error:
        message = str(error)
assert "out of bounds for dimension with size 0" in str(message)

# %%
# Does your data never change?
# ----------------------------
#
# Each draw looks for the boundaries again. With ``cache_values=True`` they are kept
# until the next ``extend``. Change ids behind its back, and it goes on with the old
# ones: here all steps get the id 0, and only the sampler without a cache follows.


def crosses(**options):
    buffer = filled(SliceSampler(slice_len=8, **options), 500)
    buffer.sample()
    buffer[:]["collector", "traj_ids"].zero_()
    rows = buffer.sample()["index"].reshape(500, 8)
    ids = batch["collector", "traj_ids"][rows]
    return (ids != ids[:, :1]).any().item()


assert crosses() and not crosses(cache_values=True)

# %%
# Try it
# ------
#
# All steps have the priority 0.01. Which priority must step 100 have to start nine of
# ten slices? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number"
    priority = torch.full((200,), 0.01)
    priority[100] = answer
    ranked.update_priority(torch.arange(200), priority)
    share = (starts(ranked) == 100).float().mean()
    assert abs(share - 0.9) < 0.04, f"it starts {share:.0%}"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 9 * 129 * 0.01  # 129 other steps can start a slice
#
# In practice
# -----------
#
# .. list-table::
#     :header-rows: 1
#
#     * - You want
#       - Take
#     * - slices at random, all of one length
#       - ``SliceSampler``
#     * - short trajectories too
#       - ``strict_length=False``
#     * - and still one shape
#       - also ``pad_output=True``
#     * - the first steps as often as others
#       - ``span=(True, False)``
#     * - every trajectory, once per pass
#       - ``SliceSamplerWithoutReplacement``
#     * - every start alike, or by priority
#       - ``PrioritizedSliceSampler``
#     * - a data set that never changes
#       - also ``cache_values=True``
#
# With ``pad_output=True`` look whether there is a mask: a draw without a short slice
# has none.

padding = {"strict_length": False, "pad_output": True}
full = filled(SliceSampler(slice_len=8, **padding)).sample()
assert ("collector", "mask") not in full.keys(include_nested=True)

# %%
# What you can rely on
# --------------------
#
# * The prioritized sampler draws all possible starts alike while priorities are equal;
#   the other two draw all trajectories alike.
# * A loop over a buffer without replacement gives one slice of each trajectory; the
#   last draw may be smaller.
# * In one pass each trajectory comes up exactly once.
# * Such a pass shows only some of the steps: here 80 of 200.
# * With trajectories that are too short, its draws shrink or raise a ``RuntimeError``.
# * The prioritized sampler starts slices in proportion to the priority of their first
#   step.
# * A step behind which no slice fits never starts one.
# * ``span=(True, False)`` makes draws smaller.
# * It draws the first step of a long trajectory more than four times as often.
# * ``span`` on the right can leave a slice empty; if it was the only one, the draw
#   raises an ``IndexError``.
# * ``cache_values=True`` keeps boundaries although the stored ids change in place.
# * A padded draw without a short slice has no mask.
#
# Next
# ----
#
# Next page: :ref:`tut-crossings`. To train on what you draw: :ref:`tut-slice-training`.
