"""
.. _tut-63-helper:

Plant helper
============

One page of the planted gallery.
"""

# !! imports pageparts, which a download does not have
import pageparts

assert pageparts.CLOSING
