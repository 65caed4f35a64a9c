"""
.. _tut-background:

Collect in the background
=========================

You will sample from a replay buffer while a collector fills it, and know what the two
share.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * start a collector and go on with your own work
        * wait for steps with a deadline
        * find out which thread does what
        * draw slices while new steps overwrite old ones

    .. grid-item-card:: You need

        * :ref:`tut-collect`
        * slices: :ref:`tut-slices`
"""

# sphinx_gallery_parallel = False

import threading
import time

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.data import (
    LazyTensorStorage,
    SliceSampler,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy


def cartpole():
    _ = torch.manual_seed(0)
    env = GymEnv("CartPole-v1")
    _ = env.set_seed(0)
    return env


# %%
# A loop over a collector takes turns: it collects, then you train. ``start()`` lets the
# collector go on by itself. It hands you nothing; its steps go to a replay buffer.

env = cartpole()
policy = RandomPolicy(env.action_spec)
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000))
log = []


def note(batch):
    log.append((threading.current_thread(), buffer.write_count))


collector = Collector(
    env,
    policy,
    replay_buffer=buffer,
    frames_per_batch=200,
    total_frames=400,
    post_collect_hook=note,  # called after each 200 steps
)

# %%
# Start it and wait. A fixed sleep is too short on a busy machine and too long on a
# quiet one. Wait for a condition instead, with a deadline:


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


collector.start()  # returns at once
stopped = wait_for(lambda: not collector.is_running())
print(f"{len(buffer)} steps, and you wrote no loop")

# %%
# At ``total_frames`` the collector stops by itself.

assert stopped and len(buffer) == 400

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
# When do the first steps appear?
# -------------------------------
#
# Here are both batches as they lie in the buffer. Notice the torn edge: trajectory 9
# goes on in the second batch, under the same id.

stored = buffer[:].exclude("index")
fig, ax = plt.subplots(figsize=(5.4, 1.8))
fig.set_label(
    "Two ribbons of 200 steps. Trajectory 9 is torn at the end of the"
    " first and goes on at the start of the second."
)
ribbon(ax, stored[:200], y=1)
ribbon(ax, stored[200:], y=0)
ax.set_yticks([1, 0], ["batch 1", "batch 2"])
_ = ax.set(xlabel="step of the batch", xlim=(0, 203))

# %%
# Our hook looked at ``write_count`` each time 200 new steps had been taken. The buffer
# did not have them yet:

counts = [count for _, count in log]
assert counts == [0, 200]

# %%
# So a batch arrives as a whole, after its last step. Until the first one is there, the
# buffer is empty, and a draw from it fails:

message = None
try:
    TensorDictReplayBuffer(storage=LazyTensorStorage(1)).sample(1)
except RuntimeError as error:
    message = str(error)
assert message == "Cannot sample from an empty storage."

# %%
# Do you get that message right after ``start()``? Then call
# ``wait_for(lambda: len(buffer) > 0)`` before you train. Small batches keep the wait
# short.
#
# What runs where?
# ----------------
#
# .. admonition:: Predict
#
#     Did the collector run in a process of its own?
#
#     .. dropdown:: Then look
#
#         No. It ran in your process, in a second thread. Python's `global lock
#         <https://docs.python.org/3/glossary.html#term-global-interpreter-lock>`__,
#         the GIL, lets one thread at a time execute Python code.

threads = {thread for thread, _ in log}
assert threads.isdisjoint({threading.main_thread()})

# %%
# In one process nothing has to be copied. The collector asks the very policy object
# that you train, and writes into an ordinary buffer. You need no ``shared=True``; that
# is for :ref:`worker processes <tut-workers>`.

assert collector.policy is policy and not buffer.shared

# %%
# Nor does the thread change *what* is collected, as long as you draw no random numbers
# meanwhile. A loop with the same seeds collects the same steps:

collector.async_shutdown()
loop = Collector(
    cartpole(), policy, frames_per_batch=200, total_frames=400
)
looped = torch.cat(list(loop))
loop.shutdown()
assert (stored == looped).all()

# %%
# Can you sample while it writes?
# -------------------------------
#
# Take a small buffer, so that new steps overwrite old ones all the time:

ring = TensorDictReplayBuffer(
    storage=LazyTensorStorage(300),
    sampler=SliceSampler(slice_len=8),
    batch_size=64,
)
collector = Collector(
    cartpole(),
    policy,
    replay_buffer=ring,
    frames_per_batch=100,
    total_frames=1500,
)

# %%
# Draw slices for as long as it runs. A slice that was half overwritten would show: its
# observations would not join.

collector.start()
_ = wait_for(lambda: len(ring) > 0)
draws = torn = 0
while collector.is_running():
    slices = ring.sample().reshape(-1, 8)
    after = slices["next", "observation"][:, :-1]
    torn += int((after != slices["observation"][:, 1:]).any())
    draws += 1
collector.async_shutdown()
assert draws > 50 and torn == 0

# %%
# The collector wrote the buffer full five times over, and no draw caught it half-way:

assert ring.write_count == 5 * len(ring)

# %%
# That is because writing and sampling take turns at one lock, the buffer's own. A draw
# may have to wait for a write.
#
# Try it
# ------
#
# Take batches of 150 steps. How many steps can you sample at the moment when the
# collector takes its 400th? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000))
    sizes = []  # the first call is a trial, when the collector is built

    def look(td):
        sizes.append(len(buffer))
        return policy(td)

    counted = Collector(
        cartpole(), look, replay_buffer=buffer, frames_per_batch=150
    )
    counted.start()
    assert wait_for(lambda: len(sizes) > 400)
    counted.async_shutdown()
    assert answer == sizes[400], "count whole batches"


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 300  # two whole batches; the third is being collected
#
# In practice
# -----------
#
# *Is it faster?* Not for an env like this one, whose steps are Python code: in our
# :ref:`benchmark <bench-background>`, collecting and training took no less time at once
# than by turns. It took less when the env waits in each step, as for a robot.
#
# *Must I ask whether it still runs?* Yes. An error in the background ends the thread
# and tells nobody. :ref:`tut-watch` shows that, and what to do about it.
#
# *May I train PPO like this?* No: its batches would mix policies. :ref:`tut-watch`
# shows that too.
#
# What you can rely on
# --------------------
#
# * The collector stops by itself at ``total_frames``.
# * A batch reaches the buffer as a whole, after its last step.
# * A draw from an empty buffer raises an error that says so.
# * The collector runs in a thread of your process, and not in the main thread.
# * It uses your policy object, and a buffer that need not be shared.
# * It collects what a loop collects, as long as you draw no random numbers meanwhile.
# * Slices drawn while steps are overwritten are whole: writing and sampling take turns
#   at one lock.
# * Meanwhile the buffer is overwritten, here five times.
#
# Next
# ----
#
# :ref:`tut-watch` shows what happens when it fails, and how to pause it. If the GIL
# holds you up, :ref:`tut-workers` moves the envs to processes of their own.
