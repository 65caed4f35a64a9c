"""
.. _tut-21-queue:

Plant queue
===========

One page of the planted gallery.
"""

import queue

# !! over its time limit of 2 s (tutorials/limits.toml)
queue.Queue().get()
