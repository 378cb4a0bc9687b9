"""`memtool curate`: how candidates fit in with the confirmed memories."""

from __future__ import annotations

from memtool.authoring import write
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.memory.memory import Fields, Memory
from memtool.redaction.mask import Mask
from memtool.sessions import findings, manager, store
from memtool.sessions.model import make_printable
from memtool.sessions.promote import (
    PIN,
    Action,
    count,
    find_alive_heads,
    propose_by_model,
    propose_by_rules,
    select_fitting,
)
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID, PROPOSES
from memtool.store.tree import Record
from memtool.value import Value, format_count

MAX_NAMED_PROPOSALS = 5
_NO_PLAN = "no plan waits; memtool curate makes one"
_NO_CANDIDATES = "there are no candidates; memtool promote makes them of sessions"


class CurationStep(Value):
    """One action of the plan, with the titles of its memories; `is_done` once it was applied."""

    do: str
    id: str
    title: str
    to: str
    to_title: str
    why: str
    is_done: bool = False


class CurationPlan(Value):
    """The proposed steps, `by` the rules or a model, and the commit that applied them.

    `is_waiting`: the plan is stored until the user applies it.
    """

    by: str
    steps: tuple[CurationStep, ...]
    commit: str | None = None
    is_waiting: bool = False


def curate(
    context: Context,
    *,
    apply: bool = False,
    commit: bool = False,
    waiting: bool = False,
    keep: bool = False,
    drop: bool = False,
    session: str = "",
) -> CurationPlan:
    """Propose what candidates supersede, resolve or belong to, and what to pin.

        memtool curate        show a plan
        --apply               carry the plan out; confirmed memories keep their text
        --waiting             show the plan that the manager made after a session
        --waiting --apply     carry that plan out

    Rules make the plan, or the model of the setting extraction.command. With the setting
    manager.enabled a plan is made after every session; memtool status mentions it.

    Example:
        memtool curate
        memtool curate --apply --commit

    Args:
        apply: carry the plan out
        commit: commit what --apply changed
        waiting: use the waiting plan
        keep: keep this plan as the waiting one
        drop: show the waiting plan once more, then drop it
        session: read this session first
    """
    if (keep and (apply or waiting or drop)) or (drop and apply):
        raise MemtoolError(
            "a plan can be stored, dropped or applied, but only one of these",
            hint="apply the stored plan: memtool curate --waiting --apply",
            code="usage",
        )
    if not keep:
        return _curate(context, apply=apply, commit=commit, is_waiting=waiting or drop, drop=drop)
    try:
        if session:
            sessions = store.open_sessions(context)
            findings.learn_all(context, sessions, [session])
            count(context, sessions)
        plan = _curate(context, is_kept=True)
    except MemtoolError as error:
        manager.note(context, session, f"failed: {error.message}")
        raise
    steps = (
        f"{format_count(len(plan.steps), 'step')} by {plan.by}"
        if plan.steps
        else "nothing to propose"
    )
    manager.note(context, session, "; ".join([steps, *context.notes]))
    return plan


def _curate(
    context: Context,
    *,
    apply: bool = False,
    commit: bool = False,
    is_waiting: bool = False,
    is_kept: bool = False,
    drop: bool = False,
) -> CurationPlan:
    write.prepare(context, dry_run=False)
    tree = context.tree()
    mask = Mask(context.settings)  # a model and a person read them
    alive = [
        record.replace(memory=mask.memory(record.memory))
        for record in find_alive_heads(context, tree)
    ]
    candidates = [record for record in alive if record.memory.status == "candidate"]
    confirmed = [record for record in alive if record.memory.status != "candidate"]
    waiting_plan = manager.read_waiting(context) if is_waiting else None
    if waiting_plan is not None:
        by, proposals = waiting_plan.by, list(waiting_plan.actions)
    elif is_waiting or not candidates:
        context.notes.append(_NO_PLAN if is_waiting else _NO_CANDIDATES)
        by, proposals = "rules", []
    else:
        by, proposals = _propose_actions(context, candidates, confirmed)
    actions = select_fitting(proposals, candidates, confirmed, tree.lineage)
    dropped = len(proposals) - len(actions)
    if dropped:
        omitted = [action for action in proposals if action not in actions and action.do != PIN]
        named = ", ".join(
            f"{action.do} {action.id} {action.to}" for action in omitted[:MAX_NAMED_PROPOSALS]
        )
        which = f": {make_printable(named)}" if named else ""
        context.notes.append(
            f"{dropped} of {len(proposals)} proposals do not fit and were left out{which}"
        )
    titles = {record.id: record.memory.title for record in alive}
    changed_paths: list[str] = []
    for number, action in enumerate(actions if apply else ()):
        with files.reporting_done(before.id for before in actions[:number]):
            changed_paths.append(_apply_action(context, action))
    steps = tuple(
        CurationStep(a.do, a.id, titles[a.id], a.to, titles.get(a.to, ""), a.why, apply)
        for a in actions
    )
    if is_kept:
        manager.keep(context, by, actions)
    elif drop or (is_waiting and (apply or not actions)):
        manager.drop(context)
    commit_id = None
    if commit and changed_paths:
        replaced = sorted({action.to for action in actions if action.do == "supersedes"})
        commit_id = commit_files(
            context,
            sorted(set(changed_paths)),
            f"curate {len(actions)} relations of candidates",
            {MEMORY_ID: ", ".join(sorted({action.id for action in actions}))}
            | ({PROPOSES: ", ".join(replaced)} if replaced else {}),
        )
    return CurationPlan(by, steps, commit_id, is_waiting=(is_waiting and not drop) or is_kept)


def render(plan: CurationPlan, layout: Layout) -> str:
    """Return a paragraph for each step, and the next command."""
    rows = []
    for step in plan.steps:
        if step.do == PIN:
            rows += layout.wrap(f"pin {layout.short(step.id)}  {step.title}")
        else:
            rows += layout.wrap(f"{layout.short(step.id)}  {step.title}")
            relation = step.do.replace("_", " ")
            rows += layout.wrap(f"{relation} {layout.short(step.to)}  {step.to_title}", "  ")
        rows += layout.wrap(layout.shorten(step.why), "  ")
    if not rows:
        layout.report("nothing to propose")
    elif not any(step.is_done for step in plan.steps):
        which = " --waiting" if plan.is_waiting else ""
        rows.append(f"Nothing was changed. To do it: memtool curate{which} --apply")
    return "\n".join(rows)


def _propose_actions(
    context: Context, candidates: list[Record], confirmed: list[Record]
) -> tuple[str, list[Action]]:
    from memtool.sessions.extract.llm import Unusable

    model = findings.read_model(context)
    if model is not None:
        try:
            return model.name, propose_by_model(model, candidates, confirmed)
        except Unusable as error:
            context.notes.append(f"{error.message}; the rules were used instead")
    return "rules", propose_by_rules(candidates, confirmed)


def _apply_action(context: Context, action: Action) -> str:
    """Carry out one action, and return the path of the changed file."""

    def changes(memory: Memory) -> Fields:
        if action.do == PIN:
            return {"status": "pinned"}
        return {action.do: (*memory.items(action.do), action.to)}

    verb = "pin" if action.do == PIN else "relate"
    return write.change(context, action.id, changes, verb).path
