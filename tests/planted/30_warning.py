"""
.. _tut-30-warning:

Plant warning
=============

One page of the planted gallery.
"""

import warnings

# !! UserWarning: mind the gap
warnings.warn("mind the gap", stacklevel=1)
