"""Whether a source resolves is decided once, for every verb."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Sandbox

from memtool.commands.verify import verify
from memtool.commands.why import why
from memtool.memory.schema import parse_source
from memtool.store.repository import discover
from memtool.store.sources import (
    MISSING,
    NO_BASE,
    OK,
    UNKNOWN,
    UNREACHABLE,
    UNUSABLE,
    Citation,
    Resolution,
    resolve,
)


def resolved(
    sandbox: Sandbox, *texts: str, base: str = "", tips: tuple[str, ...] = ()
) -> list[Resolution]:
    """Resolve sources, in their order."""
    citations = [Citation(parse_source(text), base) for text in texts]
    repository = discover(str(sandbox.path), sandbox.env)
    by_citation = resolve(repository, citations, tips)
    return [by_citation[citation] for citation in citations]


def test_a_commit_leads_to_a_tip_or_is_only_here(sandbox: Sandbox) -> None:
    """Without tips being here is enough; with them the first one that it leads to is told."""
    sandbox.write("a.txt", "one\n")
    first = sandbox.commit()
    sandbox.write("a.txt", "two\n")
    stray = sandbox.commit()
    sandbox.git("reset", "--quiet", "--hard", first)
    sandbox.write("a.txt", "three\n")
    head = sandbox.commit()
    named = (f"commit:{first[:12]}", f"commit:{stray}", f"commit:{'1' * 40}")
    states = [(resolution.status, resolution.commit) for resolution in resolved(sandbox, *named)]
    assert states == [(OK, first), (OK, stray), (MISSING, "")]
    tips = [
        (resolution.status, resolution.tip)
        for resolution in resolved(sandbox, *named, tips=(head, ""))
    ]
    assert tips == [(OK, head), (UNREACHABLE, ""), (MISSING, "")]
    assert [resolution.tip for resolution in resolved(sandbox, *named, tips=(head, stray))] == [
        head,
        stray,
        "",
    ]


def test_a_file_is_looked_up_where_it_is_cited(sandbox: Sandbox) -> None:
    """In the commit that the source names, else in the base; if git cannot tell, it is unknown."""
    sandbox.write("src/a.txt", "one\n")
    first = sandbox.commit()
    sandbox.git("rm", "--quiet", "src/a.txt")
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    sandbox.git("commit", "--quiet", "-m", "two")
    head = sandbox.git("rev-parse", "HEAD").strip()
    texts = (f"file:src/a.txt@{first[:10]}", "file:src/a.txt", "file:sub", "file:.git/config")
    resolutions = resolved(sandbox, *texts, base=head)
    assert [resolution.status for resolution in resolutions] == [OK, MISSING, UNKNOWN, UNKNOWN]
    assert (resolutions[0].commit, resolutions[0].type, resolutions[0].size) == (first, "blob", 4)
    assert resolutions[3].type == UNUSABLE
    (folder,) = resolved(sandbox, "file:src/", base=first)
    assert folder.type == "tree"
    (unbased,) = resolved(sandbox, "file:src/a.txt")
    assert (unbased.status, unbased.type) == (UNKNOWN, NO_BASE)


@pytest.mark.parametrize("option", ["--depth=1", "--filter=tree:0"])
def test_no_verb_calls_missing_what_a_clone_need_not_hold(
    sandbox: Sandbox, tmp_path: Path, option: str
) -> None:
    """Nor does any fetch it: `check` is silent, `why` and `verify` say that they cannot tell."""
    sandbox.write("a.txt", "one\n")
    first = sandbox.commit()
    sandbox.memory("dec-a", source=(f"commit:{'f' * 40}", f"file:a.txt@{first}"))
    sandbox.commit()
    sandbox.git("config", "uploadpack.allowFilter", "true")
    sandbox.git("clone", "--quiet", option, f"file://{sandbox.path}", str(tmp_path / "clone"))
    clone = Sandbox(tmp_path / "clone", sandbox.env)
    done = clone.run("check")
    assert (done.returncode, "broken-source" in done.stdout) == (0, False), done.stderr
    context = clone.context()
    assert [source.status for source in why(context, "dec-a").sources] == [UNKNOWN] * 2
    assert [source.status for source in verify(context, "dec-a").memories[0].sources] == [
        UNKNOWN
    ] * 2
