"""
.. _tut-53-environment:

Plant environment
=================

One page of the planted gallery.
"""

import os

# !! left the environment variables changed
os.environ["PLANTED"] = "1"
