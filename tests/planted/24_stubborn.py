"""
.. _tut-24-stubborn:

Plant stubborn
==============

One page of the planted gallery.
"""

import time

while True:
    try:
        # !! over its time limit (tutorials/limits.toml), and no exception could end it; see build/stack-planted-24_stubborn.log
        time.sleep(60)
    # !! name the exact exception, or any error passes
    # !! no assert looks at what this handler caught
    except BaseException:
        again = True
