"""
.. _tut-14-not-python:

Plant not python
================

One page of the planted gallery.
"""

import torch

# !! SyntaxError: incomplete input
# !! not Python: '(' was never closed
print(torch.ones(1)
