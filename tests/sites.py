"""Small sites for tests: built, served, read."""

from __future__ import annotations

import contextlib
import functools
import http.server
import io
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace


def build(source: Path, out: Path, *, fresh: bool = True, **settings) -> str:
    """Build a site without a ``conf.py``; returns the warnings."""
    warnings = io.StringIO()
    with docutils_namespace():
        app = Sphinx(
            source,
            None,
            out,
            out.with_name("doctrees"),
            "html",
            {"html_theme": "basic", **settings},
            status=None,
            warning=warnings,
            freshenv=fresh,
        )
        app.build()
    return warnings.getvalue()


def text(html: str) -> str:
    """What a reader reads."""
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a line on stderr for each."""

    def log_message(self, *args) -> None:
        """Say nothing."""


class QuietServer(http.server.ThreadingHTTPServer):
    """Says nothing when a closing tab drops its connections."""

    def handle_error(self, request, client_address) -> None:
        """The test that asked for the file is the one to complain."""


@contextlib.contextmanager
def served(site: Path, handler: type = QuietHandler) -> Iterator[str]:
    """Address of a folder over http, on loopback."""
    handler = functools.partial(handler, directory=str(site))
    with QuietServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(timeout=10)
