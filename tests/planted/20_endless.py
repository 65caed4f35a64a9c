"""
.. _tut-20-endless:

Plant endless
=============

One page of the planted gallery.
"""

number = 0
# !! over its time limit of 2 s (tutorials/limits.toml)
while True: number += 1
