"""Which commits are events, and what an agent would be asked: rules without a model.

An event is a commit without merges that names one to three records which exist at its parent, and
changes 1 to 40 files of code. A neutral commit names none, whatever it touches. Commits with a
cosmetic title, and repeats of a title, are left out.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from history import HERE, Commit, History, Source, read_not_code

PINS = HERE / "pins.tsv"
MAX_NAMED = 3
MAX_CODE_FILES = 40
MAX_EVENTS = 30
MAX_NEUTRAL = 6
"""The caps of a repository."""
MAX_OF_RECORD = 4
"""The events of a repository about one record, which may be a single series of commits."""
MIN_RECORDS = 3
"""Records that a repository has at the parent of a neutral commit."""
MIN_TITLE_WORDS = 2
MAX_PROMPT_CHARS = 1_500
HEAD = "repository\tcommit\tparent\tids"

_COSMETIC = re.compile(
    r"\b(typos?|spelling|grammar|lint\w*|format(ting)?|gofmt|whitespace|changelog|backport(ed)?|"
    r"(dead|broken|fix|update) links?|bump|cherry[- ]pick(ed)?|renumber\w*|version packages|"
    r"merge (branch|conflicts|main|master|origin|pull))\b",
    re.IGNORECASE,
)
_FORM = re.compile(r"(docs?|style|release)\b[^:]*:", re.IGNORECASE)
_TOPIC = re.compile(r"^[\w-]+(\([^)]*\))?!?:")
_CHECKLIST = re.compile(
    r"^\W*((author|contributor|merge|pr|pull request|reviewers?)['s]* )?checklist\b.*",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_TASK = re.compile(r"^\s*[-*] \[[ xX]\] .*$", re.MULTILINE)
"""Of the template of a pull request, which says nothing about the change."""
_TRAILER = re.compile(
    r"(?:[A-Za-z]+(?:-[A-Za-z]+)*-(?:by|id|on)|clos(?:es?|ed)|fix(?:es|ed)?|resolv(?:es?|ed)|"
    r"refs?|references|related|part of|see|bead|issue|links?|change-id|upholds|cc)"
    r"(?:\s*:|\s+#\d|\s+https?:).*$",
    re.IGNORECASE,
)
_URL = re.compile(r"<?https?://[^\s)>\]]+>?")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_PULL = re.compile(r"\([^()\n]*#\d+\)|(?<![\w/])#\d+\b")
_EMPTY = re.compile(r"[\[({<`\"'*]+[\s,;:&/+-]*[\])}>`\"'*]+")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True)
class Pin:
    """A commit that is replayed; `numbers` of the records that it names, none if it is neutral."""

    repository: str
    commit: str
    parent: str
    numbers: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """What its place in the order depends on: a hash, so that a sample is no choice."""
        return hashlib.sha256(self.commit.encode()).hexdigest()


class Naming:
    """How messages of a repository name its records, and which of its files are code."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._not_code = read_not_code()
        self._number = re.compile(source.number)
        self._named = re.compile(
            rf"(?<![A-Za-z0-9]){source.word}s?[-_ #]{{0,2}}0*(\d{{1,5}})(?![\d.]\d|\w)",
            re.IGNORECASE,
        )
        self._file = re.compile(r"[\w./+-]*[\w+-]\.(?:md|rst|html)\b")
        self.mention = re.compile(
            rf"(?<![A-Za-z0-9])(?:{source.word}s?[-_ #]{{0,2}}0*\d{{1,5}}(?!\w))", re.IGNORECASE
        )

    def find_number(self, path: str) -> int:
        """Return the number of a record by the name of its file, -1 if it has none."""
        folder, name = posixpath.split(path)
        if self.source.nested:
            name = f"{posixpath.basename(folder)}.md" if name == "README.md" else ""
        match = self._number.match(name)
        return int(match[1]) if match and name.endswith(".md") else -1

    def index(self, paths: Iterable[str]) -> dict[int, str]:
        """Return the path of each record by its number; a number of two records is left out."""
        by_number: dict[int, list[str]] = {}
        for path in paths:
            by_number.setdefault(self.find_number(path), []).append(path)
        return {
            number: files[0]
            for number, files in by_number.items()
            if number >= 0 and len(files) == 1
        }

    def find_named(self, commit: Commit) -> set[int]:
        """Return the numbers that a message names, other than by a path that the commit edits."""
        edited = {part for path in commit.paths for part in (path, posixpath.basename(path))}
        files = [name for name in self._file.findall(commit.message) if name not in edited]
        text = self._file.sub(" ", commit.message)
        numbers = {int(number) for number in self._named.findall(text)}
        folders = self.source.folders
        in_folders = (name for name in files if any(folder in name for folder in folders))
        return numbers | {number for name in in_folders if (number := self.find_number(name)) >= 0}

    def is_code(self, path: str) -> bool:
        """Return whether a path is neither documentation nor generated, locked or configured."""
        *folders, name = path.lower().split("/")
        excluded = (*self.source.not_code, *self.source.folders)
        is_excluded = path.startswith(tuple(f"{folder}/" for folder in excluded))
        return not (
            is_excluded
            or name in self._not_code.names
            or name.endswith(self._not_code.endings)
            or self._not_code.folders.intersection(folders)
        )

    def code_files(self, commit: Commit) -> list[str]:
        """Return the files of code that a commit changes, by path."""
        return sorted(filter(self.is_code, commit.paths))

    def clean(self, text: str) -> str:
        """Return a text without names of records, links, trailers and numbers of pull requests."""
        text = _COMMENT.sub(" ", text.replace("\r\n", "\n"))
        text = _TASK.sub("", _CHECKLIST.sub("", text))
        rows = [row for row in text.split("\n") if not _TRAILER.match(row.strip(" *-\t"))]
        text = _LINK.sub(r"\1", "\n".join(rows))
        for pattern in (_URL, self._file, self.mention, _PULL):
            text = pattern.sub(" ", text)
        for _nested in range(2):
            text = _EMPTY.sub(" ", text)
        lines = (re.sub(r"\s+", " ", row).strip() for row in text.split("\n"))
        lines = (re.sub(r"^[\s:,.;-]+(?=\w)|(?<=:) :", "", row) for row in lines)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def title(self, message: str) -> str:
        """Return the first line of a message as a prompt."""
        return self.clean(message.strip().split("\n", 1)[0]).strip(" :-")

    def prompt(self, message: str) -> str:
        """Return a message as a prompt."""
        return self.clean(message.strip())[:MAX_PROMPT_CHARS].strip()


def is_cosmetic(title: str) -> bool:
    """Return whether a title is about form or documentation, or has next to no words."""
    if _COSMETIC.search(title) or _FORM.match(title):
        return True
    words = re.findall(r"[^\W\d]{3,}", _TOPIC.sub("", title))
    return len(words) < MIN_TITLE_WORDS


def find_records(
    naming: Naming, history: History, records: History, parent: str, moment: int
) -> dict[int, str]:
    """Return the paths of the records that exist before a commit, by number."""
    revision = parent if records is history else records.find_before(moment)
    folders = naming.source.folders
    return naming.index(records.list_files(revision, folders)) if revision else {}


def find_events(source: Source, history: History, records: History) -> list[Pin]:
    """Return the events and the neutral commits of a history, each capped, in the order of hash."""
    naming = Naming(source)
    commits = [commit for commit in history.read_commits("HEAD") if len(commit.parents) == 1]
    named = {commit.oid: numbers for commit in commits if (numbers := naming.find_named(commit))}
    pins: dict[bool, list[Pin]] = {True: [], False: []}
    titles: set[str] = set()
    counts: Counter[int] = Counter()
    order = sorted(commits, key=lambda commit: Pin("", commit.oid, "").key)
    caps = {True: MAX_EVENTS, False: MAX_NEUTRAL}
    for commit in order:
        is_event = commit.oid in named
        if len(pins[is_event]) == caps[is_event]:
            continue
        title = naming.title(commit.message)
        if is_cosmetic(title) or title in titles:
            continue
        if not 1 <= len(naming.code_files(commit)) <= MAX_CODE_FILES:
            continue
        parent = commit.parents[0]
        index = find_records(naming, history, records, parent, commit.moment)
        numbers = sorted(named.get(commit.oid, set()) & index.keys())
        is_right = 1 <= len(numbers) <= MAX_NAMED if is_event else len(index) >= MIN_RECORDS
        is_series = is_event and all(counts[number] >= MAX_OF_RECORD for number in numbers)
        if is_right and not is_series:
            counts.update(numbers)
            titles.add(title)
            pins[is_event].append(Pin(source.name, commit.oid, parent, tuple(numbers)))
    return [*pins[True], *pins[False]]


def format_pins(pins: Iterable[Pin]) -> str:
    """Return the rows of `pins.tsv`."""
    rows = (
        f"{pin.repository}\t{pin.commit}\t{pin.parent}\t{','.join(map(str, pin.numbers))}"
        for pin in pins
    )
    return "".join(f"{row}\n" for row in (HEAD, *rows))


def parse_pins(text: str) -> list[Pin]:
    """Return the commits of a `pins.tsv`, in its order."""
    pins = []
    for row in text.split("\n")[1:]:
        if row:
            repository, commit, parent, ids = row.split("\t")
            pins.append(
                Pin(repository, commit, parent, tuple(map(int, filter(None, ids.split(",")))))
            )
    return pins


def iter_sample(pins: Iterable[Pin], limit: int | None, neutral: int | None) -> Iterator[Pin]:
    """Yield the first events and neutral commits of each repository."""
    counts: dict[tuple[str, bool], int] = {}
    caps: Mapping[bool, int | None] = {True: limit, False: neutral}
    for pin in pins:
        key = (pin.repository, bool(pin.numbers))
        counts[key] = counts.get(key, 0) + 1
        cap = caps[bool(pin.numbers)]
        if cap is None or counts[key] <= cap:
            yield pin


def read_pins(path: Path = PINS) -> list[Pin]:
    """Return the commits of a file of pins."""
    return parse_pins(path.read_text())
