"""Judge a string by itself: drawn by a machine, typed by a person, or words and code.

It owns the measures (entropy, letter pairs, changes of character class) and the verdicts on a
value at the place of a secret. What is around the string is the business of the detectors.
"""

from __future__ import annotations

from memtool.redaction.pattern import Pattern

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


def bits(text: str) -> float:
    """Return the Shannon entropy of a string in bits for each character, 0 for an empty one."""
    from math import log2  # a shared library that few texts need

    size = len(text)
    counts = [text.count(char) for char in dict.fromkeys(text)]
    return log2(size) - sum([n * log2(n) for n in counts if n > 1]) / size if size else 0.0


def pair_share(text: str) -> float:
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
    return worded * 2 > len(text) and pair_share(text) > share


def is_camel(text: str) -> bool:
    """Return whether a string is short words and abbreviations, as class names are."""
    worded = sum(map(len, WORDED.findall(text)))
    digits = sum(map(str.isdigit, text))
    return digits < 2 and worded * 5 > len(text) * 4 and pair_share(text) > 0.3


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


PLACEHOLDER_WORDS = frozenset(
    str.split(
        "password passwd pass pwd secret token key apikey api_key changeme changeit example "
        "test testing dummy sample placeholder none null nil true false undefined required "
        "optional string str bytes text hidden masked redacted removed unset empty default "
        "user username admin root foo bar baz foobar foobar123 hunter yourpassword mypassword "
        "mysecret value todo tbd n/a na password1 postgres mysql guest rotated expired "
        "revoked unknown missing anonymous@ base64 hex generated random secretkey mytoken "
        "s3cret p4ssw0rd pa55word env vault"
    )
)
"""Values that nobody keeps secret."""

_FORMS: tuple[str, ...] = (
    (
        r"\$\{|\$\(|\$[A-Za-z_]\w*$|\$[A-Z][A-Z_]{2,}\b|\$env:|\$\$|\$\d|%[A-Z_a-z]+%|"
        r"%\(|%s|\{|<|\[|\(|\x00|@|\*|\.{2,}|…|#|"
        r"_{3,}|-{3,}|={2,}|~/|\.{1,2}/|/|[A-Za-z]:\\|\||&|\\|!\w+$|!(?:Ref|Sub|GetAtt|vault|secret)\b"
    ),
    (
        r"(?:os\.|process\.|env\.|ENV|getenv|import|self\.|cls\.|this\.|settings\.|config\.|secrets?\.|"
        r"vault[:.]|ref\+|op://|arn:|https?:|file:|keyring|kms|ssm[:.]|awskms|gcpkms|data\.|var\.|"
        r"local\.|module\.|args\.|options\.|request\.|app\.|Config\.|Settings\.)"
    ),
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$",  # an environment variable
    r"[\w.\[\]>-]*\w\($|[\w.:]+\(.*",  # a call
    r"(?P<dotted>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\[.*)?$)",  # an attribute, if made of words
    r"[A-Za-z_]\w*\[",  # a lookup
    r"[-+]?\d[\d_,.]*\s?(?:[a-zA-Z]{1,7}|%)?$",  # a number, maybe with a unit
    r"v?\d+\.\d+(?:\.\d+)*(?:[-+.][\w.-]+)?$",  # a version
    r"\d{4}-\d\d(?:-\d\d(?:[T ].*)?)?$",  # a date
    (
        r"(?i:(?:sha|md|aes|rsa|hmac|hs|rs|es|ps|argon|ed|utf|base|blake|pbkdf|oauth|tls|ssl|http|"
        r"ecdsa|curve|chacha|saml|rfc|iso|cve|gpt|python|py|node|ipv|ec|latin|"
        r"web|log|port|arm|x86|win|int|float)[-_]?\d{1,4}(?:[-_.][\w-]{0,16}|[a-z]{0,3}))$"
    ),
    r"[A-Za-z]\d{1,4}$",
    r":|--?[a-z]|[A-Za-z_][\w.]*=[\w.\[{(<$]",  # a role, a flag, a keyword
    r"(?i:hmac|pbkdf|argon|bcrypt|scrypt|aes|sha|ecdsa|ed25519|rsa)[-_][\w-]*$",
    r"(?:sha\d{1,3}|md5|h1)[-:]|\{SSHA|pbkdf2",  # a hash
    (
        r"[\w./-]+\.(?:pem|key|crt|cer|p12|pfx|jks|json|ya?ml|toml|txt|py|js|ts|tsx|go|rs|rb|java|"
        r"md|env|ini|cfg|conf|"
        r"sh|html?|css|sql|lock|log|gpg|asc|enc|age|tf|xml|php|properties|local|com|org|net|io|dev)$"
    ),
    r"[^@\s]+@[\w-]+\.[\w.]+$",  # an address
    r"[A-Za-z]+(?:::[A-Za-z]+)+",  # a type
    r"\d{1,2}:\d\d",  # a time
    r"(?:[a-z][a-z0-9-]*\.)+[a-z]{2,}/[a-z][a-z./-]*$",  # a label's key, `app.acme.io/name`
    r"(?:ssh-|AAAA[BCE]3Nza)",
)

FORM = Pattern("|".join(f"(?:{form})" for form in _FORMS))
"""Forms of placeholders, references, code, numbers, names of algorithms, files and addresses."""

UUID = Pattern(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$")
HEX = Pattern(r"(?:0x)?[0-9a-fA-F]{30,}$")
IDENTIFIER = Pattern(r"[A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)*$")
_NAME_PARTS = Pattern(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_PLACEHOLDER_STARTS = (
    "your", "example", "<", "xxx", "insert", "replace", "my-", "my_", "fake", "not-", "not_"
)  # fmt: skip
_PLACEHOLDER_ENDS = ("example", "-placeholder", "_placeholder", "_secret_name")
_BETWEEN_WORDS = Pattern(r"[ ._-]")
_NO_TOKEN = Pattern(r"[\s\"'`<>(){}\[\],;]")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder, a reference, a call, a number or a file name."""
    lower = value.lower().strip("-_.!:")
    form = FORM.match(value)
    return (
        lower in PLACEHOLDER_WORDS
        or (
            form is not None
            and (form["dotted"] is None or is_wordlike(value) or restlessness(value) < 0.4)
        )
        or is_filler(value)
        or len(set(value)) < 3
        or lower.startswith(_PLACEHOLDER_STARTS)
        or lower.endswith(_PLACEHOLDER_ENDS)
    )


def is_dense(value: str, least: int = 16) -> bool:
    """Return whether a machine drew the value: long, letters and digits mixed, no words."""
    if len(value) < least or is_placeholder(value) or not _is_ascii_token(value):
        return False
    if UUID.match(value) or HEX.match(value):
        return False
    digits = sum(char.isdigit() for char in value)
    letters = sum(char.isalpha() for char in value)
    if letters < 4 or (not digits and restlessness(value) < 0.3 and pair_share(value) > 0.35):
        return False
    return bits(value) > 2.9 and not is_wordlike(value) and not is_named(value)


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
    return pair_share(value) > 0.5 and max(map(len, words)) > 3 and restlessness(value) < 0.4


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
    return (len(value) >= 8 and pair_share(value) < 0.35) or (
        len(value) >= 10 and restlessness(value) > 0.45
    )


STOP_WORDS = frozenset(
    str.split(
        "the a an your you please enter must be is are to of not and or in for with this that "
        "it password passphrase token secret key login invalid wrong incorrect forgot reset "
        "required expired too short long changed new old minimum characters"
    )
)


def is_phrase(value: str) -> bool:
    """Return whether a value is a passphrase: four to eight plain words that make no sentence."""
    words = _BETWEEN_WORDS.split(value)
    return (
        4 <= len(words) <= 10
        and len(value) <= 100
        and all(word.isalpha() and 3 <= len(word) <= 12 for word in words)
        and not STOP_WORDS & {word.lower() for word in words}
    )


def _is_ascii_token(value: str) -> bool:
    return value.isascii() and not _NO_TOKEN.search(value)


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
