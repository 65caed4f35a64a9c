"""
.. _tut-layouts:

Choose a layout: flat, padded, nested, concatenated
===================================================

You will lay out the same trajectories in four ways, and know which one your code wants.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * make all four layouts
        * work out what padding costs before you pay
        * write through a view
        * choose from a table

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`)
        * an earlier page: :ref:`tut-split`
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torchrl.collectors import Collector
from torchrl.collectors.utils import split_trajectories
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)

# %%
# Three layouts are made of one batch, that of :ref:`tut-collect`. For the fourth, the
# collector waits for whole episodes and delivers nine, end to end.


def collect(**options):
    _ = torch.manual_seed(0)
    env = GymEnv("CartPole-v1")
    _ = env.set_seed(0)
    policy = RandomPolicy(env.action_spec)
    collector = Collector(env, policy, frames_per_batch=200, **options)
    batch = next(iter(collector))
    collector.shutdown()
    return batch


flat = collect()
padded = split_trajectories(flat)
nested = split_trajectories(flat, as_nested=True)
concatenated = collect(trajs_per_batch=9, traj_format="cat")
layouts = {"flat": flat, "padded": padded, "nested": nested}
layouts["concatenated"] = concatenated
for name, td in layouts.items():
    print(f"{name:13}{list(td.batch_size)}")

# %%
# The ``-1`` says that the rows differ in length. Only the rectangle needs a
# :term:`mask`:

assert nested.batch_size == (10, -1)

key = ("collector", "mask")
masked = [name for name, td in layouts.items() if key in td]
assert masked == ["padded"]

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
# How do they differ?
# -------------------
#
# Here are the last three trajectories of the batch, in each layout. Notice the one that
# is missing at the bottom.

fig, ax = plt.subplots(figsize=(5.4, 3.4))
fig.set_label(
    "Flat: three bands in one line. Padded: three rows of 63, filled"
    " with hatching. Nested: three rows without it. Concatenated: two"
    " bands in one line; the torn one is missing."
)
ribbon(ax, flat[147:], y=9)
for row in (7, 8, 9):
    ribbon(ax, padded[row], y=14.5 - row)
    ribbon(ax, nested[row], y=10.7 - row)
ribbon(ax, concatenated[147:], y=0)
_ = ax.set(xlabel="step", xlim=(0, 66))
_ = ax.set_yticks([9, 6.5, 2.7, 0], layouts)

# %%
# In the :term:`concatenated` layout, the collector delivers :term:`completed`
# trajectories only. Otherwise it is the flat batch:

assert (concatenated == flat[:190]).all()

# %%
# You find the trajectories in it by their ends, and its last step is one:

ends = concatenated["next", "done"].squeeze(-1)
assert ends.sum() == 9 and ends[-1]

# %%
# What does padding cost?
# -----------------------
#
# Count the bytes. A step takes 66 here, on both lines and in nested rows:


def stored(td):
    leaves = td.values(include_nested=True, leaves_only=True)
    return sum(leaf.untyped_storage().nbytes() for leaf in leaves)


sizes = [stored(flat) / 200, stored(nested) / 200]
sizes.append(stored(concatenated) / 190)
assert sizes == [66, 66, 66]

# %%
# The rectangle pays for the empty places, too, and one byte more for each place of the
# mask:

assert stored(padded) == 67 * 10 * 63

# %%
# So you can work out the price beforehand: rows times the longest row.
#
# .. admonition:: Predict
#
#     One episode lasts 500 steps, 49 others last 20 each. How many times the bytes of
#     the flat batch does the padded one take?
#
#     .. dropdown:: Then look
#
#         17 times. The longest row is 500, the mean 29.6, and their ratio is what you
#         pay. One long episode among short ones is the worst case.

kinds = {
    "ten of 500": [500] * 10,
    "10, 20 … 500": list(range(10, 501, 10)),
    "this batch": padded["collector", "mask"].sum(1).tolist(),
    "500 and 49 of 20": [500] + [20] * 49,
}
price = {}
for kind, lengths in kinds.items():
    sizes = torch.tensor(lengths)
    ids = torch.arange(len(sizes)).repeat_interleave(sizes)
    steps = flat[torch.zeros_like(ids)]  # one step, many times
    steps["collector", "traj_ids"] = ids
    price[kind] = stored(split_trajectories(steps)) / stored(steps)
ratios = [round(times, 1) for times in price.values()]
assert ratios == [1.0, 2.0, 3.2, 17.1]

# %%
# Only where all lengths are equal is the rectangle as cheap as the line. Notice the
# last bar.

fig, ax = plt.subplots(figsize=(5.4, 1.9))
fig.set_label(
    "Bytes of the padded layout over bytes of the flat one: 1.0 for"
    " equal lengths, then 2.0, 3.2, and 17.1 for one long episode among"
    " many short ones."
)
bars = ax.barh(list(price), price.values(), color="C0")
_ = ax.bar_label(bars, fmt="%.1f ×", padding=4)
_ = ax.set(xlabel="bytes, padded / flat", xlim=(0, 20))
_ = ax.set(xticks=range(0, 21, 5), ylim=(3.6, -0.6))

# %%
# Is the nested layout a copy?
# ----------------------------
#
# No. It looks at the memory of the flat batch and notes where each row starts. Write to
# a row, and you write to the batch:

copy = flat.clone()
rows = split_trajectories(copy, as_nested=True)
_ = rows[0]["observation"].zero_()
assert not copy["observation"][:11].any()

# %%
# So nested rows are free. But few operations know what to do with them:
# :ref:`tut-nested`. If all you want is a loop over trajectories, split the line.
# That gives you ordinary tensors in the very same memory:

lengths = padded["collector", "mask"].sum(1).tolist()
pieces, views = flat["action"].split(lengths), nested["action"]
pairs = zip(pieces, views.unbind(0), strict=True)
assert all(piece.is_set_to(view) for piece, view in pairs)

# %%
# When do you need rows?
# ----------------------
#
# A network that looks at one step at a time needs none. On the line it gives the same
# values, and it computes 200 instead of 630.

net = nn.Linear(4, 1)
mask = padded["collector", "mask"]
in_rows = net(padded["observation"])[mask]
assert torch.allclose(net(flat["observation"]), in_rows)

# %%
# A network with a memory is another matter. In rows it reads all trajectories side by
# side. The padding comes after the real steps, so it cannot disturb them:

gru = nn.GRU(4, 8, batch_first=True)
side_by_side = gru(padded["observation"])[0][mask]
pieces = flat["observation"].split(lengths)
one_by_one = torch.cat([gru(piece)[0] for piece in pieces])
assert torch.allclose(side_by_side, one_by_one, atol=1e-6)

# %%
# On the line it carries its state from one episode into the next. It is right for
# trajectory 0, and wrong from the first step of trajectory 1:

line = gru(flat["observation"])[0]
right = torch.isclose(line, one_by_one, atol=1e-6).all(-1)
assert right[:11].all() and not right[11]

# %%
# Try it
# ------
#
# Two rectangles can be cheaper than one. Into which two groups do you sort these
# lengths, so that padding each group adds at most a tenth? Replace ``None`` by a list
# of two lists.

answer = None
mixed = [21, 480, 19, 500, 22, 20, 470, 18]


def check(answer):
    assert answer is not None, "replace None by two lists"
    assert len(answer) == 2, "not two groups"
    assert sorted(answer[0] + answer[1]) == sorted(mixed), "not these"
    places = sum(len(group) * max(group) for group in answer)
    assert places <= 1.1 * sum(mixed), f"{places} places are too many"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = [[470, 480, 500], [18, 19, 20, 21, 22]]
#
# In practice
# -----------
#
# Stay flat as long as you can. Change the layout where something asks for it:
#
# =====================================  ============  =============================
# You want                               Take          See
# =====================================  ============  =============================
# a network that sees single steps       flat          this page
# advantages                             flat          :ref:`why <tut-split-advantages>`
# to fill a replay buffer                flat          :ref:`tut-slices`
# whole episodes only                    concatenated  :ref:`tut-complete`
# a recurrent network over episodes      padded        this page
# means per step, plots of episodes      padded        :ref:`tut-split`
# rows without a copy                    nested        :ref:`tut-nested`
# =====================================  ============  =============================
#
# Whoever writes into a view changes the batch. Clone the batch first, as above, where
# that would hurt. How fast rows are made, padded or nested, is measured in
# :ref:`a benchmark <bench-layouts>`.
#
# What you can rely on
# --------------------
#
# * ``as_nested=True`` gives rows of different length: the batch size ends in ``-1``.
# * Only the padded layout has a mask.
# * The concatenated layout holds the completed trajectories of the flat batch.
# * Each trajectory in it ends with ``("next", "done")``, also the last.
# * A step takes 66 bytes here: flat, nested or concatenated.
# * A padded place takes 67 bytes, empty or not.
# * Padded costs 1.0 to 17.1 times the bytes of flat, for these lengths.
# * Writing to a nested row writes to the flat batch.
# * The flat batch, split by lengths, gives the same rows in the same memory.
# * A network that looks at one step at a time gives the same values flat and padded.
# * Padding at the end of a row does not change what a GRU says about real steps.
# * On the flat batch a GRU carries its state into the next episode.
#
# Next
# ----
#
# :ref:`tut-nested` tries out what you can compute on nested rows. If you want whole
# episodes, go straight to :ref:`tut-complete`.
