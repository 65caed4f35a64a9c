"""
.. _tut-41-orphan:

Plant orphan
============

One page of the planted gallery.
"""

import subprocess
import sys

sleeping = "import time; time.sleep(600)"
starting = "import subprocess, sys; subprocess.Popen([sys.executable, *sys.argv[1:]])"
command = [sys.executable, "-c", starting, "-c", sleeping]
# !! left a child process behind: python -c import time; time.sleep(600)
_ = subprocess.run(command, start_new_session=True, timeout=60)
