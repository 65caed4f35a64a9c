"""
.. _tut-29-deadlock:

Plant deadlock
==============

One page of the planted gallery.
"""

import threading

lock = threading.Lock()
_ = lock.acquire()
# !! over its time limit of 2 s (tutorials/limits.toml)
with lock:
    pass
