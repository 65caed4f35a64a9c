"""
.. _tut-27-raise-exit:

Plant raise exit
================

One page of the planted gallery.
"""

print("before")
# !! ended the process that ran the page: raise SystemExit
raise SystemExit
