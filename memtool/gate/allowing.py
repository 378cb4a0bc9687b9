"""Allowing: what the settings let stand in memories."""

from __future__ import annotations

from memtool.gate.redaction import Allowed
from memtool.store.config import Config


def allowed(settings: Config) -> Allowed:
    """Return the addresses, domains and fingerprints that the settings allow, in lower case."""
    domains = (text.lower().strip().lstrip("@.") for text in settings.texts(_DOMAINS))
    return Allowed(
        emails=frozenset(text.lower().strip() for text in settings.texts("redaction.allow_emails")),
        domains=frozenset(filter(None, domains)),
        fingerprints=frozenset(settings.texts("redaction.allow")),
    )


_DOMAINS = "redaction.allow_domains"
