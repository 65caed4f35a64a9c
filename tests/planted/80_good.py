"""
.. _tut-80-good:

Plant good
==========

One page of the planted gallery.
"""

import torch

assert torch.ones(1).sum() == 1
