"""Forms: the pages that write and correct a memory, and the result of a form.

Nothing is edited in place: a claim is changed by a new memory that supersedes the old one. The form
first shows the gate's verdict and the file it would write, and only then commits.
"""

from __future__ import annotations

from memtool.authoring import draft
from memtool.commands.show import show
from memtool.errors import MemtoolError
from memtool.memory.fields import TYPES
from memtool.redaction.find import build_allowlist, clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery

MAX_PATCH = 20_000
"""Characters of a commit's diff that are shown."""
IN_PLACE = ("confirm", "pin", "unpin", "deprecate", "archive", "forget", "restore")
"""Verbs that change keys of a memory, which `undo` of that memory takes back."""
REMOVALS = ("removed", "discarded")
"""How an undo takes a file away."""
EMPTY = 2
"""Empty rows of a list in a form, in addition to the filled ones."""
LISTS = ("tag", "file", "source")
"""Options that take several values, each on a line of its own."""
KEYS = {"tag": "tags", "file": "files", "source": "source"}
"""The key of a memory that each of these options writes."""


def new(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the form for a new memory, filled with the template of its type."""
    type_ = query.text("type", "decision")
    if type_ not in TYPES:
        raise MemtoolError(f"unknown type {type_[:40]!r}", hint=f"the types are {', '.join(TYPES)}")
    return _build_form(context, "new", "A new memory", body=draft.read_template(context, type_)) | {
        "type": type_,
        "title_text": query.text("title"),
        "lists": [(name, [*query.many(name), *[""] * EMPTY]) for name in LISTS],
        "next": "/",
    }


def supersede(context: Context, query: PageQuery) -> dict[str, Any]:
    """Return the form that corrects a memory, filled with its title and text.

    Tags and files are kept unless others are given.
    """
    old = show(context, query.text("id"))
    if old.superseded_by:
        context.notes.append(f"it is already superseded by {', '.join(old.superseded_by)}")
    return _build_form(context, "supersede", f"Correct: {old.title}", body=old.body) | {
        "old": old,
        "type": old.type,
        "title_text": old.title,
        "category": old.category if "category" in old.fields else "",
        "lists": [
            (name, [*_list_values(old.fields.get(KEYS[name])), *[""] * EMPTY])
            for name in LISTS
            if name != "source"
        ]
        + [("source", [""] * EMPTY)],
        "next": f"/m/{old.id}",
    }


def _list_values(value: Any) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _build_form(context: Context, verb: str, title: str, *, body: str) -> dict[str, Any]:
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


def build_outcome(
    context: Context,
    verb: str,
    fields: list[tuple[str, str]],
    answer: dict[str, Any],
    *,
    is_done: bool,
) -> dict[str, Any]:
    """Return the result or the preview of a form: texts of files, changed keys, and the commit.

    `fields` are those of the form, which the page sends again to do it; `answer` is the verb's
    answer, as programs get it.
    """
    result = answer["value"]
    commit = next(reversed(find_texts(result, "commit")), "") if is_done else ""
    return {
        "title": "Done" if is_done else "This is what it would do",
        "is_done": is_done,
        "is_removal": verb == "undo" and result["how"] in REMOVALS,
        "holding": [result["id"], *result["also"]] if verb == "undo" else [],
        "verb": verb,
        "fields": fields,
        "notes": answer["notes"],
        "texts": []
        if commit
        else [*_find_contents(verb, fields, result), *find_texts(result, "text")],
        "changes": _find_changes(result),
        "paths": list(dict.fromkeys([*find_texts(result, "path"), *result.get("paths", ())])),
        "commit": commit,
        "patch": _patch(context, commit) if commit else "",
        "ids": list(dict.fromkeys(find_texts(result, "id"))) if is_done else [],
        "undone_by": find_undone(verb, dict(fields), result) if is_done else [],
    }


def find_undone(verb: str, fields: dict[str, str], result: dict[str, Any]) -> list[str]:
    """Return the memories whose last step a verb has made, so that `undo` can take it back.

    A supersession is undone at the old memory, a settled conflict at one of its sides. A new memory
    has no step before it: git reverts its commit.
    """
    if verb == "supersede":
        return [fields.get("old", "")]
    if verb == "resolve":
        return [settlement["ids"][0] for settlement in result["resolved"]]
    # A memory that was so already has nothing to take back.
    is_changed = verb in IN_PLACE and bool(_find_changes(result))
    return list(dict.fromkeys(find_texts(result, "id"))) if is_changed else []


def _find_contents(verb: str, fields: list[tuple[str, str]], result: dict[str, Any]) -> list[str]:
    """Return the contents of findings that a form promotes; their files come with the commit."""
    named = {value for name, value in fields if name == "finding"}
    rows = result.get("findings", ()) if verb == "promote" else ()
    return [row["content"] for row in rows if row["id"] in named]


def find_texts(value: Any, name: str) -> list[str]:
    """Return every text of that name in a value of JSON, in order; empty ones are left out."""
    if isinstance(value, list):
        return [text for item in value for text in find_texts(item, name)]
    if not isinstance(value, dict):
        return []
    own = [value[name]] if isinstance(value.get(name), str) and value[name] else []
    return own + [
        text for key, item in value.items() if key != name for text in find_texts(item, name)
    ]


def _find_changes(value: Any) -> list[tuple[str, str, str]]:
    """Return each key that changes with its old and new text."""
    if isinstance(value, list):
        return [row for item in value for row in _find_changes(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("changes")
    rows = [
        (key, str(pair[0] or "-"), str(pair[1] or "-"))
        for key, pair in (own.items() if isinstance(own, dict) else ())
        if isinstance(pair, list) and len(pair) == 2
    ]
    inner = [row for key, item in value.items() if key != "changes" for row in _find_changes(item)]
    return list(dict.fromkeys([*rows, *inner]))


def _patch(context: Context, commit: str) -> str:
    """Return the diff of a commit, without secrets."""
    answer = context.repository.git.run(
        "show",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--format=%h %an%n%B",
        "--patch",
        commit,
    )
    text = answer.decode(errors="replace")[:MAX_PATCH]
    return clean_text(text, build_allowlist(context.settings))
