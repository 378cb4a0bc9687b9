from __future__ import annotations

import random

import pytest
from redaction import corpus

from memtool.errors import MemtoolError
from memtool.gate.checks import secrets
from memtool.redaction.find import Allowlist, build_allowlist, compute_fingerprint, find
from memtool.store.config import parse

TOKEN = corpus.draw_value("ghp_{a36}", random.Random(1))
FINGERPRINT = compute_fingerprint(TOKEN)


def refusal(text: str, old_text: str = "") -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        secrets.refuse_secrets(text, old_text=old_text)
    return caught.value


def test_a_refusal_names_kinds_and_the_words_around_but_no_secret() -> None:
    """The message can be pasted anywhere, and the hints are what to do next."""
    error = refusal(f"one\ntwo {TOKEN}\njane.roe@acme.dev")
    assert error.message == (
        "cannot write this: the text contains a github token, an email address: "
        '"two [REDACTED:github-token]"'
    )
    assert error.hint == (
        "say where it is stored instead\n"
        f'harmless: memtool config redaction.allow.{FINGERPRINT} "REASON"'
    )
    assert error.code == "secret"
    assert refusal("jane.roe@acme.dev").code == "personal-data"
    assert refusal(f"{TOKEN}\n" * 9).message.count("github token") == 1
    random_ = random.Random(3)
    several = "\n".join(corpus.draw_value("ghp_{a36}", random_) for _number in range(9))
    assert "and 4 more" in refusal(several).message


@pytest.mark.parametrize("before", [0, 8, 40, 400])
@pytest.mark.parametrize("after", [0, 8, 400])
def test_a_long_line_is_cut_around_the_mark(before: int, after: int) -> None:
    """Two secrets in the line are both marked; the message stays short."""
    other = corpus.draw_value("ghp_{a36}", random.Random(2))
    line = "word " * before + TOKEN + f" {other}" + " word" * after
    message = refusal(f"first\n{line}\nlast").message
    assert "[REDACTED:github-token]" in message
    assert TOKEN[8:20] not in message
    assert other[8:20] not in message
    assert len(message) < 250


def test_harmless_and_known_and_redacted_texts_pass() -> None:
    """Text that was there before, allowed text and the hint's proposal pass."""
    secrets.refuse_secrets("Sessions live in Redis.")
    secrets.refuse_secrets(f"moved {TOKEN}", old_text=f"x\n{TOKEN}")
    secrets.refuse_secrets(TOKEN, Allowlist(fingerprints=frozenset((FINGERPRINT,))))
    secrets.refuse_secrets("the token is [REDACTED:github-token]")
    other = corpus.draw_value("ghp_{a36}", random.Random(2))
    assert '"two [REDACTED' in refusal(f"{TOKEN}\ntwo {other}", old_text=TOKEN).message


def test_the_settings_say_what_is_allowed() -> None:
    """Addresses and domains are compared without case, as mail programs do."""
    data = f"""
[redaction]
allow_emails = ["Jane.Roe@Acme.dev", " @lists.acme.io", "."]
[redaction.allow]
{FINGERPRINT} = "of the public demo"
"""
    allowed = build_allowlist(parse(data.encode(), "config.toml"))
    assert allowed == Allowlist(
        emails=frozenset(("jane.roe@acme.dev",)),
        domains=frozenset(("lists.acme.io",)),
        fingerprints=frozenset((FINGERPRINT,)),
    )
    text = f"{TOKEN} jane.roe@acme.dev JANE.ROE@ACME.DEV dev@lists.acme.io a@b.lists.acme.io"
    assert find(text, allowed) == ()
    assert [f.kind for f in find("a@acme.io joe@acme.dev", allowed)] == ["email"] * 2
