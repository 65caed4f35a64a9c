"""
.. _tut-51-print-options:

Plant print options
===================

One page of the planted gallery.
"""

import torch

# !! left the print options changed
torch.set_printoptions(precision=2)
