"""
.. _tut-48-threads:

Plant threads
=============

One page of the planted gallery.
"""

import torch

# !! left the thread count changed: 1, it was 2
torch.set_num_threads(1)
