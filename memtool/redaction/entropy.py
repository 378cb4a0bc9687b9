"""How random a string looks: the measures, the verdicts on a value, and the last detector.

The measures are entropy, common letter pairs and changes of character class. They tell what a
machine drew or a person typed from words and code, and judge a value at the place of a secret;
what is around it is the business of the other detectors.

The detector finds bare strings of more than 4.0 bits a character over more than 20 characters. In
text about code class names, paths, checksums and images are that too, so a candidate must also not
read like words, not be one of the public forms, not lie in an encoded block, and not follow a word
that names it as harmless.
"""

from __future__ import annotations

from memtool.pattern import Pattern
from memtool.redaction.rows import read_list, read_patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

WORD_PAIRS = frozenset(
    str.split(
        "ab ac ad ag ai al am an ap ar as at ba be bl bu ca ce ch ck cl co ct da de di do ea "
        "ec ed ee ef el em en ep er es et ex fi fo ge ha he hi ho ic id ie if ig il im in io "
        "ir is it ke la le li ll lo ls lt ly ma me mi mo mp na nc nd ne ng ni no ns nt oc od "
        "ol om on op or os ot ou ow pa pe pl po pp pr pt ra re ri rm rn ro rr rs rt ry sc se "
        "sh si so sp ss st su ta te th ti to tr ts tt tu ty ue ul um un up ur us ut va ve wi"
    )
)
"""The 140 commonest letter pairs of code and documentation: 80 % of the pairs of words, 21 % of
the pairs of random letters."""

WORDLIKE_SHARE = 0.5
WORDED = Pattern(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}")
"""A stretch as names are made of: it covers most of a name, a quarter of random base62, and
little of hex, whose letters are common pairs otherwise."""

FILLERS = Pattern(
    r"(?i)x{4}|\*{3}|\.{3}|example|placeholder|redacted|changeme|change[_-]me|your[_-]|"
    r"my[_-](?:secret|token|key|pass)|_here\b|-here\b|dummy|0{8}|1{8}|abcdefg|12345678(?:9|$)"
)
"""Parts of a string that only shows where a secret would be."""

_CLASSES = {
    code: "0" if char.islower() else "1" if char.isupper() else "2" if char.isdigit() else "3"
    for code, char in enumerate(map(chr, range(128)))
}
"""The class of each ASCII character: lower, upper, digit, other."""


def compute_entropy(text: str) -> float:
    """Return the Shannon entropy of a string in bits for each character, 0 for an empty one."""
    from math import log2  # a shared library that few texts need

    size = len(text)
    counts = [text.count(char) for char in dict.fromkeys(text)]
    return log2(size) - sum([n * log2(n) for n in counts if n > 1]) / size if size else 0.0


def compute_pair_share(text: str) -> float:
    """Return which share of the neighbouring letters are common pairs, 0 where there are none."""
    lower = text.lower()
    pairs = [lower[at : at + 2] for at in range(len(lower) - 1)]
    if not lower.isalpha():
        pairs = [pair for pair in pairs if pair.isalpha()]
    return sum(map(WORD_PAIRS.__contains__, pairs)) / len(pairs) if pairs else 0.0


def restlessness(text: str) -> float:
    """Return which share of the neighbours are of different class: lower, upper, digit, other."""
    size = len(text)
    if size < 2:
        return 0.0
    classes = text.translate(_CLASSES)
    if not text.isascii():
        classes = "".join(c if c < "4" else "2" if c.isdigit() else "3" for c in classes)
    changes: int = sum(map(str.__ne__, classes, classes[1:]))
    return changes / (size - 1)


def is_wordlike(text: str, share: float = WORDLIKE_SHARE) -> bool:
    """Return whether a string is made of words, as names, paths and identifiers are."""
    worded = sum(map(len, WORDED.findall(text)))
    return worded * 2 > len(text) and compute_pair_share(text) > share


def is_camel(text: str) -> bool:
    """Return whether a string is short words and abbreviations, as class names are."""
    worded = sum(map(len, WORDED.findall(text)))
    digits = sum(map(str.isdigit, text))
    return digits < 2 and worded * 5 > len(text) * 4 and compute_pair_share(text) > 0.3


def is_filler(text: str) -> bool:
    """Return whether a string only shows where a secret would be."""
    if FILLERS.search(text):
        return True
    return len(text) >= 12 and len(set(text)) < 5


def is_sequence(text: str) -> bool:
    """Return whether most neighbours follow each other in the character table, as in alphabets."""
    from itertools import pairwise  # few texts need it

    codes = list(map(ord, text))
    steps = [after - before for before, after in pairwise(codes)]
    return (steps.count(1) + steps.count(-1)) * 2 > len(text)


PLACEHOLDER_WORDS = read_list("placeholders")

_HARMLESS = {
    table: "|".join(f"(?:{row['pattern']})" for row in rows)
    for table, rows in read_patterns("harmless").items()
}

FORM = Pattern(_HARMLESS["value"])
"""Forms of placeholders, references, code, numbers, names of algorithms, files and addresses."""

UUID = Pattern(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
HEX = Pattern(r"(?:0x)?[0-9a-fA-F]{30,}$")
IDENTIFIER = Pattern(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*$")
_NAME_PARTS = Pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PLACEHOLDER_STARTS = (
    "your",
    "example",
    "<",
    "xxx",
    "insert",
    "replace",
    "my-",
    "my_",
    "fake",
    "not-",
    "not_",
)
_PLACEHOLDER_ENDS = ("example", "-placeholder", "_placeholder", "_secret_name")
_BETWEEN_WORDS = Pattern(r"[ .-]")
_NO_TOKEN = Pattern(r"[\s\"'`<>(){}\[\],;]")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder, a reference, a call, a number or a file name."""
    lower = value.lower().strip("-_.!:")
    form = FORM.match(value)
    return (
        lower in PLACEHOLDER_WORDS
        or (
            form is not None
            and not (
                value[0] == "/"
                and len(value) > 30
                and value.count("/") < 5
                and compute_entropy(value) > 4.3
            )
            and not is_signed(value)
            and (form["dotted"] is None or _is_attribute(value))
        )
        or is_filler(value)
        or len(set(value)) < 3
        or (len(value) % 4 == 0 and decode_base64(value).strip().lower() in PLACEHOLDER_WORDS)
        or lower.startswith(_PLACEHOLDER_STARTS)
        or lower.endswith(_PLACEHOLDER_ENDS)
    )


def decode_base64(word: str) -> str:
    """Return the text that a word in base64 stands for, empty where it is none that can be read."""
    from binascii import Error, a2b_base64  # few values are judged

    plain = word.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = a2b_base64(plain + "=" * (-len(plain) % 4))
        text = data.decode()
    except (Error, ValueError):
        return ""
    return text if text.isascii() and text.strip().isprintable() else ""


def _is_attribute(value: str) -> bool:
    """Return whether the parts of a dotted name are names: `config.password`, not `Word.x9Yzq2`."""
    last = value.rpartition(".")[2]
    if len(last) > 4 and restlessness(last) > 0.5 and not is_wordlike(last):
        return False
    return is_wordlike(value) or restlessness(value) < 0.4


def is_signed(value: str) -> bool:
    """Return whether a value is long, of letters, digits and several signs."""
    return (
        len(value) > 24
        and sum(sign in value for sign in "!@#%^&*") > 2
        and sum(char.isdigit() for char in value) > 1
        and not any(sign in value for sign in (" ", "[", "(?", "|", "%s"))
        and not is_wordlike(value)
    )


def is_dense(value: str, least: int = 16) -> bool:
    """Return whether a machine drew the value: long, letters and digits mixed, no words."""
    if len(value) < least or is_placeholder(value):
        return False
    if is_signed(value):
        return True
    if not value.isascii() or _NO_TOKEN.search(value) or UUID.match(value) or HEX.match(value):
        return False
    digits = sum(char.isdigit() for char in value)
    letters = sum(char.isalpha() for char in value)
    if letters < 4 or (
        not digits and restlessness(value) < 0.3 and compute_pair_share(value) > 0.35
    ):
        return False
    return compute_entropy(value) > 2.9 and not is_wordlike(value) and not is_named(value)


def is_hex_or_uuid(value: str) -> bool:
    """Return whether a value is at least 30 hex digits, or a UUID; not all one digit."""
    return bool(UUID.match(value) or HEX.match(value)) and len(set(value)) > 5


def is_named(value: str) -> bool:
    """Return whether a value is an identifier of words: `reset-link`, `apiV2`, `hunter_type_3`."""
    if not IDENTIFIER.match(value):
        return False
    parts = _NAME_PARTS.findall(value)
    words = [part for part in parts if part.isalpha()]
    digits = sum(len(part) for part in parts if part.isdigit())
    if not words or digits > 4 or len(parts) > 2 + len(value) // 4:
        return False
    return (
        compute_pair_share(value) > 0.5 and max(map(len, words)) > 3 and restlessness(value) < 0.4
    )


def is_typed(value: str, least: int = 6, *, sure: bool = False) -> bool:
    """Return whether a value is a password as people make them: letters with digits or signs.

    `sure` is for values that are assigned or quoted, where a word with a number is enough.
    """
    if not least <= len(value) <= 128 or is_placeholder(value) or " " in value:
        return False
    digits = sum(char.isdigit() for char in value)
    letters = sum(char.isalpha() for char in value)
    signs = sum(not char.isalnum() and char not in "-_.'\u2019/" for char in value)
    if not letters:
        return sure and bool(signs) and digits > 3
    if signs and (digits or (len(value) >= 8 and signs < len(value) / 2)):
        return sure or bool(digits) or signs > 0
    if digits:
        if not sure and is_named(value) and ("_" in value or "-" in value) and value.islower():
            return False
        return sure or len(value) >= 8 or restlessness(value) > 0.3
    if any(sign in value for sign in "-_./"):
        return restlessness(value) > 0.45 and not is_wordlike(value)
    return (len(value) >= 8 and compute_pair_share(value) < 0.35) or (
        len(value) >= 10 and restlessness(value) > 0.45
    )


def is_numbered_phrase(value: str) -> bool:
    """Return whether a value is words and a number that signs join, as a passphrase is."""
    return " " not in value and is_phrase(value) and any(char.isdigit() for char in value)


STOP_WORDS = read_list("sentence_words")


def is_phrase(value: str) -> bool:
    """Return whether a value is a passphrase: four to ten plain words that make no sentence.

    A number may be among them.
    """
    words = [word for word in _BETWEEN_WORDS.split(value) if not word.isdigit()]
    return (
        4 <= len(words) <= 10
        and len(value) <= 100
        and all(word.isalpha() and 3 <= len(word) <= 12 for word in words)
        and not STOP_WORDS & {word.lower() for word in words}
    )


def is_mixed(value: str) -> bool:
    """Return whether it has a digit and letters, and signs or both cases, as no name has."""
    return (
        any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and (
            any(c in "!@#$%^&*+=?~" for c in value) or (not value.islower() and not value.isupper())
        )
        and not is_named(value)
        and "/" not in value
    )


def looks_like_password(value: str) -> bool:
    """Return whether a value looks like a password by itself, whatever is around it."""
    return (is_typed(value, 8) and is_mixed(value)) or is_numbered_phrase(value)


PRIVATE_KEY = "private-key"
PUBLIC_BLOCK = "public-block"
_LABEL = Pattern(r"-----BEGIN [A-Z0-9][A-Za-z0-9 ]*$")
_SECRET_LABELS = ("OpenVPN Static key V1", "OpenVPN tls-crypt-v2 client key")
_PUBLIC_LABELS = ("PUBLIC KEY", "PUBLIC KEY BLOCK", "CERTIFICATE", "SIGNATURE")
BEGIN = "-----BEGIN"
DASHES = "-----"
END = "-----END "
MAX_BLOCK = 16_000
BREAK = r"(?:(?:\\r)?\\n|[\s>|*#\"'+,;\\]){1,40}"
"""What separates the lines of a key: line ends (also escaped), indents, quotes, comments."""
LINES = (
    rf"(?:{BREAK}[A-Za-z][A-Za-z-]{{3,20}}: [^\n\\]{{0,200}}){{0,6}}"
    rf"(?:{BREAK}[A-Za-z0-9+/=]{{16,4000}}){{0,600}}"
    r"(?:\r?\n[ \t>#*+-]{0,12}[A-Za-z0-9+/]{1,15}={0,2}(?=[ \t]{0,4}(?:\r?\n|$)))?"
)

_LINES = Pattern(LINES)


def find_key_blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (label, start, end) of every BEGIN block.

    The label is `private-key`, `public-block` for what is made to be published, or `block`.
    A block without its END line ends where its base64 does, so a truncated key is found too.
    """
    at = text.find(BEGIN)
    while at >= 0:
        start = at
        at = text.find(BEGIN, start + len(BEGIN))
        close = text.find(DASHES, start + len(BEGIN), start + 90)
        label = " ".join(text[start:close].split())  # a line end of YAML may be in it
        if close < 0 or not _LABEL.match(label):
            continue
        stop = close + len(DASHES)
        limit = min(stop + MAX_BLOCK, at if at >= 0 else len(text))
        end = text.find(END, stop, limit)
        if end >= 0:
            tail = text.find(DASHES, end + len(END), end + 90)
            material = text[stop:end]
            end = tail + len(DASHES) if tail >= 0 else end + len(END)
        else:
            match = _LINES.match(text, stop, limit)
            end = match.end() if match else stop
            material = text[stop:end]
        if not ("PRIVATE KEY" in label or label.endswith(_SECRET_LABELS)):
            yield PUBLIC_BLOCK if label.endswith(_PUBLIC_LABELS) else "block", start, end
        elif sum(char.isalnum() for char in material) >= 24 and not is_filler(material[:120]):
            yield PRIVATE_KEY, start, end


MIN_LENGTH = 21
MIN_BITS = 4.0
MAX_ALIKE = 16
"""So many different characters have no more than 4 bits."""
MAX_LENGTH = 200
"""Secrets without any context are shorter; what is longer is media or a certificate."""

CANDIDATE = Pattern(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{21,}")

PUBLIC = Pattern(_HARMLESS["public"])
"""Forms that anybody may see."""

BEFORE = Pattern(
    rf"(?:(?<![a-z0-9])(?:{_HARMLESS['before']})"
    r"[\"'`*]*\s*(?:is|was|of|=|:|:=|=>|->|\||\()?\s*[\"'`*(\[{<|]*"
    r"|base64,|did:[a-z0-9]{1,12}:|\$|\|1\||\|1\|[a-z0-9+/]{20,40}=?\|)\Z"
)
"""The text before a string that is no secret."""


def has_mixed_word(text: str, _lower: str = "") -> bool:
    """Return whether a word is long enough, of enough different characters."""
    return any(len(word) >= MIN_LENGTH and len(set(word)) > MAX_ALIKE for word in text.split())


def find(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of bare strings that only chance makes."""
    encoded = [
        (first, last) for label, first, last in find_key_blocks(text) if label != PRIVATE_KEY
    ][::-1]
    for hit in CANDIDATE.finditer(text):
        start, end = hit.span()
        start += text[start] in "nrt" and text[start - 1 : start] == "\\"  # an escaped line end
        while encoded and encoded[-1][1] <= start:
            encoded.pop()
        token = text[start:end].rstrip("-/_")
        size = len(token)
        if not MIN_LENGTH <= size <= MAX_LENGTH or (token.isalpha() and restlessness(token) < 0.3):
            continue
        if len(set(token)) <= MAX_ALIKE or compute_entropy(token) <= MIN_BITS:
            continue
        if is_wordlike(token) or is_camel(token) or is_composed(token) or is_sequence(token):
            continue
        if is_filler(token) or PUBLIC.match(token.lstrip("/")):
            continue
        if _is_object_id(token) or _is_announced_as_public(text, lower, start):
            continue
        if _is_in_address(text, start) or _is_in_block(text, start, end):
            continue
        if (encoded and encoded[-1][0] <= start) or _is_encoded_text(token):
            continue
        tail = text[end : end + 2]
        padding = len(tail) - len(tail.lstrip("=")) if size == end - start else 0
        yield "high-entropy", start, start + size + padding


OBJECT_ID = Pattern(r"(?P<type>[a-z]{2,16})[_-](?:[a-z]{2,10}[_-])?[A-Za-z0-9]{8,30}$")
OBJECTS = read_list("object_prefixes")
SECRET_PARTS = read_list("secret_parts")


def _is_object_id(token: str) -> bool:
    """Return whether it is the id of a thing with its type in front, as `cus_…` and `run_…`."""
    match = OBJECT_ID.match(token)
    if match is None:
        return False
    parts = _JOINED.split(token)[:-1]
    if len(parts) == 1:
        return parts[0] in OBJECTS or (len(token) < 32 and parts[0] not in SECRET_PARTS)
    return parts[0] in OBJECTS and not SECRET_PARTS.intersection(parts)


def _is_announced_as_public(text: str, lower: str, start: int) -> bool:
    """Return whether what stands before a string says that anybody may see it."""
    before = BEFORE.search(lower, max(0, start - 40), start)
    return before is not None or _is_recipient(text, start)


def _is_recipient(text: str, start: int) -> bool:
    """Return whether a string is in the header of an encrypted file, behind its `->` or `---`."""
    line = text.rfind("\n", 0, start) + 1
    above = text.rfind("\n", 0, max(0, line - 1)) + 1
    return text.startswith(("-> ", "--- "), line) or (
        start == line and text.startswith("-> ", above)
    )


def is_composed(token: str) -> bool:
    """Return whether a string is composed of words, numbers and hashes, as paths and pod names are.

    It is not if the other parts are most of it, or if one of them has enough entropy alone.
    """
    parts = _JOINED.split(token)
    if len(parts) == 1:
        return False
    random = [part for part in parts if not _NAME_PART.match(part) and not is_wordlike(part)]
    if any(len(part) >= MIN_LENGTH and compute_entropy(part) > MIN_BITS for part in random):
        return False
    return sum(map(len, random)) * 10 < 7 * sum(map(len, parts)) or len(parts) * 6 > len(token)


_JOINED = Pattern(r"[/_+-]")
_NAME_PART = Pattern(r"(?:[A-Z]?[a-z]{2,}\d{0,3}|[A-Z]{2,}\d{0,3}|[0-9a-f]{6,}|v?\d+|x\d+)$")


def _is_in_address(text: str, start: int) -> bool:
    """Return whether the word up to here holds `://`, a host with a path, or a digest mark."""
    word = text[max(0, start - 300) : start + 2]
    word = word[max(word.rfind(mark) for mark in " \n\t\"'`<>(|") + 1 :]
    is_path = (word[:1] in "/~" and len(word) > 1) or _FILE.match(text, start) is not None
    return is_path or any(mark in word for mark in ("://", "www.", "@sha", "arn:"))


_FILE = Pattern(
    r"(?:[\w.@+-]{1,40}/){1,12}[\w.@+-]{0,80}"
    r"\.(?:m?[jt]sx?|css|json|html?|map|png|svg|woff2?|py|rb|go|rs|java|md|txt|lock|wasm)(?![\w.])"
)
"""A path that ends in the name of a file."""


def _is_encoded_text(token: str) -> bool:
    """Return whether it is base64 of plain text, as cursors and settings are."""
    from binascii import a2b_base64

    size = len(token) // 4 * 4
    decoded = a2b_base64(token[:size].replace("-", "+").replace("_", "/"))
    return len(decoded) > 12 and all(32 <= byte < 127 or byte in (9, 10, 13) for byte in decoded)


def _is_in_block(text: str, start: int, end: int) -> bool:
    """Return whether the string is a whole line of a block of such lines, as encoded media is."""
    if end - start < 48:
        return False
    first = text.rfind("\n", max(0, start - 20), start) + 1
    last = text.find("\n", end, end + 20)
    above = text[max(0, first - 20) : max(0, first - 1)].strip()
    below = text[last + 1 : last + 21] if last >= 0 else ""
    return _is_encoded(above) or _is_encoded(below.strip())


def _is_encoded(line: str) -> bool:
    if len(line) < 8 or " " in line or "\0" in line:  # blanked text was no media
        return False
    return not is_wordlike(line) and compute_entropy(line) > 2.5
