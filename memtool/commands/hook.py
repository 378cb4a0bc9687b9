"""`memtool hook`: what an agent host calls when something happens in a session."""

from __future__ import annotations

import os
import time

from memtool.agents import AGENTS, BLOCK_FORMATS
from memtool.errors import MemtoolError
from memtool.hosts import contracts
from memtool.hosts.contracts import MOST_INPUT, Contract, Given
from memtool.store import derived
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Annotated

    from memtool.inject.block import BlockFormat, BlockItem, Injected
    from memtool.inject.candidates import CandidateVerdict
    from memtool.store.context import Context

ENDED = "session-end"
"""The event of every host after which no more will come."""


class Hooked(Value):
    """The answer to a host: `answer` is for stdout, `meaning` what the event is for memtool.

    `session` names the one context that saw the memories: the session, or a helper inside it.
    """

    json_fields = "answer meaning session ids depth degraded"
    json_optional = "degraded"

    answer: str
    meaning: str
    session: str = ""
    prompt: str = ""
    items: tuple[BlockItem, ...] = ()
    verdicts: tuple[CandidateVerdict, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    dry_run: bool = False
    degraded: bool = False
    depth: str = ""

    @property
    def noted_as(self) -> str:
        """The verb that the ledger counts it under: a prompt is an injection like any other."""
        return "inject" if self.meaning == contracts.PROMPT else f"hook-{self.meaning}"

    @property
    def ids(self) -> tuple[str, ...]:
        """The memories in the answer."""
        return tuple(item.id for item in self.items)


def hook(
    context: Context,
    host: Annotated[str, AGENTS],
    event: str,
    *,
    input: str = "-",
    dry_run: bool = False,
) -> Hooked:
    """Answer an event of an agent host, in the host's own contract.

    memtool install puts this into the settings of the hosts. A session that starts, or goes on
    after its context was lost, gets the primer; a prompt gets the memories that answer it or govern
    the files it names; an edit gets the decisions and warnings that govern the file. No session
    is shown a memory twice unless it changed. The end of a turn, of a session, and a compaction
    hand the transcript on. When a command fails, the state of the worktree is noted, so that it can
    be run again as it was. Where a host runs the hooks of a project and of the user, one of them
    answers.

    An agent is never disturbed: whatever goes wrong, within two seconds the command has printed
    nothing, or the host's empty answer, and ends with 0. What went wrong stands in hook.log in the
    memtool directory of git. The directory that the host names decides on the repository.

    Example:
        memtool hook claude session-start < event.json

    Args:
        host: who calls
        event: the host's name of the event, with hyphens, such as user-prompt-submit
        input: the JSON of the event, or - to read it from stdin
        dry_run: answer, but note nothing, and hand nothing on
    """
    return answered(context, host, event, read(input), is_dry=dry_run)


def answered(context: Context, host: str, event: str, given: Given, *, is_dry: bool) -> Hooked:
    """Answer an event that was read already, in the repository that it is about."""
    contract = _contract(host, event)
    session = context_of(given)
    happened = HookCall(contract, given, is_dry)
    reply = _reply(context, happened)

    def ask() -> Injected | None:
        if contract.meaning in _READING and context.project.is_begun:
            _narrow(context, given)
        return reply(context, happened) if reply else None

    injected = derived.retry_if_damaged(context, ask) if reply else None
    if injected is None:
        return Hooked(contract.written(""), contract.meaning, session, dry_run=is_dry)
    return Hooked(
        answer=contract.written(injected.text),
        meaning=contract.meaning,
        session=session,
        prompt=given.prompt,
        items=injected.items,
        verdicts=injected.verdicts,
        versions=injected.versions,
        dry_run=is_dry,
        degraded=injected.degraded,
        depth=injected.depth,
    )


def _reply(
    context: Context, event: HookCall
) -> Callable[[Context, HookCall], Injected | None] | None:
    """Return what is done for an event, None for nothing.

    Cursor also runs the hooks of Claude Code, for which it has its own; and a host that has memtool
    for the project and for the user runs both. What is captured twice is stored once.
    """
    contract, given = event.contract, event.given
    if context.caller.is_off or given.client not in ("", contract.host):
        return None
    if contract.meaning in (*_READING, contracts.FAILURE) and context.project.is_begun:
        is_noted = given.session and given.digest and not event.is_dry
        cache, now = context.repository.cache_dir, int(time.time())
        if is_noted and contracts.is_twin(cache, contract, given, now):
            return None
    return _REPLIES.get(contract.meaning)


UNREADABLE = (
    "The settings of memtool in this repository cannot be read, so nothing of its memory is shown. "
    "`memtool status` says what is wrong with them; the user should know of it.\n"
)


FOREIGN = (
    "Git refuses this repository, since it belongs to another user, so nothing of its memory is "
    "shown. `git status` there says how to trust it; the user should know of it.\n"
)


def excuse(context: Context, host: str, event: str, given: Given, error: MemtoolError) -> str:
    """Return what a session is told, once, where settings are broken; empty for other failures.

    Nothing of the file is repeated: it may hold anything.
    """
    if error.code != "config" or context.caller.is_off:
        return ""
    return _told_once(context.repository.cache_dir, host, event, given, UNREADABLE)


def refusal(host: str, event: str, given: Given, cache_dir: str) -> str:
    """Return what a session is told, once, where git refuses a repository that has memories.

    That it was told is noted in `cache_dir`, which is the user's own: nothing is written to a
    directory that git does not trust.
    """
    return _told_once(cache_dir, host, event, given, FOREIGN)


def _told_once(cache_dir: str, host: str, event: str, given: Given, text: str) -> str:
    """Return the answer to a host that holds a text, empty where its session was told before."""
    contract, session = _contract(host, event), context_of(given)
    if not (contract.answer and session) or contract.meaning not in _READING:
        return ""
    from memtool.inject import session_seen

    mark = session_seen.notice(text)
    if mark in session_seen.read(cache_dir, session):
        return ""
    try:
        session_seen.add(cache_dir, session, [mark])
    except OSError:  # it would come with every prompt
        return ""
    return contract.written(text)


def render(hooked: Hooked) -> str:
    """Return exactly the answer to the host."""
    return hooked.answer


def _contract(host: str, event: str) -> Contract:
    """Return the row of an event. Raises MemtoolError where the host has no such event."""
    found = contracts.BY_EVENT.get((host, event))
    if found is None:
        known = [row.event for row in contracts.CONTRACTS if row.host == host]
        raise MemtoolError(
            f"{host} has no event {event!r} that memtool answers",
            hint=f"one of {', '.join(known)}" if known else "memtool hook --help names the hosts",
            code="unknown-event",
        )
    return found


def read(input: str) -> Given:
    """Read the event that the host sent: the text itself, or what is on stdin.

    Raises:
        MemtoolError: it is too large, or no JSON object.
    """
    data = input.encode(errors="replace")
    if input == "-":
        from memtool.commands import _filters

        data = _filters.read_stdin(
            MOST_INPUT + 1, is_cut=True
        )  # a host may start us with it closed
    try:
        return contracts.read(data)
    except contracts.UnreadableEvent as error:
        raise MemtoolError(
            f"what the host sent cannot be read: {error}",
            hint="give the host's JSON",
            code="bad-event",
        ) from None


def silence(words: Sequence[str]) -> str:
    """Return the empty answer to a host and its event, as they were called."""
    contract = contracts.BY_EVENT.get((words[0], words[1])) if len(words) > 1 else None
    return contract.silence if contract is not None else ""


def is_logging_failures() -> bool:
    """Tell whether the user wants failures in the log of hooks, as they do by default."""
    return contracts.is_kept(contracts.ERROR, os.environ.get(contracts.LOG_VARIABLE, ""))


def log(cache_dir: str, args: Sequence[str], what: str, *, is_failure: bool = False) -> None:
    """Note in the log of hooks how a call went, if the user wants to know that."""
    level, mark = (contracts.ERROR, contracts.FAILED) if is_failure else (contracts.ALL, "")
    if contracts.is_kept(level, os.environ.get(contracts.LOG_VARIABLE, "")):
        from memtool.memory import timestamps

        moment = timestamps.render(int(time.time()))
        contracts.note(cache_dir, moment, " ".join(args[:3]), mark + what)


def finish_apart(context: Context) -> None:
    """Let another process finish what there was no time for, so that the next call is fast."""
    from memtool.sessions import background  # a hook that is in time needs none of it

    place = context.repository
    background.warm(place.cache_dir, place.top or place.git_dir, context.caller.env, time.time())


def context_of(given: Given) -> str:
    """Return the name of the context that an answer reaches: a helper's is not the session's."""
    return f"{given.session}/{given.agent}" if given.session and given.agent else given.session


class HookCall(Value):
    """An event: its contract, what the host sent, and whether it is a dry run."""

    contract: Contract
    given: Given
    is_dry: bool


def _start(context: Context, event: HookCall) -> Injected | None:
    """Return the primer; the next prompt brings it where this host takes no text at the start.

    A session that is resumed still has what it was shown. A subagent is no session of its own.
    """
    from memtool.inject import session_primer, session_seen

    if not context.project.is_begun and context.beside is None:
        context.project.refuse_absent()
    session, cache = context_of(event.given), context.repository.cache_dir
    is_resumed = event.given.source == contracts.RESUME or (
        event.given.source == contracts.OPEN and session_seen.has_seen(cache, session)
    )
    if session and not event.is_dry:
        if not is_resumed:
            session_seen.forget(cache, session)
        if not event.given.agent:
            session_primer.begin(context, session, is_resumed=is_resumed)
    if not event.contract.answer:
        return None
    is_brief = bool(event.given.agent) or (is_resumed and session_seen.has_seen(cache, session))
    return _primer(context, event, is_brief=is_brief)


def _primer(context: Context, event: HookCall, *, is_brief: bool) -> Injected:
    """Return the primer, with the note that the session was given it."""
    from memtool.index import unindexed
    from memtool.inject import gather, session_primer, session_seen
    from memtool.inject.budget import plan
    from memtool.sessions import lifecycle

    session = context_of(event.given)
    primed = session_primer.prime(
        gather.GatherRequest(context, session=session),
        _form(event),
        plan(context.project.strict_settings, _budget(context, event), None),
        None if is_brief else lifecycle.recap(context, event.given.session),
        is_brief=is_brief,
    )
    if not session or unindexed.is_partial(context):  # the rest comes with a later prompt
        return primed
    mark = session_seen.primed(context.repository.cache_dir, session)
    return primed.replace(versions=(*primed.versions, mark))


def _prompt(context: Context, event: HookCall) -> Injected:
    from memtool.commands._features import added_tiers
    from memtool.inject import file_rules, gather, session_seen
    from memtool.inject.answer import build_block
    from memtool.inject.budget import plan, tokens

    given = event.given
    session, cache = context_of(given), context.repository.cache_dir
    budget = _budget(context, event)
    summary = contracts.last_summary(event.contract.host, given.transcript)
    if summary and session and not event.is_dry:
        session_seen.summed_up(cache, session, summary)
    primer: Injected | None = None
    if session and session_seen.is_due(cache, session):
        primer = _primer(context, event, is_brief=session_seen.has_seen(cache, session))
        left = contracts.most_tokens(event.contract.host) - tokens(primer.text)
        budget = max(0, min(budget, left))
    files = file_rules.inside(context, given.files)
    prompt = given.prompt.encode(errors="replace")[: gather.MAX_PROMPT].decode(errors="replace")
    shown = primer.versions if primer else ()
    asked = gather.GatherRequest(context, prompt, files, session, shown=shown)
    shares = plan(context.project.strict_settings, budget, None)
    found = build_block(asked, _form(event), shares, added_tiers(context))
    return primer.followed_by(found) if primer else found


def _edit(context: Context, event: HookCall) -> Injected | None:
    if not event.given.files:
        return None
    from memtool.inject import answer, file_rules, gather

    files = file_rules.inside(context, event.given.files)
    asked = gather.GatherRequest(context, "", files, context_of(event.given))
    return answer.build_rules_block(asked, _form(event), _budget(context, event))


def _close(context: Context, event: HookCall) -> None:
    """Hand the transcript on to a process of its own: it may be long, and a host does not wait."""
    context.project.refuse_absent()
    given = event.given
    if event.is_dry or given.agent:
        return
    from memtool.sessions import background

    name = ENDED if event.contract.meaning == contracts.END else event.contract.event
    background.capture_hook(context, event.contract.host, given.session, given.transcript, name)


def _fail(context: Context, event: HookCall) -> None:
    """Note what the worktree is when a command fails: no transcript tells that later."""
    context.project.refuse_absent()
    given = event.given
    if event.is_dry or not given.error:
        return
    from memtool.sessions import consent, failure_state

    if not consent.is_capturing(context):
        return

    place = given.cwd or context.caller.cwd
    host = event.contract.host
    failure_state.note(context, host, given.session, given.command, given.error, place)


_REPLIES: dict[str, Callable[[Context, HookCall], Injected | None]] = {
    contracts.START: _start,
    contracts.PROMPT: _prompt,
    contracts.EDIT: _edit,
    contracts.FAILURE: _fail,
    contracts.COMPACT: _close,  # a session that goes on afterwards starts again
    contracts.STOP: _close,
    contracts.END: _close,
}
"""What is done for an event, by its meaning; what is returned is what the agent should know."""


_READING = (contracts.START, contracts.PROMPT, contracts.EDIT)
"""What is answered with memories."""


def _narrow(context: Context, given: Given) -> None:
    """Answer with what needs no index, where one has to be built, which another process does."""
    from memtool.index import unindexed

    if unindexed.is_late(context):
        from memtool.inject import file_rules

        named = (*given.files, *file_rules.named_files(context, given.prompt))
        if unindexed.narrow(context, file_rules.inside(context, named)):
            finish_apart(context)


def _budget(context: Context, event: HookCall) -> int:
    """Return the tokens of an answer: the usual ones, but never more than the host would show."""
    own = context.caller.budget_tokens
    usual = context.project.strict_settings.count("inject.budget_tokens") if own is None else own
    return min(usual, contracts.most_tokens(event.contract.host))


def _form(event: HookCall) -> BlockFormat:
    from memtool.inject import block

    return block.BY_NAME[BLOCK_FORMATS[event.contract.host]]
