"""The endpoints that clients of other memory servers know, each built from verbs.

`POST /memory/context` returns a session's context, `process` stores an exchange in it, `checkpoint`
curates in the background; `memorize`, `retrieve`, `get-category` and the others return the fields
that such clients read, and a refusal as `{"error": true, "code", "message"}`. Each is a row of the
table, which checks its arguments and describes them in the OpenAPI document.
"""

from __future__ import annotations

import json
import time

from memtool.calls.boundary import answer_request
from memtool.calls.procedures import ADD, CHANGE, READ, REMOVE
from memtool.calls.run import ServedRepository
from memtool.calls.signature import MAX_CHARS, MAX_LONG_CHARS, Parameter, Signature
from memtool.commands.digest import read_summary
from memtool.commands.maintain import find_next_due
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.inject.budget import estimate_tokens
from memtool.memory import timestamps
from memtool.sessions import consent
from memtool.sessions import store as sessions_store
from memtool.store import ledger
from memtool.value import Value
from memtool.web import rest
from memtool.web.rest import HttpAnswer, JobList
from memtool.web.security import DeniedError

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
NO_SCHEDULE = "no upkeep is scheduled: the setting maintain.schedule is empty"
MAX_NAMES = 10_000
_GREETED: dict[str, None] = {}
"""The sessions that were given their primer, in this process."""


class ClientCall(Value):
    """The context of an endpoint: the verbs on a repository, and the jobs of the server."""

    place: ServedRepository
    jobs: JobList

    def ask(self, verb: str, **arguments: Any) -> dict[str, Any]:
        """Run a verb and return its value as JSON. Raises DeniedError if the verb refuses."""
        done = rest.ask(rest.find_procedure(verb), arguments, self.place)
        if "error" in done.body:
            raise DeniedError(done.status, **done.body["error"])
        value: dict[str, Any] = done.body["value"]
        return value

    def session(self, name: str) -> tuple[str, bool]:
        """Return the id of the session that a client names, and whether it was begun."""
        sessions = sessions_store.open_sessions(self.place.open())
        ids = sessions.ids()
        id_ = name if name in ids else sessions.find_name("session", name)
        return id_, id_ in ids


def context(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Return the primer for the first message of a session, else the block for the message."""
    session, message = arguments["session"], arguments["message"]
    is_first = bool(session) and session not in _GREETED
    if session:
        if len(_GREETED) >= MAX_NAMES:
            _GREETED.pop(next(iter(_GREETED)))
        _GREETED[session] = None
    question = {"primer": True} if is_first or not message.strip() else {"prompt": message}
    block = call.ask("inject", session=session, **question)
    return {
        "session": session,
        "primer": "primer" in question,
        "text": block["text"],
        "context_text": block["text"],
        "has_memories": bool(block["items"]),
        "items": block["items"],
    }


def process(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Take an exchange into a session; return the session and how many messages it got."""
    name = arguments["session"]
    messages = [
        (role, arguments[role]) for role in ("user", "assistant") if arguments[role].strip()
    ]
    session, is_begun = call.session(name)
    if not is_begun and messages:
        rows = [json.dumps({"role": role, "content": text}) for role, text in messages]
        done = call.ask("capture", transcript="\n".join(rows), session=name)
        return {"session": done["session"], "count": done["captured"]}
    for (
        role,
        text,
    ) in messages:  # a later capture would take the messages before it for the same message
        call.ask("session-add", id=session, role=role, text=text)
    return {"session": session, "count": len(messages)}


def checkpoint(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Mark a checkpoint in a session, and create candidates from its findings."""
    session, _is_begun = call.session(arguments["session"])
    marked = call.ask("session-checkpoint", id=session, text=arguments["reason"] or "asked")
    report = call.ask("promote", session=session)
    return {"session": marked["id"], "memories": report["memories"]}


def memorize(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Store a conversation in a session; return how many findings it added, and what changed.

    Findings wait for a person, so no category changes, unless the user has set capture.promote.
    """
    name = arguments["sessionId"] or arguments["branchId"]
    before = _list_finding_ids(call)
    done = call.ask("capture", transcript=arguments["conversationText"], session=name)
    session = done["session"]
    extracted = _list_finding_ids(call, session) - before
    context = call.place.open()
    written: list[dict[str, Any]] = []
    if consent.is_promoting(context):
        written = call.ask("promote", session=session, auto=True)["memories"]
    records = index.open(call.place.open()).with_ids({memory["id"] for memory in written})
    return {
        "resourceId": session,
        "itemsExtracted": len(extracted),
        "categoriesUpdated": sorted({record.memory.category for record in records}),
    }


def _list_finding_ids(call: ClientCall, session: str = "") -> set[str]:
    """Return the ids of the findings of a session, or of all sessions, dismissed ones included."""
    listed = call.ask("promote", session=session, list=True, dismissed=True)
    return {
        finding["id"]
        for finding in listed["findings"]
        if not session or finding["session"] == session
    }


def retrieve(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Return the memories that answer a query, their cost in tokens, and the milliseconds."""
    began = time.perf_counter()
    rows = call.ask("search", query=arguments["query"], limit=arguments["maxResults"])["results"]
    seen = _read_accesses(call)
    sources = _read_sources(call, {row["id"] for row in rows})
    for row in rows:
        count, last = seen.get(row["id"], (0, 0))
        row["source"] = sources.get(row["id"], [])
        row["extractedAt"] = row["timestamp"]
        row["lastAccessed"] = timestamps.render(last) if last else None
        row["accessCount"] = count
    return {
        "memories": rows,
        "totalTokens": sum(estimate_tokens(f"{row['title']}\n{row['snippet']}") for row in rows),
        "retrievalTime": _elapsed_ms(began),
    }


def _read_sources(call: ClientCall, ids: set[str]) -> dict[str, list[str]]:
    """Return the sources of the memories of this project and of the user's own, by id."""
    context = call.place.open()
    contexts = [context] if context.global_context is None else [context, context.global_context]
    return {
        record.id: list(record.memory.items("source"))
        for context in contexts
        for record in index.open(context).with_ids(ids)
    }


def _read_accesses(call: ClientCall) -> dict[str, tuple[int, int]]:
    """Return the accesses of each memory and the moment of the last.

    Empty if they cannot be read; the answer is given without them.
    """
    directory = call.place.open().repository.cache_dir
    try:
        ledger.fold(directory, is_patient=False)
        with ledger.open_ledger(directory) as usage:
            return {
                counted.id: (counted.count, counted.last) for counted in usage.most_shown("", -1)
            }
    except MemtoolError:
        return {}


def get_category(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Return the summary of a category: the text of its digest, else its main memories."""
    category = arguments["category"]
    call.ask("list", filters=f"category:{category}", limit=1)  # refuses an unknown category
    summary = read_summary(call.place.open(), category)
    newest = max((memory.timestamp for memory in summary.members), default=None)
    return {
        "category": category,
        "content": summary.text,
        "lastUpdated": None if newest is None else timestamps.render(newest),
        "itemCount": len(summary.members),
    }


def get_stats(call: ClientCall, _arguments: Given) -> dict[str, Any]:
    """Return counts, when the newest memory was made, and when upkeep is due by the schedule."""
    stats = call.ask("stats")
    newest = call.ask("list", limit=1, sort="newest")["memories"]
    due = find_next_due(call.place.open())
    return {
        "totalItems": stats["memories"],
        "totalCategories": len(stats["categories"]),
        "totalResources": stats["sessions"]["sessions"],
        "lastMemorized": newest[0]["timestamp"] if newest else None,
        "nextMaintenance": None if due is None else timestamps.render(due),
        "nextMaintenanceReason": None if due is not None else NO_SCHEDULE,
    }


def get_status(call: ClientCall, _arguments: Given) -> dict[str, Any]:
    """Return whether a job is running, and the message of the last failed one."""
    running, error = call.jobs.running, call.jobs.last_error
    return {
        "status": "processing" if running else "error" if error else "ready",
        "lastError": error,
        "maintenanceInProgress": not {"maintain", "run-maintenance"}.isdisjoint(running),
    }


def clear_category(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Forget the living memories of a category; each can be restored. An empty one is cleared."""
    category = arguments["category"]
    if not call.ask("list", filters=f"category:{category}", limit=1)["total"]:
        return {"success": True, "itemsDeleted": 0}
    done = call.ask(
        "forget",
        id=f"category:{category}",
        reason=arguments["reason"] or f"the category {category} was cleared",
        commit=arguments["commit"],
        dry_run=arguments["dry_run"],
    )
    return {"success": True, "itemsDeleted": len(done["forgotten"])}


def run_maintenance(call: ClientCall, arguments: Given) -> dict[str, Any]:
    """Do the upkeep of a period as one commit; return the result and the milliseconds."""
    began = time.perf_counter()
    periods = dict.fromkeys(PERIODS[arguments["type"]], True)
    done = call.ask("maintain", **periods, apply=not arguments["dry_run"])
    return {"success": True, "duration": _elapsed_ms(began), "results": done}


class ClientName(Value):
    """An endpoint: its function, its parameters and the fields of its answer.

    `also` has other names of a field, as clients send them. `is_address` allows GET. `is_long`
    makes it a job, whose caller waits for `patience_s` seconds unless it asks for something else.
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

    def fit(self, arguments: Mapping[str, Any]) -> Given:
        """Return the arguments of the function.

        Raises:
            DeniedError: one is missing, too long, of another type, or (if checked) unknown.
        """
        every = {name for field in self.fields for name in self.find_names(field)}
        accepted = {
            name: value for name, value in arguments.items() if name in every or self.is_strict
        }
        return rest.bind_arguments(self._build_signature(arguments), accepted)

    def find_names(self, field: str) -> tuple[str, ...]:
        """Return the names under which a field may be given, its own first."""
        return (field, *self.also.get(field, ()))

    def _build_signature(self, arguments: Mapping[str, Any]) -> Signature:
        """Return the signature by the names that a call gives; a field's own name comes last."""
        parameters: dict[str, Parameter] = {}
        for field, parameter in self.fields.items():
            names = [name for name in self.find_names(field) if name in arguments] or [field]
            parameters |= dict.fromkeys(reversed(names), parameter.replace(name=field))
        return Signature(title=self.name, parameters=parameters, noun="field")


def answer(
    client_name: ClientName, arguments: Given, place: ServedRepository, jobs: JobList
) -> HttpAnswer:
    """Answer one of the names with fields that fit; a refusal is an answer, too."""
    call = ClientCall(place, jobs)
    return answer_request(
        lambda: HttpAnswer(200, client_name.run(call, arguments)),
        rest.build_refusal,
        log_as=("http", client_name.name),
    )


def build_error_object(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as these clients read it."""
    return {
        "error": True,
        "code": error["code"],
        "message": error["message"],
        "context": {"hint": error["hint"], "recoverable": error["recoverable"]},
    }


def _elapsed_ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


def _build_parameter(
    help: str,
    *,
    kind: type = str,
    default: Any = "",
    is_required: bool = False,
    is_long: bool = False,
    choices: tuple[str, ...] = (),
    zero_means: str = "",
) -> Parameter:
    """Return the parameter of a field."""
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
_RETRIEVED: Schema = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["id", "source", "extractedAt", "lastAccessed", "accessCount"],
        "properties": {
            "id": _TEXT,
            "source": _TEXTS,
            "extractedAt": _MOMENT,
            "lastAccessed": _MOMENT,
            "accessCount": _COUNT,
        },
    },
}
_SESSION = ("sessionId", "session_id")
_CATEGORY = _build_parameter("the category", is_required=True)
_DRY_RUN = _build_parameter("say what would be done, write nothing", kind=bool, default=False)
_STATS = {
    "totalItems": _COUNT,
    "totalCategories": _COUNT,
    "totalResources": _COUNT,
    "lastMemorized": _MOMENT,
    "nextMaintenance": _MOMENT,
    "nextMaintenanceReason": {
        "type": ["string", "null"],
        "description": "why nextMaintenance is null; null if it is a date",
    },
}
_ROWS_OF_NAMES = (
    ClientName(
        "context",
        context,
        READ,
        {
            "session": _build_parameter(
                "who asks; the first message of a session is answered with a primer"
            ),
            "message": _build_parameter("what the user says", is_long=True),
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
            "session": _build_parameter("the session, begun if it is not there", is_required=True),
            "user": _build_parameter("what the user said", is_long=True),
            "assistant": _build_parameter("what was answered", is_long=True),
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
            "session": _build_parameter("the session", is_required=True),
            "reason": _build_parameter("why now, such as session_end or pre_compact"),
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
            "conversationText": _build_parameter(
                "a transcript, lines of role and content, or plain text",
                is_long=True,
                is_required=True,
            ),
            "sessionId": _build_parameter("the session that it goes into"),
            "branchId": _build_parameter("the same, where no session is named"),
        },
        {"resourceId": _TEXT, "itemsExtracted": _COUNT, "categoriesUpdated": _TEXTS},
    ),
    ClientName(
        "retrieve",
        retrieve,
        READ,
        {
            "query": _build_parameter("words, filters and groups", is_long=True, is_required=True),
            "maxResults": _build_parameter(
                "how many at most, 0 for all", kind=int, default=10, zero_means="all"
            ),
        },
        {"memories": _RETRIEVED, "totalTokens": _COUNT, "retrievalTime": _NUMBER},
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
            "reason": _build_parameter("the reason, one line"),
            "commit": _build_parameter("commit it", kind=bool, default=False),
            "dry_run": _DRY_RUN,
        },
        {"success": _FLAG, "itemsDeleted": _COUNT},
        {"reason": ("why",)},
    ),
    ClientName(
        "run-maintenance",
        run_maintenance,
        CHANGE,
        {
            "type": _build_parameter("the period", default="nightly", choices=tuple(PERIODS)),
            "dry_run": _DRY_RUN,
        },
        {"success": _FLAG, "duration": _NUMBER, "results": {"type": "object"}},
        is_long=True,
        patience_s=rest.MAX_PATIENCE_S,
    ),
)
NAMES = {row.name: row for row in _ROWS_OF_NAMES}
"""Every name, below /memory/."""
