"""`memtool curate`: how candidates fit in with the confirmed memories."""

from __future__ import annotations

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.memory.memory import Fields, Memory
from memtool.redaction.mask import Mask
from memtool.sessions import findings, manager, store
from memtool.sessions.model import printable
from memtool.sessions.promote import PIN, Action, alive_heads, by_model, by_rules, count, fitting
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.context import Context
from memtool.store.tree import Record
from memtool.value import Value, plural

MOST_NAMED = 5
"""Proposals that do not fit, as they are named."""
_NO_PLAN = "no plan waits; memtool curate makes one"
_NO_CANDIDATES = "there are no candidates; memtool promote makes them of sessions"


class CurationStep(Value):
    """One action of the plan, with the titles of the memories. `is_done` after it was applied."""

    do: str
    id: str
    title: str
    to: str
    to_title: str
    why: str
    is_done: bool = False


class CurationPlan(Value):
    """What is proposed, by `rules` or by the name of the model, and the commit that did it.

    `is_waiting`: it is the one that waits until somebody carries it out.
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
    """Propose how candidates fit in: what they supersede, resolve, go with, and what to pin.

    The plan is shown; --apply carries it out. Only candidates get new relations, and only
    confirmed memories are pinned, so that nothing that somebody vouched for changes what it says.
    The setting extractor.command names a model that makes the plan; without one, rules propose
    that a candidate supersedes what it contradicts.

    With the user's own setting manager.enabled a plan is made after each session, in the
    background; memtool status says that it waits. --waiting shows it, as far as it still fits, and
    --waiting --apply carries it out. What the manager did is in sessions/manager.log below memtool
    in the git directory.

    Example:
        memtool curate
        memtool curate --apply --commit
        memtool curate --waiting

    Args:
        apply: carry the plan out
        commit: commit what --apply changed, and nothing else
        waiting: the plan that waits, in place of another one
        keep: let the plan wait until somebody looks at it, in place of the one before
        drop: show the plan that waits for the last time
        session: a session to read first, with the model where there is one
    """
    if (keep and (apply or waiting or drop)) or (drop and apply):
        raise MemtoolError(
            "a plan is kept, dropped or applied, one of these",
            hint="memtool curate --waiting --apply carries out the plan that waits",
            code="usage",
        )
    if not keep:
        return _curated(context, apply=apply, commit=commit, is_waiting=waiting or drop, drop=drop)
    try:
        if session:
            sessions = store.opened(context)
            findings.learned(context, sessions, [session])
            count(context, sessions)
        plan = _curated(context, is_kept=True)
    except MemtoolError as error:
        manager.note(context, session, f"failed: {error.message}")
        raise
    steps = (
        f"{plural(len(plan.steps), 'step')} by {plan.by}" if plan.steps else "nothing to propose"
    )
    manager.note(context, session, "; ".join([steps, *context.notes]))
    return plan


def _curated(
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
    mask = Mask(context.settings)  # a model reads them, and so does a person
    alive = [one.replace(memory=mask.memory(one.memory)) for one in alive_heads(context, tree)]
    candidates = [record for record in alive if record.memory.status == "candidate"]
    others = [record for record in alive if record.memory.status != "candidate"]
    left = manager.waiting(context) if is_waiting else None
    if left is not None:
        by, proposed = left.by, list(left.actions)
    elif is_waiting or not candidates:
        context.notes.append(_NO_PLAN if is_waiting else _NO_CANDIDATES)
        by, proposed = "rules", []
    else:
        by, proposed = _proposed(context, candidates, others)
    actions = fitting(proposed, candidates, others, tree.lineage)
    dropped = len(proposed) - len(actions)
    if dropped:
        left_out = [one for one in proposed if one not in actions and one.do != PIN]
        named = ", ".join(f"{one.do} {one.id} {one.to}" for one in left_out[:MOST_NAMED])
        which = f": {printable(named)}" if named else ""
        context.notes.append(
            f"{dropped} of {len(proposed)} proposals do not fit and are left out{which}"
        )
    titles = {record.id: record.memory.title for record in alive}
    changed: list[str] = []
    for number, action in enumerate(actions if apply else ()):
        with files.naming(before.id for before in actions[:number]):
            changed.append(_applied(context, action))
    steps = tuple(
        CurationStep(a.do, a.id, titles[a.id], a.to, titles.get(a.to, ""), a.why, apply)
        for a in actions
    )
    if is_kept:
        manager.keep(context, by, actions)
    elif drop or (is_waiting and (apply or not actions)):
        manager.drop(context)
    done = None
    if commit and changed:
        replaced = sorted({action.to for action in actions if action.do == "supersedes"})
        done = commit_files(
            context,
            sorted(set(changed)),
            f"memory: curate {len(actions)} relations of candidates",
            {"Memory-Id": ", ".join(sorted({action.id for action in actions}))}
            | ({write.PROPOSES: ", ".join(replaced)} if replaced else {}),
        )
    return CurationPlan(by, steps, done, is_waiting=(is_waiting and not drop) or is_kept)


def render(plan: CurationPlan) -> str:
    """Return a paragraph per step, and the next command."""
    rows = []
    for step in plan.steps:
        if step.do == PIN:
            rows.append(f"pin {step.id}  {step.title}\n  {step.why}".rstrip())
        else:
            rows.append(
                f"{step.id}  {step.title}\n  {step.do} {step.to}  {step.to_title}\n  {step.why}"
            )
    if not rows:
        return "nothing to propose"
    if not any(step.is_done for step in plan.steps):
        which = " --waiting" if plan.is_waiting else ""
        rows.append(f"memtool curate{which} --apply carries this out")
    return "\n".join(rows)


def _proposed(
    context: Context, candidates: list[Record], others: list[Record]
) -> tuple[str, list[Action]]:
    from memtool.sessions.extract.llm import Unusable

    model = findings.model(context)
    if model is not None:
        try:
            return model.name, by_model(model, candidates, others)
        except Unusable as error:
            context.notes.append(f"{error.message}; the rules were used instead")
    return "rules", by_rules(candidates, others)


def _applied(context: Context, action: Action) -> str:
    """Carry out one action, and return the path of the file that it changed."""

    def changes(memory: Memory) -> Fields:
        if action.do == PIN:
            return {"status": "pinned"}
        return {action.do: (*memory.items(action.do), action.to)}

    verb = "pin" if action.do == PIN else "relate"
    return write.change(context, action.id, changes, verb).path
