"""
.. _tut-55-chdir:

Plant chdir
===========

One page of the planted gallery.
"""

import os

# !! left its working folder
os.chdir("/")
