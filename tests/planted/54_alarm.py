"""
.. _tut-54-alarm:

Plant alarm
===========

One page of the planted gallery.
"""

import signal

# !! took SIGALRM, which holds the time limit
_ = signal.signal(signal.SIGALRM, signal.SIG_IGN)
