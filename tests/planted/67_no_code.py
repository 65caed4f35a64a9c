# !! no code, so nothing runs
"""
.. _tut-67-no-code:

Plant no code
=============

One page of the planted gallery.
"""
