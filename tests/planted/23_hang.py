"""
.. _tut-23-hang:

Plant hang
==========

One page of the planted gallery.
"""

import collections
import itertools

# !! over its time limit (tutorials/limits.toml), and no exception could end it; see build/stack-planted-23_hang.log
collections.deque(itertools.count(), maxlen=0)
