# !! WARNING: document isn't included in any toctree [toc.not_included]; list it in the index.rst of its folder
# !! no card with `:link: tut-65-unlisted` in planted/index.rst
# !! no claims file tests/claims/planted_65_unlisted.toml
# !! not in the toctree of planted/index.rst
"""
.. _tut-65-unlisted:

Plant unlisted
==============

One page of the planted gallery.
"""

import torch

assert torch.ones(1).sum() == 1
