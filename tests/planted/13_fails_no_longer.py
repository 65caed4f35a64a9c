"""
.. _tut-13-fails-no-longer:

Plant fails no longer
=====================

One page of the planted gallery.
"""

import torch

message = None
try:
    torch.ones(3).view(3)
except RuntimeError as error:
    message = str(error)
# !! AssertionError: assert "invalid" in str(message)
assert "invalid" in str(message)
