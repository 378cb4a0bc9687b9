"""`memtool hook`: what an agent host calls when something happens in a session."""

from __future__ import annotations

import os
import time

from memtool import agents
from memtool.agents import AGENTS, BLOCK_FORMATS
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.hosts import contracts
from memtool.hosts.contracts import MAX_EVENT_BYTES, Contract, HookEvent
from memtool.store import derived
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Annotated

    from memtool.inject.block import BlockFormat, BlockItem, InjectedBlock
    from memtool.inject.candidates import CandidateVerdict
    from memtool.store.context import Context

END_EVENT = "session-end"
"""The last event of a session, for every host."""


class HookResult(Value):
    """The answer to a host: `answer` is for stdout, `meaning` is memtool's name of the event.

    `session` names the context that sees the memories: the session, or a subagent of it.
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
        """The verb in the ledger: a prompt counts as an injection."""
        return "inject" if self.meaning == agents.PROMPT else f"hook-{self.meaning}"

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
) -> HookResult:
    """Answer an event of an agent.

    Agents run it; memtool install sets it up. What they get:
        session start        the primer
        prompt               memories that answer it, or govern the files it names
        edit, read, command  decisions and warnings about the files
        before a command     failures of this command, once: it is held until the agent repeats it
        before a subagent    memories that answer its task
        end of a turn        captures the transcript; also at the end of a session, and before
                             the agent compacts it

    An agent is never disturbed: if something fails, the answer is empty, the exit code is 0, and
    the error is in .git/memtool/hook.log. It takes at most two seconds.

    Example:
        memtool hook claude session-start < event.json

    Args:
        host: {AGENTS}
        event: the agent's name of the event, such as user-prompt-submit
        input: the event as JSON, or - to read it from stdin
        dry_run: answer, but record and capture nothing
    """
    return answer_event(context, host, event, read_event(input), is_dry=dry_run)


def answer_event(
    context: Context, host: str, event: str, hook_event: HookEvent, *, is_dry: bool
) -> HookResult:
    """Answer an event that was already read, in the repository that it is about."""
    contract = _find_contract(host, event)
    session = build_context_name(hook_event)
    call = HookCall(contract, hook_event, is_dry)
    reply = _find_reply(context, call)

    def ask() -> InjectedBlock | None:
        if contract.meaning in _ANSWERED_MEANINGS and context.project.has_directory:
            _narrow_to_unindexed(context, hook_event)
        return reply(context, call) if reply else None

    is_first = bool(reply) and _is_first_start(context, contract, hook_event)
    injected = derived.retry_if_damaged(context, ask) if reply else None
    message = _format_message(context) if is_first else ""
    if context.caller.is_unfinished:
        is_start = contract.meaning == agents.START
        finish_in_background(context, hook_event.files, is_start=is_start)
    if injected is None:
        silence = contract.format_output("", message)
        return HookResult(silence, contract.meaning, session, dry_run=is_dry)
    return HookResult(
        answer=contract.format_output(injected.text, message, hook_event.task),
        meaning=contract.meaning,
        session=session,
        prompt=hook_event.prompt,
        items=injected.items,
        verdicts=injected.verdicts,
        versions=injected.versions,
        dry_run=is_dry,
        degraded=injected.degraded,
        depth=injected.depth,
    )


def _is_first_start(context: Context, contract: Contract, hook_event: HookEvent) -> bool:
    """Return whether a session starts for the first time, in a host that shows messages."""
    if not (contract.shows_messages and hook_event.session and context.project.has_directory):
        return False
    from memtool.inject import session_seen

    return not session_seen.find_beginnings(context.repository.cache_dir, hook_event.session)


def _format_message(context: Context) -> str:
    """Return what waits for the user; empty if an index must be built first."""
    from memtool.index import unindexed
    from memtool.inject import duties

    return "" if unindexed.is_partial(context) else duties.format_duties(context)


def _find_reply(
    context: Context, event: HookCall
) -> Callable[[Context, HookCall], InjectedBlock | None] | None:
    """Return the function that answers an event, None if it is ignored."""
    # Cursor also runs the hooks of Claude Code, in addition to its own; and a host with memtool
    # installed for both the project and the user runs both. Captures need no guard: what is
    # captured twice is stored once.
    contract, hook_event = event.contract, event.hook_event
    if context.caller.is_off or hook_event.client not in ("", contract.host):
        return None
    if contract.meaning in _ANSWERED_MEANINGS and context.project.has_directory:
        is_noted = hook_event.session and hook_event.digest and not event.is_dry
        cache, now = context.repository.cache_dir, int(time.time())
        if is_noted and contracts.is_duplicate(cache, contract, hook_event, now):
            return None
    return _REPLIES.get(contract.meaning)


UNREADABLE_SETTINGS = (
    "The settings of memtool in this repository cannot be read, so nothing of its memory is shown. "
    "`memtool status` says what is wrong with them; the user should know of it.\n"
)


FOREIGN_REPOSITORY = (
    "Git refuses this repository, since it belongs to another user, so nothing of its memory is "
    "shown. `git status` there says how to trust it; the user should know of it.\n"
)


def settings_error_message(
    context: Context, host: str, event: str, hook_event: HookEvent, error: MemtoolError
) -> str:
    """Return the message that the settings are broken, once per session; "" for other errors.

    It quotes nothing from the settings file, which may contain anything.
    """
    if error.code != "config" or context.caller.is_off:
        return ""
    return _report_once(context.repository.cache_dir, host, event, hook_event, UNREADABLE_SETTINGS)


def foreign_repository_message(host: str, event: str, hook_event: HookEvent, cache_dir: str) -> str:
    """Return the message that git refuses a repository with memories, once per session.

    `cache_dir`, which records that, is the user's own: nothing is written to a directory that git
    does not trust.
    """
    return _report_once(cache_dir, host, event, hook_event, FOREIGN_REPOSITORY)


def _report_once(cache_dir: str, host: str, event: str, hook_event: HookEvent, text: str) -> str:
    """Return a host's answer with a text, "" if its session has had it already."""
    contract, session = _find_contract(host, event), build_context_name(hook_event)
    if not (contract.answer and session) or contract.meaning not in _ANSWERED_MEANINGS:
        return ""
    from memtool.inject import session_seen

    mark = session_seen.notice_line(text)
    if mark in session_seen.read(cache_dir, session):
        return ""
    try:
        session_seen.add(cache_dir, session, [mark])
    except OSError:  # otherwise it would be repeated with every prompt
        return ""
    return contract.format_output(text)


def render(result: HookResult, _layout: Layout) -> str:
    """Return the answer to the host, unchanged."""
    return result.answer


def _find_contract(host: str, event: str) -> Contract:
    """Return the contract of an event. Raises MemtoolError if the host has no such event."""
    contract = contracts.BY_EVENT.get((host, event))
    if contract is None:
        events = [row.event for row in contracts.CONTRACTS if row.host == host]
        raise MemtoolError(
            f"memtool does not answer the event {event!r} of {host}",
            hint=f"the events are {', '.join(events)}" if events else "memtool hook --help",
            code="unknown-event",
        )
    return contract


def read_event(input: str) -> HookEvent:
    """Read the event that the host sent: the text itself, or standard input for `-`.

    Raises:
        MemtoolError: it is too large, or not a JSON object.
    """
    data = input.encode(errors="replace")
    if input == "-":
        from memtool.commands import _filters

        # A host may start us with stdin closed.
        data = _filters.read_stdin(MAX_EVENT_BYTES + 1, is_cut=True)
    try:
        return contracts.read(data)
    except contracts.UnreadableEvent as error:
        raise MemtoolError(
            f"cannot read the input of the hook: {error}",
            hint="the input must be the host's JSON",
            code="bad-event",
        ) from None


def find_empty_answer(words: Sequence[str]) -> str:
    """Return the empty answer for a host and event, the first two of `words`."""
    contract = contracts.BY_EVENT.get((words[0], words[1])) if len(words) > 1 else None
    return contract.silence if contract is not None else ""


def is_logging_failures() -> bool:
    """Return whether failures go into the log of hooks, as they do by default."""
    return contracts.is_logged(contracts.ERROR, os.environ.get(contracts.LOG_VARIABLE, ""))


def log_call(
    cache_dir: str, args: Sequence[str], outcome: str, *, is_failure: bool = False
) -> None:
    """Write the outcome of a call into the log of hooks, if the log level asks for it."""
    level, mark = (contracts.ERROR, contracts.FAILURE_PREFIX) if is_failure else (contracts.ALL, "")
    if contracts.is_logged(level, os.environ.get(contracts.LOG_VARIABLE, "")):
        from memtool.memory import timestamps

        moment = timestamps.render(int(time.time()))
        contracts.log_outcome(cache_dir, moment, " ".join(args[:3]), mark + outcome)


def finish_in_background(
    context: Context, files: Sequence[str] = (), *, is_start: bool = False
) -> None:
    """Let a background process derive what was missing, so that the next call is fast.

    This is the index, and if `files` were edited, or a session starts, also the history that names
    records.
    """
    from memtool.sessions import background  # not needed by a hook that is in time

    repository = context.repository
    place = repository.top or repository.git_dir
    usual = background.PRIMER if is_start else background.SEARCH
    verb = background.inject_files(files) if files else usual
    background.warm(repository.cache_dir, place, context.caller.env, time.time(), verb)


def build_context_name(hook_event: HookEvent) -> str:
    """Return the name of the context that an answer reaches; a subagent has its own."""
    return (
        f"{hook_event.session}/{hook_event.agent}"
        if hook_event.session and hook_event.agent
        else hook_event.session
    )


class HookCall(Value):
    """An event: its contract, what the host sent, and whether it is a dry run."""

    contract: Contract
    hook_event: HookEvent
    is_dry: bool


def _answer_start(context: Context, event: HookCall) -> InjectedBlock | None:
    """Return the primer, or None if the host takes no text here; then the next prompt brings it."""
    # A resumed session still has what it was shown. A subagent is not a session of its own.
    from memtool.inject import session_primer, session_seen

    if not context.project.has_directory and context.global_context is None:
        context.project.refuse_absent()
    session, cache = build_context_name(event.hook_event), context.repository.cache_dir
    is_resumed = event.hook_event.source == contracts.RESUME or (
        event.hook_event.source == contracts.OPEN and session_seen.has_seen(cache, session)
    )
    if session and not event.is_dry:
        if not is_resumed:
            session_seen.forget(cache, session)
        if not event.hook_event.agent:
            session_primer.begin(context, session, is_resumed=is_resumed)
    if not event.contract.answer:
        return None
    is_brief = bool(event.hook_event.agent) or (
        is_resumed and session_seen.has_seen(cache, session)
    )
    return _build_primer(context, event, is_brief=is_brief)


def _build_primer(context: Context, event: HookCall, *, is_brief: bool) -> InjectedBlock:
    """Return the primer, marked as shown to the session."""
    from memtool.index import unindexed
    from memtool.inject import gather, session_primer, session_seen
    from memtool.inject.budget import plan
    from memtool.sessions import lifecycle

    session = build_context_name(event.hook_event)
    primed = session_primer.build_primer(
        gather.GatherRequest(context, session=session),
        _find_format(event),
        plan(context.project.strict_settings, _compute_budget(context, event), None),
        None if is_brief else lifecycle.find_recap(context, event.hook_event.session),
        is_brief=is_brief,
        is_hurried=True,
    )
    if not session or unindexed.is_partial(context):  # a later prompt brings what is missing
        return primed
    mark = session_seen.primed_line(context.repository.cache_dir, session)
    return primed.replace(versions=(*primed.versions, mark))


def _answer_prompt(context: Context, event: HookCall) -> InjectedBlock:
    from memtool.inject import session_seen
    from memtool.inject.budget import estimate_tokens

    hook_event = event.hook_event
    session, cache = build_context_name(hook_event), context.repository.cache_dir
    budget = _compute_budget(context, event)
    agent = agents.BY_NAME[event.contract.host]
    transcript = hook_event.transcript or agent.find_transcript(
        hook_event.session, context.caller.env
    )
    summary = contracts.find_last_summary(agent.name, transcript)
    if summary and session and not event.is_dry:
        session_seen.forget_seen(cache, session, summary)
    if session and not (event.is_dry or hook_event.agent):
        _begin_without_start(context, agent, session)
    primer: InjectedBlock | None = None
    if session and session_seen.is_due(cache, session):
        primer = _build_primer(context, event, is_brief=session_seen.has_seen(cache, session))
        tokens_left = contracts.max_tokens(event.contract.host) - estimate_tokens(primer.text)
        budget = max(0, min(budget, tokens_left))
    block = _build_block(context, event, session, budget, primer.versions if primer else ())
    return _with_suggestion(context, event, session, primer.join(block) if primer else block)


def _with_suggestion(
    context: Context, event: HookCall, session: str, block: InjectedBlock
) -> InjectedBlock:
    """Add the line that a person's prompt may be worth keeping."""
    if event.hook_event.agent:  # a subagent's prompt is no person's
        return block
    from memtool.sessions.suggestion import suggest

    line, seen = suggest(context, session, event.hook_event.prompt)
    gap = "\n" if block.text and line else ""
    return block.replace(text=block.text + gap + line, versions=(*block.versions, *seen))


def _answer_task(context: Context, event: HookCall) -> InjectedBlock:
    """Return what answers the task of a subagent, whose own context has seen nothing yet.

    Its name is not known before it starts. The pinned memories come with its primer.
    """
    return _build_block(context, event, "", _compute_budget(context, event), has_pins=False)


def _build_block(
    context: Context,
    event: HookCall,
    session: str,
    budget: int,
    shown: tuple[tuple[str, str], ...] = (),
    *,
    has_pins: bool = True,
) -> InjectedBlock:
    """Return the block for the prompt and files of an event."""
    from memtool.commands._features import build_tiers
    from memtool.inject import file_rules, gather
    from memtool.inject.answer import build_block
    from memtool.inject.budget import plan

    hook_event = event.hook_event
    files = file_rules.paths_from_top(context, hook_event.files)
    prompt = hook_event.prompt.encode(errors="replace")[: gather.MAX_PROMPT].decode(
        errors="replace"
    )
    request = gather.GatherRequest(context, prompt, files, session, shown=shown, has_pins=has_pins)
    shares = plan(context.project.strict_settings, budget, None)
    return build_block(request, _find_format(event), shares, build_tiers(context))


def _begin_without_start(context: Context, agent: agents.Agent, session: str) -> None:
    """Begin a session with its first prompt, for a host without an event for its start."""
    has_memory = context.project.has_directory or context.global_context is not None
    if not has_memory or any(row.meaning == agents.START for row in agent.events):
        return
    from memtool.inject import session_primer, session_seen

    if not session_seen.find_beginnings(context.repository.cache_dir, session):
        session_primer.begin(context, session)


def _answer_tool(context: Context, event: HookCall) -> InjectedBlock | None:
    """Return the rules for the files that a tool changed, showed or ran on."""
    if event.hook_event.action == contracts.SHELL:
        return _answer_command(context, event)
    if not event.hook_event.files:
        return None
    from memtool.inject import file_rules, file_warnings, gather

    is_read = event.hook_event.action == contracts.READING
    build = file_warnings.build_read_warning if is_read else file_warnings.build_edit_warning
    files = file_rules.paths_from_top(context, event.hook_event.files)
    request = gather.GatherRequest(context, "", files, build_context_name(event.hook_event))
    block = build(request, _find_format(event), _compute_budget(context, event))
    if not (event.is_dry or is_read):
        _look_for_renames(context)
    return block


def _answer_command(context: Context, event: HookCall) -> InjectedBlock | None:
    """Return the rules for the files that a command changed or names."""
    context.project.refuse_absent()
    hook_event, session = event.hook_event, build_context_name(event.hook_event)
    if not hook_event.command:
        return None
    from memtool.inject import command_files, command_mark, file_warnings, gather

    mark = command_mark.read(context.repository.cache_dir, session)
    folder = mark.folder or hook_event.cwd or context.caller.cwd
    return file_warnings.build_command_warning(
        gather.GatherRequest(context, session=session),
        command_files.read_call(hook_event.command, folder, mark.moment_ns),
        _find_format(event),
        _compute_budget(context, event),
    )


def _answer_before_command(context: Context, event: HookCall) -> InjectedBlock | None:
    """Return the failures of a command that is about to run, and note when it begins."""
    hook_event, session = event.hook_event, build_context_name(event.hook_event)
    context.project.refuse_absent()
    if not (hook_event.command and session):
        return None
    from memtool.inject import command_failures, command_mark, session_seen

    cache, folder = context.repository.cache_dir, hook_event.cwd or context.caller.cwd
    block = None
    if context.settings.setting("inject.hold"):
        block = command_failures.build_failure_warning(
            context, session, hook_event.command, folder, lambda: _find_format(event)
        )
    if event.is_dry:
        return block
    try:
        if block is not None and block.text:  # a command is held once, or not at all
            session_seen.add(cache, session, block.versions)
            return block.replace(versions=())
        command_mark.write(cache, session, folder)
    except OSError:
        return None
    return None


def _look_for_renames(context: Context) -> None:
    """Let a background process look for renamed files after a commit, for the next edit."""
    from memtool.index import index
    from memtool.search.scope import build_drift_witness

    tree = index.open(context)
    if build_drift_witness(tree, lambda: context.provenance_reader(tree)).is_waiting():
        from memtool.sessions import background

        repository = context.repository
        env, verb = context.caller.env, background.DRIFT
        background.warm(
            repository.cache_dir, repository.top or repository.git_dir, env, time.time(), verb
        )


def _hand_over_transcript(context: Context, event: HookCall) -> None:
    """Capture the transcript in a background process: it may be long, and a host does not wait."""
    context.project.refuse_absent()
    hook_event = event.hook_event
    if event.is_dry or hook_event.agent:
        return
    from memtool.sessions import background

    name = END_EVENT if event.contract.meaning == agents.END else event.contract.event
    background.capture_hook(
        context, event.contract.host, hook_event.session, hook_event.transcript, name
    )


def _answer_failure(context: Context, event: HookCall) -> InjectedBlock | None:
    """Return the rules for the files of a failed command, whose state of the worktree is noted."""
    _note_failure(context, event)
    return _answer_command(context, event) if event.contract.answer else None


def _note_failure(context: Context, event: HookCall) -> None:
    """Record the state of the worktree when a command fails; a transcript does not have it."""
    context.project.refuse_absent()
    hook_event = event.hook_event
    if event.is_dry or not (hook_event.error and hook_event.command):
        return
    from memtool.sessions import consent, failure_state

    if not consent.is_capturing(context):
        return

    cwd = hook_event.cwd or context.caller.cwd
    host = event.contract.host
    failure_state.note(context, host, hook_event.session, hook_event.command, hook_event.error, cwd)


_REPLIES: dict[str, Callable[[Context, HookCall], InjectedBlock | None]] = {
    agents.START: _answer_start,
    agents.PROMPT: _answer_prompt,
    agents.EDIT: _answer_tool,
    agents.COMMAND: _answer_before_command,
    agents.TASK: _answer_task,
    agents.FAILURE: _answer_failure,
    agents.COMPACT: _hand_over_transcript,  # a session that goes on afterwards starts again
    agents.STOP: _hand_over_transcript,
    agents.END: _hand_over_transcript,
}
"""The function that answers an event, by its meaning; it returns the text for the agent."""


_ANSWERED_MEANINGS = (
    agents.START,
    agents.PROMPT,
    agents.EDIT,
    agents.COMMAND,
    agents.TASK,
    agents.FAILURE,
)
"""Events that are answered with memories."""


def _narrow_to_unindexed(context: Context, hook_event: HookEvent) -> None:
    """Answer without an index if one has to be built, which a background process then does."""
    from memtool.index import unindexed

    if unindexed.is_late(context):
        from memtool.inject import file_rules

        named = (*hook_event.files, *file_rules.find_named_files(context, hook_event.prompt))
        if unindexed.narrow(context, file_rules.paths_from_top(context, named)):
            finish_in_background(context)


def _compute_budget(context: Context, event: HookCall) -> int:
    """Return the token budget of an answer: the user's, but never more than the host shows."""
    given_budget = context.caller.budget_tokens
    usual = (
        context.project.strict_settings.count("inject.budget_tokens")
        if given_budget is None
        else given_budget
    )
    return min(usual, contracts.max_tokens(event.contract.host))


def _find_format(event: HookCall) -> BlockFormat:
    from memtool.inject import block

    return block.BY_NAME[BLOCK_FORMATS[event.contract.host]]
