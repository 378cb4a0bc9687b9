from __future__ import annotations

import random

import pytest
from redaction import corpus

from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.redaction.find import Allowlist, allowlist, find, fingerprint
from memtool.store.config import parse

TOKEN = corpus.draw_value("ghp_{a36}", random.Random(1))
FINGERPRINT = fingerprint(TOKEN)


def refusal(text: str, known: str = "") -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        secrets.refuse_secrets(text, known=known)
    return caught.value


def test_a_refusal_names_kinds_and_lines_but_no_secret() -> None:
    """The message can be pasted anywhere, and the hint is what to do next."""
    error = refusal(f"one\ntwo {TOKEN}\njane.roe@acme.dev")
    assert error.message == (
        "the memory would hold a secret (github-token) in line 2, personal data (email) in line 3; "
        "nothing was written"
    )
    assert error.hint == (
        "take it out, or write [REDACTED:github-token] in its place; if it is harmless: "
        f'memtool config redaction.allow.{FINGERPRINT} "the reason"'
    )
    assert error.code == "secret"
    assert refusal("jane.roe@acme.dev").code == "personal-data"
    assert refusal(f"{TOKEN}\n" * 9).message.count("github-token") == 5
    assert "and 4 more" in refusal(f"{TOKEN}\n" * 9).message


def test_harmless_and_known_and_redacted_texts_pass() -> None:
    """What stood there before, what is allowed and what the hint proposes is no obstacle."""
    secrets.refuse_secrets("Sessions live in Redis.")
    secrets.refuse_secrets(f"moved {TOKEN}", known=f"x\n{TOKEN}")
    secrets.refuse_secrets(TOKEN, Allowlist(fingerprints=frozenset((FINGERPRINT,))))
    secrets.refuse_secrets("the token is [REDACTED:github-token]")
    other = corpus.draw_value("ghp_{a36}", random.Random(2))
    assert "in line 2" in refusal(f"{TOKEN}\n{other}", known=TOKEN).message


def test_the_settings_say_what_is_allowed() -> None:
    """Addresses and domains are compared without case, as mail programs do."""
    data = f"""
[redaction]
allow_emails = ["Jane.Roe@Acme.dev"]
allow_domains = [" @lists.acme.io", "."]
[redaction.allow]
{FINGERPRINT} = "of the public demo"
"""
    allowed = allowlist(parse(data.encode(), "config.toml"))
    assert allowed == Allowlist(
        emails=frozenset(("jane.roe@acme.dev",)),
        domains=frozenset(("lists.acme.io",)),
        fingerprints=frozenset((FINGERPRINT,)),
    )
    text = f"{TOKEN} jane.roe@acme.dev JANE.ROE@ACME.DEV dev@lists.acme.io a@b.lists.acme.io"
    assert find(text, allowed) == ()
    assert [f.kind for f in find("a@acme.io joe@acme.dev", allowed)] == ["email"] * 2
