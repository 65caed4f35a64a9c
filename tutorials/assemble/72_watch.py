"""
.. _tut-watch:

Watch, pause and stop a background collector
============================================

You will notice when a background collector fails, and decide when it collects.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * see weights change in the middle of a batch
        * catch an error that would have been lost
        * pause the collector between two batches
        * stop it without losing a step

    .. grid-item-card:: You need

        * :ref:`tut-background`
"""

# sphinx_gallery_parallel = False

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import torch
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

_ = torch.manual_seed(0)
env = GymEnv("CartPole-v1")
_ = env.set_seed(0)
policy = RandomPolicy(env.action_spec)


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


# %%
# A background collector uses the weights that you train *while* you train them. When
# does it see an update? Here a number stands for the weights. Two events stage an
# optimizer step at one fixed moment, so that this page looks the same on each run.

weight = torch.zeros(1)
halfway, trained = threading.Event(), threading.Event()
calls = itertools.count()  # call 0 is a trial, when it is built


def tagged(td):
    if next(calls) == 101:
        halfway.set()
        trained.wait(60)
    return policy(td).set("weight", weight.clone())


buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000))
collector = Collector(
    env, tagged, replay_buffer=buffer, frames_per_batch=200
)
collector.start()
_ = halfway.wait(60)  # it has taken 100 steps and waits
weight += 1  # in place, as an optimizer does
trained.set()
_ = wait_for(lambda: len(buffer) >= 200)
collector.async_shutdown()
batch = buffer[:200]

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
# Which weights does it use?
# --------------------------
#
# .. admonition:: Predict
#
#     When does the collector use the new weight: at once, from the next batch on, or
#     when you tell it?
#
#     .. dropdown:: Then look
#
#         At once. Both threads hold the same tensor; nothing is sent.

fig, ax = plt.subplots(figsize=(5.4, 1.5))
fig.set_label("The weight changes in the middle of trajectory 4.")
ribbon(ax, batch)
ax.axvline(100, c="w", ls=":")
ax.text(100, 0.6, "old weight | new weight", ha="center")
_ = ax.set(xlabel="step of the batch", yticks=[], ylim=(-0.5, 1))

# %%
# Notice that the weight changes inside a band. One trajectory, two policies:

ids = batch["collector", "traj_ids"]
seen = batch["weight"][ids == 4].unique()
assert seen.tolist() == [0, 1]

# %%
# Without our events, that happens anywhere. Off-policy methods such as DQN and SAC
# learn from old data anyway. On-policy methods such as REINFORCE and PPO assume that
# one policy chose all steps of a batch: collect for them in a loop, or pause the
# collector while you update.
#
# Who tells you when it fails?
# ----------------------------
#
# Policies and envs raise errors. This policy raises one at a step that you choose:


def failing(buffer, step=451):
    calls = itertools.count()

    def broken(td):
        if next(calls) == step:
            raise ValueError("the weights are NaN")
        return policy(td)

    return Collector(
        GymEnv("CartPole-v1"),
        broken,
        replay_buffer=buffer,
        frames_per_batch=200,
        total_frames=2000,
    )


# %%
# Start it, and go on sampling. Nothing in your code raises:

lost = []
threading.excepthook = lambda args: lost.append(str(args.exc_value))
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000))
collector = failing(buffer)
collector.start()
died = wait_for(lambda: not collector.is_running(), seconds=30)
collector.async_shutdown()
assert died and len(buffer.sample(32)) == 32

# %%
# You would train for ever on a buffer that no longer grows. Only Python's hook for
# threads, which we replaced, was told. Its default prints a traceback among your logs.

assert lost == ["the weights are NaN"]

# %%
# The 50 steps of the batch in progress are gone for good:

assert buffer.write_count == 400

# %%
# So look at ``collector.is_running()`` in your loop. Better, own the thread. What
# ``start()`` runs is a loop over the collector; run that loop yourself, and a future
# keeps the error for you:

collector = failing(buffer)
message = None
with ThreadPoolExecutor() as pool:
    job = pool.submit(list, collector)
    try:  # here you sample and train; then ask for the result
        job.result(timeout=60)
    except ValueError as error:
        message = str(error)
collector.shutdown()
print("caught:", message)
assert message == "the weights are NaN"

# %%
# How do you pause it?
# --------------------
#
# ``pre_collect_hook`` is called before each batch. If it waits for an event, the event
# is a gate. While the gate is shut, nothing is collected:

gate = threading.Event()  # shut
buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(1000))
collector = Collector(
    GymEnv("CartPole-v1"),
    policy,
    replay_buffer=buffer,
    frames_per_batch=50,
    pre_collect_hook=gate.wait,
)
collector.start()
assert not wait_for(lambda: len(buffer) > 0, seconds=1)

# %%
# ``gate.set()`` opens it, ``gate.clear()`` shuts it again; a batch in progress is
# completed first. Pause, update the weights, go on: then every update falls between two
# batches.
#
# How do you stop it?
# -------------------
#
# With ``async_shutdown()``, but mind the gate. Call it from another thread, and see it
# wait, although it may take only a tenth of a second:

close = threading.Thread(target=collector.async_shutdown, args=(0.1,))
close.start()
close.join(1)
assert close.is_alive()

# %%
# It waits for the collector to complete a batch and write it; then it closes the env.
# So open the gate before you stop, or you hang. No step is lost:

gate.set()
close.join(60)
assert len(buffer) == 50 and not collector.is_running()

# %%
# That was the end. A second ``start()`` does not complain, and its thread dies at once.

collector.start()  # again
_ = wait_for(lambda: not collector.is_running())
threading.excepthook = threading.__excepthook__  # as it was
assert "no attribute" in lost[-1] and len(buffer) == 50

# %%
# Try it
# ------
#
# How many steps of trajectory 4 did the old weight choose? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of steps"
    chosen = batch["weight"][batch["collector", "traj_ids"] == 4]
    assert answer == (chosen == 0).sum()


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         before = batch["collector", "traj_ids"][:100]
#         answer = (before == 4).sum().item()
#
# In practice
# -----------
#
# * In a long run, stop your loop when the collector stops:
#   ``while collector.is_running():``.
# * ``pause()`` is a method of collectors with :ref:`worker processes <tut-workers>`.
#
# What you can rely on
# --------------------
#
# * A background collector uses new weights at once, in the middle of a trajectory.
# * An error in the background ends the thread, and your calls go on as if nothing had
#   happened.
# * Python's hook for threads is told about the error.
# * Steps of a batch that is not complete are lost.
# * A future raises the error where you ask for the result.
# * A hook that waits keeps the collector from starting a batch.
# * ``async_shutdown()`` waits for the batch in progress, even beyond its timeout.
# * That batch is completed and written.
# * After ``async_shutdown()``, ``start()`` raises nothing and collects nothing.
#
# Next
# ----
#
# :ref:`tut-workers` moves collection to processes of their own. If you want whole
# episodes in the buffer, see :ref:`tut-complete`.
