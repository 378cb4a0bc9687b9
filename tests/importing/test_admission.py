from __future__ import annotations

import json
import random
from typing import Any

import pytest
from conftest import Sandbox
from redaction import corpus

TOKEN = corpus.draw_value("ghp_{a36}", random.Random(1))


def imported(sandbox: Sandbox, records: list[dict[str, Any]], *args: str) -> dict[str, Any]:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path = sandbox.write("../records.jsonl", text)
    done = sandbox.run("import", "jsonl", str(path), "--json", *args)
    assert TOKEN not in done.stdout + done.stderr
    return dict(json.loads(done.stdout) | {"code": done.returncode})


def record(id: str, **fields: Any) -> dict[str, Any]:
    base = {"id": id, "type": "decision", "title": f"Title of {id}", "text": "It is so."}
    return base | fields


def test_a_record_with_a_secret_is_skipped_and_the_others_are_written(sandbox: Sandbox) -> None:
    """The problem names the kind and the line of the record, and how to go on."""
    records = [record("dec-a"), record("dec-b", text=f"Use {TOKEN}."), record("dec-c")]
    done = imported(sandbox, records)
    assert (done["found"], done["written"], done["skipped"], done["code"]) == (3, 2, 1, 1)
    (problem,) = done["problems"]
    assert (problem["code"], problem["line"], problem["id"]) == ("secret", 2, "dec-b")
    assert problem["message"] == "it holds github-token"
    assert "--redact takes it out" in problem["hint"]
    assert imported(sandbox, records)["unchanged"] == 2


def test_what_refers_to_a_skipped_record_loses_only_that(sandbox: Sandbox) -> None:
    """A refused record leaves no dangling id behind."""
    records = [record("dec-a", text=TOKEN), record("dec-b", supersedes=["dec-a"])]
    done = imported(sandbox, records, "--map", "supersedes=supersedes")
    assert [memory["id"] for memory in done["memories"]] == ["dec-b"]
    assert "supersedes" not in (sandbox.path / done["memories"][0]["path"]).read_text()


def test_redact_takes_secrets_out_the_same_way_every_time(sandbox: Sandbox) -> None:
    """Marks stand in body and values, and importing again changes nothing."""
    records = [record("dec-a", text=f"Use {TOKEN}, ask jane.roe@acme.dev.", tags=["auth", TOKEN])]
    done = imported(sandbox, records, "--redact")
    assert (done["written"], done["code"]) == (1, 0)
    text = (sandbox.path / done["memories"][0]["path"]).read_text()
    assert "\nUse [REDACTED:github-token], ask [REDACTED:email].\n" in text
    assert 'tags: [auth, "[REDACTED:github-token]"]\n' in text
    assert imported(sandbox, records, "--redact")["unchanged"] == 1
    assert not sandbox.run("redact").returncode


@pytest.mark.parametrize("field", ["title", "id"])
def test_a_secret_in_the_name_is_refused_even_so(sandbox: Sandbox, field: str) -> None:
    """The id is the file's name, and often made of the title."""
    secret = corpus.draw_value("glpat-{l20}", random.Random(3))
    done = imported(sandbox, [record("dec-a") | {field: secret}], "--redact")
    assert (done["written"], done["problems"][0]["code"]) == (0, "secret")
    assert "correct the record" in done["problems"][0]["hint"]
    assert secret not in done["problems"][0]["message"]


def test_addresses_are_personal_data_unless_they_are_allowed(sandbox: Sandbox) -> None:
    """A list that is public may be named."""
    records = [record("dec-a", text="Write to dev@lists.acme.io.")]
    assert imported(sandbox, records)["problems"][0]["code"] == "personal-data"
    sandbox.write(".memory/config.toml", '[redaction]\nallow_domains = ["acme.io"]\n')
    assert imported(sandbox, records)["written"] == 1


def test_a_secret_for_every_record_is_refused_at_once(sandbox: Sandbox) -> None:
    """What the command line sets would stand in each of them."""
    path = sandbox.write("../records.jsonl", json.dumps(record("dec-a")) + "\n")
    done = sandbox.run("import", "jsonl", str(path), "--set", f"x-note={TOKEN}")
    assert done.returncode == 2
    assert "a secret (github-token)" in done.stderr
