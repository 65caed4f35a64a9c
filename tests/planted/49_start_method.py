"""
.. _tut-49-start-method:

Plant start method
==================

One page of the planted gallery.
"""

import torch.multiprocessing

# !! left the start method changed: fork, it was spawn
torch.multiprocessing.set_start_method("fork", force=True)
