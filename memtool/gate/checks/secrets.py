"""The secrets check: no file contains text that looks like a secret or personal data.

It owns the check of files, the refusal of texts that would become memories, and the verdicts:
blobs that were searched and found clean with the current detectors and settings.
"""

from __future__ import annotations

from itertools import islice

from memtool.errors import MemtoolError
from memtool.gate.content import Content, Text
from memtool.memory.schema import Problem
from memtool.store import cache, kept
from memtool.store.config import CONFIG_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memtool.redaction.find import Allowlist, Detection
    from memtool.store.config import Config

MAX_REPORTED = 20
"""Detections of one file that are reported as problems."""
KIND = "clean"
_BATCH_TEXTS = 200
"""Texts whose verdicts are looked up together; they may be long."""
RULE_PACKAGES = ("memory", "index", "search", "redaction", "gate")
"""The subpackages whose code determines the result of a check."""
MAX_NAMED = 5
"""Detections that a refusal names."""
MAX_BEFORE_CHARS, MAX_AFTER_CHARS = 40, 20
"""Characters that a refusal quotes before and after the first of them."""
_KIND_NAMES = {
    "authorization": "an authorization header",
    "card": "a card number",
    "email": "an email address",
    "high-entropy": "a random string, perhaps a secret",
    "iban": "an IBAN",
    "jwt": "a JWT",
    "national-id": "a national ID number",
    "phone": "a phone number",
    "ssn": "a social security number",
    "url-password": "a password in a URL",
}


def check(content: Content) -> Iterator[Problem]:
    """Yield each secret by kind and line; messages never show any part of it."""
    verdicts = Verdicts(content.repository.cache_dir, content.settings)
    allowed = None
    texts = iter(content.texts)
    while batch := list(islice(texts, _BATCH_TEXTS)):
        clean = verdicts.find_clean(text.oid for text in batch)
        for text in batch:
            if text.oid in clean:
                continue
            from memtool.redaction import find as detectors  # most commits have no new text

            allowed = allowed or detectors.build_allowlist(content.settings)
            detections = detectors.find(text.text, allowed)
            if not detections:
                verdicts.add(text.oid)
            reported = drop_expected(text.path, detections, content.directory, content.settings)
            yield from make_problems(text, reported)
    verdicts.save()


def drop_expected(
    path: str, detections: Sequence[Detection], directory: str, settings: Config
) -> Sequence[Detection]:
    """Drop the addresses of owners and signers in the two files that must name them."""
    naming_paths = {settings.text("trust.allowed_signers")}
    if settings.rules:
        naming_paths.add(f"{directory}/{CONFIG_NAME}")
    return (
        [detection for detection in detections if detection.kind != "email"]
        if path in naming_paths
        else detections
    )


def make_problems(text: Text, detections: Sequence[Detection]) -> Iterator[Problem]:
    """Yield the problems of one text; each message ends with the text's `where`."""
    if not detections:
        return  # nothing to explain: a clean text is not searched again
    place = f" {text.where}" if text.where else ""
    hint = f"memtool redact {text.path}"
    ways = f"{hint}, or move it out of the memory\n"
    if text.where:
        ways = f"replace the secret where it is used, then {hint} and memtool purge --history\n"
    if text.is_message:
        ways = "replace the secret where it is used, and reword the commit before you push it\n"
    from memtool.redaction import find as detectors
    from memtool.redaction.explain import explain

    shown = detections[:MAX_REPORTED]
    every = detectors.find(text.text)
    for detection, why in zip(shown, explain(text.text, shown), strict=True):
        _where, excerpt = quote_masked(text.text, detection, every)
        secret = text.text[detection.start : detection.end]
        message = f'it contains {name_kind(detection.kind)}{place}, by {why.by}: "{excerpt}"'
        allow = f"redaction.allow.{detectors.compute_fingerprint(secret)}"
        harmless = f'harmless: memtool config {allow} "REASON"'
        yield Problem(
            text.path, detection.line, find_code(detection.kind), message, f"{ways}{harmless}"
        )
    if len(detections) > MAX_REPORTED:
        message = f"it contains {len(detections) - MAX_REPORTED:,} more like this{place}"
        yield Problem(text.path, 0, "secret", message, hint)


def make_masked_problems(masked: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    """Yield a problem for each memory that is shown masked; `masked` has the kinds by path."""
    for path, kinds in masked.items():
        what = ", ".join(map(name_kind, kinds))
        hint = f"memtool redact {path}, and if it was pushed: memtool purge --history"
        yield Problem(path, 1, find_code(kinds[0]), f"it contains {what}", hint)


def refuse_secrets(
    text: str, allowed: Allowlist | None = None, *, old_text: str = "", name: str = "the memory"
) -> None:
    """Refuse a text with a secret or personal data that `old_text` does not contain as well.

    `name` is the name of the text in the message.

    Raises:
        MemtoolError: the text has some; the message has kinds and the words around the first one,
            never a secret.
    """
    from memtool.redaction import find as detectors

    def find_marks(text: str, allowed: Allowlist) -> list[tuple[str, Detection]]:
        detections = detectors.find(text, allowed)
        return [
            (detectors.compute_fingerprint(text[detection.start : detection.end]), detection)
            for detection in detections
        ]

    marked_detections = find_marks(text, allowed or detectors.NOTHING)
    if marked_detections and old_text:
        before = {mark for mark, _detection in find_marks(old_text, detectors.NOTHING)}
        marked_detections = [
            (mark, detection) for mark, detection in marked_detections if mark not in before
        ]
    if not marked_detections:
        return
    mark, first = marked_detections[0]
    # A memory often has its first sentence as the title, too.
    kinds = list(
        {mark: name_kind(detection.kind) for mark, detection in marked_detections}.values()
    )
    what = ", ".join(kinds[:MAX_NAMED])
    if len(kinds) > MAX_NAMED:
        what += f" and {len(kinds) - MAX_NAMED} more"
    shown = dict(marked_detections)[mark]
    where, excerpt = quote_masked(text, shown, detectors.find(text))
    where = where if name == "the memory" else name
    instead = "say where it is stored instead"
    if find_code(first.kind) == "personal-data":
        instead = "leave it out, or name the role of the person"
    raise MemtoolError(
        f'cannot write this: {where} contains {what}: "{excerpt}"',
        hint=f'{instead}\nharmless: memtool config redaction.allow.{mark} "REASON"',
        code=find_code(first.kind),
    )


def quote_masked(text: str, detection: Detection, every: Sequence[Detection]) -> tuple[str, str]:
    """Return the name of a detection's place, and its line near it with marks for secrets.

    `every` has all detections in the text, also those that are allowed.
    """
    from memtool.redaction import find as detectors
    from memtool.redaction.citations import find_header_end

    start = text.rfind("\n", 0, detection.start) + 1
    end = text.find("\n", detection.end)
    line = text[start : end if end >= 0 else len(text)]
    where = "the text"
    if detection.start < find_header_end(text):
        rows = reversed(text[: detection.start].split("\n"))
        key = next((row.partition(":")[0] for row in rows if row[:1].isalpha()), "")
        where = f"the key {key}" if key != "title" else "the title"
    inside = [
        other.replace(start=max(other.start - start, 0), end=min(other.end - start, len(line)))
        for other in every
        if other.start < start + len(line) and other.end > start
    ]
    if not any(other.start == detection.start - start for other in inside):
        return where, f"[REDACTED:{detection.kind}]"
    words = " ".join(detectors.redact(line, inside).split())
    if line.startswith(f"{where.rpartition(' ')[2]}:"):
        words = words.partition(": ")[2].strip("\"'")
    return where, _clip_around(words, words.find(f"[REDACTED:{detection.kind}]"))


def _clip_around(words: str, at: int) -> str:
    """Cut a long line to the words near a mark, which begins at `at`."""
    low = 0 if at <= MAX_BEFORE_CHARS else words.rfind(" ", 0, at - MAX_BEFORE_CHARS) + 1
    high = words.find("]", at) + MAX_AFTER_CHARS
    after = words[low:] if len(words) <= high else words[low:high].rpartition(" ")[0] + " …"
    return f"… {after}" if low else after


def find_code(kind: str) -> str:
    """Return the problem code of a kind of detection."""
    from memtool.redaction.find import is_personal

    return "personal-data" if is_personal(kind) else "secret"


def name_kind(kind: str) -> str:
    """Return a kind of detection as words: `a github token`."""
    words = kind.replace("-", " ")
    return _KIND_NAMES.get(kind) or f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


class Verdicts:
    """The clean blobs of one repository, by the current detectors and settings."""

    def __init__(self, cache_dir: str, settings: Config) -> None:
        self._cache_dir = cache_dir
        version = cache.compute_code_version(("redaction",), sorted(settings.values.items()))
        self._basis = version.encode()
        self._new: dict[bytes, bytes] = {}

    def find_clean(self, oids: Iterable[str]) -> frozenset[str]:
        """Return those of these blobs that were found clean before."""
        keys = [oid.encode() for oid in oids if oid]
        stored = kept.read_all(self._cache_dir, KIND, self._basis, keys)
        return frozenset(key.decode() for key in keys if key in stored or key in self._new)

    def add(self, oid: str) -> None:
        """Record that a blob is clean."""
        if oid:
            self._new[oid.encode()] = b""

    def save(self) -> None:
        """Write the new verdicts; if that fails, the next check searches the blobs again."""
        if self._new:
            kept.write_all(self._cache_dir, KIND, self._basis, self._new)
            self._new.clear()
