"""
.. _tut-61-hidden:

Plant hidden
============

One page of the planted gallery.
"""

import torch

# !! hidden code; only .close() and .shutdown() may be hidden
# sphinx_gallery_start_ignore
torch.manual_seed(0)
# sphinx_gallery_end_ignore
assert torch.ones(1).sum() == 1
