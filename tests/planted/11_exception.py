"""
.. _tut-11-exception:

Plant exception
===============

One page of the planted gallery.
"""

import torch


def inner():
    # !! RuntimeError: shape '[2]' is invalid for input of size 3
    return torch.ones(3).view(2)


_ = inner()
