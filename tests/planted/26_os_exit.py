"""
.. _tut-26-os-exit:

Plant os exit
=============

One page of the planted gallery.
"""

import os

print("before")
# !! ended the process that ran the page: os._exit()
# !! private name _exit
os._exit(0)
