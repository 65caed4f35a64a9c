"""
.. _tut-64-no-guard:

Plant no guard
==============

One page of the planted gallery.
"""

import functools

from torchrl.envs import GymEnv, ParallelEnv

# sphinx_gallery_parallel = False
# !! starts a process, not behind `if __name__ == "__main__":`
env = ParallelEnv(2, functools.partial(GymEnv, "CartPole-v1"))

# !!4 follows a cell that does, not behind `if __name__ == "__main__":`

# %%
# What follows runs in each worker too.
del env
