"""The names that clients of other memory servers know, each made of verbs.

`POST /memory/context` gives a session what it should know, `process` takes an exchange into it,
`checkpoint` curates in the background; `memorize`, `retrieve`, `get-category` and the others answer
with the fields that such clients read, a refusal with `{"error": true, "code", "message"}`. A row
of the table is a name: what it takes is checked by it, and described by it in the OpenAPI document.
"""

from __future__ import annotations

import json
import time

from memtool.calls.boundary import answer_request
from memtool.calls.procedures import ADD, CHANGE, READ, REMOVE
from memtool.calls.run import ServedRepository
from memtool.calls.signature import MAX_CHARS, MAX_LONG_CHARS, Parameter, Signature
from memtool.commands.maintain import next_due
from memtool.errors import MemtoolError
from memtool.inject.budget import tokens
from memtool.memory import timestamps
from memtool.search.levels import digests_in_use
from memtool.sessions import store as sessions_store
from memtool.store import ledger
from memtool.value import Value
from memtool.web import rest
from memtool.web.rest import HttpAnswer, JobList
from memtool.web.security import Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Given = dict[str, Any]
    Schema = dict[str, Any]

PERIODS: dict[str, tuple[str, ...]] = {
    "nightly": ("nightly",),
    "weekly": ("weekly",),
    "monthly": ("monthly",),
    "full": ("nightly", "weekly", "monthly"),
}
MOST_NAMES = 10_000
_GREETED: dict[str, None] = {}
"""The sessions that were given their primer, in this process."""


class ClientCall(Value):
    """What a name is answered with: the verbs on a repository, and the jobs of the server."""

    place: ServedRepository
    jobs: JobList

    def ask(self, verb: str, **given: Any) -> dict[str, Any]:
        """Run a verb and return its value as JSON. Raises Denied as the verb refuses."""
        done = rest.ask(rest.procedure(verb), given, self.place)
        if "error" in done.body:
            raise Denied(done.status, **done.body["error"])
        value: dict[str, Any] = done.body["value"]
        return value

    def session(self, name: str) -> tuple[str, bool]:
        """Return the id of the session that a client names, and whether it was begun."""
        sessions = sessions_store.opened(self.place.open())
        known = sessions.ids()
        id_ = name if name in known else sessions.named("session", name)
        return id_, id_ in known


def context(call: ClientCall, given: Given) -> dict[str, Any]:
    """Return the primer for the first message of a session, else what answers the message."""
    session, message = given["session"], given["message"]
    is_first = bool(session) and session not in _GREETED
    if session:
        if len(_GREETED) >= MOST_NAMES:
            _GREETED.pop(next(iter(_GREETED)))
        _GREETED[session] = None
    asked = {"primer": True} if is_first or not message.strip() else {"prompt": message}
    found = call.ask("inject", session=session, **asked)
    return {
        "session": session,
        "primer": "primer" in asked,
        "text": found["text"],
        "context_text": found["text"],
        "has_memories": bool(found["items"]),
        "items": found["items"],
    }


def process(call: ClientCall, given: Given) -> dict[str, Any]:
    """Take an exchange into a session; return the session and how many messages it got."""
    name = given["session"]
    said = [(role, given[role]) for role in ("user", "assistant") if given[role].strip()]
    session, is_begun = call.session(name)
    if not is_begun and said:
        rows = [json.dumps({"role": role, "content": text}) for role, text in said]
        done = call.ask("capture", transcript="\n".join(rows), session=name)
        return {"session": done["session"], "count": done["captured"]}
    for role, text in said:  # a capture would take what was said before for the same message
        call.ask("session-add", id=session, role=role, text=text)
    return {"session": session, "count": len(said)}


def checkpoint(call: ClientCall, given: Given) -> dict[str, Any]:
    """Mark where a session stands, and make candidates of what it taught."""
    session, _is_begun = call.session(given["session"])
    marked = call.ask("session-checkpoint", id=session, text=given["reason"] or "asked")
    found = call.ask("promote", session=session)
    return {"session": marked["id"], "memories": found["memories"]}


def memorize(call: ClientCall, given: Given) -> dict[str, Any]:
    """Take a conversation into a session; return what was learned of it."""
    name = given["sessionId"] or given["branchId"]
    done = call.ask("capture", transcript=given["conversationText"], session=name)
    found = call.ask("promote", session=done["session"], list=True)["findings"]
    mine = [one for one in found if one["session"] == done["session"]]
    return {
        "resourceId": done["session"],
        "itemsExtracted": len(mine),
        "categoriesUpdated": [],  # findings wait; a memory, and its category, comes of promoting
    }


def retrieve(call: ClientCall, given: Given) -> dict[str, Any]:
    """Return the memories that answer a query, what they cost a model, and the milliseconds."""
    began = time.perf_counter()
    rows = call.ask("search", query=given["query"], limit=given["maxResults"])["results"]
    seen = _accesses(call)
    for one in rows:
        count, last = seen.get(one["id"], (0, 0))
        one["extractedAt"] = one["timestamp"]
        one["lastAccessed"] = timestamps.render(last) if last else None
        one["accessCount"] = count
    return {
        "memories": rows,
        "totalTokens": sum(tokens(f"{one['title']}\n{one['snippet']}") for one in rows),
        "retrievalTime": _milliseconds(began),
    }


def _accesses(call: ClientCall) -> dict[str, tuple[int, int]]:
    """Return how many answers showed each memory, and when the last one did.

    It is empty where that cannot be read: an answer does without.
    """
    directory = call.place.open().repository.cache_dir
    try:
        ledger.fold(directory, is_patient=False)
        with ledger.reading(directory) as known:
            return {one.id: (one.count, one.last) for one in known.most("", -1)}
    except MemtoolError:
        return {}


def get_category(call: ClientCall, given: Given) -> dict[str, Any]:
    """Return the living memories of a category, a line each; its digest says only the same."""
    asked = f"category:{given['category']}"
    found = call.ask("list", filters=asked, limit=0, sort="newest")
    own = {record.id for record in digests_in_use(call.place.open().tree())}
    rows = [one for one in found["memories"] if one["id"] not in own]
    return {
        "category": given["category"],
        "content": "".join(f"- {one['title']} [{one['id']}]\n" for one in rows),
        "lastUpdated": rows[0]["timestamp"] if rows else None,
        "itemCount": len(rows),
    }


def get_stats(call: ClientCall, _given: Given) -> dict[str, Any]:
    """Return counts, when the newest memory was made, and when upkeep is due by the schedule."""
    found = call.ask("stats")
    newest = call.ask("list", limit=1, sort="newest")["memories"]
    due = next_due(call.place.open())
    return {
        "totalItems": found["memories"],
        "totalCategories": len(found["categories"]),
        "totalResources": found["sessions"]["sessions"],
        "lastMemorized": newest[0]["timestamp"] if newest else None,
        "nextMaintenance": None if due is None else timestamps.render(due),
    }


def get_status(call: ClientCall, _given: Given) -> dict[str, Any]:
    """Return whether the server works on something, and what the last job said that failed."""
    running, error = call.jobs.running, call.jobs.last_error
    return {
        "status": "processing" if running else "error" if error else "ready",
        "lastError": error,
        "maintenanceInProgress": not {"maintain", "run-maintenance"}.isdisjoint(running),
    }


def clear_category(call: ClientCall, given: Given) -> dict[str, Any]:
    """Forget the living memories of a category; each can be restored. An empty one is cleared."""
    category = given["category"]
    if not call.ask("list", filters=f"category:{category}", limit=1)["total"]:
        return {"success": True, "itemsDeleted": 0}
    done = call.ask(
        "forget",
        wanted=f"category:{category}",
        all=True,
        why=given["why"] or f"the category {category} was cleared",
        commit=given["commit"],
        dry_run=given["dry_run"],
    )
    return {"success": True, "itemsDeleted": len(done["forgotten"])}


def run_maintenance(call: ClientCall, given: Given) -> dict[str, Any]:
    """Do the upkeep of a period, as one commit; return what was done, and the milliseconds."""
    began = time.perf_counter()
    periods = dict.fromkeys(PERIODS[given["type"]], True)
    done = call.ask("maintain", **periods, apply=not given["dry_run"])
    return {"success": True, "duration": _milliseconds(began), "results": done}


class ClientName(Value):
    """A name: what answers it, what it takes and what its answer holds.

    `also` has for a field the other names that clients give it. `is_address` says that it may be
    asked from the address. `is_long` says that it is a job, whose caller waits for `patience_s`
    seconds unless it prefers otherwise.
    """

    name: str
    run: Callable[[ClientCall, Given], dict[str, Any]]
    effect: str
    fields: Mapping[str, Parameter]
    answer: Mapping[str, Schema]
    also: Mapping[str, tuple[str, ...]] = {}
    is_address: bool = False
    is_long: bool = False
    patience_s: float = 0.0

    @property
    def is_strict(self) -> bool:
        """Whether an unknown field is refused: a mistyped `dry_run` must not delete anything."""
        return self.effect in (CHANGE, REMOVE)

    def fitted(self, given: Mapping[str, Any]) -> Given:
        """Return every field as its function takes it.

        Raises:
            Denied: something is missing, too long or of another type; where it counts, unknown.
        """
        every = {name for field in self.fields for name in self.names_of(field)}
        known = {name: value for name, value in given.items() if name in every or self.is_strict}
        return rest.bound(self._signature(given), known)

    def names_of(self, field: str) -> tuple[str, ...]:
        """Return the names under which a field may be given, its own first."""
        return (field, *self.also.get(field, ()))

    def _signature(self, given: Mapping[str, Any]) -> Signature:
        """Return the signature by the names that a call gives; a field's own name comes last."""
        parameters: dict[str, Parameter] = {}
        for field, parameter in self.fields.items():
            names = [name for name in self.names_of(field) if name in given] or [field]
            parameters |= dict.fromkeys(reversed(names), parameter.replace(name=field))
        return Signature(title=self.name, parameters=parameters, noun="field")


def answer(one: ClientName, given: Given, place: ServedRepository, jobs: JobList) -> HttpAnswer:
    """Answer one of the names with fields that fit; a refusal is an answer, too."""
    call = ClientCall(place, jobs)
    return answer_request(
        lambda: HttpAnswer(200, one.run(call, given)), rest.refusal, log_as=("http", one.name)
    )


def error_object(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as these clients read it."""
    return {
        "error": True,
        "code": error["code"],
        "message": error["message"],
        "context": {"hint": error["hint"], "recoverable": error["recoverable"]},
    }


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


def _takes(
    help: str,
    *,
    kind: type = str,
    default: Any = "",
    is_required: bool = False,
    is_long: bool = False,
    choices: tuple[str, ...] = (),
    zero_means: str = "",
) -> Parameter:
    """Return what a field takes."""
    return Parameter(
        name="",
        kind=kind,
        choices=choices,
        default=default,
        is_required=is_required,
        help=help,
        max_chars=MAX_LONG_CHARS if is_long else MAX_CHARS,
        takes_blank=not is_required,
        zero_means=zero_means,
    )


_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_COUNT: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_MOMENT: Schema = {"type": ["string", "null"], "description": "as 2026-03-01T12:00:00Z"}
_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_SESSION = ("sessionId", "session_id")
_CATEGORY = _takes("the category", is_required=True)
_DRY_RUN = _takes("say what would be done, write nothing", kind=bool, default=False)
_STATS = {
    "totalItems": _COUNT,
    "totalCategories": _COUNT,
    "totalResources": _COUNT,
    "lastMemorized": _MOMENT,
    "nextMaintenance": _MOMENT,
}
_ROWS_OF_NAMES = (
    ClientName(
        "context",
        context,
        READ,
        {
            "session": _takes("who asks; the first message of a session is answered with a primer"),
            "message": _takes("what the user says", is_long=True),
        },
        {
            "session": _TEXT,
            "primer": _FLAG,
            "text": _TEXT,
            "context_text": _TEXT,
            "has_memories": _FLAG,
            "items": _ROWS,
        },
        {"session": _SESSION, "message": ("prompt", "current_message")},
    ),
    ClientName(
        "process",
        process,
        ADD,
        {
            "session": _takes("the session, begun if it is not there", is_required=True),
            "user": _takes("what the user said", is_long=True),
            "assistant": _takes("what was answered", is_long=True),
        },
        {"session": _TEXT, "count": _COUNT},
        {
            "session": _SESSION,
            "user": ("user_message",),
            "assistant": ("assistant_response", "claude_response"),
        },
    ),
    ClientName(
        "checkpoint",
        checkpoint,
        ADD,
        {
            "session": _takes("the session", is_required=True),
            "reason": _takes("why now, such as session_end or pre_compact"),
        },
        {"session": _TEXT, "memories": _ROWS},
        {"session": _SESSION, "reason": ("trigger",)},
        is_long=True,
    ),
    ClientName(
        "memorize",
        memorize,
        ADD,
        {
            "conversationText": _takes(
                "a transcript, lines of role and content, or plain text",
                is_long=True,
                is_required=True,
            ),
            "sessionId": _takes("the session that it goes into"),
            "branchId": _takes("the same, where no session is named"),
        },
        {"resourceId": _TEXT, "itemsExtracted": _COUNT, "categoriesUpdated": _TEXTS},
    ),
    ClientName(
        "retrieve",
        retrieve,
        READ,
        {
            "query": _takes("words, filters and groups", is_long=True, is_required=True),
            "maxResults": _takes(
                "how many at most, 0 for all", kind=int, default=10, zero_means="all"
            ),
        },
        {"memories": _ROWS, "totalTokens": _COUNT, "retrievalTime": _NUMBER},
    ),
    ClientName(
        "get-category",
        get_category,
        READ,
        {"category": _CATEGORY},
        {"category": _TEXT, "content": _TEXT, "lastUpdated": _MOMENT, "itemCount": _COUNT},
        is_address=True,
    ),
    ClientName("get-stats", get_stats, READ, {}, _STATS, is_address=True),
    ClientName("stats", get_stats, READ, {}, _STATS, is_address=True),
    ClientName(
        "get-status",
        get_status,
        READ,
        {},
        {
            "status": {"enum": ["ready", "processing", "error"]},
            "lastError": {"type": ["string", "null"]},
            "maintenanceInProgress": _FLAG,
        },
        is_address=True,
    ),
    ClientName(
        "clear-category",
        clear_category,
        REMOVE,
        {
            "category": _CATEGORY,
            "why": _takes("the reason, one line"),
            "commit": _takes("commit it", kind=bool, default=False),
            "dry_run": _DRY_RUN,
        },
        {"success": _FLAG, "itemsDeleted": _COUNT},
    ),
    ClientName(
        "run-maintenance",
        run_maintenance,
        CHANGE,
        {
            "type": _takes("the period", default="nightly", choices=tuple(PERIODS)),
            "dry_run": _DRY_RUN,
        },
        {"success": _FLAG, "duration": _NUMBER, "results": {"type": "object"}},
        is_long=True,
        patience_s=rest.MOST_PATIENCE_S,
    ),
)
NAMES = {one.name: one for one in _ROWS_OF_NAMES}
"""Every name, below /memory/."""
