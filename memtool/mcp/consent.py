"""Consent: the user is asked before a tool takes away what the team relies on.

Only clients that show forms are asked to. The call is tried first, so a user is asked about nothing
that would be refused, and no question quotes a secret.
"""

from __future__ import annotations

from memtool.calls import run
from memtool.calls.bind import bind
from memtool.calls.lenient import read_arguments
from memtool.calls.output import make_visible
from memtool.calls.procedures import DIRECTORY, GLOBAL
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.trust import TRUST_LEVELS
from memtool.redaction.mask import Mask
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from memtool.calls.procedures import Procedure
    from memtool.calls.run import Answer, ServedRepository
    from memtool.mcp.transport import Client
    from memtool.store.context import Context

    Values = Mapping[str, Any]

QUOTE = "said_by_user"
"""The argument with the user's own words, and the field of a form that asks for them."""
WORDS = {
    QUOTE: {
        "type": "string",
        "title": "In your own words",
        "description": "With them the correction is confirmed; without, it is a proposal.",
    }
}
MAX_QUOTED_CHARS = 300


class Question(Value):
    """What a user is asked, and the fields of the form, by name. `act` names it in a refusal."""

    text: str
    act: str
    fields: Mapping[str, Any] = {}


def _ask_supersede(context: Context, values: Values, _tried: Any) -> Question | None:
    """Ask if the memory is confirmed, on the trusted branch."""
    tree = index.open(context)
    record = tree.find(values["old"])
    origin = context.origins(tree, [record])[record.path]
    is_trusted = TRUST_LEVELS.index(origin.trust) >= TRUST_LEVELS.index("trusted")
    if not is_trusted or record.memory.status not in ("confirmed", "pinned"):
        return None
    quote = values[QUOTE]
    old = _name(context, record.id)
    text = f"Replace the trusted memory {old} by {_quote(context, values['title'])}?"
    text += f" It quotes you: {_quote(context, quote)}." if quote else ""
    return Question(text, f"replace {old}", {} if quote else WORDS)


def _ask_forget(context: Context, values: Values, tried: Any) -> Question:
    names = " and ".join(_name(context, row["id"]) for row in tried["forgotten"])
    reason = _quote(context, values["reason"])
    return Question(f"Delete the memory {names}? The reason is {reason}.", f"delete {names}")


def _ask_resolve(context: Context, values: Values, tried: Any) -> Question:
    settled = tried["resolved"][0]
    sides = " and ".join(_name(context, id_) for id_ in settled["ids"])
    holds = {
        "both": "Both hold",
        "merged": f"{_quote(context, values['merge'])} holds",
    }.get(settled["kept"]) or f"{_name(context, settled['kept'])} holds"
    reason = _quote(context, values["reason"])
    return Question(
        f"Settle the conflict of {sides}? {holds}. The reason is {reason}.",
        f"settle the conflict of {sides}",
    )


QUESTIONS: dict[str, Callable[[Context, Values, Any], Question | None]] = {
    "forget": _ask_forget,
    "resolve": _ask_resolve,
    "supersede": _ask_supersede,
}
"""What to ask before a tool runs, from its arguments and the value of its dry run."""


def call(
    tool: Procedure,
    arguments: dict[str, Any],
    place: ServedRepository,
    client: Client,
    params: Mapping[str, Any],
) -> Answer:
    """Run a tool, if need be with the consent of the user.

    A user who declines is obeyed. If none answers, a correction becomes a proposal, which replaces
    nothing; anything else is not done.

    Raises:
        TransportError: the client has to answer first, or cancels the request.
    """
    values = read_arguments(tool.parameters, arguments)
    if tool.name not in QUESTIONS or not client.can_ask or values.get("dry_run") is True:
        return run.call(tool, arguments, place)
    tried = run.call(tool, {**arguments, "dry_run": True}, place.replace(is_structured=True))
    if tried.error is not None:
        return tried
    question = _find_question(tool, bind(tool.signature, values), place, tried.structured)
    if question is None:
        return run.call(tool, arguments, place)
    answer = client.ask_user(question.text, question.fields, params)
    action, content = answer.get("action"), answer.get("content")
    if action == "accept":
        words = content.get(QUOTE) if isinstance(content, dict) and question.fields else None
        has_words = isinstance(words, str) and words.strip()
        return run.call(tool, {**arguments, **({QUOTE: words} if has_words else {})}, place)
    if action != "decline" and QUOTE in tool.parameters:
        proposed = run.call(tool, {**arguments, QUOTE: None}, place)
        note = "the user did not answer, so this only proposes to replace it"
        return proposed if proposed.error else proposed.replace(notes=(note, *proposed.notes))
    did = "declined to" if action == "decline" else "did not answer whether to"
    refusal = MemtoolError(
        f"the user {did} {question.act}", hint="ask the user what holds", code="refused"
    )
    return run.build_refusal(refusal, tool, place)


def _find_question(
    tool: Procedure, values: Values, place: ServedRepository, tried: Any
) -> Question | None:
    context = place.open(is_global=values.get(GLOBAL, False), directory=values.get(DIRECTORY, ""))
    return QUESTIONS[tool.name](context, values, tried)


def _name(context: Context, id_: str) -> str:
    """Return a memory within a question: its title, and its short id."""
    tree = index.open(context)
    record = tree.get(id_)
    title = _quote(context, record.memory.title) if record is not None else ""
    return f"{title} ({tree.short_ids.shorten(id_)})" if title else id_


def _quote(context: Context, text: str) -> str:
    """Quote a text of a user or an agent: one line, without secrets, cut if it is long."""
    line = make_visible(" ".join(Mask(context.settings).line(text).split()))
    return f'"{line}"' if len(line) <= MAX_QUOTED_CHARS else f'"{line[:MAX_QUOTED_CHARS]}…"'
