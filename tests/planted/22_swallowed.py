"""
.. _tut-22-swallowed:

Plant swallowed
===============

One page of the planted gallery.
"""

import time

message = None
try:
    # !! over its time limit of 2 s (tutorials/limits.toml)
    time.sleep(60)
# !! name the exact exception, or any error passes
except Exception as error:
    message = str(error)
assert message
