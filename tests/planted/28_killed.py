"""
.. _tut-28-killed:

Plant killed
============

One page of the planted gallery.
"""

import os
import signal

print("before")
# !! ended the process that ran the page: os.kill()
os.kill(os.getpid(), signal.SIGKILL)
