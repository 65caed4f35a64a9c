"""
.. _tut-81-good-alone:

Plant good alone
================

One page of the planted gallery.
"""

# sphinx_gallery_parallel = False
import torch

assert torch.ones(1).sum() == 1
