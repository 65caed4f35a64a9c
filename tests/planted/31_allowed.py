"""
.. _tut-31-allowed:

Plant allowed
=============

One page of the planted gallery.
"""

import warnings

warnings.warn("allowed in this gallery", FutureWarning, stacklevel=1)
