"""Commit messages: the trailers that memtool writes and reads, the pull request, co-authors.

A forge that squashes a branch puts the messages of its commits into the middle of a new one:
unchanged, indented, or as list items. So a trailer counts on any line below the subject, unless it
is quoted.
"""

from __future__ import annotations

from memtool.memory import ids
from memtool.memory.schema import is_id
from memtool.value import HEX, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.store.git import Git

MEMORY_ID = "Memory-Id"
"""The memories that a commit is about."""
SUPERSEDES = "Supersedes"
"""The memories that the commit's memories replace."""
PROPOSES = "Proposes"
"""The memories that the commit's candidates would replace once confirmed."""
UPHOLDS = "Upholds"
"""The memories that a change of code complies with."""
PURGES = "Purges"
"""The memories that a commit removes for good."""
UNDOES = "Undoes"
"""The commit that an undo reverts."""
REASON = "Reason"
"""The author's reason."""
MAINTAIN = "Maintain"
"""The kind of maintenance that a commit does."""
FORMAT = "Memory-Format"
"""The format to which a commit migrates the memories."""
_IDS = (MEMORY_ID, SUPERSEDES, PROPOSES, UPHOLDS, PURGES)
_KEYS = {key.lower(): key for key in (*_IDS, UNDOES, REASON, MAINTAIN, FORMAT)}
_CO_AUTHOR = "co-authored-by"
_BULLETS = ("* ", "- ")
MAX_LINE_CHARS = 100
"""Characters of a line of a message; commitlint refuses longer ones."""
MAX_NAMED_MEMORIES = 200
"""Memories in a trailer; the diff of the commit shows the others."""
_OBJECT_ID_DIGITS = (40, 64)
"""Digits of SHA-1 and SHA-256 ids."""
_IN_SUBJECT = r"Merge pull request #([0-9]{1,12})\b|.*\((?:#|pull request #)([0-9]{1,12})\)$"
_IN_BODY = (
    r"(?m)^[ \t]*(?:See merge request \S*!([0-9]{1,12})\b"
    r"|(?i:Reviewed-on): *https?://\S*/([0-9]{1,12})/?[ \t\r]*$)"
)

Trailers = tuple[tuple[str, str], ...]


class LoggedMessage(Value):
    """The message of a commit in a log, with the commit's second and the author's name."""

    commit: str
    second: int
    author: str
    text: str


def compose(subject: str, trailers: Mapping[str, str], body: str = "") -> str:
    """Return a commit message with subject, body and trailers."""
    # A line feed in a value would start another trailer.
    lines = [f"{key}: {' '.join(value.split())}" for key, value in trailers.items()]
    body_lines = body.strip("\n").split("\n") if body.strip("\n") else []
    parts = ([" ".join(subject.split())], map(_fold, body_lines), map(_fold, lines))
    texts = ("".join(f"{line}\n" for line in part) for part in parts)
    return "\n".join(filter(None, texts))


def _fold(line: str) -> str:
    """Break a long line between words, with the following lines indented.

    No line begins with a word that a reader would take for a bullet or the key of a trailer.
    """
    if len(line) <= MAX_LINE_CHARS:
        return line
    units: list[str] = []
    for word in line.split(" "):
        if units and (":" in word or word in ("-", "*", "")):
            units[-1] += f" {word}"
        else:
            units.append(word)
    rows = [units[0]]
    for unit in units[1:]:
        if len(rows[-1]) + len(unit) < MAX_LINE_CHARS:
            rows[-1] += f" {unit}"
        else:
            rows.append(f"  {unit}")
    return "\n".join(rows)


def is_own_key(key: str) -> bool:
    """Return whether a key is that of a trailer which memtool writes and reads."""
    return key.lower() in _KEYS


def name_memories(ids: Sequence[str]) -> str:
    """Return the value of a trailer that names memories; of many it names the first."""
    return ", ".join(ids[:MAX_NAMED_MEMORIES])


def parse_trailers(message: str) -> Trailers:
    """Return memtool's trailers in a message, in order, with the canonical spelling of keys.

    Trailers with malformed ids are left out; the value of `Undoes` has full commit ids.
    """
    return tuple(
        (_KEYS[key], value)
        for key, value in _parse_pairs(message)
        if key in _KEYS and _is_valid(_KEYS[key], value)
    )


def find_values(trailers: Trailers, key: str) -> tuple[str, ...]:
    """Return the distinct ids of memories or commits in the trailers of one key."""
    names = (name for own, value in trailers if own == key for name in split_names(value))
    return tuple(dict.fromkeys(names))


def split_names(value: str) -> tuple[str, ...]:
    """Split a value at commas and spaces."""
    return tuple(value.replace(",", " ").split())


def filter_trailers(trailers: Trailers, memories: Iterable[str]) -> Trailers:
    """Return the trailers of the commits that name one of some memories, by id.

    In a squashed message a new commit starts at each `Memory-Id`. With at most one of these, all
    trailers belong to a single commit and are returned.
    """
    commits: list[list[tuple[str, str]]] = [[]]
    for key, value in trailers:
        if key == MEMORY_ID and any(own == MEMORY_ID for own, _value in commits[-1]):
            commits.append([])
        commits[-1].append((key, value))
    if len(commits) == 1:
        return trailers
    wanted = set(memories)
    return tuple(
        pair
        for commit in commits
        if any(not wanted.isdisjoint(find_values(tuple(commit), key)) for key in _IDS)
        for pair in commit
    )


def find_reason(trailers: Trailers) -> str:
    """Return the last reason in trailers; empty if there is none."""
    return next((value for key, value in reversed(trailers) if key == REASON), "")


def find_pull_request(message: str) -> str:
    """Return the pull request of a commit, such as `#12` or `!12`; empty if none is named."""
    import re  # only needed to show a commit

    subject, _end, body = message.strip().partition("\n")
    match = re.match(_IN_SUBJECT, subject.strip())
    if match:
        return f"#{match[1] or match[2]}"
    numbers = re.findall(_IN_BODY, body)
    if not numbers:
        return ""
    merge_request, review = numbers[-1]
    return f"!{merge_request}" if merge_request else f"#{review}"


def find_co_authors(message: str, author: str, email: str) -> tuple[str, ...]:
    """Return the distinct names of co-authors, in order, without the author."""
    seen, names = {author.casefold(), email.casefold()}, []
    for key, value in _parse_pairs(message):
        name, opening, address = (part.strip(" >") for part in value.partition("<"))
        if key != _CO_AUTHOR or not (opening and name and name.isprintable()):
            continue
        own = {name.casefold(), address.casefold()}
        if own.isdisjoint(seen):
            names.append(name)
        seen |= own
    return tuple(names)


def log_messages_with(git: Git, key: str, *arguments: str) -> Iterator[LoggedMessage]:
    """Yield the messages that may have a trailer of a key, newest first.

    `arguments` are those of git log.

    Raises:
        MemtoolError: git refuses.
    """
    rows = git.rows(
        "log",
        "-z",
        "--regexp-ignore-case",
        "--fixed-strings",
        "--all-match",
        f"--grep={key}:",
        "--format=%H %ct %an%n%B",
        *arguments,
    )
    for row in rows:
        names, _line, text = row.decode(errors="replace").partition("\n")
        commit, second, author = names.split(" ", 2)
        yield LoggedMessage(commit, int(second), author, text)


def read_purged_ids(git: Git, *arguments: str) -> frozenset[str]:
    """Return the ids of purged memories in commit messages; `arguments` are those of git log."""
    return frozenset(
        name
        for logged in log_messages_with(git, PURGES, *arguments)
        for name in find_values(parse_trailers(logged.text), PURGES)
    )


def _parse_pairs(message: str) -> Iterator[tuple[str, str]]:
    """Yield key (in lower case) and value of each line below the subject that looks like a trailer.

    Lines that are indented further than the key continue the value.
    """
    lines = message.strip().splitlines()[1:]
    at = 0
    while at < len(lines):
        item = _strip_bullet(lines[at])
        column = len(lines[at]) - len(item)
        key, colon, value = item.partition(":")
        at += 1
        if not colon or not key or " " in key:
            continue
        parts = [value.strip()]
        while at < len(lines) and _is_continuation(lines[at], column):
            parts.append(lines[at].strip())
            at += 1
        yield key.lower(), " ".join(parts)


def _strip_bullet(line: str) -> str:
    """Remove indentation and list bullet from a line."""
    text = line.lstrip()
    return text[2:].lstrip() if text.startswith(_BULLETS) else text


def _is_continuation(line: str, column: int) -> bool:
    """Return whether a line continues a value whose key starts at a column, counted from 0."""
    text = line.lstrip()
    name = text.partition(":")[0].lower()
    return (
        bool(text)
        and len(line) - len(text) > column
        and not text.startswith(_BULLETS)
        and name not in _KEYS
        and name != _CO_AUTHOR
    )


def _is_valid(key: str, value: str) -> bool:
    names = split_names(value)
    if key in _IDS:
        return bool(names) and all(is_id(ids.without_commit(name)) for name in names)
    if key == UNDOES:
        return bool(names) and all(
            len(name) in _OBJECT_ID_DIGITS and HEX.issuperset(name) for name in names
        )
    return bool(value)
