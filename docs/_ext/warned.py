"""Python warnings are errors on a page, but for a short list that says why.

``tutorials/warnings.toml`` holds that list. An entry that meets no warning any more is
an error too, so that the list can only shrink with its reasons.
"""

from __future__ import annotations

import builtins
import re
import tomllib
import warnings
from dataclasses import dataclass
from pathlib import Path

LIST = "tutorials/warnings.toml"
KEYS = {"category", "message", "module", "reason"}
MOST = 10  # entries; more would be a filter, not an exception


@dataclass(frozen=True)
class Allowed:
    """One entry: a category, patterns for text and module, the reason, its line."""

    category: type[Warning]
    message: str
    module: str
    reason: str
    line: int

    @property
    def name(self) -> str:
        """What stands for the entry in the record of a run."""
        return f"{self.category.__name__} {self.module}: {self.message}"


def allowed(root: Path) -> list[Allowed]:
    """The entries of a repository's list.

    Raises
    ------
    ValueError
        If the list is broken or too long, in one line.
    """
    path = root / LIST
    try:
        text = path.read_text()
        tables = tomllib.loads(text).get("allow", [])
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{LIST}:1: {error!r}") from None
    if len(tables) > MOST:
        raise ValueError(f"{LIST}:1: {len(tables)} entries, at most {MOST}")
    starts = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() == "[[allow]]"
    ]
    return [entry(table, line) for table, line in zip(tables, starts)]


def entry(table: dict, line: int) -> Allowed:
    """One entry from its table.

    Raises
    ------
    ValueError
        If a key is missing, strange or empty, or the category is no warning.
    """
    where = f"{LIST}:{line}"
    if set(table) != KEYS or not all(str(value).strip() for value in table.values()):
        raise ValueError(f"{where}: needs exactly {', '.join(sorted(KEYS))}")
    category = getattr(builtins, table["category"], None)
    if not (isinstance(category, type) and issubclass(category, Warning)):
        raise ValueError(f"{where}: {table['category']} is no built-in warning")
    for key in ("message", "module"):
        try:
            re.compile(table[key])
        except re.error as error:
            raise ValueError(f"{where}: {key}: {error}") from None
    return Allowed(category, table["message"], table["module"], table["reason"], line)


class _Noted:
    """A pattern for the ``warnings`` module that notes when it matched."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self.last = re.compile(pattern), False

    def match(self, text: str) -> bool:
        self.last = bool(self._pattern.match(text))
        return self.last


class _NotedModule(_Noted):
    """Looked at after the message: both matching means that the entry is used."""

    def __init__(self, pattern: str, message: _Noted) -> None:
        super().__init__(pattern)
        self._message, self.used = message, False

    def match(self, text: str) -> bool:
        matched = super().match(text)
        self.used |= matched and self._message.last
        return matched


class Strict:
    """Makes warnings errors until it is told to stop; says which entries were used.

    Parameters
    ----------
    entries : list of Allowed
    """

    def __init__(self, entries: list[Allowed]) -> None:
        self._entries = entries

    def start(self) -> None:
        """From now on, in this process, a warning is an exception."""
        self._modules: list[_NotedModule] = []
        self._caught = warnings.catch_warnings()
        self._caught.__enter__()
        warnings.simplefilter("error")
        for item in self._entries:
            message = _Noted(item.message)
            module = _NotedModule(item.module, message)
            self._modules.append(module)
            # filterwarnings() takes only text for a pattern, and then no one knows
            # whether it ever matched. The filter itself asks for `.match` alone.
            warnings.filters.insert(0, ("ignore", message, item.category, module, 0))
        self._filters = list(warnings.filters)

    def is_touched(self) -> bool:
        """Whether the page left other filters than it found."""
        return list(warnings.filters) != self._filters

    def stop(self) -> list[str]:
        """Give the former filters back; returns the names of the entries used."""
        self._caught.__exit__(None, None, None)
        pairs = zip(self._entries, self._modules)
        return [item.name for item, module in pairs if module.used]
