"""
.. _tut-50-dtype:

Plant dtype
===========

One page of the planted gallery.
"""

import torch

# !! left the default dtype changed: torch.float64, it was torch.float32
torch.set_default_dtype(torch.float64)
