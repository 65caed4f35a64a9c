"""
.. _tut-60-no-alt:

Plant no alt
============

One page of the planted gallery.
"""

import matplotlib.pyplot as plt

fig, ax = plt.subplots()
