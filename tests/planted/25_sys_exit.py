"""
.. _tut-25-sys-exit:

Plant sys exit
==============

One page of the planted gallery.
"""

import sys

# %%
# Text between cells.

print("before")
# !! ended the process that ran the page: sys.exit()
sys.exit(0)
