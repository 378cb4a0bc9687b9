"""`memtool inject`: the block of memories that an agent gets."""

from __future__ import annotations

from memtool.agents import BLOCK_FORMATS
from memtool.commands._features import added_tiers
from memtool.errors import MemtoolError
from memtool.index.reader import EXACT
from memtool.inject import block
from memtool.inject.answer import build_block
from memtool.inject.block import Injected
from memtool.inject.budget import plan
from memtool.inject.candidates import gates_of
from memtool.inject.file_rules import inside
from memtool.inject.gather import MAX_PROMPT, GatherRequest
from memtool.search.answer_gate import preset
from memtool.search.scope import tell_expired
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Annotated, Literal

    from memtool.inject.agents_md import Block
    from memtool.inject.candidates import CandidateVerdict


def inject(
    context: Context,
    *,
    prompt: str = "",
    files: tuple[str, ...] = (),
    for_: Annotated[str, BLOCK_FORMATS] = "plain",
    format: Literal["", "xml", "markdown", "text", "json"] = "",
    budget: int | None = None,
    remaining: int | None = None,
    session: str = "",
    at: str | None = None,
    as_of: str | None = None,
    explain: bool = False,
    exact: bool = False,
    no_global: bool = False,
    primer: bool = False,
    write: str = "",
    dry_run: bool = False,
) -> Injected | Block:
    """Print the memories that an agent should know of before it answers.

    Pinned memories come first, then what governs a file that is named, then what answers. Each
    stands with its citation, its date and its trust; heads of a fork stand side by side, and are
    marked. Where nothing is pinned and nothing is relevant, nothing is printed. The same tree,
    prompt, files and moment give the same bytes.

    The user's global memories stand beside those of the project, and give way to what it says
    itself. With --at they are left out: no revision of the project knows of them.

    Below all others follow up to three of other repositories, where the user's own settings say
    inject.fleet: only what clearly answers, and is not against what is known here. --explain says
    of each of them why it was taken or not.

    Tokens are estimated, as a quarter of the bytes. The whole text stays within --budget, else
    within what --remaining allows, else within MEMTOOL_BUDGET or the setting inject.budget_tokens.

    --primer prints what a session should know at its start: what is pinned, the session before,
    the state of the work, what governs files changed lately, what is new, what waits.

    --write puts what is pinned, and the titles of what stays true, between two marker lines of a
    file such as AGENTS.md, for agents without hooks; the rest of the file keeps its bytes, and
    memtool check warns when the block is out of date.

    Example:
        memtool inject --prompt "why do we keep sessions in redis?" --for claude

    Args:
        prompt: what the agent was asked, or - to read it from stdin
        files: the files that the work is about
        for_: the agent that reads it; decides the format
        format: the format, instead of the agent's own
        budget: most tokens of the whole text
        remaining: tokens that the agent's window still has
        session: the session that it is for, which is shown no memory twice unless it changed
        at: the memories of this revision instead of the worktree
        as_of: the memories as they stood at this moment
        explain: say why each memory was taken or not
        exact: check every file for a change, also where there are very many
        no_global: leave out the user's global memories
        primer: the primer of a session, instead of what answers a prompt
        write: refresh the block in this file, instead of printing one
        dry_run: with --write, only say what would be done
    """
    if context.caller.is_off:
        return _silent(context, format, session)
    if dry_run and not write:
        raise MemtoolError("--dry-run goes with --write", hint="memtool inject --write AGENTS.md")
    if (primer or write) and (prompt or files or explain):
        raise MemtoolError(
            "--primer and --write answer no prompt: --prompt, --files and --explain say nothing",
            hint="memtool inject --primer",
        )
    if write:
        given = (primer, for_ != "plain", format, session, exact, no_global)
        is_other = any(given) or (budget, remaining, at, as_of) != (None,) * 4
        return _written(context, write, dry_run=dry_run, is_other=is_other)
    if budget is None and remaining is None:
        budget = context.caller.budget_tokens
    shares = plan(context.project.strict_settings, budget, remaining)
    form = block.BY_NAME[BLOCK_FORMATS[for_] if format in ("", "json") else format]
    asked = GatherRequest(
        context,
        _read_prompt(prompt),
        inside(context, files),
        session,
        at,
        as_of,
        explain,
        exact,
        no_global,
    )
    if primer:
        from memtool.inject import session_primer  # not at every prompt
        from memtool.sessions import lifecycle

        injected = session_primer.prime(asked, form, shares, lifecycle.recap(context, session))
    else:
        injected = build_block(asked, form, shares, added_tiers(context))
        _note_silence(context, injected, format, explain=explain)
    injected = injected.replace(format=format or form.name)
    tell_expired(context, injected.expired)
    if explain:
        injected = injected.replace(explain=_final(injected.verdicts), gates=_gates(context))
    if explain and format != "json":
        numbers = ", ".join(f"{name} {value:g}" for name, value in _gates(context).items())
        context.notes.append(f"the gates, settings of inject: {numbers}")
        context.notes.extend(map(_explained, injected.explain or ()))
        if not injected.explain:
            context.notes.append("nothing is pinned, nothing answers the prompt")
    return injected


def _note_silence(context: Context, injected: Injected, format: str, *, explain: bool) -> None:
    """Say at a terminal that an empty block has reasons; a pipe is an agent's."""
    if context.caller.is_person and not (injected.text or explain or format == "json"):
        context.notes.append("nothing relevant; --explain shows what was held back")


def _written(context: Context, path: str, *, dry_run: bool, is_other: bool) -> Block:
    """Answer --write. Raises MemtoolError where another option `is_other` is given with it."""
    if is_other:
        raise MemtoolError(
            "the block of a file is the same for everybody: --write takes no other option",
            hint=f"memtool inject --write {path}",
        )
    from memtool.inject import agents_md  # not at every prompt

    return agents_md.mark(context, path, dry_run=dry_run)


def render(injected: Injected | Block) -> str:
    """Return exactly the block, or the JSON that was asked for as a format."""
    if not isinstance(injected, Injected):
        from memtool.inject import agents_md

        return agents_md.rendered(injected)
    if injected.format != "json":
        return injected.text
    import json

    return json.dumps(injected.plain(), indent=2)


def _read_prompt(prompt: str) -> str:
    """Return the prompt. What is not UTF-8 in it is no word that anybody could look for."""
    if prompt != "-":
        return prompt.encode(errors="replace")[:MAX_PROMPT].decode(errors="replace")
    # A host may start us with stdin closed.
    from memtool.commands import _filters  # a hook hands the prompt over

    return _filters.read_stdin(MAX_PROMPT, is_cut=True).decode(errors="replace")


def _silent(context: Context, format: str, session: str) -> Injected:
    """Return the answer of a memtool that is switched off."""
    return Injected(plan(context.settings, 0, None), (), "", format, EXACT, session)


def _final(verdicts: Iterable[CandidateVerdict]) -> tuple[CandidateVerdict, ...]:
    """Keep one verdict for each memory: that it was taken, else the first reason against it.

    What was taken comes first.
    """
    kept: dict[tuple[str, str], CandidateVerdict] = {}
    for verdict in verdicts:
        key = verdict.id, verdict.repository
        if key not in kept or (verdict.is_taken and not kept[key].is_taken):
            kept[key] = verdict
    return tuple(sorted(kept.values(), key=lambda verdict: not verdict.is_taken))


def _gates(context: Context) -> dict[str, float]:
    """Return the numbers by which a block is chosen, each under the name of its setting."""
    chosen = preset(context.project.strict_settings)
    return {
        **chosen.strictness.plain(),
        "threshold": chosen.threshold,
        **gates_of(context.project.strict_settings).plain(),
    }


def _explained(verdict: CandidateVerdict) -> str:
    fate = "taken" if verdict.is_taken else "not taken"
    numbers = [] if verdict.score is None else [f"score {verdict.score:.3f}"]
    numbers += [f"{name} {value:.3f}" for name, value in sorted(verdict.factors.items())]
    tail = f" ({', '.join(numbers)})" if numbers else ""
    whose = f" of {verdict.repository}" if verdict.repository else ""
    return f"{verdict.id}{whose}: {fate} as {verdict.tier}: {verdict.reason}{tail}"
