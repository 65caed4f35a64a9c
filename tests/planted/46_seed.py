"""
.. _tut-46-seed:

Plant seed
==========

One page of the planted gallery.
"""

import torch

_ = torch.manual_seed(0)

# %%
# The first cell sets the seed, the second another one.

# !! left torch's seed changed: 7, it was 0
_ = torch.manual_seed(7)
