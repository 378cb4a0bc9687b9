"""Forms: the pages that write and correct a memory, and what a form that was sent says.

Nothing is written in place: what a memory claims changes by a new memory that supersedes it. The
form leads to what the gate says and the file it would write, and only then to the commit.
"""

from __future__ import annotations

from memtool.authoring import draft
from memtool.commands.show import show
from memtool.errors import MemtoolError
from memtool.memory.fields import TYPES
from memtool.redaction.find import allowlist, find, redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

MOST_PATCH = 20_000
"""Characters of what a commit changed that are shown."""
IN_PLACE = ("confirm", "pin", "unpin", "deprecate", "archive", "forget", "restore")
"""Verbs that change keys of a memory, which `undo` of that memory takes back."""
REMOVALS = ("removed", "discarded")
"""How an undo takes a file away."""
EMPTY = 2
"""Empty lines of a list that a form offers, beside those that are filled in."""
LISTS = ("tag", "file", "source")
"""Options that take several values, each on a line of its own."""
KEYS = {"tag": "tags", "file": "files", "source": "source"}
"""The key of a memory that each of these options writes."""


def new(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the form for a new memory, filled with the template of its type."""
    type_ = query.text("type", "decision")
    if type_ not in TYPES:
        raise MemtoolError(
            f"no memory is of the type {type_[:40]!r}", hint=f"one of {', '.join(TYPES)}"
        )
    return _form(context, "new", "A new memory", body=draft.template_of(context, type_)) | {
        "type": type_,
        "title_text": query.text("title"),
        "lists": [(name, [*query.many(name), *[""] * EMPTY]) for name in LISTS],
        "next": "/",
    }


def supersede(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the form that corrects a memory: its title and text are there to be changed.

    Tags and files are taken over where none are given.
    """
    old = show(context, query.text("id"))
    if old.superseded_by:
        context.notes.append(f"it was replaced already, by {', '.join(old.superseded_by)}")
    return _form(context, "supersede", f"Correct: {old.title}", body=old.body) | {
        "old": old,
        "type": old.type,
        "title_text": old.title,
        "category": old.category if "category" in old.fields else "",
        "lists": [
            (name, [*_values(old.fields.get(KEYS[name])), *[""] * EMPTY])
            for name in LISTS
            if name != "source"
        ]
        + [("source", [""] * EMPTY)],
        "next": f"/m/{old.id}",
    }


def _values(found: Any) -> tuple[str, ...]:
    return found if isinstance(found, tuple) else ()


def _form(context: Context, verb: str, title: str, *, body: str) -> dict[str, Any]:
    return {
        "title": title,
        "verb": verb,
        "body": body,
        "old": None,
        "types": TYPES,
        "category": "",
        "categories": sorted(context.settings.categories),
        "notes": [*context.notes],
    }


def outcome(
    context: Context,
    verb: str,
    fields: list[tuple[str, str]],
    answer: dict[str, Any],
    *,
    is_done: bool,
) -> dict[str, Any]:
    """Return what a form did or would do: texts of files, changed keys, and the commit.

    `fields` are those of the form, which the page sends again to do it; `answer` is what the verb
    answered, as programs get it.
    """
    found = answer["value"]
    commit = next(reversed(found_texts(found, "commit")), "") if is_done else ""
    return {
        "title": "Done" if is_done else "This is what it would do",
        "is_done": is_done,
        "is_removal": verb == "undo" and found["how"] in REMOVALS,
        "holding": [found["id"], *found["also"]] if verb == "undo" else [],
        "verb": verb,
        "fields": fields,
        "notes": answer["notes"],
        "texts": [] if commit else [*_contents(verb, fields, found), *found_texts(found, "text")],
        "changes": _changes(found),
        "paths": list(dict.fromkeys([*found_texts(found, "path"), *found.get("paths", ())])),
        "commit": commit,
        "patch": _patch(context, commit) if commit else "",
        "ids": list(dict.fromkeys(found_texts(found, "id"))) if is_done else [],
        "undone_by": undone_by(verb, dict(fields), found) if is_done else [],
    }


def undone_by(verb: str, fields: dict[str, str], found: dict[str, Any]) -> list[str]:
    """Return the memories whose last step is what a verb did, so that `undo` takes it back.

    What was replaced is taken back at the old memory, and a settled conflict at one of its sides.
    What is new has no step before it: git takes back its commit.
    """
    if verb == "supersede":
        return [fields.get("old", "")]
    if verb == "resolve":
        return [one["ids"][0] for one in found["resolved"]]
    # A memory that was so already has nothing to take back.
    is_changed = verb in IN_PLACE and bool(_changes(found))
    return list(dict.fromkeys(found_texts(found, "id"))) if is_changed else []


def _contents(verb: str, fields: list[tuple[str, str]], found: dict[str, Any]) -> list[str]:
    """Return what the findings say that a form promotes; their files come with the commit."""
    named = {value for name, value in fields if name == "finding"}
    rows = found.get("findings", ()) if verb == "promote" else ()
    return [one["content"] for one in rows if one["id"] in named]


def found_texts(found: Any, name: str) -> list[str]:
    """Return every text of that name in a value of JSON, in order; empty ones are left out."""
    if isinstance(found, list):
        return [text for one in found for text in found_texts(one, name)]
    if not isinstance(found, dict):
        return []
    own = [found[name]] if isinstance(found.get(name), str) and found[name] else []
    return own + [
        text for key, one in found.items() if key != name for text in found_texts(one, name)
    ]


def _changes(found: Any) -> list[tuple[str, str, str]]:
    """Return each key that changes with its old and new text."""
    if isinstance(found, list):
        return [row for one in found for row in _changes(one)]
    if not isinstance(found, dict):
        return []
    own = found.get("changes")
    rows = [
        (key, str(pair[0] or "-"), str(pair[1] or "-"))
        for key, pair in (own.items() if isinstance(own, dict) else ())
        if isinstance(pair, list) and len(pair) == 2
    ]
    return rows + [row for key, one in found.items() if key != "changes" for row in _changes(one)]


def _patch(context: Context, commit: str) -> str:
    """Return what a commit changed, as git shows it, without secrets."""
    answer = context.repository.git.run(
        "show",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--format=%h %an%n%B",
        "--patch",
        commit,
    )
    text = answer.decode(errors="replace")[:MOST_PATCH]
    return redact(text, find(text, allowlist(context.settings)))
