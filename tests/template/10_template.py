"""
.. _tut-template:

Name what the reader does
=========================

In one sentence, you say here what the reader will have at the end.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * name three things that the reader does
        * start each with a verb
        * leave out what the reader merely hears about

    .. grid-item-card:: You need

        * the pinned packages (:ref:`how to install them <install>`)
        * the page before: :ref:`tut-collect`
"""

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)

# %%
# Cell one holds imports and seeds, cell two shows something real. Between them stand
# two or three sentences: why the reader wants this. The first output comes within 120
# words.

collector = Collector(
    env,
    RandomPolicy(env.action_spec),
    frames_per_batch=400,
    total_frames=-1,
)
batch = next(iter(collector))
print(f"{len(batch)} steps")
print("each with", ", ".join(sorted(batch.keys())))

# %%
# Each sentence about behaviour is followed by an assert that reads like the sentence:
# a batch holds as many steps as you ask for.

assert len(batch) == 400

# %%
# How long do episodes last?
# --------------------------
#
# A heading is a question that the reader has. Under it stand about five lines of code,
# then the output or a picture, then one sentence that says what to notice. A cell never
# has more than twenty lines. The first picture comes within 250 words.

ids = batch["collector", "traj_ids"]
runs, lengths = ids.unique_consecutive(return_counts=True)
finished = lengths[:-1]
print(f"{len(finished)} finished episodes")
print(f"from {finished.min()} to {finished.max()} steps")

fig, ax = plt.subplots()
fig.set_label("Most episodes end before step 30, the longest at 63.")
ax.hist(finished, bins=range(0, 71, 5), color="C0", ec="white")
ax.axvline(finished.max(), c="black", ls=":", label="longest")
ax.legend()
_ = ax.set(xlabel="steps of an episode", ylabel="episodes")

# %%
# The label of a figure is its alt sentence: it states the finding, for those who cannot
# see the picture. Colours come from the style: ``C0`` to ``C5``, ``black``, ``white``,
# ``gray`` and ``lightgray``; the build makes the dark version. Assign the last value of
# a cell to ``_``, or it shows under the figure. Notice, here, the one bar far to the
# right.

assert finished.max() == 63

# %%
# No number stands in the text unless the next assert holds it. Otherwise, let the
# output speak for itself.
#
# Is the mean a good summary?
# ---------------------------
#
# Where there is a trap, ask the reader to predict, once on a page. The answer is
# folded, and the code below it proves the answer.
#
# .. admonition:: Predict
#
#     Half of the episodes are shorter than the median. Is the mean above or below it?
#
#     .. dropdown:: Then look
#
#         Above. One long episode pulls the mean up and leaves the median where it is.

mean = finished.float().mean()
median = finished.float().median()
print(f"mean {mean:.1f}, median {median:.1f}")
for limit in (15, 30, 60):
    share = (finished < limit).float().mean()
    print(f"shorter than {limit}: {share:4.0%}")
assert mean > median

# %%
# Say it once more in one sentence: a few long episodes carry the mean. Each fact is
# told on one page, the page that owns it. Other pages link there, with the label that
# stands above the title, as in :ref:`tut-collect`. A new term goes to the
# :ref:`glossary`.
#
# Can you build it by hand?
# -------------------------
#
# Where it helps, build the mechanism in at most 25 lines and assert that it equals the
# library's. Readers trust what they have rebuilt.


def lengths_by_hand(ids):
    """Count how often each id stands in a row."""
    counted = []
    previous = None
    for current in ids.tolist():
        if current != previous:
            counted.append(0)
        counted[-1] += 1
        previous = current
    return counted


assert lengths_by_hand(ids) == lengths.tolist()

# %%
# An error that you want to show is executed. Set a message to ``None`` before the
# ``try``, name the exact exception, and assert the stable part of its text. So the page
# also fails when the error no longer comes.

message = None
try:
    batch["no such key"]
except KeyError as error:
    message = str(error)
assert "no such key" in str(message)

# %%
# Close what you opened, in sight of the reader. Nothing may be left behind: no process,
# no thread, no file, no open collector.

collector.shutdown()

# %%
# Try it
# ------
#
# Ask for something that stands on no line of the page. The untouched answer must fail
# the check, the folded solution must pass it; the tests run both. Here: how many steps
# do the two longest finished episodes have together? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    longest = finished.sort(descending=True).values
    assert answer == longest[0] + longest[1]


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = sum(sorted(lengths_by_hand(ids)[:-1])[-2:])
#
# In practice
# -----------
#
# Caveats, versions and links stand here and not before. Write plain English, in the
# second person, in short sentences, one idea at a time. Use public names only. Never
# filter a warning away: avoid it with the right argument, or catch it, assert it and
# explain it. A page lasts at most 20 seconds. When it outgrows the frame, split it into
# two pages.
#
# What you can rely on
# --------------------
#
# One bullet for each assert of the page, in the order of the asserts. Each bullet has a
# table in the claims file of the page, with one line of the page and the line that
# makes the claim false. The test demands that exactly this assert then fails.
#
# * A batch holds as many steps as you ask for.
# * With these seeds the longest finished episode lasts 63 steps.
# * The mean length is above the median.
# * Lengths counted by hand equal those of ``unique_consecutive``.
# * A missing key raises a ``KeyError`` that names it.
#
# Next
# ----
#
# Name one page to go on with, and one alternative: :ref:`tut-collect` explains what the
# ids mean; the :ref:`glossary` holds the terms.
