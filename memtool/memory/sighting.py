"""The record of the code at the time of a check: the line `checked.saw`, and how it is compared.

A squash, a rebase or an amend throws away the commits and blobs that a memory was checked against.
The line holds what a later verdict needs:

    PATH=BLOB               the first 12 digits of the file's blob
    PATH@COMMIT=BLOB        the same for a source that names a commit, by 10 digits of it
    …=BLOB#L5-L7=DIGEST     and a digest of cited lines; DIGEST.2 counts the lines that are not
                            blank, if some are
    names=BITS.COUNT        hexadecimal; bit n: the n-th of COUNT names in the text was in one of
                            the files
    COMMIT=SECOND           the author time of a cited commit, which rebase and amend keep; 0 if an
                            earlier commit has the same second
    files=DIGEST            instead of the files, if there are too many

Blanks, `%`, `=`, `#` and `@` of a path are written as `%20` and the like.
"""

from __future__ import annotations

import posixpath
from zlib import crc32

from memtool.memory import drift as rules
from memtool.value import HEX, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.memory.memory import Memory

    Lines = tuple[int, int]
    """The first and last line of a range, from 1."""

BLOB_DIGITS = 12
COMMIT_DIGITS = 10
MAX_FILES = 8
MAX_CHARACTERS = 450
_NAMES, _FILES = "names", "files"
_ESCAPED = "% =#@"
_PRIME, _BASE = (1 << 61) - 1, 1_000_003


class SeenLines(Value):
    """Cited lines as they were: `filled` of them are not blank, and `digest` is of these."""

    first: int
    last: int
    filled: int
    digest: str


class SeenFile(Value):
    """A file as it was: the first digits of its blob, and its lines that were cited."""

    blob: str
    lines: tuple[SeenLines, ...] = ()


class SeenNames(Value):
    """Which names of a memory's text were in its files: a bit for each, and their number.

    If the text now has another number of names, it was redacted, and the bits mean nothing.
    """

    bits: int
    count: int

    def filter(self, names: Sequence[str]) -> list[str]:
        """Return those of the names of the text that stood in one of the files."""
        if len(names) != self.count:
            return []
        return [name for number, name in enumerate(names) if self.bits >> number & 1]


class Sighting(Value):
    """The parsed record. `files` is by path, or by path and `@COMMIT`.

    `names` is None if no names were looked up; `seconds` is by the first digits of a commit;
    `files_digest` stands for too many files to list.
    """

    files: dict[str, SeenFile]
    names: SeenNames | None
    seconds: dict[str, int]
    files_digest: str = ""

    def find_second(self, commit: str) -> int | None:
        """Return when a cited commit was authored, 0 if that is not its own, None if unrecorded."""
        return self.seconds.get(commit[:COMMIT_DIGITS])

    def find_file(self, path: str, commit: str = "") -> SeenFile | None:
        """Return a recorded file; None if it is not recorded."""
        return self.files.get(f"{path}@{commit[:COMMIT_DIGITS]}" if commit else path)


NOTHING_SEEN = Sighting({}, None, {})


def parse_sighting(memory: Memory) -> Sighting:
    """Parse the record of a memory; it is empty if there is none, or if it is broken."""
    line = memory.table("checked").get("saw", "")
    try:
        return parse(line) if line else NOTHING_SEEN
    except ValueError:
        return NOTHING_SEEN


def parse(line: str) -> Sighting:
    """Parse the line. Raises ValueError with the fault as a clause."""
    files: dict[str, SeenFile] = {}
    seconds: dict[str, int] = {}
    names, digest = None, ""
    for token in line.split():
        key, equals, value = token.partition("=")
        if not equals or not key or not value:
            raise ValueError(f"{token!r} is not PATH=BLOB, COMMIT=SECOND or names=BITS.COUNT")
        if key == _NAMES:
            bits, _dot, count = value.partition(".")
            if not (count.isascii() and count.isdigit() and len(count) < 4):
                raise ValueError(f"{token!r} does not say how many names there were")
            names = SeenNames(int(_parse_hex(token, bits), 16), int(count))
        elif key == _FILES:
            digest = _parse_hex(token, value, BLOB_DIGITS)
        elif len(key) <= COMMIT_DIGITS and set(key) <= HEX and len(value) < BLOB_DIGITS:
            if not (value.isascii() and value.isdigit()):
                raise ValueError(f"{token!r} names no second")
            seconds[key] = int(value)
        else:
            path, file = _parse_file(token, key, value)
            files[path] = file
    return Sighting(files, names, seconds, digest)


def _parse_file(token: str, key: str, value: str) -> tuple[str, SeenFile]:
    path, _at, commit = key.partition("@")
    if commit:
        _parse_hex(token, commit)
    blob, *ranges = value.split("#")
    lines = tuple(_parse_range(token, text) for text in ranges)
    name = _unescape(path) + (f"@{commit}" if commit else "")
    return name, SeenFile(_parse_hex(token, blob, BLOB_DIGITS), lines)


def _parse_range(token: str, text: str) -> SeenLines:
    span, _equals, digest = text.partition("=")
    first, _dash, last = span.partition("-")
    digest, dot, filled = digest.partition(".")
    numbers = [first[1:], last[1:], filled or "1"]
    is_sound = first[:1] == last[:1] == "L" and all(
        text.isascii() and text.isdigit() and len(text) < 10 for text in numbers
    )
    begin, end, count = map(int, numbers) if is_sound else (0, 0, 0)
    count = count if dot else end - begin + 1
    if not 0 < begin <= end or not 0 < count <= end - begin + 1:
        raise ValueError(f"{token!r} names no lines")
    return SeenLines(begin, end, count, _parse_hex(token, digest, 8))


def _parse_hex(token: str, text: str, digits: int = 0) -> str:
    if not text or not set(text) <= HEX or (digits and len(text) != digits):
        raise ValueError(f"{token!r} holds no digest of {digits or 'hexadecimal'} digits")
    return text


def render(sighting: Sighting) -> str:
    """Format the line. One that is too long has the digest of the files, and fewer commits."""
    files = [_format_file_token(path, file) for path, file in sighting.files.items()]
    digest = sighting.files_digest
    if len(files) > MAX_FILES or sum(len(token) + 1 for token in files) > MAX_CHARACTERS:
        files, digest = [], digest_files({p: f.blob for p, f in sighting.files.items()})
    tokens = [f"{_FILES}={digest}"] if digest else files
    if sighting.names is not None:
        tokens.append(f"{_NAMES}={sighting.names.bits:x}.{sighting.names.count}")
    size = sum(len(token) + 1 for token in tokens)
    for commit, second in sighting.seconds.items():
        token = f"{commit}={second}"
        size += len(token) + 1
        tokens += [token] if size <= MAX_CHARACTERS else []
    return " ".join(tokens)


def _format_file_token(path: str, file: SeenFile) -> str:
    plain, at, commit = path.rpartition("@")
    is_pinned = bool(at) and 4 <= len(commit) <= COMMIT_DIGITS and set(commit) <= HEX
    name = f"{_escape(plain)}@{commit}" if is_pinned else _escape(path)
    name = f"./{name}" if name in (_NAMES, _FILES) else name
    return f"{name}={file.blob}" + "".join(
        f"#L{seen.first}-L{seen.last}={seen.digest}"
        + (f".{seen.filled}" if seen.filled != seen.last - seen.first + 1 else "")
        for seen in file.lines
    )


def digest_files(blobs: Mapping[str, str]) -> str:
    """Return the digest of files by path, of the first digits of their blobs."""
    from memtool.value import digest  # few memories name so many files

    rows = (f"{path}\0{oid[:BLOB_DIGITS]}\n" for path, oid in sorted(blobs.items()))
    return digest("".join(rows).encode(), BLOB_DIGITS // 2)


def _escape(path: str) -> str:
    return "".join(f"%{ord(char):02x}" if char in _ESCAPED else char for char in path)


def _unescape(path: str) -> str:
    for char in reversed(_ESCAPED):
        path = path.replace(f"%{ord(char):02x}", char)
    return posixpath.normpath(path)


def digest_lines(rows: Sequence[str], lines: Lines) -> SeenLines | None:
    """Return the digest of cited lines; None if all of them are blank.

    `rows` are the lines of the text, as `drift.strip_lines` returns them.
    """
    first, last = lines
    filled = [row for row in rows[first - 1 : last] if row]
    if last > len(rows) or not filled:
        return None
    return SeenLines(first, last, len(filled), _clip(next(_roll_hashes(filled, len(filled)))))


def find_lines(rows: Sequence[str], seen: SeenLines) -> Lines | None:
    """Return the position of cited lines in a text, if they are together; None if not.

    Blank lines between them do not count. Of several positions it is the nearest.
    """
    begin, end = seen.first - 1, seen.last
    own = [row for row in rows[begin:end] if row]
    if len(own) == seen.filled and _clip(next(_roll_hashes(own, seen.filled))) == seen.digest:
        return seen.first, seen.last
    filled = [number for number, row in enumerate(rows) if row]
    starts = (
        at
        for at, value in enumerate(_roll_hashes([rows[number] for number in filled], seen.filled))
        if _clip(value) == seen.digest
    )
    spans = ((filled[at], filled[at + seen.filled - 1]) for at in starts)
    first, last = min(spans, key=lambda span: (abs(span[0] - begin), span), default=(-1, -1))
    return None if first < 0 else (first + 1, last + 1)


def _clip(value: int) -> str:
    return f"{value & 0xFFFFFFFF:08x}"


def _roll_hashes(rows: Sequence[str], count: int) -> Iterator[int]:
    """Yield a hash of each run of `count` lines (Rabin and Karp 1987), of the CRC-32 of each.

    The time grows with the number of lines alone.
    """
    if count > len(rows):
        return
    values = [crc32(row.encode(errors="surrogatepass")) for row in rows]
    value, top = 0, pow(_BASE, count - 1, _PRIME)
    for at, own in enumerate(values):
        if at >= count:
            value = (value - values[at - count] * top) % _PRIME
        value = (value * _BASE + own) % _PRIME
        if at >= count - 1:
            yield value


def record_names(names: Sequence[str], texts: Iterable[str]) -> SeenNames:
    """Record which names occur in one of some texts."""
    all_texts = list(texts)
    is_held = [any(rules.holds(text, name) for text in all_texts) for name in names]
    bits = sum(1 << number for number, is_there in enumerate(is_held) if is_there)
    return SeenNames(bits, len(names))
