"""
.. _tut-32-filtered:

Plant filtered
==============

One page of the planted gallery.
"""

import warnings

# !! a warning is filtered; avoid or explain it
# !! left the warning filters changed
warnings.simplefilter("ignore")
