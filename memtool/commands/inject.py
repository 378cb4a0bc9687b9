"""`memtool inject`: the block of memories that an agent gets."""

from __future__ import annotations

import os
import sys

from memtool.commands import listing
from memtool.inject import budget as budgets
from memtool.inject import formats, selection, tiers
from memtool.inject.block import frame_bytes, passage, write_block, write_passage
from memtool.inject.budget import Budget
from memtool.inject.formats import Format
from memtool.inject.standing import standing
from memtool.inject.tiers import Candidate, Grounds, Taken, Verdict
from memtool.search import presets
from memtool.search.finding import Found, Scope
from memtool.search.prose import search_prose
from memtool.store.provenance import Origin, Witness, cite
from memtool.store.tree import Record, Tree
from memtool.value import Value
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Literal

MAX_PROMPT = 1 << 20
"""Bytes of a prompt that are looked at; nobody asks with more."""

HITS = 15
"""How many of the best hits are looked at, since some are shown already or do not fit."""


class Item(Value):
    """One memory of the block. `text` is how it stands there, `tokens` what that costs.

    `commit` is None for what is in no commit, `score` for what was not searched, `drift` where
    it is not known.
    """

    id: str
    tier: str
    score: float | None
    tokens: int
    commit: str | None
    trust: str
    drift: float | None
    conflicts: tuple[str, ...]
    text: str


class Injected(Value):
    """The block with its items, in the order of the block, and what was decided on the way.

    `freshness` is `exact` where every file was checked for a change, else `dir-exact`. `prompt` is
    what was asked, `verdicts` all decisions; neither is part of the JSON.
    """

    budget: Budget
    items: tuple[Item, ...]
    text: str
    format: str
    session: str
    freshness: str
    explain: tuple[Verdict, ...] | None
    prompt: str = ""
    verdicts: tuple[Verdict, ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return the JSON shape: the shares, the items, the block."""
        used = budgets.tokens(self.text)
        shares = ("total", "pinned", "bridge", "retrieval", "summary")
        shape = {
            "budget": {name: getattr(self.budget, name) for name in shares} | {"used": used},
            "items": [item.plain() for item in self.items],
            "text": self.text,
            "freshness": self.freshness,
        }
        if self.session:
            shape["session"] = self.session
        if self.explain is not None:
            shape["explain"] = [verdict.plain() for verdict in self.explain]
        return shape


def inject(
    ws: Workspace,
    *,
    prompt: str = "",
    files: tuple[str, ...] = (),
    for_: Literal["claude", "gemini", "codex", "opencode", "cursor", "plain"] = "plain",
    format: Literal["", "xml", "markdown", "text", "json"] = "",
    budget: int | None = None,
    remaining: int | None = None,
    session: str = "",
    at: str | None = None,
    as_of: str | None = None,
    explain: bool = False,
    exact: bool = False,
) -> Injected:
    """Print the memories that an agent should know of before it answers.

    Pinned memories come first, then what answers the prompt or governs the files. Each stands with
    its citation, its date and its trust. Where nothing is pinned and nothing is relevant, nothing
    is printed. The same tree, prompt, files and moment give the same bytes.

    Tokens are estimated, as a quarter of the bytes. The whole text stays within --budget, else
    within what --remaining allows, else within the setting inject.budget_tokens.

    Example:
        memtool inject --prompt "why do we keep sessions in redis?" --for claude

    Args:
        prompt: what the agent was asked, or - to read it from stdin
        files: the files that the work is about
        for_: the agent that reads it; decides the format
        format: the format, instead of the agent's own
        budget: most tokens of the whole text
        remaining: tokens that the agent's window still has
        session: the session that it is for; named again in the JSON
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment
        explain: say why each memory was taken or not
        exact: check every file for a change, also where there are very many
    """
    shares = budgets.plan(ws.settings, budget, remaining)
    form = formats.BY_NAME[formats.HOSTS[for_] if format in ("", "json") else format]
    tree = ws.catalog(at, as_of, exact=exact)
    witness = ws.witness(tree)
    grounds = _grounds(ws, tree, ws.moment_of(as_of), witness)
    first = tiers.pinned(grounds)
    asked = _read_prompt(prompt)
    scope = _scope(ws, grounds)
    found = _retrieved(scope, asked, _inside(ws, files), explain=explain)
    seen = [one.record for one in first] + [hit.record for hit in found.hits]
    if not exact and not tree.verify(seen):
        # A file was rewritten in place, which only a check of every file is sure to see.
        return inject(
            ws,
            prompt=asked,
            files=files,
            for_=for_,
            format=format,
            budget=budget,
            remaining=remaining,
            session=session,
            at=at,
            as_of=as_of,
            explain=explain,
            exact=True,
        )
    ws.notes.extend(found.notes)
    hits = [
        Candidate(hit.record, tiers.RETRIEVAL, hit.score, hit.factors, related=hit.related)
        for hit in found.hits
    ]
    origins = _origins(witness, grounds, [*first, *hits])

    def write(candidate: Candidate, is_whole: bool) -> str:  # noqa: FBT001  # one of two texts
        return _written(candidate.record, grounds, origins, form, is_whole=is_whole)

    room = shares.total * budgets.BYTES_PER_TOKEN - frame_bytes(form)
    chosen, verdicts = selection.choose(first, grounds, origins)
    count = ws.settings.count
    taken, said = tiers.fill(chosen, write, count("inject.pinned_most"), shares.pinned, room)
    verdicts += said
    shares = shares.after_pinned(sum(one.tokens for one in taken))
    room -= sum(len(one.text.encode()) for one in taken)
    threshold = presets.preset(ws.settings).threshold
    shown = [one.candidate for one in taken]
    most = scope.cutoffs.shown
    chosen, dropped = selection.choose(hits, grounds, origins, threshold, shown, most)
    more, said = tiers.fill(chosen, write, count("inject.retrieval_most"), shares.retrieval, room)
    taken += more
    verdicts += dropped + said + _replaced(hits, grounds)
    verdicts += [Verdict(one.record.id, tiers.RETRIEVAL, is_taken=False, reason=one.reason)
                 for one in found.missed]  # fmt: skip
    injected = Injected(
        budget=shares,
        items=tuple(_item(one, grounds, origins) for one in taken),
        text=write_block([one.text for one in taken], form),
        format=format or form.name,
        session=session,
        freshness=tree.freshness,
        explain=_final(verdicts) if explain else None,
        prompt=asked,
        verdicts=tuple(verdicts),
    )
    if explain and format != "json":
        ws.notes.extend(map(_explained, injected.explain or ()))
        if not injected.explain:
            ws.notes.append("nothing is pinned, nothing answers the prompt")
    return injected


def render(injected: Injected) -> str:
    """Return exactly the block, or the JSON that was asked for as a format."""
    if injected.format != "json":
        return injected.text
    import json

    return json.dumps(injected.plain(), indent=2)


def _read_prompt(prompt: str) -> str:
    """Return the prompt. What is not UTF-8 in it is no word that anybody could look for."""
    if prompt != "-":
        return prompt.encode(errors="replace")[:MAX_PROMPT].decode(errors="replace")
    if sys.stdin is None:  # a host may start us with it closed
        return ""
    return sys.stdin.buffer.read(MAX_PROMPT).decode(errors="replace")


def _inside(ws: Workspace, files: Iterable[str]) -> tuple[str, ...]:
    """Return the paths from the top of the repository; those outside are no memory's concern."""
    top = ws.repository.top or ws.cwd
    found = []
    for path in files:
        if not path or "\0" in path:
            continue
        folder, name = os.path.split(os.path.normpath(os.path.join(ws.cwd, path)))
        inside = os.path.relpath(os.path.join(os.path.realpath(folder), name), top)
        if inside != ".." and not inside.startswith("../"):
            found.append(inside)
    return tuple(found)


def _grounds(ws: Workspace, tree: Tree, now: int, witness: Witness) -> Grounds:
    least = ws.settings.text("inject.trust")
    weighed = standing(tree, witness, least, ws.settings.categories)
    return Grounds(tree, weighed, now, ws.settings.categories, least)


def _scope(ws: Workspace, grounds: Grounds) -> Scope:
    """Return what is searched. It, too, must find what a file has not the trust to replace."""
    found = listing.scope(ws, grounds.tree, grounds.now)
    return listing.timed(ws, found).replace(lineage=grounds.standing.lineage)


def _retrieved(scope: Scope, prompt: str, files: tuple[str, ...], *, explain: bool) -> Found:
    """Return what answers the prompt; where nothing does, what governs the files."""
    found = Found((), 0)
    if prompt.strip():
        found = search_prose(scope, prompt, files, HITS, explain=explain)
    if files and not found.hits:
        near = search_prose(scope, "", files, HITS)
        found = near.replace(notes=found.notes or near.notes, missed=found.missed)
    return found


def _origins(
    witness: Witness, grounds: Grounds, candidates: Iterable[Candidate]
) -> dict[str, Origin]:
    """Ask git once about everything that may be shown."""
    records = {}
    for candidate in candidates:
        for record in (candidate.record, *grounds.beside(candidate.record)):
            records[record.path] = record
    return witness.origins(records.values())


def _written(
    record: Record, grounds: Grounds, origins: dict[str, Origin], form: Format, *, is_whole: bool
) -> str:
    memory = record.memory
    origin = origins[record.path]
    marks = grounds.standing.marks(record.id)
    if memory.status == "candidate":
        marks = ("[CANDIDATE] nobody has confirmed it", *marks)
    shown = passage(memory, cite(record.id, origin), origin.trust, marks, is_whole=is_whole)
    return write_passage(shown, form)


def _item(taken: Taken, grounds: Grounds, origins: dict[str, Origin]) -> Item:
    candidate = taken.candidate
    origin = origins[candidate.record.path]
    return Item(
        id=candidate.record.id,
        tier=candidate.tier,
        score=tiers.rounded(candidate.score),
        tokens=taken.tokens,
        commit=origin.commit or None,
        trust=origin.trust,
        drift=None,
        conflicts=grounds.standing.conflicts(candidate.record.id),
        text=taken.text,
    )


def _replaced(hits: Iterable[Candidate], grounds: Grounds) -> list[Verdict]:
    """Return verdicts about what the hits replace: it would have answered too."""
    replaced = grounds.standing.lineage.supersedes
    olds = {old for hit in hits for old in replaced.get(hit.record.id, ())}
    records = [grounds.tree.by_id[old] for old in sorted(olds) if old in grounds.tree.by_id]
    return [
        tiers.verdict(
            Candidate(record, tiers.RETRIEVAL), grounds.objection(record.memory), is_taken=False
        )
        for record in records
    ]


def _final(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Keep one verdict for each memory: that it was taken, else the first reason against it.

    What was taken comes first.
    """
    kept: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.id not in kept or (verdict.is_taken and not kept[verdict.id].is_taken):
            kept[verdict.id] = verdict
    return tuple(sorted(kept.values(), key=lambda verdict: not verdict.is_taken))


def _explained(verdict: Verdict) -> str:
    fate = "taken" if verdict.is_taken else "not taken"
    numbers = [] if verdict.score is None else [f"score {verdict.score:.3f}"]
    numbers += [f"{name} {value:.3f}" for name, value in sorted(verdict.factors.items())]
    tail = f" ({', '.join(numbers)})" if numbers else ""
    return f"{verdict.id}: {fate} as {verdict.tier}: {verdict.reason}{tail}"
