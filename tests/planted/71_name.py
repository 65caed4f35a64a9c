"""
.. _tut-71-name:

Plant name
==========

One page of the planted gallery.
"""

import torch

# !!3 WARNING: py:class reference target not found: torchrl.collectors.Nothing [ref.class]

# %%
# A :class:`~torchrl.collectors.Nothing` is no name of TorchRL.

assert torch.ones(1).sum() == 1
