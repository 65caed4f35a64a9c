"""Make the downloads of a gallery readable, complete and reproducible.

Sphinx-Gallery converts the prose of a page cell by cell and offers no hook for it: what
only Sphinx knows stays in the notebook as debris, and its zips carry the clock and the
order of the file system. This extension runs right after it, writes each notebook anew
from the page's script and packs each zip again in one fixed form.

Why from the script, and why pandoc's syntax tree? Pandoc reads any directive into a
``Div`` that bears its name and any role into a ``Code`` that bears its role: one small
rewrite each is enough, and code is never mistaken for prose, as it is where patterns
search the Markdown. A page is converted as a whole, so that heading levels, link
targets and footnotes agree between its cells.
"""

import hashlib
import html
import io
import json
import os
import posixpath
import re
import zipfile
from pathlib import Path

import pypandoc
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx_gallery import py_source_parser as parser

MARKDOWN = "gfm-tex_math_gfm+tex_math_dollars"  # what Jupyter renders, math as $…$
BOUNDARY = "cell-boundary"
MARK = "\ue000"  # begins a title, so that a missing one can be told from the text

# What becomes of a directive; its options vanish by themselves.
CARDS = ("card", "grid-item-card", "tab-item")  # a bold title, then the content
TITLED = (*CARDS, "admonition", "dropdown")  # the argument is a title
NOTES = ("attention", "caution", "danger", "error", "hint", "important", "note", "tip")
QUOTED = (*NOTES, "admonition", "seealso", "warning")  # a block quote
WRAPPERS = ("container", "grid-item", "sidebar", "tab-set", "title", "topic")
SETTINGS = ("contents", "grid", "index", "meta", "rst-class")  # the argument is no text
ONLINE = ("alive", "learning-figure")  # what only the site can show, with its caption
PLAIN_ROLES = ("abbr", "download", "term")  # ref and doc are links, any other is code

HEADING = r"(?:([^\w\s])\{0}{{2,}}\n)? *(\S.*)\n([^\w\s])\{1}{{2,}} *$"
TITLE = re.compile("^" + HEADING.format(1, 3), re.M)
LABEL = re.compile(
    r"^\.\. _(`[^`]+`|[^:\n]+): *$"
    r"(?=(?:(?:\n *|\n\.\. .*)*\n" + HEADING.format(2, 4) + ")?)",
    re.M,
)
Targets = dict[str, tuple[str, str]]  # label or /page: its title and address


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before and after Sphinx-Gallery, which has priority 500."""
    before: dict[Path, tuple[bytes, int]] = {}
    app.connect("builder-inited", lambda app: before.update(state(app)), priority=100)
    app.connect("builder-inited", lambda app: clean(app, before), priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def find(app: Sphinx, suffix: str) -> list[Path]:
    """List the files of a kind that Sphinx-Gallery has written."""
    dirs = app.config.sphinx_gallery_conf["gallery_dirs"]
    dirs = [dirs] if isinstance(dirs, (str, os.PathLike)) else dirs
    return [p for d in dirs for p in sorted(Path(app.srcdir, d).rglob(f"*{suffix}"))]


def state(app: Sphinx) -> dict[Path, tuple[bytes, int]]:
    """Read the content and the time of each notebook and zip."""
    files = find(app, ".ipynb") + find(app, ".zip")
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def clean(app: Sphinx, before: dict[Path, tuple[bytes, int]]) -> None:
    """Write the notebooks, then the zips that hold them."""
    targets = find_targets(Path(app.srcdir))
    for page in find(app, ".py"):
        if page.with_suffix(".ipynb").exists():
            write_notebook(page, app, targets, before)
    for path in find(app, ".zip"):
        rewrite_zip(path)
    # Sphinx-Gallery packs some zips at each build. Content as before gets its time
    # back, or Sphinx would read the pages that link it again.
    for path, (content, time) in state(app).items():
        old, old_time = before.get(path, (b"", time))
        if content == old and time != old_time:
            os.utime(path, ns=(time, old_time))


def write_if_changed(path: Path, data: bytes) -> None:
    """Leave a file alone that holds these bytes."""
    if path.read_bytes() != data:
        path.write_bytes(data)


def rewrite_zip(path: Path) -> None:
    """Pack a zip again from the files beside it, free of clock, order and umask."""
    new = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(new, "w") as archive:
        for name in sorted(old.namelist()):
            file, entry = path.parent / name, zipfile.ZipInfo(name)  # of 1980-01-01
            entry.create_system, entry.external_attr = 3, 0o100644 << 16  # Unix, rw-r--
            data = file.read_bytes() if file.is_file() else old.read(name)
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    write_if_changed(path, new.getvalue())


def find_targets(srcdir: Path) -> Targets:
    """Find titles and addresses in the sources, as Sphinx has read none yet."""
    targets = {}
    for path in sorted(srcdir.rglob("*.rst")):
        text = path.read_text(encoding="utf-8")
        page = path.relative_to(srcdir).with_suffix("").as_posix()
        title = found[2] if (found := TITLE.search(text)) else page
        labels = [(f"/{page}", title, "")]
        for label, _, heading, _ in LABEL.findall(text):
            label = label.strip("`").lower()
            labels.append((label, heading or title, f"#{nodes.make_id(label)}"))
        for label, heading, anchor in labels:
            targets[label] = (heading.replace("``", ""), f"{page}.html{anchor}")
    return targets


def write_notebook(page: Path, app: Sphinx, targets: Targets, before: dict) -> None:
    """Write the notebook of a page, unless it was made from the very same input."""
    config, source = app.config, page.read_text(encoding="utf-8")
    conf = config.sphinx_gallery_conf
    first, last = conf.get("first_notebook_cell"), conf.get("last_notebook_cell")
    # A title that changes elsewhere matters only to a page that can mention it.
    lower = source.lower()
    used = {k: v for k, v in targets.items() if k.split("/")[-1].lower() in lower}
    around = (config.rst_prolog or "", config.rst_epilog or "")
    inputs = [source, first, last, used, around, config.html_baseurl]
    inputs.append(Path(__file__).read_text(encoding="utf-8"))
    digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
    path = page.with_suffix(".ipynb")
    # Sphinx-Gallery writes a page that it does not run again at each build.
    old, _ = before.get(path, (path.read_bytes(), 0))
    if json.loads(old)["metadata"].get("input_sha256") == digest:
        write_if_changed(path, old)
        return

    docname = page.relative_to(app.srcdir).with_suffix("").as_posix()
    cells = Rewriter(page, docname, used, config.html_baseurl).cells(around)
    cells = [code_cell(first or ""), *cells, code_cell(last or "")]
    cells = [cell for cell in cells if cell["source"]]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": [{**cell, "id": f"cell-{n:02d}"} for n, cell in enumerate(cells)],
        "metadata": {
            "input_sha256": digest,
            "kernelspec": kernel,
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    text = json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False)
    write_if_changed(path, f"{text}\n".encode())


def code_cell(code: str, folded: bool = False) -> dict:
    """Make a cell that has not run; folded, only its output will show."""
    fold = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
    cell = {"cell_type": "code", "execution_count": None, "outputs": []}
    return {**cell, "metadata": fold if folded else {}, "source": code.strip()}


class Rewriter:
    """Rewrites pandoc's tree of one page into what Markdown can say.

    A method ``on_X`` takes the content of a node ``X``, whose children are done, and
    returns the nodes that take its place.
    """

    def __init__(self, page: Path, docname: str, targets: Targets, baseurl: str):
        self.page, self.docname = page, docname
        self.targets, self.baseurl = targets, baseurl
        self.section, self.sections = "", []  # the heading in force after each cell
        self.notes, self.count = [], 0  # footnotes that the cell still owes; all so far

    def cells(self, around: tuple[str, str]) -> list[dict]:
        """Make the cells of the page, read between the two texts of ``conf.py``."""
        _, blocks = parser.split_code_and_text_blocks(self.page)
        texts = [block.content for block in blocks if block.type == "text"]
        converted, cells, section = iter(self.convert(texts, around)), [], ""
        for kind, content, _ in blocks:
            if kind == "text":
                markdown, section = next(converted)
                cell = {"cell_type": "markdown", "metadata": {}, "source": markdown}
            else:
                code = parser.remove_ignore_blocks(content)
                code = parser.remove_config_comments(code)
                cell = code_cell(code, folded=section == "Drawing")
            cells.append(cell)
        return cells

    def convert(self, texts: list[str], around: tuple[str, str]) -> list:
        """Turn each text into Markdown; add the section heading that it ends under."""
        source = "".join(f"{text}\n\n.. {BOUNDARY}::\n\n" for text in texts)
        titled = rf"^( *\.\. (?:{'|'.join(TITLED)})::)"
        source = re.sub(titled, rf"\1 {MARK}", source, flags=re.M)
        source = f"{around[0]}\n\n{source}{around[1]}"
        # A warning of pandoc means lost text: a missing file, an unknown substitution.
        strict = ["--fail-if-warnings"]
        try:
            tree = pypandoc.convert_text(source, "json", "rst", extra_args=strict)
        except RuntimeError as error:
            message = " ".join(str(error).split())
            raise ExtensionError(f"{self.page.name}: {message}") from None
        tree = json.loads(tree)
        tree["blocks"] = self.rewrite(tree["blocks"])
        markdown = pypandoc.convert_text(
            json.dumps(tree), MARKDOWN, "json", extra_args=["--wrap=none"]
        )
        markdown = re.sub(r"^(\W*```+) (?=\w+$)", r"\1", markdown, flags=re.M)
        markdown = markdown.replace(f" {MARK}", "")  # a title quoted in a code block
        cells = (cell.strip() for cell in markdown.split(f"<!-- {BOUNDARY} -->"))
        return list(zip(cells, self.sections, strict=False))

    def rewrite(self, part):
        """Rewrite a node or a list of nodes, children first."""
        if isinstance(part, dict):
            return {key: self.rewrite(value) for key, value in part.items()}
        if not isinstance(part, list):
            return part
        done = []
        for item in map(self.rewrite, part):
            kind = item["t"] if isinstance(item, dict) else None
            method = getattr(self, f"on_{kind}", None)
            done += method(item.get("c")) if method else [item]
        return done

    def on_Div(self, content):
        """Rewrite a directive, or a label around the block that it precedes."""
        (_, classes, _), body = content
        name = classes[0] if classes else ""
        if name == BOUNDARY:
            notes, self.notes = self.notes, []
            self.sections.append(self.section)
            return [*notes, raw(f"<!-- {BOUNDARY} -->")]
        if name == "" or name in WRAPPERS:
            return body
        if name in ONLINE:
            return []
        if name in SETTINGS:
            return body[1:] if body and body[0]["t"] == "Para" else body
        if name == "seealso":
            body = [node("Para", words("See also")), *body]
        if name in TITLED:
            body[0]["c"] = body[0]["c"][2:]  # the mark and a space
        if name in (*CARDS, *QUOTED):
            title = [node("Para", [node("Strong", body[0]["c"])])]
            body = (title if body[0]["c"] else []) + body[1:]
            return body if name in CARDS else [node("BlockQuote", body)]
        if name == "dropdown":
            title = as_html(body[0]) or "Details"
            start = raw(f"<details><summary>{title}</summary>")
            return [start, *body[1:], raw("</details>")]
        raise self.unknown(name)

    def unknown(self, name: str) -> ExtensionError:
        """Say in one line which directive stands where."""
        source = self.page.read_text(encoding="utf-8")
        found = re.search(rf"^#? *\.\. {re.escape(name)}::", source, re.M)
        line = source.count("\n", 0, found.start()) + 1 if found else 1
        return ExtensionError(
            f"{self.page.name}:{line}: directive '{name}' has no notebook form; "
            "add one to docs/_ext/downloads.py"
        )

    def on_RawBlock(self, content):
        """Refuse what is meant for one output format only."""
        raise self.unknown("raw")

    def on_Header(self, content):
        """Remember the section for the code cells in it."""
        self.section = as_html(content[2])
        return [node("Header", content)]

    def on_Note(self, content):
        """Put a footnote at the end of its cell: Jupyter knows none."""
        self.count += 1
        mark = node("Superscript", words(str(self.count)))
        self.notes.append(node("Para", [mark, node("Space"), *content[0]["c"]]))
        self.notes += content[1:]
        return [mark]

    def on_Code(self, content):
        """Rewrite a literal or a role."""
        (_, _, attributes), written = content
        role = dict(attributes).get("role", "").split(":")[-1]
        if role:
            written = " ".join(written.split())
            named = re.fullmatch(r"(.+?) ?<([^<>]+)>", written)
            title, target = named.groups() if named else ("", written)
            if role in ("ref", "doc"):
                return [self.link(role, title, target)]
            if role in PLAIN_ROLES:
                return words(title or written)
            last = written.split(".")[-1] if written[0] == "~" else written
            written = title or last.lstrip("~!")
        return [node("Code", [["", [], []], written])]

    def link(self, role: str, title: str, target: str) -> dict:
        """Link if the address of the site is known, else put the title in italics."""
        if role == "doc":
            here = posixpath.dirname(f"/{self.docname}")
            target = posixpath.normpath(posixpath.join(here, target))
        key = target if role == "doc" else target.lower()
        known, address = self.targets.get(key, (target, ""))
        if not (self.baseurl and address):
            return node("Emph", words(title or known))
        url = f"{self.baseurl.rstrip('/')}/{address}"
        return node("Link", [["", [], []], words(title or known), [url, ""]])

    def on_Link(self, content):
        """Keep the text alone of a link within the page: Jupyter's anchors differ."""
        return content[1] if content[2][0].startswith("#") else [node("Link", content)]

    def on_Span(self, content):
        """Put the default role in italics; drop marks of targets and equations."""
        (_, classes, _), body = content
        return [node("Emph", body)] if "title-ref" in classes else body

    def on_Image(self, content):
        """Describe a file of the site, which a notebook does not have beside it."""
        _, description, (address, title) = content
        if re.match(r"https?://", address):
            return [node("Image", [["", [], []], description, [address, title]])]
        if as_html(description) == "image":  # pandoc's word for no description
            description = words(posixpath.basename(address))
        return [node("Emph", description)]

    def on_Figure(self, content):
        """Put the caption below the image."""
        _, (_, caption), body = content
        return [
            node("Para", b["c"]) if b["t"] == "Plain" else b for b in body + caption
        ]

    def on_CodeBlock(self, content):
        """Name a language, or pandoc would indent the block and not fence it."""
        (_, classes, _), written = content
        language = classes[0] if classes and classes[0] not in ("", "none") else "text"
        return [node("CodeBlock", [["", [language], []], written])]

    def on_DefinitionList(self, content):
        """Put a term in bold, its definition in a quote."""
        done = []
        for term, definitions in content:
            done.append(node("Para", [node("Strong", term)]))
            done.append(node("BlockQuote", [b for part in definitions for b in part]))
        return done

    def on_Table(self, content):
        """Drop widths, which would squeeze a table that needs HTML."""
        content[2] = [[align, node("ColWidthDefault")] for align, _ in content[2]]
        return [node("Table", content)]


def node(kind: str, content=None) -> dict:
    """Make a node of pandoc's tree."""
    return {"t": kind} if content is None else {"t": kind, "c": content}


def words(text: str) -> list[dict]:
    """Make inline nodes of a text."""
    return [node("Str", text)]


def raw(tag: str) -> dict:
    """Make a node of HTML, which Jupyter renders."""
    return node("RawBlock", ["html", tag])


def as_html(part) -> str:
    """Write nodes where Markdown is not read; only code stays marked up."""
    if isinstance(part, list):
        return "".join(map(as_html, part))
    if not isinstance(part, dict):
        return ""
    kind, content = part["t"], part.get("c")
    if kind == "Str":
        return html.escape(content, quote=False)
    if kind in ("Space", "SoftBreak"):
        return " "
    if kind in ("Code", "Math"):
        written = html.escape(content[1], quote=False)
        return f"<code>{written}</code>" if kind == "Code" else f"${written}$"
    return as_html(content)


def install_cell(requirements: Path) -> str:
    """Write the first cell of each notebook: install the pins of the tutorials."""
    pins, inside, name = [], False, requirements.name
    for line in requirements.read_text(encoding="utf-8").splitlines():
        if line.startswith("# -- "):
            inside = line.startswith("# -- tutorials")
        elif inside and (pin := line.split("#")[0].strip()):
            if not re.fullmatch(r"[\w.-]+(\[[\w,.-]+\])?==[\w.+!]+", pin):
                raise ValueError(f"{name}: '{pin}' is not of the form name==version")
            pins.append(f"'{pin}'")
    if not pins:
        raise ValueError(f"{name}: no pin below a line '# -- tutorials'")
    return f"%pip install --quiet {' '.join(pins)}"


OPAQUE = re.compile(  # code, math and addresses may hold anything
    r"^[> ]*(?P<fence>```+|~~~+).*?^[> ]*(?P=fence)`*[ ]*$"
    r"|(?<![\\`])(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|(?<!\\)\$\$?[^$]+\$\$?|(?<=\])\([^()\s]*\)|<https?://[^>\s]*>",
    re.M | re.S,
)
RESIDUE = re.compile(
    r"(?<!\w):[a-zA-Z][\w:+.-]*:(?=\0)"  # :role:`…`
    r"|^[> ]*:[a-z][\w-]*:(?=\s)"  # :option: value
    r"|^[>\s*-]*\.\. \S.*|\.\. [\w|: -]+::"  # .. directive:: and .. comment
    r"|:{3,}|\[\]\{"  # fences and inline targets of pandoc
    r"|\{[.#][a-zA-Z][^}\n]*\}|\{[^{}\n]*\b(?:role=|\w+=\")[^{}\n]*\}"  # attributes
    r"|\0__?(?!\w)|(?<![\\\w])\w+(?<!_)__?(?!\w)"  # `text <address>`_ and name_
    r"|(?<!\\)\|[a-zA-Z]\w*(?:[ -]\w+)*\|"  # |substitution|
    r"|\\['\"]|\\\.{3}|\\--",  # smart punctuation
    re.M,
)


def leftovers(markdown: str) -> list[str]:
    """List what looks like reStructuredText or pandoc's debris outside code."""
    seen = OPAQUE.sub("\0", markdown)
    return [found[0].strip().replace("\0", "`…`") for found in RESIDUE.finditer(seen)]
