"""Find secrets and personal data in a text, and replace them by marks.

It owns the table of detectors, which one wins where several find the same, the allowlist, and the
marks. It never shows a secret: a detection has a place and a kind, and no message holds the text.
"""

from __future__ import annotations

from bisect import bisect, bisect_left

from memtool.errors import MemtoolError
from memtool.pattern import Pattern
from memtool.redaction import (
    assignments,
    candidates,
    citations,
    encoded,
    entropy,
    joins,
    national_ids,
    personal,
    shapes,
    tokens,
)
from memtool.redaction.rows import read_list
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from re import Match
    from typing import Literal, Protocol

    class Settings(Protocol):
        """What is asked of the settings."""

        def text(self, key: str) -> str: ...
        def texts(self, key: str) -> tuple[str, ...]: ...

    Strategy = Literal["redact", "hash", "token"]
    Span = tuple[str, int, int]
    """Kind, start and end."""

MAX_CHARACTERS = 16_000_000
BLANK = "\0"
"""In place of each character that is already found: no detector's pattern reaches across it."""
MAX_ROUNDS = 6

_KINDS = r"[ \t]{1,3}(?P<kinds>[a-z][a-z-]{1,40}(?:,? ?[a-z][a-z-]{1,40}){0,8})"
ALLOW = Pattern(rf"memtool:[ \t]{{0,3}}allow{_KINDS}")
"""`memtool: allow KIND`, in a comment of any form: that kind is allowed on this line."""

ALLOW_FILE = Pattern(
    rf"memtool:[ \t]{{0,3}}allow-file{_KINDS}[ \t]{{1,3}}--(?=[ \t]{{1,3}}(?!--)[^\s>])"
)
"""`memtool: allow-file KIND -- REASON`: that kind is allowed in the whole file.

It does so much that it counts only with a reason.
"""

MARK = Pattern(r"\[REDACTED:(?P<kind>[a-z][a-z0-9-]{1,40})(?::(?P<label>[0-9a-f]{1,12}))?\]")


class Detector(Value):
    """Finds secrets of some kinds. Both functions take a text and the same in lower case.

    Where `may_hold` returns false, `find` yields nothing. It is one cheap look that spares most
    texts the compiling of patterns; None where every text is searched.
    """

    doc: str
    kinds: tuple[str, ...]
    may_hold: Callable[[str, str], bool] | None
    find: Callable[[str, str], Iterator[Span]]
    is_personal: bool = False
    """Whether it finds personal data; else it finds secrets."""
    is_named: bool = False
    """Whether what it finds says what it is, without a word beside it."""


DETECTORS = (
    Detector(
        "key blocks, web tokens, webhooks, headers and arguments of commands",
        ("private-key", *dict.fromkeys(row.kind for row in shapes.ROWS)),
        None,
        shapes.find,
        is_named=True,
    ),
    Detector(
        "tokens that begin with the prefix of a vendor",
        tuple(row[0] for row in tokens.ROWS),
        tokens.has_prefix,
        tokens.find,
        is_named=True,
    ),
    Detector(
        "words in base64 with a token, a password or an address in them",
        encoded.KINDS,
        tokens.has_long_word,
        encoded.find,
    ),
    Detector(
        "tokens whose prefix says what they are, of whatever vendor",
        ("vendor-token",),
        tokens.has_long_word,
        tokens.find_self_named,
        is_named=True,
    ),
    Detector(
        "passwords and tokens inside of addresses",
        ("url-password",),
        shapes.has_userinfo,
        shapes.find_userinfo,
        is_named=True,
    ),
    Detector(
        "values next to a word such as password, token or key",
        ("password", "secret"),
        assignments.is_announced,
        assignments.find,
    ),
    Detector(
        "numbers of accounts, by country, length and check digits",
        ("iban",),
        national_ids.has_id,
        national_ids.find_ibans,
        is_personal=True,
        is_named=True,
    ),
    Detector(
        "payment cards, by brand, length and check digit",
        ("card",),
        personal.has_card,
        personal.find_cards,
        is_personal=True,
    ),
    Detector(
        "US social security numbers",
        ("ssn",),
        personal.has_social_number,
        personal.find_social_numbers,
        is_personal=True,
    ),
    Detector(
        "national ids of other countries, each by its own check",
        ("national-id",),
        national_ids.has_id,
        national_ids.find_ids,
        is_personal=True,
        is_named=True,
    ),
    Detector(
        "addresses of people",
        ("email",),
        personal.has_at,
        personal.find_emails,
        is_personal=True,
        is_named=True,
    ),
    Detector(
        "telephone numbers", ("phone",), personal.has_phone, personal.find_phones, is_personal=True
    ),
    Detector(
        "bare strings of high entropy", ("high-entropy",), entropy.has_mixed_word, entropy.find
    ),
)
"""Every detector. Of several that find the same, the first names the kind."""


LEADS = read_list("address_leads")
SAMPLE_KEYS = read_list("sample_keys")
ENDS = ".,;:!?)"
"""What a sentence or a part of one ends with."""
PRIVATE_KEY = entropy.PRIVATE_KEY
BARE = "high-entropy"
KINDS = frozenset(kind for row in DETECTORS for kind in row.kinds)
"""Every kind that a detection may have."""
PERSONAL_KINDS = frozenset(kind for row in DETECTORS if row.is_personal for kind in row.kinds)
NAMED_KINDS = frozenset(kind for row in DETECTORS if row.is_named for kind in row.kinds) - {
    PRIVATE_KEY,
    "password",
    "secret",
}
"""Kinds that say what they are, without a word beside them."""
KNOWN_KINDS = NAMED_KINDS - PERSONAL_KINDS - {"vendor-token"} | {PRIVATE_KEY}
"""Kinds of a format that is somebody's, whatever is around it."""
ONE_LINE_KINDS = frozenset(("card", "phone", "ssn"))
"""Kinds that are searched across line ends by the signs between their groups."""


class Detection(Value):
    """A secret or a piece of personal data: characters `start` to `end`, on `line` from 1."""

    kind: str
    start: int
    end: int
    line: int


class Allowlist(Value):
    """Harmless addresses, domains with their subdomains, and fingerprints of harmless secrets.

    With `credits` the addresses of authors are harmless where a key, a trailer or a licence has
    them.
    """

    emails: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    fingerprints: frozenset[str] = frozenset()
    credits: bool = True


NOTHING = Allowlist()


def build_allowlist(settings: Settings) -> Allowlist:
    """Return the addresses, domains and fingerprints that the settings allow, in lower case."""
    entries = {
        text.lower().strip().lstrip("@.") for text in settings.texts("redaction.allow_emails")
    }
    return Allowlist(
        emails=frozenset(entry for entry in entries if "@" in entry),
        domains=frozenset(entry for entry in entries if entry and "@" not in entry),
        fingerprints=frozenset(settings.texts("redaction.allow")),
        credits=settings.text("redaction.author_emails") == "allow",
    )


def is_personal(kind: str) -> bool:
    """Return whether a kind is personal data; every other kind is a secret."""
    return kind in PERSONAL_KINDS


def find(text: str, allowed: Allowlist = NOTHING) -> tuple[Detection, ...]:
    """Return what must not be kept: in order of place, none overlapping another.

    Detections are blanked and the rest is searched again, until nothing is new. So a redacted text
    holds nothing to be found.

    Raises:
        MemtoolError: the text is too long to be searched; it is never passed unsearched.
    """
    if len(text) > MAX_CHARACTERS:
        raise MemtoolError(
            f"the text has {len(text):,} characters, the limit is {MAX_CHARACTERS:,}",
            hint="split it",
            code="too-large",
        )
    spans = _find_all_spans(_without_marks(text))
    places = _find_harmless_places(text) if spans else []
    if places and min(span[1] for span in spans) < places[-1][1]:
        spans = _search_around(text, places)
    return _filter_permitted(text, sorted(spans, key=lambda span: span[1]), allowed)


def _find_harmless_places(text: str) -> list[tuple[int, int]]:
    """Return the citations of a header, and the blocks of public keys and signatures, in order."""
    blocks = (row[1:] for row in entropy.find_key_blocks(text) if row[0] == entropy.PUBLIC_BLOCK)
    header_end = citations.find_header_end(text)
    return [
        *citations.find_spans(text),
        *(block for block in blocks if block[0] >= header_end),
    ]


def _search_around(text: str, places: Sequence[tuple[int, int]]) -> list[Span]:
    """Return what is found where these places are no prose: known tokens, and all around them."""
    spans = _find_all_spans(_without_marks(_blank_spans(text, places)))
    for start, end in places:
        findings = _rank_spans(_without_marks(text[start:end]), KNOWN_KINDS)
        for low, high, _rank, kind in findings:
            if kind in KNOWN_KINDS and not any(
                start + low < span[2] and span[1] < start + high for span in spans
            ):
                spans.append((kind, start + low, start + high))
    return spans


def _find_all_spans(seen: str) -> list[Span]:
    """Return what the rounds of a search find in a text without marks."""
    if len(seen) < candidates.MIN_LENGTH:
        return _search_in_rounds(seen)
    places = list(candidates.find_places(seen, lower_in_place(seen)))
    view = joins.make_windows(seen, places, candidates.LINES_AROUND)
    return [(kind, *view.map_back(start, end)) for kind, start, end in _search_in_rounds(view.text)]


def _search_in_rounds(seen: str) -> list[Span]:
    """Return what is found in a text, then in what is around it once that is blanked."""
    spans = new = _search(seen)
    for _round in range(MAX_ROUNDS - 1):
        if not new:
            break
        places = [(start, end) for _kind, start, end in new]
        seen = _blank_spans(seen, places)
        view = joins.make_windows(seen, places)  # the rest is as it was when nothing more was found
        new = [(kind, *view.map_back(start, end)) for kind, start, end in _search(view.text)]
        spans = [*spans, *new]
    return spans


def _blank_spans(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return the text with spans blanked, which are in order."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += (text[at:start], BLANK * (end - start))
        at = end
    return "".join((*pieces, text[at:]))


def _without_marks(text: str) -> str:
    """Return the text with marks and allow comments blanked: no secret reaches into one."""
    if "[REDACTED:" in text:
        text = MARK.sub(lambda m: BLANK * len(m[0]) if m["kind"] in KINDS else m[0], text)
    if "memtool:" in text:
        for comment in (ALLOW, ALLOW_FILE):
            text = comment.sub(lambda m: BLANK * len(m[0]), text)
    return text


def _search(text: str) -> list[Span]:
    """Return the spans of one search, of the text as it stands and with its cuts closed.

    Secrets are merged, personal data gives way to them.
    """
    findings = _rank_spans(text)
    findings += _find_across_cuts(text, findings)
    secrets = sorted(_widen_to_token(text, *span) for span in findings if not is_personal(span[3]))
    merged: list[tuple[int, int, int, str]] = []
    for span in secrets:
        if merged and span[0] < merged[-1][1]:
            last = merged.pop()
            rank, kind = min(last[2:], span[2:])
            merged.append((last[0], max(last[1], span[1]), rank, kind))
        else:
            merged.append(span)
    if len(secrets) < len(findings):
        personal = [span for span in findings if is_personal(span[3])]
        for span in sorted(personal, key=lambda span: (span[2], span[0], -span[1])):
            place = bisect(merged, span)
            is_free = place == 0 or merged[place - 1][1] <= span[0]
            if is_free and (place == len(merged) or span[1] <= merged[place][0]):
                merged.insert(place, span)
    return [(kind, start, end) for start, end, _rank, kind in merged]


_PART_BEFORE = Pattern(r"(?<![\w./@-])(?:[A-Za-z0-9_-]{1,40}[.~]){1,3}\Z")
_PART_BEHIND = Pattern(r"[.~+=%$!^*-]{1,2}(?P<part>[A-Za-z0-9_-]{4,200})(?![@(])")


def _widen_to_token(
    text: str, start: int, end: int, rank: int, kind: str
) -> tuple[int, int, int, str]:
    """Return a span with the parts of its token that signs divide from it: none is left over."""
    if kind == PRIVATE_KEY:
        return start, end, rank, kind
    before = _PART_BEFORE.search(text, max(0, start - 90), start) if kind == BARE else None
    while (behind := _PART_BEHIND.match(text, end)) and joins.is_piece(behind["part"]):
        end = behind.end()
    return (before.start() if before else start), end, rank, kind


def _rank_spans(text: str, kinds: Collection[str] = ()) -> list[tuple[int, int, int, str]]:
    """Return start, end, rank of the detector and kind of all that detectors find in a text.

    `kinds` leaves the detectors that find one of these, none of them all.
    """
    lower = lower_in_place(text)
    return [
        (start, end, rank, kind)
        for rank, detector in enumerate(DETECTORS)
        if (not kinds or any(kind in kinds for kind in detector.kinds))
        and (detector.may_hold is None or detector.may_hold(text, lower))
        for kind, start, end in detector.find(text, lower)
        if end > start
    ]


def _find_across_cuts(
    text: str, findings: Sequence[tuple[int, int, int, str]]
) -> Iterator[tuple[int, int, int, str]]:
    """Yield what is found across cuts in the text, as spans of the text."""
    yield from _find_across_lines(text, findings)
    view = joins.close_cuts(text)
    if view is None:
        return
    inner = _rank_spans(view.text)
    for start, end, rank, kind in (*inner, *_find_across_lines(view.text, inner)):
        yield *view.map_back(start, end), rank, kind


def _find_across_lines(
    text: str, findings: Sequence[tuple[int, int, int, str]]
) -> Iterator[tuple[int, int, int, str]]:
    """Yield what line ends cut."""
    text = _blank_spans(
        text, [(low, high) for low, high, _rank, kind in findings if kind == PRIVATE_KEY]
    )
    if "\n" not in text:
        return
    index = _FoundSpans(findings)
    for spans, rank, kind in _search_view(
        joins.join_unbroken(text, _find_beginnings(text, findings))
    ):
        belonging = _select_pieces(text, kind, spans, index)
        if len(belonging) > 1:
            yield belonging[0][0], belonging[-1][1], rank, kind


def _find_beginnings(text: str, findings: Sequence[tuple[int, int, int, str]]) -> frozenset[int]:
    """Return where secrets begin that say what they are, or that the line above announces."""
    return frozenset(
        low
        for low, _high, _rank, kind in findings
        if not is_personal(kind)
        and (kind in NAMED_KINDS or (kind != BARE and text[low - 1 : low] == "\n"))
    )


def _search_view(
    view: joins.JoinedText | None,
) -> Iterator[tuple[list[tuple[int, int]], int, str]]:
    """Yield the spans of the text, rank and kind of all that is found in a view of it."""
    if view is not None:
        for start, end, rank, kind in _rank_spans(view.text, KINDS - ONE_LINE_KINDS):
            yield list(view.origins(start, end)), rank, kind


class _FoundSpans:
    """What detectors found in a text, to be asked by place."""

    def __init__(self, findings: Iterable[tuple[int, int, int, str]]) -> None:
        self._spans = sorted(findings)
        self._starts = [span[0] for span in self._spans]
        self._longest = max((high - low for low, high, _rank, _kind in self._spans), default=0)

    def overlapping(self, start: int, end: int) -> list[tuple[int, int, int, str]]:
        """Return the spans that reach into a place."""
        first = bisect(self._starts, start - self._longest)
        last = bisect_left(self._starts, end)
        return [span for span in self._spans[first:last] if start < span[1]]


def _are_several(kind: str, spans: Sequence[tuple[int, int]], spans_found: _FoundSpans) -> bool:
    """Return whether a secret of its own begins with one of the later pieces."""
    starts = {low for low, _high in spans[1:]}
    first, end = spans[0]
    near = spans_found.overlapping(first, spans[-1][1])
    later = {other for low, _high, _rank, other in near if low in starts}
    is_head_found = any(low < end and first < high for low, high, _rank, _kind in near)
    return kind in later or (is_head_found and bool(later - {BARE}))


def _select_pieces(
    text: str,
    kind: str,
    spans: Sequence[tuple[int, int]],
    spans_found: _FoundSpans,
) -> Sequence[tuple[int, int]]:
    """Return the first of the lines' pieces that are one secret or address.

    A line end is a weak sign: what is found must need both lines, or go on with what is no word.
    """
    if len(spans) < 2 or kind in ONE_LINE_KINDS:
        return ()
    if kind == "email":
        return spans if len(spans) == 2 and _is_cut_address(text, spans) else ()
    near = spans_found.overlapping(spans[0][0], spans[-1][1])
    if _are_several(kind, spans, spans_found) or (kind == BARE and not near):
        return ()
    is_head_found = any(span[0] < spans[0][1] for span in near)
    if kind in NAMED_KINDS and not is_head_found and len(spans) == 2:
        return spans
    whole = int(is_head_found or text[spans[0][1] - 1] not in ENDS)
    while 0 < whole < len(spans) and joins.is_rest(text, *spans[whole]):
        whole += 1
    return spans[:whole]


def _is_cut_address(text: str, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a line end cuts an address, and does not stand between a word and one."""
    (low, end), _tail = spans
    head = text[low:end].lower()
    return "@" in head or not (head.isalpha() and (text[low].isupper() or head in LEADS))


def lower_in_place(text: str) -> str:
    """Return the text in lower case with every character in its place."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _filter_permitted(
    text: str, spans: Sequence[Span], allowed: Allowlist
) -> tuple[Detection, ...]:
    detections: list[Detection] = []
    everywhere = _parse_kinds(ALLOW_FILE.finditer(text)) if "memtool:" in text else ()
    line, at, line_end = 1, 0, -1
    permitted: Collection[str] = ()
    for kind, start, end in spans:
        line += text.count("\n", at, start)
        at = start
        if start > line_end:
            permitted, line_end = _kinds_allowed_on_line(text, start)
        if kind in everywhere or kind in permitted or _is_allowed(text[start:end], kind, allowed):
            continue
        if kind == "email" and allowed.credits and personal.is_credit(text, start):
            continue
        detections.append(Detection(kind, start, end, line))
    return tuple(detections)


def _kinds_allowed_on_line(text: str, at: int) -> tuple[Collection[str], int]:
    """Return the kinds that the line around a place allows, and where the line ends."""
    first = text.rfind("\n", 0, at) + 1
    last = text.find("\n", at)
    last = last if last >= 0 else len(text)
    if text.find("memtool:", first, last) < 0:
        return (), last
    return _parse_kinds(ALLOW.finditer(text, first, last)), last


def _parse_kinds(matches: Iterable[Match[str]]) -> frozenset[str]:
    """Return the kinds that comments allow."""
    return frozenset(kind for match in matches for kind in match["kinds"].replace(",", " ").split())


def _is_allowed(secret: str, kind: str, allowed: Allowlist) -> bool:
    if compute_fingerprint(secret) in allowed.fingerprints | SAMPLE_KEYS:
        return True
    if kind != "email":
        return False
    address = secret.lower()
    host = address.rpartition("@")[2]
    return address in allowed.emails or any(
        host == domain or host.endswith("." + domain) for domain in allowed.domains
    )


def compute_fingerprint(secret: str) -> str:
    """Return 16 hex digits that name a secret in the allowlist without showing it."""
    return digest(secret.encode(errors="surrogatepass"))


def clean_text(text: str, allowed: Allowlist = NOTHING) -> str:
    """Return a text with a mark in place of all that is found in it.

    Raises:
        MemtoolError: the text is too long to be searched.
    """
    return redact(text, find(text, allowed))


def redact(
    text: str,
    detections: Sequence[Detection],
    strategy: Strategy = "redact",
    key: bytes = b"",
) -> str:
    """Return the text with every detection replaced by its mark; all else keeps its characters.

    Raises:
        MemtoolError: `hash` without a key: short passwords could be guessed from such a hash.
    """
    return mark_text(text, make_marks(text, detections, strategy, key))


def make_marks(
    text: str,
    detections: Sequence[Detection],
    strategy: Strategy = "redact",
    key: bytes = b"",
) -> list[tuple[Detection, str]]:
    """Return every detection with its mark, in order of place.

    `redact` gives `[REDACTED:kind]`, `hash` adds 8 hex digits of the keyed hash of the secret,
    `token` a number, equal for equal secrets in this text.

    Raises:
        MemtoolError: `hash` without a key.
    """
    if strategy == "hash" and not key:
        raise MemtoolError(
            "the hash strategy needs a key", hint="use the strategy token", code="redaction-key"
        )
    labels: dict[str, str] = {}
    used = [int(mark["label"]) for mark in MARK.finditer(text) if (mark["label"] or "").isdigit()]
    next_number = max(used, default=0) + 1
    marks = []
    for detection in sorted(detections, key=lambda detection: detection.start):
        secret = text[detection.start : detection.end]
        if strategy == "hash":
            labels.setdefault(secret, f":{_keyed_digest(secret, key)}")
        elif strategy == "token":
            labels.setdefault(secret, f":{next_number + len(labels)}")
        marks.append((detection, f"[REDACTED:{detection.kind}{labels.get(secret, '')}]"))
    return marks


def mark_text(text: str, findings: Sequence[tuple[Detection, str]]) -> str:
    """Return the text with marks in the places of detections, which are in order."""
    pieces: list[str] = []
    at = 0
    for detection, mark in findings:
        pieces += (text[at : detection.start], mark)
        at = detection.end
    return "".join((*pieces, text[at:]))


def _keyed_digest(secret: str, key: bytes) -> str:
    from hashlib import blake2b

    data = secret.encode(errors="surrogatepass")
    return blake2b(data, digest_size=4, key=key[:64]).hexdigest()
