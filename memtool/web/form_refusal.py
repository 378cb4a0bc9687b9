"""Why a form was refused, in the words of its page: the field, and what to do there.

A verb names options and suggests commands. A page has fields and buttons, so the advice is looked
up by the code of the error. A command is only shown where no page can help: those of git.
"""

from __future__ import annotations

import re

from memtool.authoring.write import PartRefusedError
from memtool.calls.wording import reword
from memtool.errors import MemtoolError, UnclearIdError
from memtool.index import index
from memtool.redaction.find import build_allowlist, clean_text
from memtool.web.refusals import capitalize, word_refusal
from memtool.web.sent_form import FormRefusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.calls.procedures import Procedure
    from memtool.store.context import Context
    from memtool.web.sent_form import SentForm

LABELS = {
    "add": "Add tag",
    "all": "Which",
    "body": "Text",
    "category": "Category",
    "dismiss": "Dismiss",
    "file": "Files",
    "files": "Files",
    "finding": "Lesson",
    "id": "Memory",
    "ids": "Which",
    "keep": "What holds",
    "merge": "Title",
    "old": "Memory",
    "reason": "Reason",
    "remove": "Remove tag",
    "source": "Sources",
    "tag": "Tags",
    "tags": "Tags",
    "title": "Title",
    "type": "Type",
}
"""The label of each field of a form, by the verb's name for it."""
_FIELDS_OF_KEY = {"files": ("file",), "tags": ("tag", "add")}
"""The fields that write a key of a memory, where they have different names."""
UNSENT = ("id", "ids", "keep", "reason")
"""Fields of which nothing is sent if nothing was chosen."""
_FIELD_OF_CODE = {
    "bad-premise": "source",
    "broken-link": "source",
    "broken-source": "source",
    "duplicate": "title",
    "empty": "body",
    "hidden-character": "body",
    "no-such-file": "file",
    "outside": "file",
    "personal-data": "body",
    "secret": "body",
    "too-large": "body",
}
"""The field that is wrong if the message names none."""
_CITATION = "Correct it, or keep it as it is with the box at the end of the form."
ADVICE = {
    "agent": "Only a person can confirm a memory.",
    "bad-premise": _CITATION,
    "broken-link": _CITATION,
    "broken-source": _CITATION,
    "changed": "Look at what it says now, then send the form again.",
    "commit-refused": "The file is written, but git did not commit it.",
    "deleted": "Restore it first.",
    "denied": "Restore the memory that was forgotten, or write a new one.",
    "dirty": "The last change is not in a commit yet. Commit it, then try again.",
    "drifted": "Look at the code first. If the memory is still true, use “Confirm that it still "
    "holds”; if not, correct it.",
    "duplicate": "If yours says the same, correct that one instead. If not, say in the title and "
    "the text what is different.",
    "login": "Send it again: nothing that you typed is lost.",
    "no-finding": "It may have been promoted or dismissed meanwhile. Load the page again.",
    "no-step": "There is nothing to take back.",
    "no-such-file": _CITATION,
    "not-a-head": "Change the newer one instead.",
    "not-committed": "Commit that file first: a confirmation names the commit of the code.",
    "personal-data": "Take it out, or name the role of the person instead.",
    "read-only": "The server was started without the right to write.",
    "rests-on-change": "Look at what has changed first. If the memory is still true, use “Confirm "
    "that it still holds”; if not, correct it.",
    "secret": "Take it out, and say where it is stored instead. Everything else stays as you "
    "typed it.",
    "too-large": "Put the long text into a file, and name that file as a source: file:PATH.",
    "unknown-id": "It may have been removed or renamed meanwhile. Load the page again.",
}
"""What to do on a page, by the code of an error. Of other codes the hint is shown without its
commands."""
LINKED = ("bad-premise", "denied", "duplicate", "fork", "not-a-head", "promoted", "several")
"""Codes of errors that name another memory, which the page links to."""
CORRECTED = ("duplicate", "drifted", "rests-on-change")
"""Codes for which the page offers to correct the memory that the error names."""
GIT = (
    "commit-refused",
    "dirty",
    "merging",
    "detached",
    "no-identity",
    "not-committed",
    "elsewhere",
)
"""Codes of what only git can mend: the hint's commands of git are shown."""
MISSING = {
    "id": "Choose at least one memory.",
    "ids": "Choose at least one.",
    "reason": "Say why: the reason stays with the memory.",
    "title": "Give it a title.",
}
"""The sentence for a field without a value."""
FRAGMENTS = (
    ("add --keep or --merge", "keep", "Choose what holds."),
    ("no tag is given", "add", "Type a tag to add, or one to remove."),
    ("the text of the new memory is missing", "body", "Write the text that holds."),
)
"""Part of a message, the field that it is about, and the sentence for a page."""
_ARGUMENT = re.compile(r"`([a-z_]+)`|(?<![\w-])--([a-z]+)")
_IS_MISSING = re.compile(
    r"^(?:cannot \w+: )?(?:the )?([a-z_]+) is (?:missing|empty)", re.IGNORECASE
)
_NAMED = re.compile(
    r"^(?:cannot [a-z ]+: )?(?:the (?:key )?)?([a-z_]+)(?::| contains| has | is one of| takes )"
)
_KEY = re.compile(r"^([a-z_]+): ")
_SUBJECT = re.compile(r'^".+?" \([\w-]+\)(: | )')
_IN_KEY = re.compile(r"^The key ([a-z_]+) contains")
_WRITING = "cannot write this: "
_ID = re.compile(r"\b[a-z]{3}-[a-z0-9-]+\b")
MAX_REASONS = 20
"""Memories of which the reason is shown, if several cannot be changed."""


def build_form_refusal(
    context: Context, error: MemtoolError, procedure: Procedure, sent: SentForm
) -> FormRefusal:
    """Return an error of a verb in the words of the form that was sent."""
    allowed = build_allowlist(context.settings)

    def word(text: str) -> str:
        """Name fields instead of options; no secret that was typed is repeated."""
        labelled = _ARGUMENT.sub(_quote_label, reword(text, procedure))
        return clean_text(error.shorten(labelled), allowed)

    first = error.reasons[0] if isinstance(error, PartRefusedError) else error.message
    first = first.removeprefix(_WRITING)
    field, sentence = _find_field(error, first, sent)
    rows, remaining = _split_refused(error, sent, word)
    if rows:
        count = len(rows) + len(remaining)
        return FormRefusal(
            f"{len(rows):,} of {count:,} memories cannot be changed, so none was.",
            field,
            ADVICE.get(error.code, ""),
            rows=rows[:MAX_REASONS],
            remaining=remaining,
        )
    worded = word_refusal(error, error.hint)
    is_explained = bool(sentence) or _KEY.match(first)
    return FormRefusal(
        sentence or _to_sentence(word(worded.sentence)),
        field,
        ADVICE.get(error.code, "" if is_explained else _to_sentence(word(worded.hint))),
        lines=tuple(map(word, worded.lines)),
        links=tuple(_list_links(context, error)),
        commands=tuple(
            word(line) for line in worded.commands if error.code in GIT and line.startswith("git ")
        ),
    )


def _quote_label(match: re.Match[str]) -> str:
    name = match[1] or match[2]
    return f"“{LABELS.get(name, name.replace('_', ' '))}”"


def _to_sentence(text: str) -> str:
    """Return a text as a sentence, with the label of a field instead of the name of its key."""
    text = text.replace("; nothing is written", "").removeprefix(_WRITING.capitalize())
    text = _IN_KEY.sub(lambda key: f"{LABELS.get(key[1], key[1])}: there is", capitalize(text))
    text = capitalize(_KEY.sub(lambda key: f"{LABELS.get(key[1], key[1])}: ", text))
    return text if not text or text.endswith((".", "?", "!", '"', "”")) else f"{text}."


def _find_field(error: MemtoolError, message: str, sent: SentForm) -> tuple[str, str]:
    """Return the field of the form that an error is about, and a sentence for the page.

    Both may be empty: no field of the form, and the sentence of the error.
    """
    fields = {name.removeprefix(f"{sent.verb}."): name for name, _value in sent.pairs}
    fields |= {name: name for name in UNSENT if name not in fields}
    for fragment, name, sentence in FRAGMENTS:
        if fragment in message:
            return fields.get(name, ""), sentence
    missing = _IS_MISSING.match(message)
    match = missing or _NAMED.match(message)
    key = match[1].lower() if match else ""
    argument = _ARGUMENT.search(message)
    candidates = (
        *_FIELDS_OF_KEY.get(key, (key,)),
        (argument[1] or argument[2]) if argument else "",
        _FIELD_OF_CODE.get(error.code, ""),
    )
    field = next((fields[name] for name in candidates if name in fields), "")
    return field, MISSING.get(key, "") if missing else ""


def _split_refused(
    error: MemtoolError, sent: SentForm, word: Callable[[str], str]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the memories that cannot be changed with their reasons, and the ids of the others.

    Both are empty if the form names one memory only, or if the error is not about some of them.
    """
    ids = list(dict.fromkeys(sent.all("id")))
    if len(ids) < 2:
        return (), ()
    refused: dict[str, str] = {}
    if isinstance(error, PartRefusedError):
        refused = dict(zip(error.ids, error.reasons, strict=True))
    elif isinstance(error, UnclearIdError) and error.wanted in ids:
        refused = {error.wanted: error.message}
    rows = tuple((id_, _to_reason(word(why))) for id_, why in refused.items())
    return rows, tuple(id_ for id_ in ids if id_ not in refused) if refused else ()


def _to_reason(text: str) -> str:
    """Return a reason in a row that names the memory already."""
    text = _SUBJECT.sub(lambda match: "" if match[1] == ": " else "it ", text)
    return _to_sentence(capitalize(text.removeprefix(_WRITING)))


def _list_links(context: Context, error: MemtoolError) -> list[tuple[str, str]]:
    """Return the pages of the memories that an error names, or the forms that correct them."""
    if error.code not in (*LINKED, *CORRECTED):
        return []
    tree = index.open(context)
    named = dict.fromkeys(_ID.findall(f"{error.message}\n{error.hint}"))
    titles = {id_: clean_text(tree[id_].memory.title) for id_ in named if id_ in tree}
    links = [(f"/m/{id_}", f"Open “{title}”") for id_, title in titles.items()]
    if error.code in CORRECTED:
        links += [(f"/m/{id_}/supersede", f"Correct “{title}”") for id_, title in titles.items()]
    return links
