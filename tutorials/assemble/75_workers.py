"""
.. _tut-workers:

Collect in worker processes
===========================

You will let two processes fill one replay buffer, keep episodes whole in it, and notice
when the processes die.

.. grid:: 1 1 2 2

    .. grid-item-card:: You will

        * write a script that spawns workers
        * stop it when you have enough steps
        * find seams in the buffer, and avoid them
        * notice dead workers

    .. grid-item-card:: You need

        * :ref:`tut-background`
        * whole episodes: :ref:`tut-complete`
"""

# sphinx_gallery_parallel = False

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch

_ = torch.manual_seed(0)

# %%
# A thread shares Python's lock with your training;
# :mod:`processes <multiprocessing>` do not. But each new process begins by importing
# your script. So this page writes a script, and runs it as you would. First what the
# workers need, and a wait with a deadline:

tools = """
import itertools, json, time
from multiprocessing import active_children
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer
from torchrl.envs import GymEnv

def make_env():
    return GymEnv("CartPole-v1")

def wait_for(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()
"""

# %%
# Each worker makes an env of its own. ``None`` for a policy means
# :class:`random actions <torchrl.collectors.Collector>`. The second function counts
# :term:`seams <seam>`: places where a step does not follow from the one before, and no
# flag says so.

tools += """
def new_collector(buffer, workers=2, **options):
    return Collector(
        make_env, None, num_collectors=workers, sync=False,
        replay_buffer=buffer, frames_per_batch=100, **options,
    )

def seams(rows):
    after, done = rows["next", "observation"], rows["next", "done"]
    follows = (after[:-1] == rows["observation"][1:]).all(-1)
    return int((~follows & ~done[:-1, 0]).sum())
"""

# %%
# The rest must run once, not in each worker. So it stands behind a guard:

script = """
if __name__ == "__main__":
    buffer = ReplayBuffer(storage=LazyTensorStorage(50_000))
    collector = new_collector(buffer, total_frames=400)
    found = {"shared": buffer.shared, "alive": [len(active_children())]}
    collector.start()  # returns at once
    wait_for(lambda: len(buffer) > 2000)
    found["alive"] += [len(active_children())]
    collector.start()  # once too often
    wait_for(lambda: not active_children())
    found["alive"] += [len(active_children())]
    rows = buffer[:]  # nobody writes any more
    ids = rows["collector", "traj_ids"]
    found["steps"], found["seams"] = len(rows), seams(rows)
    found["inside"] = sum(seams(rows[ids == k]) for k in ids.unique())
    found["drawn"] = len(buffer.sample(32))
    collector.async_shutdown()
    print(json.dumps(found))
"""

# %%
# Run it in a folder of its own, with a limit of time:


def run(text):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "collect.py").write_text(text)
        command = [sys.executable, "collect.py"]
        how = {"capture_output": True, "text": True, "timeout": 150}
        return subprocess.run(command, check=False, cwd=folder, **how)


ran = run(tools + script)
found = json.loads(ran.stdout.splitlines()[-1])  # after the log
print("workers alive:", found["alive"])

# %%
# Who is at work?
# ---------------
#
# The two workers were started when the collector was built, and wait for orders:

assert found["alive"][:2] == [2, 2]

# %%
# Their buffer has to lie in memory that all of you share. The collector saw to that,
# and says so in its log. With ``ReplayBuffer(…, shared=True)`` you ask for it yourself.

assert found["shared"] and "Sharing it" in ran.stdout

# %%
# .. admonition:: Predict
#
#     The script calls ``start()`` twice, as happens when two parts of a program both
#     make sure that collection runs. What do the workers do?
#
#     .. dropdown:: Then look
#
#         They die. To a worker that runs already, the order is unknown.

moments = ["built", "start()", "start() again"]
fig, ax = plt.subplots(figsize=(5.4, 1.8))
fig.set_label(
    "Two workers are alive when the collector is built, and two after"
    " start(). After a second start() there is none."
)
ax.bar_label(ax.bar(moments, found["alive"]))
_ = ax.set(ylabel="workers alive", yticks=[], ylim=(0, 2.6))

# %%
# Notice what your own process noticed: nothing. The script went on to the end, and drew
# from a buffer that would never grow again.

assert found["alive"][2] == 0 and found["drawn"] == 32

# %%
# Does it stop at ``total_frames``?
# ---------------------------------
#
# No. We asked for 400 steps. A background thread stops there, as in
# :ref:`tut-background`; workers go on until you stop them:

assert found["steps"] > 1000

# %%
# So count yourself, with ``len(buffer)`` or ``write_count``, and call
# ``async_shutdown()``.
#
# Is an episode still in one piece?
# ---------------------------------
#
# The workers write their batches by turns. Where a batch edge cuts a trajectory, the
# next step in the buffer is the *other* worker's. No flag says so: that is a seam.

assert found["seams"] > 0

# %%
# The ids heal it. All workers take them from one pool, so no id stands for two
# trajectories, and the steps of one id still follow each other:

assert found["inside"] == 0

# %%
# A sampler that goes by ids draws no seam, then; one that goes by ``done`` does
# (:ref:`tut-crossings`). Whole episodes have no seam in the first place. This
# script asks for them. And after some batches, each worker fails:

script = """
batches = itertools.count(1)

def unlucky():
    if next(batches) == 20:
        raise ValueError("the disk is full")

if __name__ == "__main__":
    buffer = ReplayBuffer(storage=LazyTensorStorage(50_000))
    collector = new_collector(
        buffer, trajs_per_batch=1, pre_collect_hook=unlucky
    )
    collector.start()
    found = {"dead": wait_for(lambda: not active_children())}
    found["steps"], found["seams"] = len(buffer), seams(buffer[:])
    found["drawn"] = len(buffer.sample(32))
    collector.async_shutdown()
    print(json.dumps(found))
"""
ran = run(tools + script)
found = json.loads(ran.stdout.splitlines()[-1])
assert found["steps"] > 1000 and found["seams"] == 0

# %%
# With ``trajs_per_batch``, a worker keeps an episode to itself until it is complete.
#
# Who tells you when a worker dies?
# ---------------------------------
#
# Again nobody. Nothing in your process raised, and the buffer can still be sampled:

assert found["dead"] and found["drawn"] == 32

# %%
# The error itself is only in what the workers print. Look there, and ask
# :func:`multiprocessing.active_children` in your loop.

assert "ValueError: the disk is full" in ran.stderr

# %%
# What if you forget the guard?
# -----------------------------
#
# A worker imports the script, tries to start workers of its own, and fails. Then your
# own process fails as well:

said = run(tools + "new_collector(None, 1)").stderr
assert "finished its bootstrapping phase" in said

# %%
# The traceback at the very end names only the consequence. Look above it for the
# bootstrapping phase.

assert "RuntimeError: Worker 0 failed to initialize" in said

# %%
# Try it
# ------
#
# Two workers write six batches each, strictly by turns, and no episode ends meanwhile.
# Each batch holds 100 steps. How many seams has the buffer? Replace ``None``.

answer = None


def check(answer):
    assert answer is not None, "replace None by a number of seams"
    writer = torch.arange(2).repeat_interleave(100).repeat(6)
    assert answer == writer.diff().count_nonzero()


# %%
# .. dropdown:: Solution
#
#     .. code-block:: python
#
#         answer = 12 - 1  # between twelve batches
#
# In practice
# -----------
#
# * Does your script print its last line and not end? Build the collector in the guarded
#   part of the script, as here, and not in a function.
# * Forgotten guards are old friends:
#   `issue 2123 <https://github.com/pytorch/rl/issues/2123>`__.
#
# What you can rely on
# --------------------
#
# * As many workers as you ask for live from the moment when the collector is built.
# * A buffer given to workers becomes shared, and the log says so.
# * A second ``start()`` kills the workers, and your process goes on without an error.
# * After ``start()``, workers do not stop at ``total_frames``.
# * Batches of fixed size leave seams in the shared buffer, without a flag.
# * The steps of one id follow each other, whichever worker took them.
# * With ``trajs_per_batch`` there are no seams.
# * Workers that raise die, and your process goes on without an error.
# * The worker's error is printed to stderr.
# * Without the guard, the log names the bootstrapping phase.
# * The error that your own process raises says that a worker failed to initialize.
#
# Next
# ----
#
# :ref:`tut-official-numbers` checks the official tutorial number by number. If one
# process is enough, :ref:`tut-watch` shows how to pause a thread.
