"""
.. _tut-47-other-seeds:

Plant other seeds
=================

One page of the planted gallery.
"""

import random

import numpy as np

random.seed(0)

# %%
# The first cell has seeded one of them.

random.random()
# !! left the state of numpy.random changed
np.random.rand()
