"""
.. _tut-40-child:

Plant child
===========

One page of the planted gallery.
"""

import subprocess
import sys

command = [sys.executable, "-c", "import time; time.sleep(600)"]
# !! left a child process behind: python -c import time; time.sleep(600)
child = subprocess.Popen(command)
