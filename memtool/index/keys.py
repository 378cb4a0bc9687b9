"""Keys of indexes: digests of all that their rows depend on, apart from the files."""

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
ALLOW_SETTINGS = ("redaction.allow_emails", "redaction.allow")
"""The settings that exempt texts from being masked."""


def settings_key(repository: Repository, directory: str, settings: Config) -> str:
    """Return the key of the settings and versions that an index depends on."""
    parts = [TOKENIZER, sys.byteorder, str(scoring.K1), str(scoring.B)]
    parts += [directory, repository.object_format, settings.text(LANGUAGE_KEY)]
    parts += [
        f"{row.name} {row.ttl_days} {row.temporal_class}"
        for _name, row in sorted(settings.categories.items())
    ]
    return cache.digest(*parts, size=16)


def mask_key(settings: Config) -> str:
    """Return the key of the detectors and settings that masking depends on."""
    allowed = (sorted(settings.texts(name)) for name in ALLOW_SETTINGS)
    authors = settings.text("redaction.author_emails")
    return cache.digest(redaction.compute_version(), authors, *(repr(texts) for texts in allowed))


def revision_key(key: str, identity: Iterable[tuple[str, str]]) -> str:
    """Return the key of the index of a set of files, each given as path and blob id."""
    return cache.digest(key, *(part for pair in sorted(identity) for part in pair), size=16)
