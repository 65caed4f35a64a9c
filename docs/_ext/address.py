"""The address under which the site will be published, from ``SITE_URL``."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit


def from_environment() -> str:
    """The address that the environment names; empty if it names none.

    Raises
    ------
    ValueError
        If it is not the address of a folder on the web.
    """
    return checked(os.environ.get("SITE_URL", ""))


def checked(value: str) -> str:
    """An address with a slash at its end; empty if there is none.

    Raises
    ------
    ValueError
        If it is not the address of a folder on the web.
    """
    if not value:
        return ""
    parts = urlsplit(value)
    odd = parts.query or parts.fragment or re.search(r"[\s\"'<>]", value)
    if parts.scheme not in ("http", "https") or not parts.hostname or odd:
        raise ValueError(f"SITE_URL: '{value}' is not like https://example.org/folder/")
    return value.rstrip("/") + "/"
