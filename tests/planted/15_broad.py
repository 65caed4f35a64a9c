"""
.. _tut-15-broad:

Plant broad
===========

One page of the planted gallery.
"""

import contextlib

message = None
try:
    1 / 0
# !! name the exact exception, or any error passes
except Exception as error:
    message = str(error)
assert "division" in message

try:
    unseen = 1 / 0
# !! no assert looks at what this handler caught
except ZeroDivisionError:
    unseen = 0

# !! suppress() hides whether the error came; assert it
with contextlib.suppress(ZeroDivisionError):
    1 / 0
