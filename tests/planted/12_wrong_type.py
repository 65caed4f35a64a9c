"""
.. _tut-12-wrong-type:

Plant wrong type
================

One page of the planted gallery.
"""

import torch

message = None
try:
    # !! ZeroDivisionError: division by zero
    1 / 0
except RuntimeError as error:
    message = str(error)
assert "division" in message and torch.ones(1).sum() == 1
