"""The files and folders of decision records, by their names.

A record is a file, or a folder with a README.md, such as those of Kubernetes with their `kep.yaml`.
Names tell number and date, and what is not a record: a template, an index, another page of a
folder.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from memtool.importing import originals, record_words
from memtool.importing.originals import ImportRequest, Original
from memtool.importing.record_words import ENDINGS
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.value import Value

KEP_FACTS = "kep.yaml"
FACTS = (KEP_FACTS, "metadata.yaml")
"""Files with the facts about the record of their folder."""
FOLDER_TEXTS = ("readme", "index")
_DATED = r"(?P<date>\d{4}-\d\d-\d\d|\d{8})"
_NUMBER = r"(?P<number>\d{1,8}|\d{2,8}[a-z])"
_NAME = re.compile(
    rf"(?:{_DATED}(?:[-_ .]+(?:(?P<dated>\d{{2,4}})(?=[-_ .]|$))?|$)"
    rf"|(?P<kind>(?:[a-z]{{2,5}}[-_ ]*)?){_NUMBER}(?:[-_ .]+|$))(?P<words>.*)$",
    re.IGNORECASE,
)
_UNNUMBERED = re.compile(r"(?:[nx]{3,}|yyyy-?mm-?dd)(?![a-z])", re.IGNORECASE)
_KIND = re.compile(r"[a-z]{3,4}\.", re.IGNORECASE)
_LINKED = re.compile(r"\]\(<?([^)\s>#]+)")
MAX_FRONT_CHARS = 8_000
MIN_INDEX_LINKS = 3
"""Links to other records that make a text an index if they are on most of its lines."""


class RecordName(Value):
    """The name of a record's file or folder, without its ending, in parts."""

    stem: str
    date: str = ""
    kind: str = ""
    number: str = ""
    words: str = ""


class RecordFile(Value):
    """A file that may be a record, with the folder that its links start from.

    `front` are facts from another file of the folder.
    """

    original: Original
    text: str
    place: str
    """The path of the file or folder of the record below the imported one."""
    ending: str
    name: RecordName
    front: Fields


def read_files(path: str, request: ImportRequest) -> Iterator[RecordFile | Problem]:
    """Yield the files that may be records, and problems for those that cannot be."""
    sources = []
    folders: dict[str, list[str]] = {}
    for source in originals.find_files(path, request.top, _is_wanted):
        if isinstance(source, Problem):
            yield source
            continue
        sources.append(source)
        folder, _, name = source.path.rpartition("/")
        folders.setdefault(folder, []).append(name)
    root = path if not sources or sources[0].path != path else posixpath.dirname(path)
    is_single = root != path
    names = frozenset(name for names in folders.values() for name in names)
    for source in sources:
        folder, _, name = source.path.rpartition("/")
        file = _read_file(source, folders[folder], root, is_single=is_single)
        if isinstance(file, RecordFile) and _is_index(file, names):
            yield originals.left_out(source, "it is a list of records")
        elif file is not None:
            yield file


def _is_wanted(name: str) -> bool:
    return name.lower().endswith(ENDINGS) or name in FACTS


def _read_file(
    source: Original, names: Sequence[str], root: str, *, is_single: bool
) -> RecordFile | Problem | None:
    """Read a file, with the facts about its folder; None if it belongs to another file."""
    folder, _, file_name = source.path.rpartition("/")
    stem, ending = split_name(file_name)
    own = _find_folder_text(folder, names) if folder != root or is_single else ""
    own = own or (_find_folder_text(folder, names) if KEP_FACTS in names else "")
    if file_name in FACTS and file_name != own:
        facts = originals.read_text(source) if own else None  # read again with the text
        return facts if isinstance(facts, Problem) else None
    if own and file_name != own:
        return originals.left_out(source, "it belongs to the record of its folder")
    name = parse_name(posixpath.basename(folder) if own else stem)
    reason = find_reason(name)
    may_be_record = stem.lower() in FOLDER_TEXTS and folder != root
    if reason and not (may_be_record and not own):
        return originals.left_out(source, reason)
    text = originals.read_text(source)
    if isinstance(text, Problem):
        return text
    if reason:
        if not _has_status(text):
            return originals.left_out(source, reason)
        own, name = file_name, parse_name(posixpath.basename(folder))
    facts_name = next((fact for fact in FACTS if own and fact in names), "")
    front: Fields = {}
    if file_name == facts_name:
        front, text = _read_facts(text), ""
    elif facts_name:
        other = originals.read_text(originals.build_original(f"{folder}/{facts_name}", root))
        front = {} if isinstance(other, Problem) else _read_facts(other)
    if facts_name == KEP_FACTS:
        name = name.replace(kind="kep")
    place = folder if own else source.path
    place = (
        posixpath.basename(place) if is_single or place == root else posixpath.relpath(place, root)
    )
    return RecordFile(source, text, place, ending, name, front)


def _has_status(text: str) -> bool:
    """Return whether the front matter of a text has a known status."""
    front = originals.front_matter(text[:MAX_FRONT_CHARS].split("\n"))[0]
    states = (value for key, value in front.items() if record_words.find_key(key, "status"))
    return any(isinstance(state, str) and originals.find_state(state) for state in states)


def _find_folder_text(folder: str, names: Sequence[str]) -> str:
    """Return the file that is the text of a folder's record; empty if the folder is not one.

    A folder with a `kep.yaml` is one, and one with a number or date and words in its name, unless
    its files have numbers. Its text is a README.md, its only file, or one such as `vep.md`.
    """
    base = posixpath.basename(folder)
    name = parse_name(base)
    facts = next((fact for fact in FACTS if fact in names), "")
    is_named = bool((name.number and name.words) or name.date or _UNNUMBERED.match(base))
    if not ((is_named and not any(map(_is_numbered, names))) or facts == KEP_FACTS):
        return ""
    texts = sorted(file_name for file_name in names if file_name not in FACTS)
    own = [text for text in texts if split_name(text)[0].lower() in FOLDER_TEXTS]
    own = own or (texts if len(texts) == 1 else [text for text in texts if _KIND.match(text)])
    return own[0] if own else facts


def _read_facts(text: str) -> Fields:
    lines = text.rstrip("\n").split("\n")
    begin = [] if lines[0].rstrip() == "---" else ["---"]
    return originals.front_matter([*begin, *lines, "---"])[0]


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a file before its ending, which is empty if it is not a record's."""
    ending = next((ending for ending in ENDINGS if name.lower().endswith(ending)), "")
    return name[: len(name) - len(ending)], ending


def _is_numbered(file_name: str) -> bool:
    stem, ending = split_name(file_name)
    return bool(ending and parse_name(stem).number)


def parse_name(stem: str) -> RecordName:
    """Split a name such as `0007-use-it`, `adr-012a`, `2023-06-19_024-x` or `20200101-x`."""
    match = _NAME.match(stem)
    if match is None:
        return RecordName(stem)
    number = match["dated"] or match["number"] or ""
    kind = (match["kind"] or "").strip("-_ ").lower()
    return RecordName(stem, match["date"] or "", kind, number.lower(), match["words"] or "")


def find_reason(name: RecordName) -> str:
    """Return why a name is not that of a record; empty if it may be one."""
    words = name.words if name.number else name.stem
    plain = re.sub(
        r"^(?:adr|rfc|kep|tep|record)s?[-_ .]+(?=\w)|[-_ .](?:adr|rfc)$", "", words.lower()
    )
    parts = plain.strip("_-. ").replace("_", "-").split("-")
    if (
        _UNNUMBERED.match(name.stem.lower().removeprefix("adr-").removeprefix("rfc-"))
        or (words and record_words.find_key(plain, "template") and plain != "title")
        or (not name.number.strip("0") and "template" in (parts[0], parts[-1]))
        or (
            len(parts) == 2
            and "template" in parts
            and parts[-1 - parts.index("template")] in _VARIANTS
        )
    ):
        return "it is a template, by its name"
    if not name.number and plain == "readme":
        return "it is the README of its folder"
    if words and record_words.find_key(plain, "index"):
        return "it is an index, by its name"
    return "its name begins with an underscore" if name.stem.startswith("_") else ""


_VARIANTS = frozenset(
    {"madr", "nygard", "short", "long", "minimal", "full", "bare", "example", "adr"}
)


def _is_index(file: RecordFile, names: frozenset[str]) -> bool:
    """Return whether most lines of a text are links to other records."""
    lines = [line for line in file.text.split("\n") if line.strip() and line[:1] not in "#-:="]
    items = [line for line in file.text.split("\n") if line.lstrip()[:2] in ("- ", "* ")]
    lines = list(dict.fromkeys([*lines, *items]))
    count = 0
    for line in lines:
        targets = (link.rpartition("/")[2] for link in _LINKED.findall(line[:1_000]))
        count += any(target in names and _is_numbered(target) for target in targets)
    return count >= MIN_INDEX_LINKS and count * 5 > len(lines) * 3
