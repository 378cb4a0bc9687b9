"""The secrets check: nothing that looks like a secret or like personal data is kept.

It owns the check of files, the refusal of texts that are to become memories, and the verdicts:
which blobs were searched and found clean, by the detectors and settings of now.
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
    from collections.abc import Iterable, Iterator, Sequence

    from memtool.redaction.find import Allowlist, Detection
    from memtool.store.config import Config

MOST_SHOWN = 20
"""Detections of one file that are shown as problems."""
KIND = "clean"
_AT_ONCE = 200
"""Texts whose verdicts are asked for together: they may be long."""
RULES = ("memory", "index", "search", "redaction", "gate")
"""The rooms of the package whose code decides what a check finds."""
MOST_NAMED = 5
"""Detections that a refusal names."""


def check(content: Content) -> Iterator[Problem]:
    """Yield each secret by kind and line. No message shows any part of it."""
    verdicts = Verdicts(content.repository.cache_dir, content.settings)
    allowed = None
    texts = iter(content.texts)
    while some := list(islice(texts, _AT_ONCE)):
        clean = verdicts.clean(text.oid for text in some)
        for text in some:
            if text.oid in clean:
                continue
            from memtool.redaction import find as detectors  # most commits have no new text

            allowed = allowed or detectors.allowlist(content.settings)
            found = detectors.find(text.text, allowed)
            if not found:
                verdicts.add(text.oid)
            told = unexpected(text.path, found, content.directory, content.settings)
            yield from problems(text, told)
    verdicts.save()


def unexpected(
    path: str, found: Sequence[Detection], directory: str, settings: Config
) -> Sequence[Detection]:
    """Drop the addresses of owners and signers, in the two files that are there to name them."""
    named = {settings.text("trust.allowed_signers")}
    if settings.rules:
        named.add(f"{directory}/{CONFIG_NAME}")
    return [one for one in found if one.kind != "email"] if path in named else found


def problems(text: Text, found: Sequence[Detection]) -> Iterator[Problem]:
    """Yield the problems of one text; `where` of the text ends each message."""
    place = f" {text.where}" if text.where else ""
    hint = f"memtool redact {text.path}"
    if text.where:
        hint = f"change the secret where it is used, then {hint}, and memtool purge --history"
    if text.is_message:
        hint = "change the secret where it is used, and reword the commit before it is pushed"
    for one in found[:MOST_SHOWN]:
        message = f"it holds what looks like {_described(one.kind)}{place}"
        yield Problem(text.path, one.line, code(one.kind), message, hint)
    if len(found) > MOST_SHOWN:
        message = f"it holds {len(found) - MOST_SHOWN:,} more of the kind{place}"
        yield Problem(text.path, 0, "secret", message, hint)


def refuse_secrets(
    text: str, allowed: Allowlist | None = None, *, known: str = "", name: str = "the memory"
) -> None:
    """Refuse a text that holds a secret or personal data, other than what `known` holds as well.

    `name` is what the refusal calls the text.

    Raises:
        MemtoolError: it does; kinds and lines are named, never what was found.
    """
    from memtool.redaction import find as detectors

    def named(text: str, allowed: Allowlist) -> list[tuple[str, Detection]]:
        found = detectors.find(text, allowed)
        return [(detectors.fingerprint(text[one.start : one.end]), one) for one in found]

    found = named(text, allowed or detectors.NOTHING)
    if found and known:
        before = {mark for mark, _one in named(known, detectors.NOTHING)}
        found = [(mark, one) for mark, one in found if mark not in before]
    if not found:
        return
    places = [f"{_described(one.kind)} in {_place(text, one)}" for _mark, one in found[:MOST_NAMED]]
    places += [f"and {len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else []
    mark, first = found[0]
    raise MemtoolError(
        f"{name} would hold {', '.join(places)}; nothing was written",
        hint=f"take it out, or write [REDACTED:{first.kind}] in its place; if it is harmless: "
        f'memtool config redaction.allow.{mark} "the reason"',
        code=code(first.kind),
    )


def _place(text: str, found: Detection) -> str:
    """Return where a detection is: of a memory, whose file is not written, its key or line."""
    from memtool.redaction.citations import header_end

    end = header_end(text)
    if found.start >= end:
        line = text.count("\n", end, found.start) + 1
        return f"line {line} of its text" if end else f"line {found.line}"
    rows = reversed(text[: found.start].split("\n"))
    key = next((row.partition(":")[0] for row in rows if row[:1].isalpha()), "")
    return f"its {key or 'header'}"


def code(kind: str) -> str:
    """Return the problem code of a kind of detection."""
    from memtool.redaction.find import is_personal

    return "personal-data" if is_personal(kind) else "secret"


def _described(kind: str) -> str:
    return f"{'a secret' if code(kind) == 'secret' else 'personal data'} ({kind})"


class Verdicts:
    """The clean blobs of one repository, under the present detectors and settings."""

    def __init__(self, cache_dir: str, settings: Config) -> None:
        self._cache_dir = cache_dir
        version = cache.code_version(("redaction",), sorted(settings.given.items()))
        self._basis = version.encode()
        self._new: dict[bytes, bytes] = {}

    def clean(self, oids: Iterable[str]) -> frozenset[str]:
        """Return those of some blobs that were found clean before."""
        keys = [oid.encode() for oid in oids if oid]
        known = kept.read_all(self._cache_dir, KIND, self._basis, keys)
        return frozenset(key.decode() for key in keys if key in known or key in self._new)

    def add(self, oid: str) -> None:
        """Remember that a blob is clean."""
        if oid:
            self._new[oid.encode()] = b""

    def save(self) -> None:
        """Write what is new; where that cannot be written, the next check searches again."""
        if self._new:
            kept.write_all(self._cache_dir, KIND, self._basis, self._new)
            self._new.clear()
