"""
.. _tut-44-port:

Plant port
==========

One page of the planted gallery.
"""

import socket

# !! left a listening port behind: 127.0.0.1
server = socket.create_server(("127.0.0.1", 0))
