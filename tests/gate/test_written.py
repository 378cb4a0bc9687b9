"""The gate takes what memtool writes, whatever the files are called that it cites."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Sandbox, environment_below
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memtool.redaction import assignments
from memtool.redaction.find import find

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WORDS = st.one_of(
    st.sampled_from(sorted(word for word in assignments.ANNOUNCING if word.isalnum())),
    st.sampled_from(["api-key", "vault", "x-at-y", "1234-5678", "016-08-2018", "is", "boundary"]),
    st.from_regex(r"[a-z0-9]{4,24}", fullmatch=True),
)
NAMES = st.lists(WORDS, min_size=1, max_size=5).map("-".join)
RECORD = "# {number}. A record of it\n\nDate: 2024-01-02\n\n## Status\n\nAccepted\n\n{text}\n"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Sandbox]:
    """A repository that is emptied for each example."""
    made = Sandbox(tmp_path / "project", environment_below(tmp_path))
    made.path.mkdir()
    yield made
    shutil.rmtree(made.path)


@pytest.mark.slow
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(names=st.lists(NAMES, min_size=4, max_size=8, unique=True))
def test_what_is_written_passes_the_check(store: Sandbox, names: list[str]):
    """Imported, new, superseding and promoted memories cite files of any name, and none is refused.

    The exit code of a commit through the hook says the same as `check` of the whole tree.
    """
    folder = Path(tempfile.mkdtemp(dir=store.path.parent))
    box = Sandbox(folder, store.env)
    box.git("init", "--quiet", "--initial-branch=main")
    (folder / ".memory").mkdir()
    (folder / "adr").mkdir()
    for number, name in enumerate(names, 1):
        text = RECORD.format(number=number, text=f"Rule {number} of {number * 7919} holds here.")
        (folder / "adr" / f"{number:04}-{name[:80]}.md").write_text(text)
    box.git("add", "adr")
    box.git("commit", "--quiet", "--message", "records")
    assert box.run("import", "adr", "adr", "--commit").returncode == 0
    paths = [f"adr/{number:04}-{name[:80]}.md" for number, name in enumerate(names, 1)]
    cited = ("--source", f"file:{paths[0]}#L1-L3", "--file", paths[1], "--commit")
    first = box.json(
        "new", "semantic", "Where rules are", "--body", "Rules are kept in a folder.", *cited
    )
    assert box.json(
        "supersede", first["id"], "Where rules are now", "--body", "Rules are in adr.", *cited
    )
    statement = "From now on always keep the rules of the team in one folder of records."
    session = box.run("session", "start", "--title", "x").stdout.strip()
    box.run("session", "add", session, "--role", "user", f"{statement} See {paths[2]}.")
    box.run("promote", "--all", "--commit")
    assert box.json("check")["problems"] == [] or {
        problem["severity"] for problem in box.json("check")["problems"]
    } == {"warning"}
    assert box.run("redact", "--dry-run").returncode == 0


HEADER = "---\nid: dec-a\nsource:\n  - {source}\nfiles: [{file}]\n---\nBody.\n"


@pytest.mark.parametrize(
    ("source", "file", "kinds"),
    [
        ("file:adr/0099-remove-bypass-gate.md#L1-L11@0a1b2c3d4e", "a/x-at-y.md", []),
        ("'file:adr/the password is-Zk3Qx9Lm.md'", "docs/016-08-2018.md", []),
        (f"file:docs/{TOKEN}.md", "a.md", ["github-token"]),
        ("commit:0a1b2c3d4e", f"docs/{TOKEN}.md", ["github-token"]),
        ("url:https://ada:Zk3Qx9Lm2Vt7@db.corp-mail.org/x", "a.md", ["url-password"]),
        ("url:https://corp-mail.org/x?token=Zk3Qx9Lm2Vt7Rp5Wb8Nc4", "a.md", ["secret"]),
        ("'file:notes.md password=Zk3!Qx9Lm7'", "a.md", ["password"]),
        ("human:jo@corp-mail.org", "a.md", ["email"]),
    ],
)
def test_a_secret_in_a_citation_is_found(source: str, file: str, kinds: list[str]):
    """Names of files announce nothing; known tokens, addresses and assignments are found there."""
    text = HEADER.format(source=source, file=file)
    assert [finding.kind for finding in find(text)] == kinds
    assert [finding.kind for finding in find(text.replace("\n", "\r\n"))] == kinds
