"""Mentions: the paths that the text of an imported decision names.

A decision record says where its code is, but not which files it governs. Here only the text is
read; `search/suggested_files.py` decides which of these paths are files. The rows of the index hold
the mentions, so that a change of the rules needs a new format in `index/schema.py`.
"""

from __future__ import annotations

import posixpath
from itertools import pairwise

from memtool.memory.memory import DOCUMENT_ENDINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from memtool.memory.memory import Memory

NO_CODE_ENDINGS = (
    ".bmp",
    ".drawio",
    ".gif",
    ".ico",
    ".jpeg",
    ".jpg",
    ".lock",
    ".pdf",
    ".png",
    ".puml",
    ".snap",
    ".svg",
    ".webp",
)
"""Pictures and generated files, which no decision governs."""
NO_CODE_NAMES = frozenset(
    {"bun.lockb", "go.sum", "license", "notice", "package-lock.json", "pnpm-lock.yaml"}
)
DOCUMENT_FOLDERS = frozenset({"doc", "docs", "documentation", "website"})
MAX_MENTIONS = 200
"""Paths of one text that are read; more are a listing of files."""
MAX_PATH_CHARS = 200
_SPACES = str.maketrans(dict.fromkeys("\"'`<>()[],;|\u201c\u201d\u2018\u2019\u00ab\u00bb", " "))
_PATTERN_CHARS = frozenset("*?${}=\\%&~")
"""Characters of patterns, variables and calls, which name no single file."""
_COMMENT, _COMMENT_END = "<!--", "-->"
_FENCES = ("```", "~~~")
_JOINTS = frozenset("-_.")
"""What joins the words of a telling name, such as `http-client.ts`; `config.yml` tells nothing."""


def is_code(path: str) -> bool:
    """Return whether a file is source or configuration: no text, picture or lock file."""
    *folders, name = path.lower().split("/")
    return (
        not name.endswith((*DOCUMENT_ENDINGS, *NO_CODE_ENDINGS))
        and name not in NO_CODE_NAMES
        and DOCUMENT_FOLDERS.isdisjoint(folders)
    )


def find_mentions(memory: Memory) -> tuple[str, ...]:
    """Return the paths that an imported decision names, each once, in the order of its text.

    Paths with `./` or `../` are those from its document; all others are as the text has them, from
    the top or from any folder. A name without a folder counts only if it is marked as code and
    telling. Paths in addresses, comments and blocks of code do not count.
    """
    document = memory.document
    if not document:
        return ()
    folder = posixpath.dirname(document)
    paths = (_resolve(folder, word) for word in _find_paths(_read_prose(memory.body)))
    return tuple(dict.fromkeys(path for path in paths if path and is_code(path)))[:MAX_MENTIONS]


def _read_prose(text: str) -> str:
    """Return a text without comments and blocks of code."""
    while (begin := text.find(_COMMENT)) >= 0:
        end = text.find(_COMMENT_END, begin)
        text = text[:begin] + (" " if end < 0 else text[end + len(_COMMENT_END) :])
    lines = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if mark in _FENCES and (not fence or mark == fence):
            fence = "" if fence else mark
        elif not fence:
            lines.append(line)
    return "\n".join(lines)


def _find_paths(text: str) -> Iterator[str]:
    """Yield the words of a text that may be paths of files, without lines after `:` or `#`."""
    for raw in _without_addresses(text).split():
        if "." not in raw and "/" not in raw:
            continue
        for word in raw.translate(_SPACES).split():
            plain = word.strip("*:!?").rstrip(".")
            path = plain.partition("#")[0].partition(":")[0].partition("@")[0]
            if _is_path(path) and ("/" in path or ("`" in raw and _is_telling(path))):
                yield path


def _without_addresses(text: str) -> str:
    """Return a text without addresses, and without the texts of links to them."""
    while (at := text.find("](http")) >= 0:
        begin, end = text.rfind("[", 0, at), text.find(")", at)
        text = text[: max(begin, 0)] + " " + ("" if end < 0 else text[end + 1 :])
    return " ".join(word for word in text.split() if "://" not in word)


def _is_path(word: str) -> bool:
    """Return whether a word may be the path of a file: with an extension, or below a folder."""
    if len(word) > MAX_PATH_CHARS or not word.isprintable() or "//" in word:
        return False
    name = word.rpartition("/")[2]
    is_named = "." in name or "/" in word
    return is_named and any(map(str.isalpha, name)) and _PATTERN_CHARS.isdisjoint(word)


def _is_telling(name: str) -> bool:
    """Return whether the name of a file, without its last extension, has more than one word."""
    stem = name.rpartition(".")[0].strip("._-")
    has_humps = any(a.islower() and b.isupper() for a, b in pairwise(stem))
    return has_humps or not _JOINTS.isdisjoint(stem)


def _resolve(folder: str, word: str) -> str:
    """Return a path from the top, or as it is written; empty if it leads out of the repository."""
    if word.startswith(("./", "../")):
        word = posixpath.join(folder, word)
    path = posixpath.normpath(word.lstrip("/"))
    return "" if path.startswith("../") or path in (".", "..") else path


def list_endings(path: str) -> Iterator[str]:
    """Yield a path, and its ends after each folder: `a/b/c`, `b/c`, `c`."""
    while path:
        yield path
        path = path.partition("/")[2]
