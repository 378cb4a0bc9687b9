"""Warnings: the rules for files, with the edit, the look or the command that touches them.

The agent is in the middle of its work, so a warning is short: a first line that says what to do,
and the statements of the few most important rules, each once per session.
"""

from __future__ import annotations

from memtool.inject import command_files, path_titles
from memtool.inject.answer import (
    MAX_NAMED_FILES,
    build_injected,
    build_limits,
    build_preamble,
    format_governed,
    list_override_notices,
    place_disagreements,
    reserve_disagreements,
    reserve_limit_notices,
)
from memtool.inject.block import escape_line, measure_frame
from memtool.inject.budget import BYTES_PER_TOKEN, plan
from memtool.inject.candidates import GOVERNING
from memtool.inject.file_rules import MAX_RULE_TOKENS, MAX_RULES
from memtool.inject.further_titles import list_versions
from memtool.inject.gather import add_rules, collect_rules, collect_ungoverned
from memtool.inject.tiers import BlockDraft, Tier, make_writer
from memtool.value import first_few

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.inject.block import BlockFormat, InjectedBlock
    from memtool.inject.budget import Budget
    from memtool.inject.command_files import ShellCall
    from memtool.inject.further_titles import Title
    from memtool.inject.gather import GatherRequest, RepositoryCandidates

MAX_SEEN_RULES = 3
"""Rules that a warning names although the session has seen them."""


def build_edit_warning(
    request: GatherRequest, form: BlockFormat, budget_tokens: int
) -> InjectedBlock:
    """Build a block of the rules for changed files, the most important first; often empty.

    Raises:
        MemtoolError: the memory directory does not exist.
    """
    return build_warning(
        request, collect_rules(request), form, budget_tokens, format_edit_lead(request.files)
    )


def build_read_warning(
    request: GatherRequest, form: BlockFormat, budget_tokens: int
) -> InjectedBlock:
    """Build a block of the rules for files that the agent looks at; often empty.

    Raises:
        MemtoolError: as `build_edit_warning` does.
    """
    return build_warning(
        request, collect_rules(request), form, budget_tokens, format_governed(request.files)
    )


def build_command_warning(
    request: GatherRequest, call: ShellCall, form: BlockFormat, budget_tokens: int
) -> InjectedBlock | None:
    """Build a block of the rules for the files that a command changed or names; None if none are.

    Raises:
        MemtoolError: as `build_edit_warning` does.
    """
    own = collect_ungoverned(request)
    touched = command_files.find_touched(request.context, own, call)
    files = (*touched.changed, *touched.named)
    if not files:
        return None
    request = request.replace(files=files)
    lead = format_command_lead(touched.changed) if touched.changed else format_governed(files)
    return build_warning(request, add_rules(own, request), form, budget_tokens, lead)


def build_warning(
    request: GatherRequest,
    own: RepositoryCandidates,
    form: BlockFormat,
    budget_tokens: int,
    lead: str,
) -> InjectedBlock:
    """Build a block of the rules of `own`, after a first line; empty without any."""
    max_tokens = min(budget_tokens, MAX_RULE_TOKENS)
    frame = measure_frame(form, build_preamble([own], own.rules, lead=lead))
    draft = BlockDraft(make_writer([own], form), form, max_tokens * BYTES_PER_TOKEN - frame)
    reserve_disagreements(draft, [own], own.rules)
    is_told = draft.reserve_notices(list_override_notices([own]))
    limits = build_limits([own])
    draft.fill(
        Tier(
            GOVERNING,
            lambda shown: own.choose(own.rules, shown=shown),
            max_memories=MAX_RULES,
            max_tokens=max_tokens,
            caps=lambda _chosen: limits,
        )
    )
    reserve_limit_notices(draft, limits)
    draft.reserve_notices(_list_seen_rules(own, draft))
    draft.place_notices()
    place_disagreements(draft, [own])
    shares = plan(request.context.project.strict_settings, max_tokens, None)
    if not draft.texts and (title := path_titles.find_title(own, request.files)):
        return _build_path_title(request, own, draft, shares, title)
    return build_injected(request, [own], draft, shares, is_told=is_told, lead=lead)


def _build_path_title(
    request: GatherRequest,
    own: RepositoryCandidates,
    draft: BlockDraft,
    shares: Budget,
    title: tuple[Title, str],
) -> InjectedBlock:
    """Return a block of one title, which the words of a file's path found."""
    count = draft.add_titles("", [title[1]])
    lead = path_titles.LEAD.format(files=_name_files(request.files))
    injected = build_injected(
        request,
        [own],
        draft,
        shares,
        is_told=False,
        text=draft.render(lead) if count else "",
        has_preamble=False,
    )
    if not count:
        return injected
    versions = list_versions([title[0]]) if request.session else []
    return injected.replace(further=(title[0],), versions=(*injected.versions, *versions))


def format_edit_lead(files: Sequence[str]) -> str:
    """Return the first line of a warning after an edit: what to do now."""
    return (
        f"You edited {_name_files(files)}. Check your change against these; if it contradicts "
        "one, fix the change or tell the user before you go on."
    )


def format_command_lead(files: Sequence[str]) -> str:
    """Return the first line of a warning after a command that changed files: what to do now."""
    return (
        f"This command changed {_name_files(files)}. Check the change against these; if it "
        "contradicts one, fix it or tell the user before you go on."
    )


def _name_files(files: Sequence[str]) -> str:
    return escape_line(first_few(files, MAX_NAMED_FILES))


def _list_seen_rules(own: RepositoryCandidates, draft: BlockDraft) -> list[str]:
    """Return a line on the rules that the session has seen before, if others are shown now."""
    seen_ids = {id_ for id_, _version in own.seen.seen}
    shown_ids = {entry.candidate.record.id for entry in draft.entries}
    rules = [
        candidate.record
        for candidate in own.rules
        if not candidate.tie and candidate.record.id in seen_ids - shown_ids
    ]
    if not (rules and shown_ids):
        return []
    shorten = own.grounds.tree.short_ids.shorten
    names = (f"{shorten(rule.id)} {rule.memory.title}" for rule in rules[:MAX_SEEN_RULES])
    return [f"Also governing, shown before: {'; '.join(names)}"]
