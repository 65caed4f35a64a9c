"""
.. _tut-45-file:

Plant file
==========

One page of the planted gallery.
"""

from pathlib import Path

# !! left a file in the working folder behind: left.txt
_ = Path("left.txt").write_text("left")
