"""
.. _tut-52-grad:

Plant grad
==========

One page of the planted gallery.
"""

import torch

# !! left the gradient mode changed: False, it was True
_ = torch.set_grad_enabled(False)
