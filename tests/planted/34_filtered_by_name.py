"""
.. _tut-34-filtered-by-name:

Plant filtered by name
======================

One page of the planted gallery.
"""

import warnings

# !! a warning is filtered; avoid or explain it
with warnings.catch_warnings(action="ignore"):
    warnings.warn("unheard", stacklevel=1)
