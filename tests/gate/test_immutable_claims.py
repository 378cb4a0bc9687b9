from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.commands.check import check

BODY = "Sessions live in Redis, since web processes come and go.\n"


def staged(sandbox: Sandbox) -> list[tuple[str, str, str]]:
    sandbox.git("add", "--all")
    problems = check(sandbox.context(), staged=True).problems
    assert {(p.code, p.id) for p in problems} == {
        (p.code, p.id) for p in check(sandbox.context()).problems
    }
    return [(p.id, p.code, p.severity) for p in problems]


@pytest.fixture
def begun(sandbox: Sandbox) -> Sandbox:
    sandbox.memory("dec-a", BODY, tags=("cache",))
    sandbox.commit()
    return sandbox


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"title": "Another title"}, "silent-edit"),
        ({"source": ("human:Eve",)}, "silent-edit"),
        ({"confidence": "high"}, "silent-edit"),
        ({"timestamp": "2026-02-22T19:34:00Z"}, "silent-edit"),
        ({"timestamp": "2026-02-21T19:33:00Z"}, "backdated"),
        ({"supersedes": ()}, "silent-edit"),
        ({"type": "semantic"}, "moved"),
    ],
)
def test_a_claim_is_refused(begun: Sandbox, fields: dict[str, str], code: str) -> None:
    """Each key of the claim is guarded, and the body with them."""
    if "type" in fields:
        begun.git("rm", "--quiet", "--cached", "-r", ".memory")
        (begun.path / ".memory/decision/2026-02/dec-a.md").unlink()
    begun.memory("dec-a", BODY, **({"tags": ("cache",)} | fields))
    assert ("dec-a", code, "error") in staged(begun)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "pinned"},
        {"status": "deprecated"},
        {"status": "archived"},
        {"status": "deleted", "deleted": {"at": "2026-02-23T00:00:00Z", "by": "Ada"}},
        {"importance": "0.9"},
        {"tags": ("cache", "auth")},
        {"valid_through": "2026-12-31"},
        {"checked": {"at": "2026-02-23T00:00:00Z", "by": "Ada"}},
        {"privacy": ("internal",)},
        {"conflicts_accepted": ("dec-other",)},
        {"x-ticket": "ABC-1"},
    ],
)
def test_lifecycle_and_governance_may_change(begun: Sandbox, fields: dict[str, str]) -> None:
    """Lifecycle fields are not part of the claim."""
    begun.memory("dec-a", BODY, **({"tags": ("cache",)} | fields))
    assert staged(begun) == []


def test_a_candidate_may_be_edited_freely(sandbox: Sandbox) -> None:
    """Nobody has vouched for it yet."""
    sandbox.memory("dec-a", BODY, status="candidate")
    sandbox.commit()
    sandbox.memory("dec-a", "Otherwise.\n", timestamp="2026-02-01T00:00:00Z")
    assert staged(sandbox) == []


def test_a_redaction_is_the_one_change_of_a_claim(sandbox: Sandbox) -> None:
    """Spans may become marks; any other change is an edit."""
    sandbox.memory("dec-a", "The port is 6379 for all.\n")
    sandbox.commit()
    sandbox.memory("dec-a", "The port is [REDACTED:secret] for all.\n")
    assert staged(sandbox) == []
    sandbox.memory("dec-a", "The port is [REDACTED:secret] for some.\n")
    assert staged(sandbox) == [("dec-a", "silent-edit", "error")]


def test_becoming_a_candidate_again_is_told(begun: Sandbox) -> None:
    """It would be the way around: take back the confirmation, edit, confirm."""
    begun.memory("dec-a", BODY, status="candidate", tags=("cache",))
    assert staged(begun) == [("dec-a", "unconfirmed", "warning")]


def test_removed_moved_and_renamed(begun: Sandbox) -> None:
    """Memories keep their place and their name; git would merge edits into the wrong file."""
    begun.memory("dec-b", "Invoices are rendered at night.\n")
    begun.memory("dec-c", "Migrations run backwards too.\n")
    begun.memory("dec-d", "Mails are sent by a queue.\n")
    begun.memory("dec-e", "Uploads go to a bucket.\n")
    begun.commit()
    folder = ".memory/decision/2026-02"
    begun.git("rm", "--quiet", f"{folder}/dec-d.md")
    begun.git("mv", f"{folder}/dec-b.md", ".memory/dec-b.md")
    begun.git("rm", "--quiet", f"{folder}/dec-c.md")
    begun.memory("dec-z", "Migrations run backwards too.\n", title="Title of dec-c")
    assert [row[:2] for row in staged(begun)] == [
        ("dec-b", "moved"),
        ("dec-d", "removed"),
        ("dec-z", "moved"),
    ]


def test_a_removed_memory_that_was_never_readable_is_no_loss(sandbox: Sandbox) -> None:
    """Who takes away a broken file mends the tree."""
    sandbox.write(".memory/dec-a.md", "no memory\n")
    sandbox.commit()
    sandbox.git("rm", "--quiet", ".memory/dec-a.md")
    (sandbox.path / ".memory").mkdir(exist_ok=True)
    assert staged(sandbox) == []


def test_adding_a_carriage_return_is_no_edit_of_the_header(begun: Sandbox) -> None:
    """Rewriting the same values in another spelling changes no claim."""
    place = begun.path / ".memory/decision/2026-02/dec-a.md"
    place.write_text(place.read_text().replace("title: Title of dec-a", 'title: "Title of dec-a"'))
    assert staged(begun) == []


def test_a_merge_may_bring_what_either_side_holds(begun: Sandbox) -> None:
    """Lifecycle changes of both sides and a redaction of one come together unharmed."""
    begun.git("checkout", "--quiet", "-b", "side")
    begun.memory("dec-a", BODY, tags=("cache", "side"))
    begun.memory("dec-b", "Invoices are rendered at night.\n")
    begun.commit()
    begun.git("checkout", "--quiet", "main")
    begun.memory("dec-c", "Migrations run backwards too.\n")
    begun.commit()
    begun.git("merge", "--no-commit", "--no-ff", "side")
    assert staged(begun) == []


def test_an_edit_that_only_the_merge_makes_is_found(begun: Sandbox) -> None:
    """Neither side wrote it, so it was never reviewed."""
    begun.git("checkout", "--quiet", "-b", "side")
    begun.memory("dec-b", "Invoices are rendered at night.\n")
    begun.commit()
    begun.git("checkout", "--quiet", "main")
    begun.memory("dec-c", "Migrations run backwards too.\n")
    begun.commit()
    begun.git("merge", "--no-commit", "--no-ff", "side")
    begun.memory("dec-a", "Sessions live in Postgres.\n", tags=("cache",))
    begun.memory("dec-b", "Invoices are rendered at noon.\n")
    assert staged(begun) == [("dec-a", "silent-edit", "error"), ("dec-b", "silent-edit", "error")]


def test_a_memory_that_a_merge_drops_is_found(begun: Sandbox) -> None:
    """Also where HEAD never had it: the other side did."""
    begun.git("checkout", "--quiet", "-b", "side")
    begun.memory("dec-b", "Invoices are rendered at night.\n")
    begun.commit()
    begun.git("checkout", "--quiet", "main")
    begun.memory("dec-c", "Migrations run backwards too.\n")
    begun.commit()
    begun.git("merge", "--no-commit", "--no-ff", "side")
    for name in ("dec-b", "dec-c"):
        begun.git("rm", "--quiet", "--force", f".memory/decision/2026-02/{name}.md")
    assert [row[:2] for row in staged(begun)] == [("dec-b", "removed"), ("dec-c", "removed")]


def test_a_removal_of_the_other_side_is_its_own(begun: Sandbox) -> None:
    """Its commit is where it is judged; merging it does not stop the one who merges."""
    begun.memory("dec-b", "Invoices are rendered at night.\n")
    begun.commit()
    begun.git("checkout", "--quiet", "-b", "side")
    begun.git("rm", "--quiet", ".memory/decision/2026-02/dec-b.md")
    begun.git("commit", "--quiet", "--message", "gone")
    begun.git("checkout", "--quiet", "main")
    begun.memory("dec-c", "Migrations run backwards too.\n")
    begun.commit()
    begun.git("merge", "--no-commit", "--no-ff", "side")
    assert staged(begun) == []
