"""
.. _tut-42-thread:

Plant thread
============

One page of the planted gallery.
"""

import threading

thread = threading.Thread(target=threading.Event().wait, args=[20], name="waits")
# !! left a thread behind: waits
thread.start()
