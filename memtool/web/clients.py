"""The names that clients of other memory servers know, each made of verbs.

`POST /memory/context` gives a session what it should know, `process` takes an exchange into it,
`checkpoint` curates in the background; `memorize`, `retrieve`, `get-category` and the others answer
with the fields that such clients read, a refusal with `{"error": true, "code", "message"}`.
"""

from __future__ import annotations

import json
import time

from memtool.errors import MemtoolError
from memtool.rpc import call
from memtool.web import rest
from memtool.web.security import Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from memtool.rpc.call import ServedRepository
    from memtool.web.rest import HttpAnswer

    Ask = Callable[[str, dict[str, Any]], dict[str, Any]]
    """Runs a verb and returns its value as JSON. Raises Denied with the status of a refusal."""
    Given = Mapping[str, Any]
    Noted = TypeVar("Noted")

PERIODS: dict[str, tuple[str, ...]] = {
    "nightly": ("nightly",), "weekly": ("weekly",), "monthly": ("monthly",),
    "full": ("nightly", "weekly", "monthly"),
}  # fmt: skip
BYTES_OF_A_TOKEN = 4
MOST_NAMES = 10_000
_SESSIONS: dict[str, str] = {}
"""The id of each session by the name that a client gave it, in this process."""
_GREETED: dict[str, None] = {}
"""The sessions that were given their primer, in this process."""


def context(ask: Ask, given: Given) -> dict[str, Any]:
    """Return the primer for the first message of a session, else what answers the message."""
    session, prompt = _text(given, "session", "sessionId"), _text(given, "prompt", "message")
    is_first = bool(session) and session not in _GREETED
    if session:
        _note(_GREETED, session, None)
    named = {"session": session} if session else {}
    if is_first or not prompt:
        return ask("inject", {"primer": True, **named}) | {"primer": True}
    return ask("inject", {"prompt": prompt, **named}) | {"primer": False}


def process(ask: Ask, given: Given) -> dict[str, Any]:
    """Take an exchange into a session; return the session and how many messages it got."""
    said = [
        {"role": role, "content": _text(given, role)}
        for role in ("user", "assistant")
        if _text(given, role)
    ]
    if not said:
        raise MemtoolError("an exchange needs user or assistant", hint='{"user": "…"}')
    name = _text(given, "session", "sessionId", needed=True)
    session = _SESSIONS.get(name, "")
    if not session:
        done = _captured(ask, "\n".join(json.dumps(one) for one in said), name)
        return {"session": done["session"], "count": done["captured"]}
    for one in said:  # a capture would take what was said before for the same message
        ask("session-add", {"id": session, "role": one["role"], "text": one["content"]})
    return {"session": session, "count": len(said)}


def checkpoint(ask: Ask, given: Given) -> dict[str, Any]:
    """Mark where a session stands and look at what it taught."""
    name = _text(given, "session", "sessionId", needed=True)
    session = _SESSIONS.get(name, name)
    marked = ask("session-checkpoint", {"id": session, "text": _text(given, "reason") or "asked"})
    found = ask("promote", {"session": session})
    return {"session": marked["session"], "memories": found["memories"]}


def memorize(ask: Ask, given: Given) -> dict[str, Any]:
    """Take a conversation into a session; return what was learned of it."""
    text = _text(given, "conversationText", needed=True)
    done = _captured(ask, text, _text(given, "sessionId") or _text(given, "branchId"))
    found = ask("promote", {"session": done["session"], "list": True})["findings"]
    mine = [one for one in found if one["session"] == done["session"]]
    return {
        "resourceId": done["session"],
        "itemsExtracted": len(mine),
        "categoriesUpdated": sorted({one["category"] for one in mine}),
    }


def retrieve(ask: Ask, given: Given) -> dict[str, Any]:
    """Return memories that answer a query."""
    began = time.perf_counter()
    asked = {"query": _text(given, "query", needed=True), "limit": given.get("maxResults", 10)}
    rows = ask("search", asked)["results"]
    tokens = sum(len((one["title"] + one["snippet"]).encode()) for one in rows) // BYTES_OF_A_TOKEN
    took = round((time.perf_counter() - began) * 1000, 1)
    return {"memories": rows, "totalTokens": tokens, "retrievalTime": took}


def get_category(ask: Ask, given: Given) -> dict[str, Any]:
    """Return the living memories of a category, a line each."""
    category = _text(given, "category", needed=True)
    found = ask("list", {"filters": f"category:{category}", "limit": 0, "sort": "newest"})
    rows = found["memories"]
    return {
        "category": category,
        "content": "".join(f"- {one['title']} [{one['id']}]\n" for one in rows),
        "lastUpdated": rows[0]["timestamp"] if rows else None,
        "itemCount": found["total"],
    }


def get_stats(ask: Ask, given: Given) -> dict[str, Any]:
    """Return counts, the moment of the newest memory, and whether upkeep is due."""
    del given
    found, upkeep = ask("stats", {}), ask("status", {})["upkeep"]
    newest = ask("list", {"limit": 1, "sort": "newest"})["memories"]
    return {
        "totalItems": found["memories"],
        "totalCategories": len(found["categories"]),
        "totalResources": found["sessions"]["sessions"],
        "lastMemorized": newest[0]["timestamp"] if newest else None,
        "nextMaintenance": "due: " + ", ".join(upkeep) if upkeep else None,
    }


def clear_category(ask: Ask, given: Given) -> dict[str, Any]:
    """Forget the living memories of a category; each can be restored."""
    category = _text(given, "category", needed=True)
    why = _text(given, "why") or f"the category {category} was cleared"
    wanted = {"wanted": f"category:{category}", "all": True, "why": why}
    done = ask(
        "forget", wanted | {name: given[name] for name in ("commit", "dry_run") if name in given}
    )
    return {"success": True, "itemsDeleted": len(done["forgotten"])}


def run_maintenance(ask: Ask, given: Given) -> dict[str, Any]:
    """Do the upkeep of a period, as one commit."""
    kind = _text(given, "type", "kind") or "nightly"
    if kind not in PERIODS:
        raise MemtoolError(f"type is one of {', '.join(PERIODS)}", hint='{"type": "nightly"}')
    began = time.perf_counter()
    done = ask("maintain", dict.fromkeys(PERIODS[kind], True) | {"apply": True})
    took = round((time.perf_counter() - began) * 1000, 1)
    return {"success": True, "duration": took, "results": done}


READING: dict[str, Callable[[Ask, Given], dict[str, Any]]] = {
    "context": context, "retrieve": retrieve, "get-category": get_category, "get-stats": get_stats,
}  # fmt: skip
"""What may be asked of a server that only reads."""
WRITING: dict[str, Callable[[Ask, Given], dict[str, Any]]] = {
    "process": process, "checkpoint": checkpoint, "memorize": memorize,
    "clear-category": clear_category, "run-maintenance": run_maintenance,
}  # fmt: skip


GET = ("get-category", "get-stats")
"""What may be asked from the address."""


def answer(name: str, given: Given, place: ServedRepository, *, is_writing: bool) -> HttpAnswer:
    """Answer one of the names; a refusal is an answer, too."""

    def ask(verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        found = rest.procedure(verb)
        only_reads = arguments.get("list") is True
        rest.refuse_writing(found, arguments, is_writing=is_writing or only_reads)
        asked = rest.ask(found, arguments, place)
        if "error" in asked.body:
            raise Denied(asked.status, **asked.body["error"])
        value: dict[str, Any] = asked.body["value"]
        return value

    run = READING.get(name) or WRITING[name]
    return call.answered("http", name, lambda: rest.HttpAnswer(200, run(ask, given)), rest.refusal)


def refusal(error: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error as these clients read it."""
    return {
        "error": True,
        "code": error["code"],
        "message": error["message"],
        "context": {"hint": error["hint"], "recoverable": error["recoverable"]},
    }


def _captured(ask: Ask, text: str, session: str) -> dict[str, Any]:
    done = ask("capture", {"transcript": text, **({"session": session} if session else {})})
    if session:
        _note(_SESSIONS, session, done["session"])
    return done


def _note(known: dict[str, Noted], name: str, value: Noted) -> None:
    """Note a name; the oldest is forgotten where there are very many."""
    if len(known) >= MOST_NAMES:
        known.pop(next(iter(known)))
    known[name] = value


def _text(given: Given, *names: str, needed: bool = False) -> str:
    """Return the first of several fields that is there.

    Raises:
        Denied: it is no text, or missing where it is needed.
    """
    for name in names:
        found = given.get(name)
        if isinstance(found, str) and found.strip():
            return found
        if found is not None and not isinstance(found, str):
            raise Denied(400, f"{name} takes a text", hint=f'{{"{name}": "…"}}')
    if needed:
        raise Denied(400, f"{names[0]} is missing", hint=f'{{"{names[0]}": "…"}}')
    return ""
