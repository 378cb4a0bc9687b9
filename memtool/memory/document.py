"""Documents: bytes of a memory file to a Memory and back, and single keys changed in place.

Reading accepts any strict YAML; writing knows one canonical form. A file that a person wrote is
never rewritten as a whole: `edit` replaces only the lines of the keys that change, and keeps the
body, the comments, the order, the line ends and the byte-order mark.
"""

from __future__ import annotations

from memtool.memory import frontmatter, schema
from memtool.memory.fields import BY_NAME, DEFAULT_CATEGORIES, order
from memtool.memory.memory import Fields, FieldValue, Memory
from memtool.memory.schema import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from memtool.memory.strict import Header

MAX_BYTES = 64 * 1024
MAX_HEADER = 16 * 1024
_ITS_OWN = frozenset({"id", "timestamp", "title"})
_MAX_KNOWN = 1 << 14


class Unreadable(ValueError):
    """The bytes are not a memory; `problems` says why, at least one of them."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems


def read(data: bytes, path: str = "", categories: Collection[str] = DEFAULT_CATEGORIES) -> Memory:
    """Read the bytes of one file.

    Raises:
        Unreadable: with every problem that was found.
    """
    text = _decode(data, path)
    fields, lines, body = _parse(text, path)
    problems = schema.find_problems(fields, lines, path, categories)
    if problems:
        raise Unreadable(problems)
    return Memory(fields=fields, body=body)


class Reader:
    """Reads many files as `read` does, and parses each distinct header line once.

    Most header lines, such as `type: decision`, occur in many files. Once a line is known to be
    canonical and valid, reading it again costs one dict lookup.
    """

    def __init__(self, categories: Collection[str] = DEFAULT_CATEGORIES) -> None:
        self._categories = categories
        self._parsed_lines: dict[str, tuple[str, FieldValue]] = {}
        """Keys and values that are in order, by the lines that say so, with NULs between them."""

    def read(self, data: bytes, path: str = "") -> Memory:
        """Read the bytes of one file.

        Raises:
            Unreadable: with every problem that was found.
        """
        return self._read_canonical(data, path) or read(data, path, self._categories)

    def _read_canonical(self, data: bytes, path: str) -> Memory | None:
        """Return a memory if its header is canonical and has no fault, else None."""
        if len(data) > MAX_BYTES or b"\0" in data or b"\n<<<<<<< " in data:
            return None
        try:
            parts = frontmatter.split_plain(data.decode())
        except UnicodeDecodeError:
            return None
        if parts is None or len(parts[0]) > MAX_HEADER:
            return None
        header, body = parts
        fields: Fields = {}
        rows = header.replace("\n  ", "\0  ").split("\n")
        rows.pop()  # what follows the last line feed
        for row in rows:
            row_reader = self._parsed_lines.get(row) or self._learn(row)
            if row_reader is None or row_reader[0] in fields:
                return None
            fields[row_reader[0]] = row_reader[1]
        is_whole = schema.is_whole(fields, path)
        return Memory(fields, body) if is_whole else None

    def _learn(self, row: str) -> tuple[str, FieldValue] | None:
        """Return the key and value of the lines of one key; None if they are not canonical.

        They are cached unless every memory has its own value.
        """
        value: FieldValue
        key, colon, value = row.partition(": ")
        if not (colon and key in BY_NAME and frontmatter.is_plain(value)):
            read = frontmatter.read(row.replace("\0", "\n") + "\n")
            if read is None:
                return None
            ((key, value),) = read[0].items()
        if not schema.is_sound(key, value, self._categories):
            return None
        if key not in _ITS_OWN:
            if len(self._parsed_lines) >= _MAX_KNOWN:
                self._parsed_lines.clear()
            self._parsed_lines[row] = key, value
        return key, value


def write(memory: Memory) -> bytes:
    """Return the canonical bytes: fields in the table's order, LF, the body unchanged."""
    return f"---\n{frontmatter.write(memory.fields)}---\n{memory.body}".encode()


def edit(data: bytes, changes: Mapping[str, FieldValue | None], path: str = "") -> bytes:
    """Return the bytes with some keys set, or removed if their value is None.

    All other lines keep their bytes. Raises Unreadable if the file cannot be read, or if no key
    would remain.
    """
    text = _decode(data, path)
    header, body = _split_strictly(text, path)
    newline = "\r\n" if "\r\n" in header else "\n"
    spans = _read_strictly(header, path).spans
    rows = header.split("\n")
    for key in sorted(changes, key=order, reverse=True):
        value = changes[key]
        new = [] if value is None else frontmatter.write_key(key, value).split("\n")[:-1]
        new = [row + newline[:-1] for row in new]
        if key in spans:
            first, last = spans[key]
        else:
            before = [spans[other][1] for other in spans if order(other) < order(key)]
            first = max(before, default=1) + 1
            last = first - 1
        rows[first - 1 : last] = new
        spans = _read_strictly("\n".join(rows), path).spans
    opening = text[: len(text) - len(body)]
    start = opening.index(header)
    edited = opening[:start] + "\n".join(rows) + opening[start + len(header) :] + body
    mark = data[:3] if data.startswith(b"\xef\xbb\xbf") else b""
    return mark + edited.encode()


def read_fields(data: bytes, path: str = "") -> Fields:
    """Return the fields of a file, whatever the field table says.

    Raises:
        Unreadable: it holds no frontmatter, or none that is strict YAML.
    """
    return _parse(_decode(data, path), path)[0]


def read_field_lines(data: bytes, path: str = "") -> tuple[Fields, dict[str, str]]:
    """Return the fields of a file and the lines of each key, whatever the field table says.

    Raises:
        Unreadable: its header is not strict YAML.
    """
    header, _body = _split_strictly(_decode(data, path), path)
    read = _read_strictly(header, path)
    rows = header.split("\n")
    return read.fields, {
        key: "\n".join(rows[first - 1 : last]) for key, (first, last) in read.spans.items()
    }


def _decode(data: bytes, path: str) -> str:
    if len(data) > MAX_BYTES:
        message = f"{len(data):,} bytes, the limit is {MAX_BYTES:,}"
        hint = "split it, or put the long text into a file and cite that as the source"
        raise _unreadable(path, 1, "too-large", message, hint)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise _unreadable(path, line, "not-utf8", "it holds NUL bytes", "save it as UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        hint = "save it as UTF-8"
        raise _unreadable(path, line, "not-utf8", "it is not UTF-8 text", hint) from None
    return text.removeprefix("\ufeff")


def _parse(text: str, path: str) -> tuple[Fields, dict[str, int], str]:
    first = 0 if text.startswith("<<<<<<< ") else text.find("\n<<<<<<< ")
    if first >= 0 and "\n>>>>>>> " in text:
        line = text.count("\n", 0, first + 1) + 1
        hint = "memtool resolve settles keys such as status; or keep one side, then git add it"
        raise _unreadable(path, line, "conflict-markers", "a merge is unfinished here", hint)
    parts = frontmatter.split_plain(text)
    if parts is not None and len(parts[0]) <= MAX_HEADER:
        fields = frontmatter.read(parts[0])
        if fields is not None:
            return fields[0], fields[1], parts[1]
    header, body = _split_strictly(text, path)
    read = _read_strictly(header, path)
    return read.fields, {key: span[0] for key, span in read.spans.items()}, body


def _split_strictly(text: str, path: str) -> tuple[str, str]:
    from memtool.memory import strict  # PyYAML: three interpreter starts

    parts = strict.split(text)
    if parts is None:
        message = "it does not start with a block between two lines of ---"
        hint = "start the names of other files with _ or README"
        raise _unreadable(path, 1, "no-frontmatter", message, hint)
    header, body = parts
    if len(header) > MAX_HEADER:
        message = f"the frontmatter has {len(header):,} characters, the limit is {MAX_HEADER:,}"
        raise _unreadable(path, 1, "too-large", message)
    return header, body


def _read_strictly(header: str, path: str) -> Header:
    from memtool.memory import strict

    try:
        return strict.read_header(header)
    except strict.NotStrict as error:
        message = f"the frontmatter cannot be read: {error}"
        hint = "quote the value, or write it on one line"
        raise _unreadable(path, error.line, "bad-yaml", message, hint) from None


def _unreadable(path: str, line: int, code: str, message: str, hint: str = "") -> Unreadable:
    return Unreadable([Problem(path, line, code, message, hint)])
