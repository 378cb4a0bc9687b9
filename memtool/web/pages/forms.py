"""Forms: the pages that write and correct a memory, and the result of a form.

Nothing is edited in place: a claim is changed by a new memory that supersedes the old one. The form
first shows the gate's verdict and the file it would write, and only then commits.
"""

from __future__ import annotations

import re

from memtool.authoring import draft
from memtool.commands.show import show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.memory.fields import TYPES
from memtool.redaction.find import build_allowlist, clean_text
from memtool.value import digest, format_count
from memtool.web.refusals import SHELL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from memtool.store.context import Context
    from memtool.web.page import PageQuery
    from memtool.web.sent_form import SentForm

MAX_PATCH = 20_000
"""Characters of a commit's diff that are shown."""
IN_PLACE = ("confirm", "pin", "unpin", "deprecate", "archive", "tag", "forget", "restore")
"""Verbs that change keys of a memory, which `undo` of that memory takes back."""
REMOVALS = ("removed", "discarded")
"""How an undo takes a file away."""
TITLES = {
    "archive": ("Archive", "Archived"),
    "confirm": ("Confirm", "Confirmed"),
    "deprecate": ("Deprecate", "Deprecated"),
    "digest": ("Sum up", "Summed up"),
    "forget": ("Forget", "Forgotten"),
    "new": ("Write", "Written"),
    "pin": ("Pin", "Pinned"),
    "promote": ("Make a candidate", "A new candidate"),
    "resolve": ("Settle a conflict", "Conflict settled"),
    "restore": ("Restore", "Restored"),
    "supersede": ("Correct", "Corrected"),
    "tag": ("Change the tags of", "Changed the tags of"),
    "undo": ("Take back the last change", "The last change is taken back"),
    "unpin": ("Unpin", "Unpinned"),
}
"""The title of a preview, and of the result, by verb."""
MINOR_KEYS = ("checked", "deleted", "retired")
"""Keys that say when and by whom, which a list of several memories leaves out."""
MAX_UNDOS = 10
"""Memories for which a result offers to undo the change; of more, git reverts the commit."""
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


def compute_stamp(context: Context, sent: SentForm) -> str:
    """Return a stamp of the files of the memories that a form names, as they are now.

    A preview carries it, so that nothing is done to a text that the reader did not see.
    """
    try:
        tree = index.open(context, exact=True)
    except MemtoolError:  # the verb says why
        return ""
    named = sorted({value for _name, value in sent.pairs if value in tree})
    return digest("\n".join(f"{id_} {tree[id_].oid}" for id_ in named).encode())


def refuse_unreasoned(sent: SentForm) -> None:
    """Raise MemtoolError if a lesson is dismissed without a reason."""
    if sent.all("dismiss") and not any(reason.strip() for reason in sent.all("reason")):
        raise MemtoolError("the reason is missing")


def changed_error() -> MemtoolError:
    """Return the refusal of a form whose memories have changed since its preview."""
    return MemtoolError("the memory has changed since you saw the preview", code="changed")


def build_outcome(
    context: Context, sent: SentForm, answer: dict[str, Any], *, seen: str, is_done: bool
) -> dict[str, Any]:
    """Return the result or the preview of a form: texts of files, changed keys, and the commit.

    `answer` is the verb's answer, as programs get it; `seen` is the stamp of the preview.
    """
    result, verb = answer["value"], sent.verb
    commit = next(reversed(find_texts(result, "commit")), "") if is_done else ""
    changes = _find_changes(result)
    ids = list(dict.fromkeys(find_texts(result, "id")))
    is_several = len(ids) > 1 and verb in IN_PLACE
    return {
        "title": _build_title(verb, sent, ids, is_done=is_done),
        "subject": ids[0] if len(ids) == 1 and verb in (*IN_PLACE, "undo") else "",
        "is_done": is_done,
        "is_removal": verb == "undo" and result["how"] in REMOVALS,
        "is_several": is_several,
        "holding": [result["id"], *result["also"]] if verb == "undo" else [],
        "verb": verb,
        "sent": sent,
        "seen": seen,
        "notes": [_name_subject(context, note) for note in map(word_note, answer["notes"]) if note],
        "texts": []
        if commit
        else [*_find_contents(verb, sent.arguments, result), *find_texts(result, "text")],
        "changes": () if is_several else changes,
        "several": [(id_, _describe_several(id_, changes)) for id_ in ids] if is_several else (),
        "paths": list(dict.fromkeys([*find_texts(result, "path"), *result.get("paths", ())])),
        "commit": commit,
        "patch": _patch(context, commit) if commit else "",
        "ids": ids if is_done else [],
        "undone_by": find_undone(verb, dict(sent.arguments), result) if is_done else [],
        "max_undos": MAX_UNDOS,
        "next": sent.goal,
    }


def _build_title(verb: str, sent: SentForm, ids: list[str], *, is_done: bool) -> str:
    """Return what is done, and to how many memories; a single one is named below the title."""
    word = TITLES.get(verb, ("Do it", "Done"))[is_done]
    if verb in (*IN_PLACE, "promote") and len(ids) > 1:
        what = ("lesson", "lessons") if verb == "promote" else ("memory", "memories")
        return f"{word} {format_count(len(ids), *what)}"
    title = sent.all("title") or sent.all("merge")
    return f"{word}: {title[0]}" if title else word


def _describe_several(id_: str, changes: list[tuple[str, str, str, str]]) -> str:
    """Return what happens to one of several memories: the keys that say more than when and who."""
    own = [row[1:] for row in changes if row[0] == id_]
    texts = [f"{key}: {old} → {new}" for key, old, new in own if key not in MINOR_KEYS]
    return "; ".join(texts) or ("confirmed again" if own else "stays as it is")


def _name_subject(context: Context, note: str) -> str:
    """Return a note with the title of the memory that it is about, instead of its id."""
    id_, colon, text = note.partition(": ")
    tree = index.open(context)
    return f"“{clean_text(tree[id_].memory.title)}”{colon}{text}" if id_ in tree else note


def word_note(note: str) -> str:
    """Return a note of a verb without the clauses that only a command line can use."""
    clauses = re.split(r"(?<=[;:]) ", note)
    plain = [clause for clause in clauses if not SHELL.search(clause)]
    return " ".join(plain).rstrip(";:") if len(plain) < len(clauses) else note


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


def _find_changes(value: Any) -> list[tuple[str, str, str, str]]:
    """Return each key that changes with its memory, its old and its new text."""
    if isinstance(value, list):
        return [row for item in value for row in _find_changes(item)]
    if not isinstance(value, dict):
        return []
    own = value.get("changes")
    rows = [
        (str(value.get("id", "")), key, str(pair[0] or "-"), str(pair[1] or "-"))
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
