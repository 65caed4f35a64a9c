# !! no claims file tests/claims/planted_66_no_claims.toml
"""
.. _tut-66-no-claims:

Plant no claims
===============

One page of the planted gallery.
"""

import torch

assert torch.ones(1).sum() == 1
