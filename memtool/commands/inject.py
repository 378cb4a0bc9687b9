"""`memtool inject`: the block of memories that an agent gets."""

from __future__ import annotations

from memtool.agents import BLOCK_FORMATS
from memtool.commands._features import build_tiers
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.index.reader import EXACT
from memtool.inject import block
from memtool.inject.answer import build_block
from memtool.inject.block import InjectedBlock
from memtool.inject.budget import plan
from memtool.inject.candidates import read_gates
from memtool.inject.file_rules import paths_from_top
from memtool.inject.gather import MAX_PROMPT, GatherRequest
from memtool.search.answer_gate import choose_preset
from memtool.search.scope import note_expired
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
    into: str = "",
    renew: bool = False,
    dry_run: bool = False,
) -> InjectedBlock | Block:
    """Print what an agent should know; nothing if nothing is relevant.

    What to print:
        --prompt TEXT     what answers this prompt
        --files PATH      what governs these files
        --primer          what a session begins with: pinned memories, the work, what is new
        --into PATH       refresh the block in a file such as AGENTS.md, for agents without hooks

    Pinned memories come first. Your global memories are included, and give way to those of the
    project. The block is at most --budget tokens long (setting inject.budget_tokens), about 4 bytes
    each.

    NAME is {BLOCK_FORMATS}.

    Example:
        memtool inject --prompt "why do we keep sessions in redis?" --for claude
        memtool inject --files harbor/payments.py

    Args:
        prompt: what the agent was asked, or - to read it from stdin
        files: the files that the work is about
        for_: the agent that reads it, or plain for any other reader
        format: xml, markdown, text or json, instead of the agent's own
        budget: the maximum number of tokens
        remaining: the tokens that the agent's window still has
        session: a session that is shown no memory twice
        at: a revision instead of the worktree
        as_of: a past time: a date, RFC 3339, or an age such as 30d
        explain: explain for each memory why it is in or out
        exact: check every file for changes, even in very large stores
        no_global: leave out your global memories
        primer: print what a session begins with
        into: refresh the block in this file, instead of printing one
        renew: with --into, only renew it, and only on the default branch
        dry_run: with --into, only show what would be done
    """
    if context.caller.is_off:
        return _build_empty_answer(context, format, session)
    if (dry_run or renew) and not into:
        option = "--dry-run" if dry_run else "--renew"
        raise MemtoolError(f"{option} needs --into", hint="memtool inject --into AGENTS.md")
    if (primer or into) and (prompt or files or explain):
        raise MemtoolError(
            "--prompt, --files and --explain have no effect with --primer or --into",
            hint="memtool inject --primer",
        )
    if into:
        other_options = (primer, for_ != "plain", format, session, exact, no_global)
        is_other = any(other_options) or (budget, remaining, at, as_of) != (None,) * 4
        return _write_block(context, into, dry_run=dry_run, is_other=is_other, is_renewal=renew)
    if budget is None and remaining is None:
        budget = context.caller.budget_tokens
    shares = plan(context.project.strict_settings, budget, remaining)
    block_format = block.BY_NAME[BLOCK_FORMATS[for_] if format in ("", "json") else format]
    request = GatherRequest(
        context,
        _read_prompt(prompt),
        paths_from_top(context, files),
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

        injected = session_primer.build_primer(
            request, block_format, shares, lifecycle.find_recap(context, session)
        )
    else:
        injected = build_block(request, block_format, shares, build_tiers(context))
        _note_empty_block(context, injected, format, explain=explain)
    injected = injected.replace(format=format or block_format.name)
    note_expired(context, injected.expired)
    gates = _read_gates(context) if explain else {}
    if explain:
        injected = injected.replace(
            explain=_choose_verdicts(injected.verdicts),
            gates={JSON_NAMES.get(name, name): gate for name, gate in gates.items()},
        )
    if explain and format != "json":
        numbers = ", ".join(f"{name} {value:g}" for name, value in gates.items())
        context.notes.append(f"the thresholds (settings of inject): {numbers}")
        context.notes.extend(map(_format_verdict, injected.explain or ()))
        if not injected.explain:
            context.notes.append("nothing is pinned, and nothing matches the prompt")
    return injected


def _note_empty_block(
    context: Context, injected: InjectedBlock, format: str, *, explain: bool
) -> None:
    """Note at a terminal that nothing is relevant; a pipe belongs to an agent."""
    if context.caller.is_person and not (injected.text or explain or format == "json"):
        context.notes.append("nothing relevant; --explain shows what was held back")


def _write_block(
    context: Context, path: str, *, dry_run: bool, is_other: bool, is_renewal: bool
) -> Block:
    """Carry out --into. Raises MemtoolError if another option is given (`is_other`)."""
    if is_other:
        raise MemtoolError(
            "--into does not take other options: the block in a file is the same for everyone",
            hint=f"memtool inject --into {path}",
        )
    from memtool.inject import agents_md  # not at every prompt

    return agents_md.mark(context, path, dry_run=dry_run, is_renewal=is_renewal)


def render(injected: InjectedBlock | Block, _layout: Layout) -> str:
    """Return the block, unchanged, or with --format json its JSON."""
    if not isinstance(injected, InjectedBlock):
        from memtool.inject import agents_md

        return agents_md.format_block_result(injected)
    if injected.format != "json":
        return injected.text
    import json

    return json.dumps(injected.plain(), indent=2)


def _read_prompt(prompt: str) -> str:
    """Return the prompt, with bytes that are not UTF-8 replaced: they match no word."""
    if prompt != "-":
        return prompt.encode(errors="replace")[:MAX_PROMPT].decode(errors="replace")
    # A host may start us with stdin closed.
    from memtool.commands import _filters  # rarely needed: hooks pass the prompt

    return _filters.read_stdin(MAX_PROMPT, is_cut=True).decode(errors="replace")


def _build_empty_answer(context: Context, format: str, session: str) -> InjectedBlock:
    """Return the empty answer that is given while memtool is switched off."""
    return InjectedBlock(plan(context.settings, 0, None), (), "", format, EXACT, session)


def _choose_verdicts(verdicts: Iterable[CandidateVerdict]) -> tuple[CandidateVerdict, ...]:
    """Return one verdict per memory: that it was taken, else the first that refused it.

    Taken memories come first.
    """
    chosen: dict[tuple[str, str], CandidateVerdict] = {}
    for verdict in verdicts:
        key = verdict.id, verdict.repository
        if key not in chosen or (verdict.is_taken and not chosen[key].is_taken):
            chosen[key] = verdict
    return tuple(sorted(chosen.values(), key=lambda verdict: not verdict.is_taken))


JSON_NAMES = {
    "min_coverage": "share",
    "sufficient_rare_words": "most",
    "min_rare_words": "floor",
    "candidate_pool": "looked_at",
}
"""Settings that `gates` in JSON calls otherwise, since keys of answers do not change."""


def _read_gates(context: Context) -> dict[str, float]:
    """Return the thresholds that choose a block, each by the name of its setting."""
    chosen = choose_preset(context.project.strict_settings)
    return {
        **chosen.strictness.plain(),
        "threshold": chosen.threshold,
        **read_gates(context.project.strict_settings).plain(),
    }


def _format_verdict(verdict: CandidateVerdict) -> str:
    fate = "taken" if verdict.is_taken else "not taken"
    numbers = [] if verdict.score is None else [f"score {verdict.score:.3f}"]
    numbers += [f"{name} {value:.3f}" for name, value in sorted(verdict.factors.items())]
    tail = f" ({', '.join(numbers)})" if numbers else ""
    whose = f" of {verdict.repository}" if verdict.repository else ""
    return f"{verdict.id}{whose}: {fate} as {verdict.tier}: {verdict.reason}{tail}"


def _refuse_bare_prompt(words: list[str], _directory: str) -> list[str]:
    """Refuse `memtool inject how long`: the text is an option."""
    if words:
        raise MemtoolError(
            "inject takes its text with --prompt",
            hint=f"memtool inject --prompt {_quote(' '.join(words))}",
        )
    return words


def _quote(text: str) -> str:
    """Quote a text for a shell; with double quotes if it holds nothing that these expand."""
    import shlex  # for a wrong call only

    return shlex.quote(text) if any(mark in text for mark in '"$`\\!') else f'"{text}"'


READINGS = {"inject": _refuse_bare_prompt}
"""Readings of arguments that are easily confused, by verb; they get the words and that of -C."""
