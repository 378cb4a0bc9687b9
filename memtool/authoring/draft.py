"""Drafts: from options to a memory that is not written yet, opened in an editor where asked.

A draft that is edited lies in the cache directory, where nobody else sees it, until its memory is
written; whatever is refused leaves it there. The text of options is not read from anywhere here.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memtool import templates
from memtool.authoring import write
from memtool.authoring.tree import bytes_of
from memtool.authoring.write import Written
from memtool.errors import MemtoolError, reason_of
from memtool.index.analyzer import is_stop, terms
from memtool.memory import document, drift, timestamps
from memtool.memory.fields import BY_NAME, CONFIDENCES, LIST_KINDS, OWN_PREFIX, TYPES
from memtool.memory.memory import Fields, FieldValue, Memory, Section
from memtool.memory.memory import sections as sections_of
from memtool.memory.schema import parse_source
from memtool.memory.visibility import OUT_OF_USE
from memtool.redaction.mask import Mask
from memtool.store import files
from memtool.store.context import Context
from memtool.store.progress import can_ask, paused

MOST_READ = 1 << 20
"""Bytes of a file in which anchors are looked for."""
MOST_LINES = 60
"""Lines that one anchor offers at most."""
NOT_BY_SET = {
    "id": "it has an option of its own, --id",
    "type": "it is the first argument of memtool new",
    "title": "it is an argument of its own",
    "supersedes": "it has an option of its own, --supersedes, which looks the id up",
    "checked": "memtool confirm writes it",
    "deleted": "memtool forget writes it",
    "retired": "memtool archive writes it",
}
"""Keys that `--set` must not write past their own checks, and who writes them."""


def assigned(pairs: Sequence[str]) -> dict[str, FieldValue]:
    """Read `--set KEY=VALUE`: list keys take values between commas, or several `--set`.

    Raises:
        MemtoolError: a pair has no `=`, or names a key that has another way.
    """
    found: dict[str, FieldValue] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise MemtoolError(f"--set {pair!r} is not KEY=VALUE", hint="--set domain=billing")
        if key in NOT_BY_SET:
            raise MemtoolError(f"{key} is not for --set", hint=NOT_BY_SET[key])
        field = BY_NAME.get(key)
        if field is None and not _is_own_key(key):
            raise _unknown_key(key, pair)
        if field is not None and field.kind in LIST_KINDS:
            items = tuple(part.strip() for part in value.split(",") if part.strip())
            so_far = found.get(key, ())
            found[key] = (so_far if isinstance(so_far, tuple) else ()) + items
        else:
            found[key] = value
    return found


def _is_own_key(key: str) -> bool:
    plain = key.replace("-", "a").replace("_", "a")
    return key.startswith(OWN_PREFIX) and len(key) > len(OWN_PREFIX) and plain.isalnum()


def _unknown_key(key: str, pair: str) -> MemtoolError:
    import difflib  # only a wrong key pays for it

    near = difflib.get_close_matches(key, [name for name in BY_NAME if name not in NOT_BY_SET], n=1)
    own = "".join(c if c.isalnum() else "-" for c in key.removeprefix(OWN_PREFIX)) or "name"
    mended = f"--set {OWN_PREFIX}{own}={pair.partition('=')[2]}"
    hint = f"did you mean {near[0]}? For a key of your own: {mended}" if near else mended
    return MemtoolError(f"no memory has the key {key!r}", hint=hint, code="unknown-key")


def draft(
    context: Context,
    type_: str,
    title: str,
    *,
    fields: Fields,
    body: str = "",
    section: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Memory:
    """Build a memory that is not written yet; `fields` wins over defaults, `extra` over both.

    Raises:
        MemtoolError: an option cannot be read.
    """
    given = {key: value for key, value in fields.items() if value not in ("", ())}
    base: Fields = {
        "timestamp": timestamps.render(context.clock.now),
        "type": type_,
        "title": " ".join(title.split()),
        "status": "candidate" if context.caller.agent else "confirmed",
        "confidence": CONFIDENCES[1],
        "source": (write.speaker(context),),
    }
    if context.caller.agent:
        base["agent"] = context.caller.agent
    merged = base | given | assigned(extra)
    if isinstance(tags := merged.get("tags"), tuple):
        merged["tags"] = tuple(tag.strip().lstrip("#").strip() for tag in tags)
    text = make_body(template_of(context, type_), body, section)
    if "id" not in merged:
        merged["id"] = write.draw_id(context, type_, title, text)
    return Memory(fields=merged, body=text)


def of_record(context: Context, record: Mapping[str, Any]) -> Memory:
    """Return the draft of a mapping with the keys of a memory, and `body`; see `draft`.

    Raises:
        MemtoolError: a key is unknown or not to be set here, or a value is none that a key takes.
    """
    for key in ("type", "title", "body"):
        if not isinstance(record.get(key), str):
            what = "has no" if record.get(key) is None else "has another value than a text as its"
            raise MemtoolError(
                f"it {what} {key}", hint='{"type": "decision", "title": "…", "body": "…"}'
            )
    if record["type"] not in TYPES:
        raise MemtoolError(
            f"type is one of {', '.join(TYPES)}, not {record['type'][:40]!r}",
            hint="memtool new --help says what each of them is",
        )
    fields: Fields = {
        key: _field_value(key, value)
        for key, value in record.items()
        if _is_settable(key) and value is not None
    }
    older = fields.get("supersedes")
    if isinstance(older, tuple) and older:
        fields["supersedes"] = write.replaceable(context.tree(), older)
    template = template_of(context, record["type"])
    memory = draft(context, record["type"], record["title"], fields=fields, body=record["body"])
    if _is_blank(memory, template):
        raise _without_text(memory.type, template)
    return memory.with_body(filled(memory.body, template))


_KEYS_HINT = f"the keys are body, {', '.join(BY_NAME)}, and your own with {OWN_PREFIX}"


def _is_settable(key: Any) -> bool:
    """Tell whether a key of a record is for `_field_value`.

    Raises:
        MemtoolError: no record has that key.
    """
    if not isinstance(key, str):
        raise MemtoolError(f"a key is no text but {type(key).__name__}", hint=_KEYS_HINT)
    if key in ("checked", "deleted", "retired"):
        raise MemtoolError(f"{key} is not given here", hint=NOT_BY_SET[key])
    if key not in BY_NAME and key != "body" and not _is_own_key(key):
        raise _unknown_key(key, f"{key}=VALUE")
    return key not in ("type", "title", "body")


def _field_value(key: str, value: Any) -> FieldValue:
    """Return a value of Python as the frontmatter has it: texts, tuples of texts, a table."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}" if abs(value) < 1e15 else str(value)
    if isinstance(value, str):
        return value
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, list | tuple | dict) and all(isinstance(item, str) for item in items):
        return {str(k): v for k, v in value.items()} if isinstance(value, dict) else tuple(value)
    hint = f"{key} is {BY_NAME[key].doc}" if key in BY_NAME else "one line of text"
    raise MemtoolError(f"{key} has a value that no key takes", hint=hint)


SAID = "Said by the user"
"""The section that quotes what a person said, where an agent writes it down for them."""


def vouched(
    context: Context, said_by_user: str, source: Sequence[str]
) -> tuple[Fields, tuple[str, ...]]:
    """Return the fields and sections of a memory that say who vouches for it.

    What an agent writes is its own word and a candidate. Where it quotes the user, the quote goes
    into the memory for a reviewer to see, and the user is a source.

    Raises:
        MemtoolError: an agent names a person as the source, and quotes nobody.
    """
    quote = " ".join(said_by_user.split())
    if context.caller.agent and not quote and any(one.startswith("human:") for one in source):
        raise MemtoolError(
            "an agent is the source of its own words",
            hint="give the words of the user as said_by_user, or leave the source out",
            code="no-quote",
        )
    if not quote:
        return {"source": tuple(source)}, ()
    by = (
        f"human:{write.author(context)}",
        *((write.speaker(context),) if context.caller.agent else ()),
    )
    sources = tuple(dict.fromkeys((*by, *source)))
    return {"source": sources, "status": "confirmed"}, (f"{SAID}=> {quote}",)


def template_of(context: Context, type_: str) -> str:
    """Return the markdown template of a type: the team's own `_TYPE.md`, or the one shipped."""
    path = os.path.join(context.repository.top, context.directory, f"_{type_}.md")
    try:
        return files.read_regular(path, document.MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return templates.read(f"memory/{type_}.md")


def make_body(template: str, statement: str, section: Sequence[str]) -> str:
    """Join the statement and the sections; without either the template is there to be filled in.

    Sections are matched to the headings of the template by name, whatever the case; others follow.
    """
    text = statement.strip("\n").replace("\r\n", "\n")
    if not text and not section:
        return template
    headings = [part.title for part in sections_of(template) if part.title]
    names = {name.lower(): name for name in headings}
    given: dict[str, str] = {}
    for name, value in map(_section, section):
        title = names.get(name.lower(), name)
        if title in given:
            raise MemtoolError(
                f"the section {title!r} is given twice", hint="put both texts into one --section"
            )
        given[title] = value
    order = [name for name in headings if given.get(name)]
    order += [name for name in given if name not in headings and given[name]]
    parts = [text] if text else []
    return "\n\n".join([*parts, *(f"## {name}\n\n{given[name]}" for name in order)]) + "\n"


def filled(body: str, template: str) -> str:
    """Return a body without the comments of its template, and without empty sections."""
    prompts = {line.strip() for line in template.splitlines() if line.strip().startswith("<!--")}
    lines = [line for line in body.splitlines() if line.strip() not in prompts]
    kept: list[Section] = []
    for part in reversed(sections_of("\n".join(lines))):
        if part.text or (kept and kept[-1].level > part.level):
            kept.append(part)
    texts = [
        "\n".join(lines[part.first_line - 1 : part.last_line]).strip("\n")
        for part in reversed(kept)
    ]
    return "\n\n".join(texts) + "\n" if texts else ""


def _section(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not equals or not name.strip():
        raise MemtoolError(
            f"--section {pair[:60]!r} is not NAME=TEXT",
            hint='--section "Rationale=it is the smallest change"',
        )
    return " ".join(name.split()), text.strip()


MOST_TAGS = 5
"""Tags that are proposed."""
LEAST_BESIDE = 2
"""Memories of the same file that carry a tag which the text does not name."""


def proposed_tags(context: Context, memory: Memory) -> tuple[str, ...]:
    """Return tags of other memories in use that fit a draft, the most used first, then by name.

    Those come first that its title or text names word for word, then those that several memories
    of one of its files carry. What it carries already is left out, and what may not be shown.
    """
    language = context.settings.text("search.language")
    named = set(terms(f"{memory.title}\n{memory.body}", language))
    files, counts, beside = set(memory.items("files")), Counter[str](), Counter[str]()
    before = [*context.notes]
    tree = context.tree()
    context.notes[:] = before  # what is wrong with other files is no news here
    for record in tree.records:
        if record.memory.status not in OUT_OF_USE and tree.lineage.is_head(record.id):
            tags = set(record.memory.items("tags")).difference(memory.items("tags"))
            counts.update(tags)
            if files.intersection(record.memory.items("files")):
                beside.update(tags)

    def is_named(tag: str) -> bool:
        words = terms(tag.replace("-", " ").replace("_", " "), language)
        return any(not is_stop(word) for word in words) and named.issuperset(words)

    fit = {tag: is_named(tag) for tag in counts}
    found = [tag for tag in counts if fit[tag] or beside[tag] >= LEAST_BESIDE]
    mask = Mask(context.settings)
    shown = [tag for tag in found if mask.line(tag) == tag]
    return tuple(sorted(shown, key=lambda tag: (not fit[tag], -counts[tag], tag))[:MOST_TAGS])


MOST_ANCHORS = 3
"""Names that are offered, and files that are read for them."""
_PART = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+"


def proposed_anchors(context: Context, memory: Memory) -> str:
    """Return what the text could hold so that drift has something to check; empty where it has.

    Checked are names such as `fetch_page` that stand in a file of the memory, and cited lines.
    Offered are names of its files whose words the text has, and the lines of the first of them.
    """
    sources = [parse_source(one) for one in memory.items("source")]
    named = dict.fromkeys(
        [*memory.items("files"), *(one.target for one in sources if one.kind == "file")]
    )
    text = f"{memory.title}\n{memory.body}"
    if any(one.kind == "file" and one.lines for one in sources) or any(
        drift.cited(text, path) for path in named
    ):
        return ""
    held = {path: body for path in [*named][:MOST_ANCHORS] if (body := _file_text(context, path))}
    if not held or any(
        drift.holds(body, name) for name in drift.names(text) for body in held.values()
    ):
        return ""
    said = set(terms(text, context.settings.text("search.language")))
    fitting = {
        name: path
        for path, body in held.items()
        for name in drift.names(body)
        if _is_about(name, said)
    }
    mask = Mask(context.settings)
    offered = [name for name in fitting if mask.line(name) == name][:MOST_ANCHORS]
    if not offered:
        return ""
    path, lines = fitting[offered[0]], held[fitting[offered[0]]].splitlines()
    first, last = _block(lines, offered[0])
    return f"{', '.join(offered)} or {path}#L{first}-L{last} in its text"


def _is_about(name: str, said: set[str]) -> bool:
    """Tell whether a text has the words of a name; one word alone, as of `is_head`, says little."""
    words = {term for term in terms(" ".join(re.findall(_PART, name))) if not is_stop(term)}
    return len(words) > 1 and said.issuperset(words)


def _file_text(context: Context, path: str) -> str:
    """Return a file of the worktree as text, empty for what is none or lies elsewhere."""
    clean = os.path.normpath(path)
    if context.is_global or context.repository.is_bare or clean.startswith(("/", "..", ".git/")):
        return ""
    place = os.path.join(os.path.realpath(context.repository.top), clean)
    if os.path.realpath(place) != place:
        return ""
    try:
        text = files.read_regular(place, MOST_READ).decode()
    except (OSError, ValueError):  # a glob, a folder, no UTF-8
        return ""
    return "" if "\0" in text else text


def _block(lines: Sequence[str], name: str) -> tuple[int, int]:
    """Return the lines, from 1, on which a name stands first with what is indented below it."""
    first = next(number for number, line in enumerate(lines) if drift.holds(line, name))
    indent = len(lines[first]) - len(lines[first].lstrip())
    last = first
    for number in range(first + 1, min(len(lines), first + MOST_LINES)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        last = number if line.strip() else last
    return first + 1, last + 1


def submit(
    context: Context, memory: Memory, *, has_own_id: bool, edit: bool, commit: bool, dry_run: bool
) -> Written:
    """Write a draft; a repetition is not written.

    It is edited first where that is asked for, or where it has no text and somebody is at a
    terminal.

    Raises:
        MemtoolError: it is refused; the hint names the draft where one was edited.
    """
    template = template_of(context, memory.type)
    if not edit and _is_blank(memory, template):
        edit = not dry_run and can_ask()
        if not edit:
            write.validated(context, memory)  # a wrong option is the first thing to mend
            raise _without_text(memory.type, template)

    def written(memory: Memory) -> Written:
        return write.write_new(
            context, memory, repeats="refuse", has_own_id=has_own_id, commit=commit, dry_run=dry_run
        )

    if not edit or dry_run:
        return written(memory.with_body(filled(memory.body, template)))
    data = write.validated(context, memory)  # no secret gets into a draft
    path = os.path.join(context.repository.cache_dir, "drafts", f"{memory.id}.md")
    edited = _edited(context, path, data)
    has_own_id = has_own_id or edited.id != memory.id
    try:
        edited = edited.with_body(filled(edited.body, template))
        if _is_blank(edited, template):
            raise _without_text(edited.type, template)
        if edited.supersedes:
            heads = write.replaceable(write.current(context, dry_run=False), edited.supersedes)
            edited = edited.with_fields(supersedes=heads)
        done = written(edited)
    except MemtoolError as error:
        error.hint = "; ".join(filter(None, (error.hint, f"the draft is kept in {path}")))
        raise
    os.unlink(path)
    return done


def _is_blank(memory: Memory, template: str) -> bool:
    return not memory.has_text or memory.body.strip() == template.strip()


def _without_text(type_: str, template: str) -> MemtoolError:
    names = [part.title for part in sections_of(template) if part.title]
    sections = f' or --section "{names[0]}=TEXT" (of {", ".join(names)})' if names else ""
    return MemtoolError(
        f"a memory of type {type_} needs a text",
        hint=f"--body TEXT{sections}; --edit opens your editor",
        code="empty",
    )


def _edited(context: Context, path: str, data: bytes) -> Memory:
    """Let the user edit a draft in their editor, and read it back. The draft stays for now.

    Raises:
        MemtoolError: the editor failed, or what it left is no memory.
    """
    with files.refusing(f"the draft {path} cannot be written", "leave out --edit"):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    with paused():
        _start_editor(context, path)
    left = bytes_of("", path)
    if not (left or b"").strip():
        if left is not None:
            os.unlink(path)
        raise MemtoolError("the draft was left empty, so nothing was written", code="editor")
    try:
        return write.read(context, left or b"")
    except MemtoolError as error:
        error.message += "; nothing was written"
        error.hint = f"the draft is kept in {path}"
        raise


def _start_editor(context: Context, path: str) -> None:
    command = context.caller.env.get("VISUAL") or context.caller.env.get("EDITOR") or "vi"
    try:
        argv = shlex.split(command)
        # Our stdout is data, such as the path in $(memtool new … --edit): the editor gets stderr.
        status = subprocess.run(
            [*argv, path], stdout=2, env=dict(context.caller.env), check=False
        ).returncode
    except (OSError, ValueError) as error:
        raise MemtoolError(
            f"the editor {command!r} cannot be started: {reason_of(error)}",
            hint=f"set EDITOR; the draft is kept in {path}",
            code="editor",
        ) from None
    if status != 0:
        raise MemtoolError(
            f"the editor {command!r} ended with status {status}, nothing was written",
            hint=f"the draft is kept in {path}",
            code="editor",
        )
