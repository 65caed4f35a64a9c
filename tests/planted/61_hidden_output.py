"""
.. _tut-61-hidden-output:

Plant hidden output
===================

One page of the planted gallery.
"""

import torch

# !! the setting capture_repr_block hides how the page comes about
# sphinx_gallery_capture_repr_block = ()
torch.ones(2)
