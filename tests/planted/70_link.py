"""
.. _tut-70-link:

Plant link
==========

One page of the planted gallery.
"""

import torch

# %%
# A link to `nothing <../assemble/nothing.html>`__
# and to `a place <#nowhere>`__.

assert torch.ones(1).sum() == 1
