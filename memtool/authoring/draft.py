"""Drafts: build a memory from options, before it is written, and edit it if asked.

A draft that is being edited is stored in the private cache directory until its memory is written;
if the memory is refused, the draft stays there. This module does not read standard input or files
that options name.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memtool import templates
from memtool.authoring import citations, write
from memtool.authoring.tree import read_bytes
from memtool.authoring.write import WriteResult
from memtool.errors import MemtoolError, find_reason
from memtool.index.analyzer import is_stop, terms
from memtool.memory import document, drift, timestamps
from memtool.memory.fields import BY_NAME, CONFIDENCES, LIST_KINDS, OWN_PREFIX, TYPES
from memtool.memory.memory import Fields, FieldValue, Memory, Section
from memtool.memory.memory import split_sections as sections_of
from memtool.memory.schema import parse_source
from memtool.memory.visibility import OUT_OF_USE
from memtool.redaction.mask import Mask
from memtool.store import files
from memtool.store.context import Context
from memtool.store.progress import can_prompt, paused

MAX_READ = 1 << 20
"""Bytes of a file that are searched for anchors."""
MAX_LINES = 60
"""Lines of one proposed anchor."""
NOT_BY_SET = {
    "id": "it has an option of its own, --id",
    "type": "it is the first argument of memtool new",
    "title": "it is an argument of its own",
    "supersedes": "it has an option of its own, --supersedes, which looks the id up",
    "checked": "memtool confirm writes it",
    "deleted": "memtool forget writes it",
    "retired": "memtool archive writes it",
    "settled_on": "memtool confirm --still-holds writes it",
}
"""Keys that `--set` refuses, since it would bypass their checks, and what to use instead."""


def parse_assignments(pairs: Sequence[str]) -> dict[str, FieldValue]:
    """Parse `--set KEY=VALUE` pairs; list keys take comma-separated values or several pairs.

    Raises:
        MemtoolError: a pair has no `=`, or its key is unknown or in `NOT_BY_SET`.
    """
    values: dict[str, FieldValue] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise MemtoolError(f"--set takes KEY=VALUE, not {pair!r}", hint="--set domain=billing")
        if key in NOT_BY_SET:
            raise MemtoolError(f"cannot set {key} with --set", hint=NOT_BY_SET[key])
        field = BY_NAME.get(key)
        if field is None and not _is_own_key(key):
            raise _unknown_key_error(key, pair)
        if field is not None and field.kind in LIST_KINDS:
            items = tuple(part.strip() for part in value.split(",") if part.strip())
            so_far = values.get(key, ())
            values[key] = (so_far if isinstance(so_far, tuple) else ()) + items
        else:
            values[key] = value
    return values


def _is_own_key(key: str) -> bool:
    plain = key.replace("-", "a").replace("_", "a")
    return key.startswith(OWN_PREFIX) and len(key) > len(OWN_PREFIX) and plain.isalnum()


def _unknown_key_error(key: str, pair: str) -> MemtoolError:
    import difflib  # needed for a wrong key only

    near = difflib.get_close_matches(key, [name for name in BY_NAME if name not in NOT_BY_SET], n=1)
    own = "".join(c if c.isalnum() else "-" for c in key.removeprefix(OWN_PREFIX)) or "name"
    mended = f"--set {OWN_PREFIX}{own}={pair.partition('=')[2]}"
    hint = f"did you mean {near[0]}?\nfor a key of your own: {mended}" if near else mended
    return MemtoolError(f"unknown key {key!r}", hint=hint, code="unknown-key")


def build_draft(
    context: Context,
    type_: str,
    title: str,
    *,
    fields: Fields,
    body: str = "",
    section: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Memory:
    """Build a memory without writing it; `fields` override defaults, `extra` overrides both.

    Raises:
        MemtoolError: an option cannot be parsed.
    """
    filled_in = {key: value for key, value in fields.items() if value not in ("", ())}
    base: Fields = {
        "timestamp": timestamps.render(context.clock.now),
        "type": type_,
        "title": " ".join(title.split()),
        "status": "candidate" if context.caller.agent else "confirmed",
        "confidence": CONFIDENCES[1],
        "source": (write.find_speaker(context),),
    }
    if context.caller.agent:
        base["agent"] = context.caller.agent
    merged = base | filled_in | parse_assignments(extra)
    if isinstance(tags := merged.get("tags"), tuple):
        merged["tags"] = tuple(tag.strip().lstrip("#").strip() for tag in tags)
    text = make_body(read_template(context, type_), body, section)
    if "id" not in merged:
        merged["id"] = write.draw_id(context, type_, title, text)
    return Memory(fields=merged, body=text)


def draft_from_record(context: Context, record: Mapping[str, Any]) -> Memory:
    """Build a draft from a mapping with the keys of a memory and `body`; see `build_draft`.

    Raises:
        MemtoolError: a key is unknown or cannot be set here, or a value does not fit its key.
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
            hint="memtool new --help",
        )
    fields: Fields = {
        key: _to_field_value(key, value)
        for key, value in record.items()
        if _is_settable(key) and value is not None
    }
    older = fields.get("supersedes")
    if isinstance(older, tuple) and older:
        fields["supersedes"] = write.find_replaceable(context.tree(), older)
    template = read_template(context, record["type"])
    memory = build_draft(
        context, record["type"], record["title"], fields=fields, body=record["body"]
    )
    if _is_blank(memory, template):
        raise _without_text(memory.type, template)
    return memory.with_body(fill_in_template(memory.body, template))


_KEYS_HINT = f"the keys are body, {', '.join(BY_NAME)}, and your own with {OWN_PREFIX}"


def _is_settable(key: Any) -> bool:
    """Return whether a key of a record is a field for `_to_field_value`.

    Raises:
        MemtoolError: a record cannot have that key.
    """
    if not isinstance(key, str):
        raise MemtoolError(f"a key must be text, not {type(key).__name__}", hint=_KEYS_HINT)
    if key in ("checked", "deleted", "retired", "settled_on"):
        raise MemtoolError(f"cannot set {key} here", hint=NOT_BY_SET[key])
    if key not in BY_NAME and key != "body" and not _is_own_key(key):
        raise _unknown_key_error(key, f"{key}=VALUE")
    return key not in ("type", "title", "body")


def _to_field_value(key: str, value: Any) -> FieldValue:
    """Convert a Python value to a frontmatter value: a text, a tuple of texts, or a table."""
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
    raise MemtoolError(f"{key} has a value that is not valid", hint=hint)


SAID = "Said by the user"
"""The section in which an agent quotes the user for whom it writes the memory."""


def vouching_fields(
    context: Context, said_by_user: str, source: Sequence[str]
) -> tuple[Fields, tuple[str, ...]]:
    """Return the fields and sections of a memory that record who vouches for it.

    A memory written by an agent is a candidate with the agent as its source. If the agent quotes
    the user, the memory contains the quote for a reviewer to see, and the user is a source.

    Raises:
        MemtoolError: an agent names a person as the source without a quote.
    """
    quote = " ".join(said_by_user.split())
    if context.caller.agent and not quote and any(entry.startswith("human:") for entry in source):
        raise MemtoolError(
            "cannot write this: a user is the source, but the words are the agent's",
            hint="quote the user in said_by_user, or leave out the source",
            code="no-quote",
        )
    if not quote:
        return {"source": tuple(source)}, ()
    by = (
        f"human:{write.find_author(context)}",
        *((write.find_speaker(context),) if context.caller.agent else ()),
    )
    sources = tuple(dict.fromkeys((*by, *source)))
    return {"source": sources, "status": "confirmed"}, (f"{SAID}=> {quote}",)


def read_template(context: Context, type_: str) -> str:
    """Return the markdown template of a type: the team's `_TYPE.md`, else the default."""
    path = os.path.join(context.repository.top, context.directory, f"_{type_}.md")
    try:
        return files.read_regular(path, document.MAX_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return templates.read(f"memory/{type_}.md")


def make_body(template: str, statement: str, section: Sequence[str]) -> str:
    """Join the statement and the sections; return the template if both are empty.

    Sections are matched to the headings of the template by name, ignoring case, and take their
    order; other sections follow.
    """
    text = statement.strip("\n").replace("\r\n", "\n")
    if not text and not section:
        return template
    headings = [part.title for part in sections_of(template) if part.title]
    names = {name.lower(): name for name in headings}
    texts: dict[str, str] = {}
    for name, value in map(_parse_section, section):
        title = names.get(name.lower(), name)
        if title in texts:
            raise MemtoolError(
                f"two sections are called {title!r}", hint="put both texts into one --section"
            )
        texts[title] = value
    order = [name for name in headings if texts.get(name)]
    order += [name for name in texts if name not in headings and texts[name]]
    parts = [text] if text else []
    return "\n\n".join([*parts, *(f"## {name}\n\n{texts[name]}" for name in order)]) + "\n"


def fill_in_template(body: str, template: str) -> str:
    """Remove the comments of the template and the empty sections from a body."""
    prompts = {line.strip() for line in template.splitlines() if line.strip().startswith("<!--")}
    lines = [line for line in body.splitlines() if line.strip() not in prompts]
    kept_sections: list[Section] = []
    for part in reversed(sections_of("\n".join(lines))):
        if part.text or (kept_sections and kept_sections[-1].level > part.level):
            kept_sections.append(part)
    texts = [
        "\n".join(lines[part.first_line - 1 : part.last_line]).strip("\n")
        for part in reversed(kept_sections)
    ]
    return "\n\n".join(texts) + "\n" if texts else ""


def _parse_section(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not equals or not name.strip():
        raise MemtoolError(
            f"--section takes NAME=TEXT, not {pair[:60]!r}",
            hint='--section "Rationale=it is the smallest change"',
        )
    return " ".join(name.split()), text.strip()


MAX_TAGS = 5
"""Tags in one proposal."""
MIN_SHARED_TAG_COUNT = 2
"""Memories of the same file that must have a tag for it to be proposed, if the text does not name
it."""


def propose_tags(context: Context, memory: Memory) -> tuple[str, ...]:
    """Return tags of other active memories that fit a draft.

    Tags that its title or text names word for word come first, then those that several memories of
    one of its files have; each group by number of uses, then by name. Tags that it already has, and
    tags that redaction would mask, are left out.
    """
    language = context.settings.text("search.language")
    named = set(terms(f"{memory.title}\n{memory.body}", language))
    files, counts, shared = set(memory.items("files")), Counter[str](), Counter[str]()
    before = [*context.notes]
    tree = context.tree()
    context.notes[:] = before  # drop notes about other files
    for record in tree.records:
        if record.memory.status not in OUT_OF_USE and tree.lineage.is_head(record.id):
            tags = set(record.memory.items("tags")).difference(memory.items("tags"))
            counts.update(tags)
            if files.intersection(record.memory.items("files")):
                shared.update(tags)

    def is_named(tag: str) -> bool:
        words = terms(tag.replace("-", " ").replace("_", " "), language)
        return any(not is_stop(word) for word in words) and named.issuperset(words)

    fit = {tag: is_named(tag) for tag in counts}
    fitting = [tag for tag in counts if fit[tag] or shared[tag] >= MIN_SHARED_TAG_COUNT]
    mask = Mask(context.settings)
    shown = [tag for tag in fitting if mask.line(tag) == tag]
    return tuple(sorted(shown, key=lambda tag: (not fit[tag], -counts[tag], tag))[:MAX_TAGS])


MAX_ANCHORS = 3
"""Names in one proposal, and files that are searched for them."""
_PART = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+"


def propose_anchors(context: Context, memory: Memory) -> str:
    """Propose names and lines to mention in the text, so that drift can check the memory.

    Drift checks cited lines, and names such as `fetch_page` that occur in a file of the memory.
    Proposed are names from its files whose words occur in the text, and the lines of the first one.
    Empty if the text already has an anchor, or nothing fits.
    """
    sources = [parse_source(text) for text in memory.items("source")]
    named = dict.fromkeys(
        [*memory.items("files"), *(source.target for source in sources if source.kind == "file")]
    )
    text = f"{memory.title}\n{memory.body}"
    if any(source.kind == "file" and source.lines for source in sources) or any(
        drift.find_cited_lines(text, path) for path in named
    ):
        return ""
    bodies = {
        path: body for path in [*named][:MAX_ANCHORS] if (body := _read_file_text(context, path))
    }
    if not bodies or any(
        drift.holds(body, name) for name in drift.find_names(text) for body in bodies.values()
    ):
        return ""
    spoken_terms = set(terms(text, context.settings.text("search.language")))
    fitting = {
        name: path
        for path, body in bodies.items()
        for name in drift.find_names(body)
        if _is_about(name, spoken_terms)
    }
    mask = Mask(context.settings)
    offered = [name for name in fitting if mask.line(name) == name][:MAX_ANCHORS]
    if not offered:
        return ""
    path, lines = fitting[offered[0]], bodies[fitting[offered[0]]].splitlines()
    first, last = _find_definition(lines, offered[0])
    return f"{', '.join(offered)} or {path}#L{first}-L{last} in its text"


def _is_about(name: str, spoken_terms: set[str]) -> bool:
    """Return whether a text contains all words of a name."""
    # One word alone, such as the "head" of `is_head`, says too little.
    words = {term for term in terms(" ".join(re.findall(_PART, name))) if not is_stop(term)}
    return len(words) > 1 and spoken_terms.issuperset(words)


def _read_file_text(context: Context, path: str) -> str:
    """Read a text file of the worktree; empty if it is not one, or lies outside."""
    clean = os.path.normpath(path)
    if context.is_global or context.repository.is_bare or clean.startswith(("/", "..", ".git/")):
        return ""
    place = os.path.join(os.path.realpath(context.repository.top), clean)
    if os.path.realpath(place) != place:
        return ""
    try:
        text = files.read_regular(place, MAX_READ).decode()
    except (OSError, ValueError):  # a glob, a folder, no UTF-8
        return ""
    return "" if "\0" in text else text


def _find_definition(lines: Sequence[str], name: str) -> tuple[int, int]:
    """Return the line range, from 1, of a name's first occurrence and the lines indented below."""
    first = next(number for number, line in enumerate(lines) if drift.holds(line, name))
    indent = len(lines[first]) - len(lines[first].lstrip())
    last = first
    for number in range(first + 1, min(len(lines), first + MAX_LINES)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        last = number if line.strip() else last
    return first + 1, last + 1


def submit_draft(
    context: Context,
    memory: Memory,
    *,
    has_own_id: bool,
    edit: bool,
    commit: bool,
    dry_run: bool,
    is_kept: bool,
    inherited: Collection[str] = (),
    settles: Sequence[str] = (),
) -> WriteResult:
    """Write a draft, unless it repeats a memory, or cites what is not there or no longer holds.

    It is edited first with `edit`, or if it has no text and the user can be prompted. For `is_kept`
    and `inherited` see `citations.check`. `settles` are memories that accept it as a cause.

    Raises:
        MemtoolError: it is refused; the hint names the path of an edited draft.
    """

    def check(memory: Memory) -> Memory:
        return citations.check(
            context, memory, is_kept=is_kept, inherited=inherited, dry_run=dry_run
        )

    memory = check(memory)
    template = read_template(context, memory.type)
    if not edit and _is_blank(memory, template):
        edit = not dry_run and can_prompt()
        if not edit:
            write.validate(context, memory)  # report a wrong option first
            raise _without_text(memory.type, template)

    def write_result(memory: Memory) -> WriteResult:
        return write.write_new(
            context,
            memory,
            repeats="refuse",
            has_own_id=has_own_id,
            commit=commit,
            dry_run=dry_run,
            settles=settles,
        )

    if not edit or dry_run:
        return write_result(memory.with_body(fill_in_template(memory.body, template)))
    data = write.validate(context, memory)  # no secret gets into a draft
    path = os.path.join(context.repository.cache_dir, "drafts", f"{memory.id}.md")
    edited = _edit_draft(context, path, data)
    has_own_id = has_own_id or edited.id != memory.id
    try:
        edited = edited.with_body(fill_in_template(edited.body, template))
        if _is_blank(edited, template):
            raise MemtoolError(
                f"cannot write this: the text of the {edited.type} is empty", code="empty"
            )
        if edited.supersedes:
            heads = write.find_replaceable(
                write.open_current_tree(context, dry_run=False), edited.supersedes
            )
            edited = edited.with_fields(supersedes=heads)
        if not citations.cites_the_same(memory, edited):
            edited = check(edited)
        done = write_result(edited)
    except MemtoolError as error:
        error.hint = "\n".join(filter(None, (error.hint, f"the draft is in {path}")))
        raise
    os.unlink(path)
    return done


def _is_blank(memory: Memory, template: str) -> bool:
    return not memory.has_text or memory.body.strip() == template.strip()


def _without_text(type_: str, template: str) -> MemtoolError:
    names = [part.title for part in sections_of(template) if part.title]
    sections = f' or --section "{names[0]}=TEXT" (of {", ".join(names)})' if names else ""
    return MemtoolError(
        f"cannot write this: a memory of type {type_} needs a text",
        hint=f"add --body TEXT{sections}\nor add --edit, to write it in your editor",
        code="empty",
    )


def _edit_draft(context: Context, path: str, data: bytes) -> Memory:
    """Open a draft in the user's editor, and read it back. The file is not removed.

    Raises:
        MemtoolError: the editor failed, or the result is not a valid memory.
    """
    with files.explaining_errors(f"the draft {path} cannot be written", "leave out --edit"):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    with paused():
        _start_editor(context, path)
    remaining = read_bytes("", path)
    if not (remaining or b"").strip():
        if remaining is not None:
            os.unlink(path)
        raise MemtoolError("nothing was written: the draft is empty", code="editor")
    try:
        return write.read(context, remaining or b"")
    except MemtoolError as error:
        error.message += "; nothing was written"
        error.hint = f"the draft is in {path}"
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
            f"cannot start the editor {command!r}: {find_reason(error)}",
            hint=f"set EDITOR; the draft is in {path}",
            code="editor",
        ) from None
    if status != 0:
        raise MemtoolError(
            f"nothing was written: the editor {command!r} ended with status {status}",
            hint=f"the draft is in {path}",
            code="editor",
        )
