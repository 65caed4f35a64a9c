"""
.. _tut-48-threads:

Plant threads
=============

One page of the planted gallery.
"""

import torch

torch.set_num_threads(1)

# %%
# The first cell may choose, no later one.

# !! left the thread count changed: 2, it was 1
torch.set_num_threads(2)
