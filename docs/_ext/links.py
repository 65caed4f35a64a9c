"""Finds links of the built site that lead nowhere, at the line a person can mend.

Sphinx checks what it knows as a reference. It copies an address written out by hand, a
raw piece of HTML and what a theme or a style sheet names, without a look.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that hold one address, and whether a browser loads it by itself.
LOADED = ("src", "poster", "data", "background")
FOLLOWED = ("href", "xlink:href", "action", "formaction")

#: Elements whose ``href`` is loaded, not followed; ``<link>`` depends on its ``rel``.
DRAWN = {"use", "image", "feimage"}
LOADED_RELS = {
    *("stylesheet", "icon", "apple-touch-icon", "mask-icon", "manifest", "preload"),
    *("modulepreload", "prefetch", "preconnect", "dns-prefetch"),
}

#: Schemes that name nothing outside: the page itself holds what they mean.
INLINE = {"data", "javascript", "blob", "about"}
OUTSIDE = {"http", "https"}

_CSS_URL = re.compile(
    r"/\*.*?\*/|url\(\s*(?:\"([^\"]*)\"|'([^']*)'|([^\"')\s]*))\s*\)"
    r"|@import\s+(?:\"([^\"]*)\"|'([^']*)')",
    re.S | re.I,
)
_SET = re.compile(r"\s*(\S*[^\s,])(?:\s+[^,]*)?(?:,|$)")
_SPAN = re.compile(r'</?span(?: class="[^"]*")?>')
_REFRESH = re.compile(r"\s*\d+\s*[;,]\s*url\s*=\s*['\"]?([^'\"]*)", re.I)


@dataclass(frozen=True)
class Reference:
    """An address in a file of the site, and what stands on the page for it."""

    target: str
    loaded: bool  # by the browser, without a click
    text: str = ""
    line: int = 1  # in a style sheet


def css_addresses(text: str) -> Iterator[tuple[str, int]]:
    """Each address in a style sheet, with its line; comments are skipped."""
    for match in _CSS_URL.finditer(text):
        if address := next(filter(None, match.groups()), ""):
            yield address, text.count("\n", 0, match.start()) + 1


class Document(HTMLParser):
    """The anchors and the addresses of an HTML or SVG text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.references: list[Reference] = []
        self._open: tuple[str, list[str]] | None = None  # the <a> being read
        self._in_style = False
        # Highlighted code is spans without anchors: most of the tags, and of the time.
        self.feed(_SPAN.sub("", text))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and addresses."""
        found = {name: value for name, value in attrs if value is not None}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a":
            self.anchors.add(found.get("name", ""))
        for name, value in found.items():
            if name in LOADED and (name != "data" or tag == "object"):
                self._add(value, True)
            elif name in FOLLOWED and tag == "a":
                self._open = (value, [])
            elif name in FOLLOWED and tag != "base":  # it says from where to follow
                rels = found.get("rel", "").lower().split()
                self._add(value, tag in DRAWN or not LOADED_RELS.isdisjoint(rels))
            elif name in ("srcset", "imagesrcset"):
                for address in _SET.findall(value):
                    self._add(address, True)
            elif name == "style":
                for address, _ in css_addresses(value):
                    self._add(address, True)
            elif name == "content" and (match := _REFRESH.match(value)):
                self._add(match[1], False)
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        """Collect the text of a link, and what a ``<style>`` loads."""
        if self._open:
            self._open[1].append(data)
        elif self._in_style:
            for address, _ in css_addresses(data):
                self._add(address, True)

    def handle_endtag(self, tag: str) -> None:
        """Note a link once its text is known."""
        self._in_style = False
        if tag == "a" and self._open:
            address, text = self._open
            self._open = None
            self._add(address, False, " ".join("".join(text).split()))

    def _add(self, address: str, loaded: bool, text: str = "") -> None:
        self.references.append(Reference(address.strip(), loaded, text))


@dataclass
class Site:
    """The files of a built site, each read once."""

    folder: Path
    _documents: dict[str, Document] = field(default_factory=dict)

    @cached_property
    def files(self) -> set[str]:
        """All files: a disk may overlook upper and lower case, a server does not."""
        found = set()
        for folder, _, names in os.walk(self.folder):
            inside = Path(folder).relative_to(self.folder).as_posix()
            found.update(posixpath.normpath(f"{inside}/{name}") for name in names)
        return found

    def read(self, name: str) -> str:
        """The text of a file."""
        return (self.folder / name).read_text(encoding="utf-8", errors="replace")

    def document(self, name: str) -> Document:
        """An HTML or SVG file, taken apart."""
        if name not in self._documents:
            self._documents[name] = Document(self.read(name))
        return self._documents[name]

    def pages(self) -> list[str]:
        """The pages; in ``_static`` themes keep templates that no reader opens."""
        return sorted(
            name
            for name in self.files
            if name.endswith(".html") and not name.startswith("_static/")
        )

    def complaint(self, page: str, reference: Reference) -> str:
        """What is wrong with an address on a page, "" if nothing is."""
        try:
            parts = urlsplit(reference.target)
        except ValueError:
            return "is no address"
        if parts.scheme in INLINE or (not reference.loaded and parts.scheme in OUTSIDE):
            return ""
        if parts.scheme in OUTSIDE or parts.netloc:
            if reference.loaded:
                return "is loaded from another host when the page is viewed"
            return "names a host without https:"
        if parts.scheme == "file":
            return "leads to a file of the machine that built it"
        if parts.scheme:
            known = parts.scheme in ("mailto", "tel")
            return "" if known else f"is of an unknown kind, {parts.scheme}:"
        path = unquote(parts.path)
        if path.startswith("/"):
            return "is an absolute path; it works neither from the disk nor in a folder"
        if not path and reference.loaded and not parts.fragment:
            return "loads nothing"
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        target = page if not path else target
        if target.startswith(".."):
            return "leads out of the site"
        if target not in self.files or path.endswith("/"):
            inside = posixpath.normpath(f"{target}/index.html")
            if inside not in self.files:
                return "leads to no file of the site"
            target = inside
        anchor = unquote(parts.fragment).split(":~:")[0]  # :~:text= is for browsers
        if anchor.lower() in ("", "top") or not target.endswith((".html", ".svg")):
            return ""
        if anchor in self.document(target).anchors:
            return ""
        return f"names no anchor of {'this page' if target == page else target}"


def source_of(name: str, root: Path) -> str:
    """The file a person edits to change a file of the site; "" if there is none."""
    stem = name.removesuffix(".html")
    if name.startswith("_static/"):
        candidates = [f"docs/{name}"]
    elif name.startswith("tutorials/"):  # docs/tutorials is generated
        candidates = [f"{stem}.py", f"{stem}.rst"]
    else:
        candidates = [f"docs/{stem}.rst"]
    return next((one for one in candidates if (root / one).is_file()), "")


def line_of(text: str, reference: Reference) -> int:
    """Line of a hand-written text that makes a reference; 0 if none is found.

    Looks for the address as it stands, then for its parts, then for the link's text,
    which the source may wrap and, in a script, continue after ``#``.
    """
    target = unquote(reference.target)
    path, _, anchor = target.partition("#")
    wanted = [reference.target, target, path, posixpath.basename(path), anchor]
    patterns = [re.escape(one) for one in wanted if len(one) > 3]
    if len(reference.text) > 3:
        patterns.append(r"(?:\s+(?:# )?)".join(map(re.escape, reference.text.split())))
    for pattern in patterns:
        # Not inside a longer word: 10_a is not 10_ab.
        if match := re.search(rf"(?<!\w){pattern}(?!\w)", text):
            return text.count("\n", 0, match.start()) + 1
    return 0


def place_of(name: str, reference: Reference, root: Path) -> str:
    """``file:line`` to mend for a reference in a file of the site."""
    source = source_of(name, root)
    if source.startswith("docs/_static/"):
        return f"{source}:{reference.line}"
    file = re.split("[?#]", reference.target)[0]
    settings = Reference(file, reference.loaded)  # what every page shows is set there
    for candidate, sought in ((source, reference), ("conf.py", settings)):
        if candidate and (root / candidate).is_file():
            text = (root / candidate).read_text(encoding="utf-8")
            if line := line_of(text, sought):
                return f"{candidate}:{line}"
    if source:
        return f"{source}:1"
    return f"build/html/{name}:{reference.line if name.endswith('.css') else 1}"


def broken_links(site: Path, root: Path) -> list[str]:
    """Complain about links, resources and anchors of a site that do not exist.

    Parameters
    ----------
    site : Path
        The built site, ``build/html``.
    root : Path
        The repository, in which the complaints name files.

    Returns
    -------
    list of str
        One line for each place to mend and address, ``file:line: what``; links to
        other sites are not followed, but nothing may be loaded from there.
    """
    built = Site(site)
    sheets, seen = set(), set()
    found: dict[tuple[str, str], str] = {}

    def check(name: str, reference: Reference) -> None:
        what = built.complaint(name, reference)
        if what:
            place = place_of(name, reference, root)
            # One mistake in conf.py is on every page, with another way up to it.
            found.setdefault(
                (place.rpartition(":")[0], reference.target.lstrip("./")),
                f"{place}: '{reference.target}' {what}",
            )

    def note_sheet(name: str, address: str) -> None:
        path = unquote(re.split("[?#]", address)[0])
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        if target.endswith(".css") and target in built.files:
            sheets.add(target)

    if "index.html" not in built.files:  # an empty folder has no broken links either
        return ["build/html/index.html:1: there is no site to check"]
    for name in built.pages():
        for reference in built.document(name).references:
            check(name, reference)
            note_sheet(name, reference.target)
    while waiting := sheets - seen:  # a sheet may import another
        for name in sorted(waiting):
            seen.add(name)
            for address, line in css_addresses(built.read(name)):
                check(name, Reference(address, True, "", line))
                note_sheet(name, address)
    return sorted(found.values(), key=_by_place)


def _by_place(line: str) -> tuple[str, int, str]:
    file, number, what = line.split(":", 2)
    return file, int(number), what
