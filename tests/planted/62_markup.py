"""
.. _tut-62-markup:

Plant markup
============

One page of the planted gallery.
"""

import torch

# %%
# A fence of pandoc, ::: left, is no prose.

assert torch.ones(1).sum() == 1
