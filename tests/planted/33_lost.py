"""
.. _tut-33-lost:

Plant lost
==========

One page of the planted gallery.
"""

class Fails:
    def __del__(self):
        raise RuntimeError("in a finaliser")


fails = Fails()
# !! an exception was lost: RuntimeError: in a finaliser
del fails
