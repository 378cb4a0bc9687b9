"""Keys: what names an index, by all that its rows depend on besides the files."""

from __future__ import annotations

import sys

from memtool import redaction
from memtool.index import scoring
from memtool.index.analyzer import TOKENIZER
from memtool.store import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.store.config import Config
    from memtool.store.repository import Repository

LANGUAGE_KEY = "search.language"
ALLOWING = ("redaction.allow_emails", "redaction.allow_domains", "redaction.allow")
"""The settings that allow what would be masked."""


def settings_key(repository: Repository, directory: str, settings: Config) -> str:
    """Return what an index depends on beside the files: settings and versions."""
    parts = [TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B)]
    parts += [directory, repository.object_format, settings.text(LANGUAGE_KEY)]
    parts += [
        f"{row.name} {row.ttl_days} {row.temporal_class}"
        for _name, row in sorted(settings.categories.items())
    ]
    return cache.digest(*parts, size=16)


def mask_key(settings: Config) -> str:
    """Return what masks depend on: the detectors, and what the settings allow to stand."""
    allowed = (sorted(settings.texts(name)) for name in ALLOWING)
    return cache.digest(redaction.version(), *(repr(texts) for texts in allowed))


def revision_key(key: str, identity: Iterable[tuple[str, str]]) -> str:
    """Return the name of the index of some files, each a path and an id of its content."""
    return cache.digest(key, *(part for pair in sorted(identity) for part in pair), size=16)
