"""
.. _tut-10-false-assert:

Plant false assert
==================

One page of the planted gallery.
"""

import torch

# !! AssertionError: assert torch.ones(3).sum() == 4
assert torch.ones(3).sum() == 4
