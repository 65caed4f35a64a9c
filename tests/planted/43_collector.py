"""
.. _tut-43-collector:

Plant collector
===============

One page of the planted gallery.
"""

from torchrl.collectors import Collector
from torchrl.envs import GymEnv
from torchrl.modules import RandomPolicy

env = GymEnv("CartPole-v1")
# !! left an open Collector behind: call collector.shutdown()
collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=10)
assert len(next(iter(collector))) == 10
