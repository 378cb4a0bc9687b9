"""Secrets that only the words next to them give away: `the admin password is …`, `API_KEY=…`.

An announcing word is found first; then one anchored look to the right, over at most 60 characters,
and one to the left. Every repeat is bounded, and so is the work for each word, so a text full of
them is linear. Below a heading of a table that announces secrets each cell is looked at.
"""

from __future__ import annotations

from itertools import islice

from memtool import tables
from memtool.pattern import Pattern
from memtool.redaction.columns import find_cells
from memtool.redaction.entropy import (
    MIN_BITS,
    compute_entropy,
    is_composed,
    is_dense,
    is_hex_or_uuid,
    is_mixed,
    is_named,
    is_numbered_phrase,
    is_phrase,
    is_signed,
    is_typed,
    is_wordlike,
    looks_like_password,
    restlessness,
)
from memtool.redaction.rows import read_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match

    Span = tuple[int, int]
    """Start and end of a value."""

_ROWS = tables.read_rows("redaction/announcing_words")

ANNOUNCING = tuple(dict.fromkeys(part for row in _ROWS for part in row[2].split("|")))
"""A part of every announcing word: a text without any of these has no such word."""
_ASCII_PARTS = tuple(filter(str.isascii, ANNOUNCING))


def _list_words(group: str) -> str:
    return "|".join(pattern for name, pattern, _parts, _example in _ROWS if name == group)


PERSON_WORDS = _list_words("person")
SHORT_PERSON_WORDS = (
    rf"(?<![a-z0-9+/])(?:{_list_words('short')})(?![a-z0-9+/])|(?<=-)[a-z]{{2,12}}pass(?![a-z0-9])"
    r"|(?<![a-z])(?!by|com|encom|over|sur|tres|under)[a-z]{2,12}pass(?=\s?[(=:])"
)
MACHINE_WORDS = _list_words("machine")
FOREIGN_WORDS = _list_words("foreign")

SURE_KEYS = read_list("sure_keys")

NOT_SECRET_BEFORE = read_list("harmless_before")
PUBLISHED = frozenset(("pub", "public", "publishable", "verification", "verify", "without", "no"))
"""Words of these that make also a named key harmless: `public api key`."""

HOLDERS = frozenset(("config", "json", "yaml", "object", "dict", "host", "input"))
"""Words of these that a dot follows hold what is named behind it: `config.secret_key`."""

NOT_SECRET_AFTER = read_list("harmless_after")

HASH_WORDS = Pattern(
    r"\b(?:sha-?\d{0,3}|md5|hash(?:es|ed)?|digest|checksum|commit(?:ted)?|revision|rev|blob|tree|ref|"
    r"fingerprint|thumbprint|e?tag|uuid|guid|ids?|version|branch|merge[ds]?|request|trace|span|"
    r"public|row|record|ticket|job|run|build|image|layer|cache|epoch|nonce|integrity|"
    r"fixed|introduced|since|landed|reverted|bisect(?:ed)?)\b"
)
"""Between the announcing word and hex or a UUID these say that it is a hash or a name."""

REQUEST_TOKENS = Pattern(r"(?:client|lock|change|request|idempotency)[ _-]?token")
"""Tokens that name one request and not who may make it: they are UUIDs."""

COPULA = (
    r"(?:is|was|are|were|be|been|to|ist|lautet|war|heißt|est|était|es|era|é|è|är|är:|on|er|jest|"
    r"to jest|"
    r"это|equals|becomes?|became|remains|stays|reads|says|said|being|gets?|got|using|with|as|['\u2019]s)"
)
"""The verb of a sentence between the announcing word and its value."""
FILLING = (
    r"(?:now|still|currently|just|simply|set|set to|literally|again|always|temporarily|only|"
    r"changed|changed to|jetzt|now set to|maintenant|ahora|agora|nu|probably|called|called:|"
    r"reset to|to|"
    r"rotated to|updated to|value|the following|following|this|here|below|is|the|string)"
)
"""Words between that verb and the value."""

_TYPED = ("password", Pattern(PERSON_WORDS)), ("password", Pattern(SHORT_PERSON_WORDS))
_ASCII = (*_TYPED, ("secret", Pattern(MACHINE_WORDS)))
_FOREIGN = (*_TYPED, ("secret", Pattern(f"{MACHINE_WORDS}|{FOREIGN_WORDS}")))

_PARTED = Pattern(r"[ _.-]")
_TAIL_PARTS = Pattern(r"[A-Z]?[a-z]+\d*|[A-Z]+|\d+")
_KEY_HEAD = Pattern(r"([a-z]{2,16})[ _.-]?\Z")
_WORD_BEFORE = Pattern(r"([a-z0-9]{1,16})[ _.\"'`-]{0,3}\Z")

GAP = (
    r"(?:[ \t]{0,4}[|>][-+]?\d?[ \t]{0,4}\r?\n[ \t]{1,20}"
    r"|[ \t]{0,4}(?:!!?\w{1,12}|&\w{1,20})[ \t]{1,3}"
    r"|[ \t]{0,4}\\?[\"'`]{0,3}[ \t]{0,4}\r?\n[ \t>*-]{0,12}(?=[A-Za-z0-9+/=_-]{20,}"
    r"[\"'`]{0,3}(?:\r?\n|$))"
    r"|[ \t*]{0,4}\\?\r?\n(?:[ \t]{0,8}\r?\n)?[ \t>*-]{0,12}(?:```\w{0,10}\n[ \t]{0,8}"
    r"|value:[ \t]{0,3})?"
    r"|[ \t|*]{0,20}(?:(?:str(?:ing)?|bytes|text|&str|String)\s?=\s?)?)"
)
"""Between a sign and its value: spaces, a type, or the end of the line and maybe a code fence."""

_ASSIGN = Pattern(
    r"(?P<tail>[\w.-]{0,30}(?:\[\w{0,10}\])?)[\"'`*\\)\]]{0,4}[ \t]{0,12}[ \t.\u2026]{0,60}"
    r"(?P<note>\([^()\n\0]{0,40}\)[*`]{0,2}[ \t]{0,2})?"
    r"(?P<sign>\?=|\|\|=?|\?\?=?|:[=-]|=>|->|<-|={1,3}|::|:|\|(?=[ \t])|\"[ \t]{0,2},|',|>|-(?= )"
    r"|,(?=[^\s,]{8})|\t"
    r"|[\u2192\uff1a\u4e3a\u662f\u306f\u2013\u2014])"
    rf"(?P<gap>{GAP})"
    r"(?:[brfuBRFU@$]{1,2}(?=[\"'])|%[qQ](?=\())?"
    r"(?:(?:['\"]{2}\.join|paste0?|concat|CONCAT|[Ss]tring|str|bytes|Buffer\.from|SecretStr|Secret)\(\[?(?=[\"']))?"
    r"(?P<open>\\?[\"'`]{1,3}|[*]{1,2}[`\"']?|[\[(]{1,2}[ \t]{0,2}[\"']|\[{1,2}|\(|<!\[CDATA\[)?"
)
QUOTES = ("'", '"')
"""What a text of a list ends with, whose next text is no value of it."""
DEFAULTS = frozenset(("||", "??", "??="))
"""Signs before the value for the case that there is none."""
_DEFAULT = Pattern(
    r"[\w.-]{0,30}[\"']\s{0,3}\{\s{0,20}(?:[^{}\n\0]{0,80}\n\s{0,20}){0,3}"
    r"(?:default|value)\s{0,8}=\s{0,3}(?P<open>[\"'])"
)
"""The value of a variable of Terraform."""
_KUBERNETES = Pattern(r"[\w.-]{0,30}[\"']?\s{0,3}\n[ \t]{1,16}value:[ \t]{0,3}(?P<open>[\"'])?")
_ATTRIBUTE = Pattern(
    r"[\w.-]{0,30}(?:\\?[\"'](?:\s{1,4}[\w-]{1,20}=[\"'][^\"'<>\n\0]{0,40}[\"']){0,3}\s{1,4}value\s?="
    r"|>\s{0,20}<[Vv]alue>|\\?[\"']?,\s{0,20}\\?[\"']?\w{0,12}[Vv]alue\\?[\"']?\s?[:=]"
    r"|[ \t]{0,2}</\w{1,20}>\s{0,20}(?:<\w{1,20}(?:\s[^<>\n\0]{0,60})?>\s{0,8}){1,3})"
    r"\s{0,2}(?P<open>\\?[\"'])?"
)
"""The value of an attribute, of a pair of arguments, or of the element behind that of the name."""
_TYPED_IN = Pattern(
    r"[^\n\0]{0,30}?\.(?i:send_?keys|fill|type|press_sequentially|set_?text|set_?value|val)\("
    r"(?P<open>\\?[\"'`])"
)
"""What a test or a script types into the field that is named so."""
_SETTER = Pattern(r"(?:set|with|add|use)[a-z_]{0,20}\Z")
_CALLED = Pattern(r"\w{0,20}\(\s{0,3}(?P<open>[\"'])")
"""The argument of a call that sets it."""
_FLAG = Pattern(r"(?P<tail>[\w-]{0,20})(?P<gap>[ \t]{1,3})(?P<open>[\"'])?")
_SENTENCE = Pattern(
    r"(?P<glue>[^\n\0.!?;:=|\"`]{0,60}?)"
    rf"(?:(?<![\w])(?P<copula>{COPULA})"
    rf"(?:[ \t]{{1,3}}{FILLING}){{0,3}}[ \t]{{0,2}}"
    r"(?P<sign>[:=\u2192\u2013\u2014-]|->)?|(?P<colon>:|=|->|[\u2192\uff1a]))"
    r"(?:[ \t]{1,4}|(?P<below>[ \t]{0,4}\r?\n(?:[ \t]{0,8}\r?\n)?[ \t>]{0,12}))"
    r"(?P<open>\*{0,2}[\"'`\u201c\u2018\xab\u201e]|\*{1,2}|\()?"
)
PLACES = frozenset(("at", "on"))
"""Harmless in a name, `password_on`, and not in a sentence: `the password on HOST is …`."""
_SETS = Pattern(r"\b(?:set|sets|change[ds]?|resets?|updated?|rotated?)\b[^\n\0.!?;:=]{0,60}\Z")
_TO = Pattern(r"[^\n\0.!?;:=|\"`]{0,40}?[ \t]to[ \t]{1,3}(?P<open>[\"'`])?")
"""A password that is set: `I set the root password on HOST to VALUE`."""
_ANSWER = Pattern(
    r"[^\n\0?]{0,40}\?\s{0,3}\n[ \t]{0,4}(?:[\[(]?\d{1,2}:\d\d(?::\d\d)?[\])]?[ \t]{1,2})?"
    r"(?:<?[\w. -]{1,30}>?:[ \t]{1,2})?(?:>[ \t])?"
    r"(?P<words>(?:[A-Za-z']{1,12}[,:!]?[ \t]{1,2}){0,4})(?P<open>[\"'`])?"
    r"(?=[^\s\0]{6,200}[ \t]{0,3}(?:\r?\n|$))"
)
"""An answer that ends with the password, or the key, that was asked for."""
_SHOWN = Pattern(
    r"[\w.]{0,30}[})\"']{0,3}[ \t]{0,4}\r?\n(?P<open>[\"'])?(?=[^\s\0]{6,200}[ \t]{0,3}(?:\r?\n|$))"
)
_SHOWS = Pattern(
    r"(?:^|\n)[ \t]{0,4}(?:[^\s\0]{0,30}[$#>%][ \t]{0,2}){1,3}"
    r"(?:(?:echo|printenv|print)\b[ \t(]{1,3})?[\"'${(]{0,3}[\w.]{0,40}\Z"
)
"""A variable that is shown at a prompt, and its value on the next line."""
_BESIDE = Pattern(
    r"(?P<tail>[\w.-]{0,30})"
    r"(?P<glue>(?:[^\w\n\0]{1,3}(?:%[a-z]|value)\b)?[^\w.\n\0-][^\w\n\0]{0,7}(?:\d[ \t]{1,2})?)?"
    r"(?P<below>\r?\n[ \t]{0,8})?(?<=[^\w.-])(?=\w)(?P<open>)"
)
"""Whatever signs stand between a word and the value right behind it."""
_QUOTED = Pattern(r"[^\n\0.!?;:=|\"`(]{0,60}?(?P<open>[\"`\u201c\xab(])")
_PAIR = Pattern(
    r"[^\n\0.!?;=|]{0,40}?[\"'`*]{0,2}(?<![\w/])[\w.@+-]{2,40}[\"'`*]{0,2}"
    r"(?:[ \t]{0,2}(?:/|:|,|\band\b|\bpassword\b|&)[ \t]{0,2}){1,2}(?P<open>[\"'`*]{1,2})?"
)
"""A user's name before the password: `admin / …`."""

_LEFT = Pattern(
    r"(?:^|[\s(\"'`*\u201c])(?P<value>[^\s\0\"'`\u201c\u201d]{6,200})[\"'`*\u201d]{0,3},?[ \t]{1,2}"
    r"(?:\(?(?:is|was|as|for|being|are|=|->|#|//|[\u2192\u2013\u2014-])[ \t]{1,2}"
    r"(?:[\w'/-]{1,16}[ \t]{1,2}){0,4}|\((?:[\w'/-]{1,16}[ \t]){0,3})[\"'`*]{0,2}[\w.-]{0,12}\Z"
)
"""The value before its announcement: `… is the password`."""

_UPDATED = Pattern(
    r"=\s{0,3}'(?P<value>[^'\s\0]{6,200})'\s{1,3}(?i:where)\s[^\n\0']{0,80}=\s{0,3}'[\w.-]{0,40}\Z"
)
"""The value that SQL gives to the row whose name announces it."""

DIGITS = frozenset("0123456789")
SIGNS = DIGITS.union("\"'`\u201c\xab\u201e!@#$%&*=+~?:|")
_IN_CALL = Pattern(r"\(\s{0,8}[\"'][\w.-]{0,40}\Z")
_GIVEN = Pattern(
    r"(?:\b(?:with|using|setx|setenv|set|env|arg|export|define|add|secrets?|set -\w{1,4}"
    r"|login \S{1,40}|user \S{1,40})"
    r"\s{1,2}|(?:^|[\s\[\"'`,])--?)[\w-]{0,40}\Z"
)
"""Before a word whose value follows after a space only: flags, `set`, `with password …`."""

_NAME_SO_FAR = Pattern(r"[ \t]{0,8}[\w.-]{0,30}\Z")
"""A line of settings that begins with the name of one: `bindpw …`."""

CLOSES = {
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\xab": "\xbb",
    "\u201e": "\u201c",
    "<![CDATA[": "]]",
}
"""Quotes that close with another sign than they open with."""

TRAIL = ".,;:)]}>'\"`\u201d\u2019"
"""Signs that end a sentence or a quote, and no value."""

_PLAIN = Pattern(r"[^\s\"'`<>\x00\u0590-\uffff]{3,500}")
"""A value without quotes. Nobody types a password in a script that has no Latin keyboard."""
_CUT = Pattern(r"\]\(|;(?=[A-Za-z ]|$)|,(?=\w+[=:])|&(?=[\w.-]+=)|\\n|\\r|\|(?=\s|$)|/?\*/|\*\*")
_FIRST_WORD = Pattern(r"[ _'\u2019s-]{0,3}([a-z0-9]+)")

WEAK = frozenset(
    ("login", "log in", "logs in", "auth", "pass", "cred", "creds", "credential", "credentials")
)
"""Words of common prose: their value must look like a password by itself, unless it is quoted."""

_KEY = Pattern(r"[ _.-]?keys?\Z")

BARE_VERBS = frozenset(("pass", "auth"))
"""Words of prose and code that announce something only where a sign assigns it."""

MAX_GLUE = 60
MAX_VALUE = 500
MAX_PER_LINE = 400
"""Announcing words looked at on one line; nobody writes more of them."""


def is_announced(_text: str, lower: str) -> bool:
    """Return whether a word may announce a secret."""
    return any(word in lower for word in ANNOUNCING)


def find(text: str, lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of every secret next to an announcing word, or below one."""
    for kind, start, end, _word in find_announced(text, lower):
        yield kind, start, end


def find_announced(text: str, lower: str) -> Iterator[tuple[str, int, int, str]]:
    """Yield (kind, start, end, word) of every secret, with the word that announces it."""
    for kind, word_start, word_end in find_words(lower):
        start = _find_announcement_end(lower, word_start, word_end)
        if start is not None:
            here = Announcement(text, lower, start, word_end, kind)
            span = _find_next_to(here)
            if span is not None:
                yield kind, *span, here.word
    yield from _find_table_cells(text, lower)


def find_words(lower: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of the words of a lower-case text that may announce a secret.

    Only lines with a part of such a word are looked at. Words without a border have a pattern of
    their own: its search skips to their first letters.
    """
    is_ascii = lower.isascii()
    lines: dict[int, int] = {}
    for part in _ASCII_PARTS if is_ascii else ANNOUNCING:
        at = lower.find(part)
        while at >= 0:
            end = lower.find("\n", at)
            end = len(lower) if end < 0 else end
            lines[lower.rfind("\n", 0, at) + 1] = end
            at = lower.find(part, end)
    for kind, pattern in _ASCII if is_ascii else _FOREIGN:
        for start, end in lines.items():
            for hit in islice(pattern.finditer(lower, start, end), MAX_PER_LINE):
                yield kind, *hit.span()


def _find_next_to(here: Announcement) -> Span | None:
    """Return the span of the secret next to an announcement."""
    span = None
    if _has_sign(here.lower[here.end : here.end + 110]):
        span = (
            _find_assigned(here)
            or _find_given(here)
            or _find_in_sentence(here)
            or _find_right_after(here)
        )
    if span is None and not DIGITS.isdisjoint(here.lower[max(0, here.start - 160) : here.start]):
        span = _find_before(here)
    if span is None and here.kind == "password" and not _is_other_word(here):
        span = _find_in_line(here)
    return span


def _find_in_line(here: Announcement) -> Span | None:
    """Return the span of what looks like a password anywhere near on the line, in any language."""
    text = here.text
    line = text.rfind("\n", 0, here.start) + 1
    stop = text.find("\n", here.end)
    stop = len(text) if stop < 0 else stop
    for start, end in (
        (here.end, min(stop, here.end + MAX_GLUE)),
        (max(line, here.start - MAX_GLUE), here.start),
    ):
        for match in _WORDS.finditer(text, start, end):
            value = match[0].rstrip(f"{TRAIL}*_")
            is_whole = match.end() < end or end == stop or text[end].isspace()
            if is_whole and looks_like_password(value) and _is_unlike_code(value):
                return match.start(), match.start() + len(value)
    return None


def _is_unlike_code(value: str) -> bool:
    """Return whether no name or number of code looks like this password: it has a sign, or turns.

    No sign and no verb need join it to its word then.
    """
    has_sign = any(char in "!#$%&*?^~" for char in value) and not DIGITS.isdisjoint(value)
    return has_sign or restlessness(value) > MIN_RESTLESSNESS


def _is_other_word(here: Announcement) -> bool:
    """Return whether the word is ordinary prose or a shell variable, and announces nothing."""
    if here.word == "pwd":
        return here.text[here.start - 1 : here.start] == "$"
    return here.word in WEAK and not _IS.match(here.lower, here.end)


_IS = Pattern(r"[ \t]{1,2}(?:is|was|=)[ \t]")
_WORDS = Pattern(r"(?<![^\s\"'`(\u0590-\uffff])[^\s\"'`<>()\[\]{}|/\\\0\u0590-\uffff]{8,64}")
MIN_RESTLESSNESS = 0.4
"""Of a password in letters and digits; names of code have less."""


def _find_assigned(here: Announcement) -> Span | None:
    """Return the span of a value that a sign assigns, also in a table, an attribute, a manifest."""
    text = here.text
    match = _ASSIGN.match(text, here.end)
    if match:
        if _is_tail_harmless(match["tail"]):
            return None
        if match["note"] and HASH_WORDS.search(match["note"].lower()):
            return None
        broken = "\n" in match["gap"]
        is_tag = match["sign"] == ">" and bool(match["gap"])
        span = None if is_tag else _find_in_row(here, match, _find_value(match, text, alone=broken))
        if span and _fits(here, span, sure=not broken, quoted=bool(match["open"])):
            return span
    is_setter = _SETTER.search(here.lower, max(0, here.start - 30), here.start)
    for pattern in (
        _KUBERNETES,
        _ATTRIBUTE,
        _DEFAULT,
        _TYPED_IN,
        *([_CALLED] if is_setter else ()),
    ):
        match = pattern.match(text, here.end)
        span = _find_value(match, text) if match else None
        if span and _fits(here, span, sure=True, quoted=True):
            return span
    return None


def _find_in_row(here: Announcement, match: Match[str], span: Span | None) -> Span | None:
    """Return the span; of the next field of a row, or an alternative, only if it is drawn."""
    if span is None:
        return None
    text, sign = here.text, match["sign"]
    line = text.rfind("\n", 0, here.start) + 1
    in_call = match["open"] and _IN_CALL.search(text, max(0, here.start - 48), here.start)
    is_next = sign.endswith((",", "\t")) and not in_call
    if not is_next and (sign not in DEFAULTS or text.startswith("||", line)):
        return span
    start, end = span
    if is_next and not match["open"]:
        end = start + len(text[start:end].split(sign[-1])[0])
    value = text[start:end]
    is_drawn = is_hex_or_uuid(value) or (sign[0] not in QUOTES and is_dense(value))
    is_drawn = is_drawn or (sign == "," and here.kind == "password" and looks_like_password(value))
    return (start, end) if is_drawn else None


def _find_given(here: Announcement) -> Span | None:
    """Return the span of a value that follows after a space: a flag's, a setting's."""
    lower, start = here.lower, here.start
    if here.word in BARE_VERBS:
        return None
    line = lower.rfind("\n", 0, start)
    is_setting = here.word in ("requirepass", "masterauth")
    is_given = is_setting or _GIVEN.search(lower, max(0, start - 60, line), start)
    if not is_given and not _NAME_SO_FAR.match(lower, line + 1, start):
        return None
    match = _FLAG.match(here.text, here.end)
    if match is None or _is_tail_harmless(match["tail"]):
        return None
    span = _find_value(match, here.text, alone=not is_given)
    if span is None or not _fits(here, span, sure=True, quoted=bool(match["open"])):
        return None
    value = here.text[span[0] : span[1]]
    return span if is_given or looks_like_password(value) or is_dense(value) else None


def _find_in_sentence(here: Announcement) -> Span | None:
    """Return the span of a value in the sentence that follows."""
    if here.word in BARE_VERBS:
        return None
    text, lower, end = here.text, here.lower, here.end
    at = end
    for _try in range(3):
        match = _SENTENCE.match(lower, at)
        if match is None or match.end() - end > MAX_GLUE + 30:
            break
        between = lower[end : match.end("glue")]
        first = _FIRST_WORD.match(between)
        if first and first[1] not in PLACES and _is_tail_harmless(first[1]):
            break
        span = _find_value(match, text, alone=bool(match["below"]))
        quoted = bool(match["open"]) and match["open"] != "("
        direct = bool(match["sign"] or match["colon"] or quoted)
        if span and _fits(here, span, sure=direct and len(between) < 40, quoted=quoted):
            return span
        at = max(match.end("copula"), match.end("colon"))
    span = _find_quoted(here)
    if span is None:
        span = _find_answer(here)
    if span is None and here.kind == "password":
        span = _find_password_like(here)
    return span


def _find_answer(here: Announcement) -> Span | None:
    """Return the span of the answer to a question, or of what a prompt shows below a name."""
    match = _SHOWN.match(here.text, here.end)
    shows = match and _SHOWS.search(here.text, max(0, here.start - 80), here.start)
    match = match if shows else _ANSWER.match(here.text, here.end)
    span = _find_value(match, here.text, alone=True) if match else None
    if match is None or span is None or not _fits(here, span, sure=True, quoted=True):
        return None
    value = here.text[span[0] : span[1]]
    is_bare = bool(shows) or not match["words"]
    return (
        span
        if is_bare or is_dense(value) or is_hex_or_uuid(value) or looks_like_password(value)
        else None
    )


def _find_right_after(here: Announcement) -> Span | None:
    """Return the span of a value right behind its word that says enough by itself."""
    match = _BESIDE.match(here.text, here.end)
    if match is None or here.word in BARE_VERBS or _is_tail_harmless(match["tail"]):
        return None
    glue, is_below = match["glue"] or "", bool(match["below"])
    span = _find_value(match, here.text, alone=is_below)
    is_other = is_below and (here.kind != "password" or "." in match["tail"])
    if span is None or is_other or glue in ("/", "+"):  # the last two: inside of base64
        return None
    value = here.text[span[0] : span[1]]
    is_apart = not COMMAS.isdisjoint(glue)
    if here.kind == "password":
        good = looks_like_password(value) and (restlessness(value) > 0.3 or is_phrase(value))
    elif is_hex_or_uuid(value):
        is_request = REQUEST_TOKENS.search(here.lower, max(0, here.start - 16), here.end)
        good = here.word != "key" and _is_sure_key(here) and not (is_request or is_apart)
    else:
        is_name = is_composed(value) and not _is_sure_key(here)
        good = not (is_apart or is_name) and is_dense(value, 16 if glue.isspace() else 20)
    return span if good else None


COMMAS = frozenset(",.;?!")
"""Signs that end a part of a sentence: what is behind them may be another thing."""


def _find_password_like(here: Announcement) -> Span | None:
    """Return the span of what looks like a password where a sentence may have one."""
    text, lower, end = here.text, here.lower, here.end
    is_set = _SETS.search(lower, max(0, here.start - 80), here.start)
    for pattern in (_TO, _PAIR) if is_set else (_PAIR,):
        match = pattern.match(lower, end)
        span = _find_value(match, text) if match else None
        if span is None:
            continue
        value = text[span[0] : span[1]]
        if looks_like_password(value):
            return span
        if pattern is _TO and not DIGITS.isdisjoint(value) and is_typed(value, 8, sure=True):
            return span
    return None


def _find_quoted(here: Announcement) -> Span | None:
    """Return the span of the next quoted value, if its form alone says enough."""
    match = _QUOTED.match(here.lower, here.end)
    if match is None or HASH_WORDS.search(here.lower, here.end, match.start("open")):
        return None
    span = _find_value(match, here.text)
    value = here.text[span[0] : span[1]] if span else ""
    is_near = match.end() - here.end < 24
    if is_near and here.kind != "password" and is_hex_or_uuid(value) and _is_sure_key(here):
        return span
    is_password = here.kind == "password" and not here.word.startswith("pin")
    if is_dense(value, 14):
        return span
    is_typed_in = (is_typed(value, 7) and is_mixed(value)) or is_numbered_phrase(value)
    return span if is_password and is_typed_in else None


def _find_before(here: Announcement) -> Span | None:
    """Return the span of a value that comes before: `… is the password`, `… as API key`."""
    text, start = here.text, here.start
    updated = _UPDATED.search(text, max(0, start - 300), start)
    if updated and _fits(here, updated.span("value"), sure=True, quoted=True):
        return updated.span("value")
    line = text.rfind("\n", 0, start) + 1
    match = _LEFT.search(text, max(0, start - 160, line - 1), start)
    if match is None or here.lower[here.end : here.end + 1].isalnum():
        return None
    value = match["value"].lstrip("(")
    begin = match.end("value") - len(value)
    value = value.rstrip(TRAIL)
    end = begin + len(value)
    if HASH_WORDS.search(here.lower, end, start):
        return None
    if here.kind == "password":
        good = looks_like_password(value)
    else:
        good = is_hex_or_uuid(value) and _is_sure_key(here)
    return (begin, end) if good or is_dense(value) else None


def _find_value(match: Match[str], text: str, *, alone: bool = False) -> Span | None:
    """Return the span of the value behind a match: up to its quote, or to a space or a mark.

    `alone` values without quotes count only where the line ends with them.
    """
    at, opened = match.end(), match["open"] or ""
    quote = opened.strip("\\")[-1:] if opened != "<![CDATA[" else opened
    if quote and quote not in "([":
        line = text.find("\n", at, at + MAX_VALUE)
        stop = text.find(CLOSES.get(quote, quote), at, line if line >= 0 else at + MAX_VALUE)
        if stop > at:
            inner = text[at : stop - (text[stop - 1] == "\\")].rstrip(" \t")
            start = at + len(inner) - len(inner.lstrip(" \t"))
            return (start, at + len(inner)) if inner else None
    plain = _PLAIN.match(text, at)
    if plain is None or (
        alone and text[plain.end() : plain.end() + 1] not in ("", "\n", "\r", "`", '"')
    ):
        return None
    cut = None if is_signed(plain[0]) else _CUT.search(plain[0])
    value = plain[0][: cut.start()] if cut else plain[0]
    while value and value[-1] in TRAIL and not (value[-1] == ")" and "(" in value):
        value = value[:-1]
    return (at, at + len(value)) if value else None


class Announcement:
    """A word from `start` to `end` that announces a secret of a kind: `password` or `secret`.

    It is no `Value`: a text has very many of them, and none is kept.
    """

    __slots__ = ("end", "kind", "lower", "start", "text", "word")

    def __init__(self, text: str, lower: str, start: int, end: int, kind: str) -> None:
        self.text = text
        self.lower = lower
        self.start = start
        self.end = end
        self.kind = kind
        self.word = lower[start:end]


def _find_announcement_end(lower: str, start: int, end: int) -> int | None:
    """Return where the announcement begins, with the word before a `key`; None if it is none."""
    if lower.startswith("key", start) and not lower.startswith("keypass", start):
        head = _KEY_HEAD.search(lower, max(0, start - 20), start)
        if head is None:
            return None
        glued = head.end(1) == start
        if glued and head[1] not in SURE_KEYS and not head[1].endswith(_SURE_ENDINGS):
            return None
        start = head.start(1)
    return None if _is_taken_back(lower, start, end) else start


_SURE_ENDINGS = tuple(SURE_KEYS - {"enc"})
"""Ends of words that name a secret key when `key` is written together with them."""


def _is_taken_back(lower: str, start: int, end: int) -> bool:
    """Return whether the word before makes the announcement harmless: `public key`."""
    word = lower[start:end]
    if lower.startswith("${", start - 2) and not _FALLBACK.match(lower, end):
        return True  # a variable that is filled in, with what to say where it is not set
    if "arn:" in lower[max(0, start - 100) : start].rpartition(" ")[2]:
        return True
    if word.rstrip("s").endswith("key") and _PARTED.split(word)[0] in NOT_SECRET_BEFORE:
        return True
    near = _WORD_BEFORE.search(lower, max(0, start - 16), start)
    if near and _PARTED.search(word) and near[1] not in PUBLISHED:
        return False  # `search_api_key`: the word before is the name of a vendor
    if near is None or (lower[start - 1] == "." and near[1] in HOLDERS):
        return False
    return near[1] in NOT_SECRET_BEFORE


_FALLBACK = Pattern(r"\w{0,30}:?[-=]")
"""Behind a variable of a shell: the value where it is not set."""


def _is_tail_harmless(tail: str) -> bool:
    """Return whether the rest of the identifier makes it harmless: `password_hash`, `tokenUrl`."""
    parts = _TAIL_PARTS.findall(tail)
    return any(part.lower() in NOT_SECRET_AFTER for part in parts)


def _has_sign(text: str) -> bool:
    """Return whether a value may be to the right: it has a sign, or is behind a quote."""
    if not SIGNS.isdisjoint(text):
        return True
    return not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text)


_ID_BEFORE = Pattern(r"(?<![a-z])[a-z_-]{0,20}ids?[\"'`]?[ \t]{0,2}[:=(,][ \t]{0,2}[\"'`]?\Z")
"""What ends the name of an id: it says which secret, and is none."""


def _fits(here: Announcement, span: Span, *, sure: bool, quoted: bool) -> bool:
    """Return whether the value is one that its announcing word may have.

    `sure` means that a sign assigns the value, and not a sentence.
    """
    if is_hex_or_uuid(here.text[span[0] : span[1]]) and _ID_BEFORE.search(
        here.lower, here.end, span[0]
    ):
        return False
    fits = _fits_password if here.kind == "password" else _fits_token
    return fits(here, span, sure=sure, quoted=quoted)


def _fits_password(here: Announcement, span: Span, *, sure: bool, quoted: bool) -> bool:
    value, word = here.text[span[0] : span[1]], here.word
    if is_hex_or_uuid(value):
        return sure and not HASH_WORDS.search(here.lower[here.start : span[0]])
    if word.startswith("pin"):
        return sure and value.isdigit() and 4 <= len(value) <= 8
    if word == "pass" and sure and is_typed(value, 8):
        return not is_named(value) or value.isalnum()
    if word in WEAK and not quoted:
        return is_typed(value, 8) and is_mixed(value)
    if is_numbered_phrase(value) or ((quoted or "phrase" in word) and is_phrase(value)):
        return True
    if sure and value.isdigit():
        return 6 <= len(value) <= 9 and len(set(value)) > 2
    return is_typed(value, 5 if sure and quoted else 6, sure=sure) or is_dense(value)


def _fits_token(here: Announcement, span: Span, *, sure: bool, quoted: bool) -> bool:
    value, word = here.text[span[0] : span[1]], here.word
    line = here.lower.rfind("\n", 0, here.start) + 1
    between = here.lower[max(0, here.start - 24, line) : span[0]]
    between = between.rpartition(" --")[2]  # what stands before a flag says nothing about it
    if is_hex_or_uuid(value):
        if HASH_WORDS.search(between.replace("_", " ")):
            return False
        if "-" in value and REQUEST_TOKENS.search(between):
            return False
        return word.rstrip("s") not in ("salt", "cookie", "webhook") and _is_sure_key(here)
    plain = _is_sure_key(here)
    if not plain and is_composed(value):
        return False
    if is_dense(value, 12 if plain and sure else 16):
        return True
    if (
        sure
        and quoted
        and len(value) > 31
        and compute_entropy(value) > MIN_BITS
        and not is_wordlike(value)
    ):
        return not is_named(value) and not any(sign in value for sign in "{} ")
    assigned = (sure and quoted) or "=" in between[-4:]
    has_digit = any(char.isdigit() for char in value)
    return plain and assigned and has_digit and is_typed(value, 8) and not is_named(value)


def _is_sure_key(here: Announcement) -> bool:
    """Return whether a key is secret by its name, or written as a variable of the environment."""
    word = here.word
    if not word.rstrip("s").endswith("key"):
        return True
    head = _KEY.split(word)[0]
    return (
        head in SURE_KEYS
        or head.endswith(_SURE_ENDINGS)
        or here.text[here.start : here.end].isupper()
    )


def _find_table_cells(text: str, lower: str) -> Iterator[tuple[str, int, int, str]]:
    """Yield (kind, start, end, heading) of cells below a heading that announces secrets."""
    if not is_announced(text, lower):
        return
    kinds: dict[str, str] = {}

    def is_wanted(head: str) -> bool:
        if head not in kinds:
            kinds[head] = _find_column_kind(head)
        return bool(kinds[head])

    for head, start, end in find_cells(text, lower, is_wanted):
        value, kind = text[start:end], kinds[head]
        good = is_dense(value, 12) or is_hex_or_uuid(value)
        if good or (kind == "password" and is_typed(value, sure=True)):
            yield kind, start, end, head


def _find_column_kind(head: str) -> str:
    head = head.strip(" *`_")
    for kind, start, end in find_words(head):
        if (
            not _is_tail_harmless(head[end:])
            and _find_announcement_end(head, start, end) is not None
        ):
            return kind
    return ""
