"""Digests: one summary memory for each category.

This module owns which memories are summed up, how they are grouped, and the line of each. The text
depends only on the memories, not on a clock. So the same memories give the same page, and a digest
is replaced only if one of them has changed.

A model may only word the lines. It gets redacted text. Its sentence is used only if the memory
contains its words, and every name and number in it; all other lines use the memory's own words.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from memtool import templates
from memtool.authoring import write
from memtool.authoring.tree import find_dirty
from memtool.errors import MemtoolError
from memtool.memory import ids, timestamps
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import SOURCE, Fields, Memory, digest_inputs, is_generated
from memtool.memory.visibility import GONE, find_private_label
from memtool.redaction.find import Allowlist
from memtool.search import conflicts
from memtool.search.levels import find_digests_in_use
from memtool.sessions.extract import llm
from memtool.sessions.extract.llm import Model
from memtool.sessions.model import Message
from memtool.sessions.store import clean_texts
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.config import Config
from memtool.store.context import Context
from memtool.store.messages import MEMORY_ID, SUPERSEDES
from memtool.store.tree import Record, Tree
from memtool.value import Value, digest

Word = Callable[[Sequence[Memory]], Mapping[str, str]]

NEW, CHANGED, UNCHANGED, EMPTY = "new", "changed", "unchanged", "empty"
"""Changes of a digest: it is the first one, differs, is the same, or has no memories left."""
MAX_LISTED = 100
"""Maximum memories on a page; people do not read more."""
MAX_SUMMARIZED = 20
"""Maximum memories of a summary that is made because there is no digest."""
MAX_HEADER_CHARS = 12_000
"""Maximum characters of ids in the frontmatter, which is limited to 16 KiB."""
MAX_PAGE_BYTES = 36_000
"""Maximum bytes of a page's lines; a memory is limited to 64 KiB."""
MAX_TITLE = 200
MAX_SENTENCE = 240
MAX_LEAD = 700
"""Maximum characters of the first paragraph, the part of a long digest that an agent sees."""
MIN_SHARED = 2
"""Minimum memories of a group; smaller groups go under `OTHERS`."""
OTHERS = "Others"
_WIDTH = 96
PROMPT = "prompts/digest.md"
MAX_SENT = 2_000
"""Maximum characters of one memory that are sent to the model."""


class Digest(Value):
    """The planned change of a category's digest. `memory` is the one to write, None if none.

    `replaces` are the current digests; with EMPTY they have no memories left and are to be
    archived. `listed` counts the memories on the page, `left_out` those that did not fit.
    """

    category: str
    change: str
    memory: Memory | None
    replaces: tuple[Record, ...]
    listed: int
    left_out: int = 0


def plan_digests(
    tree: Tree,
    now: int,
    random: Callable[[str], bytes],
    wanted: Iterable[str] = (),
    *,
    word: Word | None = None,
    withholds: Collection[str] = (),
) -> list[Digest]:
    """Return the digests to write or archive, by category.

    Without `wanted`, only categories that already have a digest are included: no digest is created
    unasked.
    """
    names = sorted(set(wanted) or {record.memory.category for record in find_digests_in_use(tree)})
    changes = [sum_up(tree, name, now, random, word=word, withholds=withholds) for name in names]
    return [change for change in changes if change.change != UNCHANGED]


def sum_up(
    tree: Tree,
    category: str,
    now: int,
    random: Callable[[str], bytes],
    *,
    word: Word | None = None,
    withholds: Collection[str] = (),
) -> Digest:
    """Plan the digest of one category.

    `random` draws the id suffix. `word` may return other words for the lines of memories, by id; it
    is only called if the page changes. `withholds` are labels of memories that are never quoted.
    """
    replaces = tuple(
        replaced for replaced in find_digests_in_use(tree) if replaced.memory.category == category
    )
    living = find_members(tree, category, now, withholds)
    if not living:
        return Digest(category, EMPTY, None, replaces, 0)
    members = _bound(living)
    unlisted = len(living) - len(members)
    inputs = _fingerprint(format_page(members, unlisted))
    if [digest_inputs(replaced.memory) for replaced in replaces] == [inputs]:
        return Digest(category, UNCHANGED, None, replaces, len(members), unlisted)
    title = f"Digest: {category}"
    fields: Fields = {
        "id": ids.make_id("semantic", now, title, random(inputs)),
        "timestamp": timestamps.render(now),
        "type": "semantic",
        "title": title,
        "category": category,
        "status": "confirmed",
        "confidence": min((member.confidence for member in members), key=CONFIDENCES.index),
        "source": (SOURCE + inputs, *(f"memory:{member.id}" for member in members)),
        "tags": ("digest",),
        "derived_from": tuple(sorted(member.id for member in members)),
        "temporal_class": "eternal",
    }
    if replaces:
        fields["supersedes"] = tuple(replaced.id for replaced in replaces)
    memory = Memory(
        fields=fields, body=format_page(members, unlisted, word(members) if word else {})
    )
    change = CHANGED if replaces else NEW
    return Digest(category, change, memory, replaces, len(members), unlisted)


def unquoted_labels(config: Config) -> frozenset[str]:
    """Return the labels of memories that no digest quotes.

    Only the project's labels count, so that all clones agree.
    """
    return config.replace(personal={}).private_labels


def find_members(
    tree: Tree,
    category: str,
    now: int,
    withholds: Collection[str] = (),
) -> list[Memory]:
    """Return the live memories of a category, most important first, then newest.

    Memories with a label in `withholds` are left out.
    """
    memories = {
        record.id: record.memory
        for record in conflicts.find_living(tree, now)
        if record.memory.category == category
        and not is_generated(record.memory)
        and not find_private_label(record.memory, withholds)
    }
    return sorted(memories.values(), key=_rank)


class CategorySummary(Value):
    """A page on a category, "" if it is empty, and its active memories, most important first."""

    text: str
    members: tuple[Memory, ...]


def summarize(
    tree: Tree, category: str, now: int, withholds: Collection[str] = ()
) -> CategorySummary:
    """Return the text of the category's digest, else a shorter page made now.

    A digest that quotes a memory which no longer holds, or is withheld, is not used.
    """
    members = tuple(find_members(tree, category, now, withholds))
    ids_ = {member.id for member in members}
    for record in find_digests_in_use(tree):
        if record.memory.category == category and ids_.issuperset(
            record.memory.items("derived_from")
        ):
            return CategorySummary(record.memory.body, members)
    listed = members[:MAX_SUMMARIZED]
    text = format_page(listed, len(members) - len(listed)) if listed else ""
    return CategorySummary(text, members)


def _rank(memory: Memory) -> tuple[bool, float, int, str]:
    return memory.status != "pinned", -memory.importance, -memory.timestamp, memory.id


def _bound(living: Sequence[Memory]) -> list[Memory]:
    """Return as many memories as fit on a page and in its frontmatter."""
    members: list[Memory] = []
    header, lines = MAX_HEADER_CHARS, MAX_PAGE_BYTES
    for memory in living[:MAX_LISTED]:
        header -= 2 * len(memory.id) + len("  - memory:\n  - \n")
        lines -= len(_format_line(memory, "").encode())
        if header < 0 or lines < 0:
            break
        members.append(memory)
    return members


def _fingerprint(text: str) -> str:
    return digest(text.encode())


def format_page(
    members: Sequence[Memory], unlisted: int, words: Mapping[str, str] | None = None
) -> str:
    """Format the text of a digest: a lead, then a line for each memory under its group."""
    groups = _group(members)
    parts = [_format_lead(members, unlisted)]
    for name, group in groups:
        lines = [_format_line(member, (words or {}).get(member.id, "")) for member in group]
        heading = [f"## {name}"] if len(groups) > 1 else []
        parts.append("\n\n".join([*heading, "\n".join(lines)]))
    if unlisted:
        category = members[0].category
        parts.append(f"{unlisted} more are less important: `memtool list category:{category}`")
    return "\n\n".join(parts) + "\n"


def _format_lead(members: Sequence[Memory], unlisted: int) -> str:
    count = len(members) + unlisted
    what = f"{count} memories hold" if count > 1 else "One memory holds"
    titles = list(dict.fromkeys(map(_format_title, members)))
    shown: list[str] = []
    room = MAX_LEAD
    for title in titles:
        room -= len(title) + 2
        if room < 0 and shown:
            break
        shown.append(title)
    ending = " …" if len(shown) < len(titles) or unlisted else "."
    text = f"{what} in the category {members[0].category}: {'; '.join(shown)}{ending}"
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _group(members: Sequence[Memory]) -> list[tuple[str, list[Memory]]]:
    """Group memories, ordered by the most important member; the ungrouped ones come last."""
    shared: dict[str, int] = {}
    for memory in members:
        for name in _list_groups(memory):
            shared[name] = shared.get(name, 0) + 1
    chosen: dict[str, list[Memory]] = {}
    for memory in members:
        names = [name for name in _list_groups(memory) if shared[name] >= MIN_SHARED]
        best = min(names, key=lambda name: (-shared[name], names.index(name)), default=OTHERS)
        chosen.setdefault(best, []).append(memory)
    alone = {name for name, group in chosen.items() if len(group) < MIN_SHARED} | {OTHERS}
    ungrouped = [memory for name in alone & chosen.keys() for memory in chosen[name]]
    groups = [(name, group) for name, group in chosen.items() if name not in alone]
    return [*groups, (OTHERS, sorted(ungrouped, key=_rank))] if ungrouped else groups


def _list_groups(memory: Memory) -> list[str]:
    """Return the possible groups of a memory: its domain, else its tags, else folders it names."""
    if memory.text("domain"):
        return [_escape_text(memory.text("domain"))]
    tags = [_escape_text(tag) for tag in memory.items("tags")]
    folders = [path.partition("/")[0] for path in memory.items("files") if "/" in path]
    return list(dict.fromkeys(tags or folders))


def _format_line(memory: Memory, worded: str) -> str:
    sentence = _escape_text(worded or first_sentence(memory.statement))
    title = _format_title(memory)
    if sentence.rstrip(".").lower() == title.lower():
        sentence = ""
    marks = [timestamps.format_date(memory.timestamp)]
    marks += ["candidate"] if memory.status == "candidate" else []
    marks += ["low confidence"] if memory.confidence == CONFIDENCES[0] else []
    parts = [f"- **{title}.**", sentence, f"({', '.join(marks)})", f"[[{memory.id}]]"]
    return " ".join(filter(None, parts))


def _format_title(memory: Memory) -> str:
    return _cut(_escape_text(memory.title).rstrip("."), MAX_TITLE)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, cut between words if it is long."""
    line = " ".join(text.split())
    at = 0
    while (at := _find_sentence_end(line, at)) > 0:
        if not line[at + 1 : at + 2].islower():  # such as "e.g. this"
            line = line[:at]
            break
    return _cut(line, MAX_SENTENCE)


def _find_sentence_end(line: str, at: int) -> int:
    """Return the position after the next mark that may end a sentence, 0 if none."""
    ends = [place for mark in (". ", "! ", "? ") if (place := line.find(mark, at)) >= 0]
    return min(ends) + 1 if ends else 0


def _cut(line: str, max_chars: int) -> str:
    """Cut a line to `max_chars` characters, between words."""
    return (
        line
        if len(line) <= max_chars
        else (line[:max_chars].rpartition(" ")[0] or line[:max_chars]) + " …"
    )


def _escape_text(text: str) -> str:
    """Escape a text so that it contains neither links nor comments."""
    return text.replace("[[", "[ [").replace("<!--", "< !--")


def ask_model(model: Model, allowed: Allowlist, members: Sequence[Memory]) -> dict[str, str]:
    """Return the model's sentences that the memories support, by id.

    Raises:
        Unusable: the model gave no usable answer.
    """
    texts = {member.id: f"{member.title}\n{member.body}"[:MAX_SENT] for member in members}
    clean = clean_texts(set(texts.values()), allowed)
    rows = [json.dumps({"id": id_, "text": clean[text]}) for id_, text in texts.items()]
    words_by_id = {}
    for row in llm.ask(model, templates.read(PROMPT) + "\n".join(rows) + "\n", "lines"):
        id_, text = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
        if isinstance(text, str) and id_ in texts and _is_true(text, clean[texts[id_]]):
            words_by_id[id_] = " ".join(text.split())
    return words_by_id


def _is_true(text: str, memory: str) -> bool:
    line = " ".join(text.split())
    if not line.isprintable() or len(line) > MAX_SENTENCE:
        return False
    return llm.is_supported(line, [Message(1, "user", memory)])


class DigestChange(Value):
    """The result for a category's digest: `new`, `changed`, `unchanged`, or `archived`.

    `id` and `path` belong to the current digest. `listed` counts its memories, `left_out` those
    that did not fit, and `replaces` are the digests before it.
    """

    json_names = (("listed", "told"),)

    category: str
    change: str
    id: str
    path: str
    listed: int
    left_out: int
    replaces: tuple[str, ...]
    text: str = ""


def renew(
    context: Context, gone: Collection[str], *, commit: bool = False, dry_run: bool = False
) -> None:
    """Rebuild the digests that quote memories which no longer hold, and add a note.

    If a digest cannot be rebuilt now, a note refers to `memtool digest`. The change that made the
    digest stale is complete, and searches leave the digest out until then.
    """
    tree = write.open_current_tree(context, dry_run=dry_run)
    quoting = {
        record.memory.category
        for id_ in gone
        for record in tree.naming(id_)
        if is_generated(record.memory)
        and id_ in record.memory.items("derived_from")
        and record.memory.status not in GONE
        and tree.lineage.is_head(record.id)
    }
    for category in sorted(quoting & context.settings.categories.keys()):
        if dry_run:
            context.notes.append(f"the digest of {category} would be rebuilt without it")
            continue
        try:
            page = _renew(context, category, commit=commit)
        except MemtoolError as error:
            context.notes.append(
                f"the digest of {category} still quotes it: {error.message}; "
                f"memtool digest {category}"
            )
            continue
        if page.change == UNCHANGED:
            continue
        done = "is archived" if page.change == "archived" else f"is now {page.id}"
        context.notes.append(f"the digest of {category} quoted it, and {done}")


def _renew(context: Context, category: str, *, commit: bool) -> DigestChange:
    """Rebuild a category's digest in the memories' own words, without waiting for a model."""
    with files.locked(context.repository.cache_dir, "digest.lock"):
        plan = sum_up(
            context.tree(),
            category,
            context.clock.now,
            context.random_id_bytes,
            withholds=unquoted_labels(context.settings),
        )
        page = write_digest(context, plan, dry_run=False)
    if commit:
        commit_digests(context, [page])
    return page


def write_digest(context: Context, plan: Digest, *, dry_run: bool) -> DigestChange:
    """Write a planned digest, or archive the one that has no memories left."""
    old = tuple(replaced.id for replaced in plan.replaces)
    if plan.memory is None:
        first = plan.replaces[0]
        if plan.change == EMPTY:
            for replaced in plan.replaces:
                write.change(
                    context,
                    replaced.id,
                    lambda _old: {"status": "archived"},
                    "archive",
                    dry_run=dry_run,
                )
        change = "archived" if plan.change == EMPTY else plan.change
        gone = old if plan.change == EMPTY else ()
        return DigestChange(
            plan.category, change, first.id, first.path, plan.listed, plan.left_out, gone
        )
    written = write.write_new(context, plan.memory, dry_run=dry_run)
    return DigestChange(
        plan.category,
        plan.change,
        written.id,
        written.path,
        plan.listed,
        plan.left_out,
        old,
        written.text if dry_run else "",
    )


def commit_digests(context: Context, pages: Sequence[DigestChange]) -> str | None:
    """Commit the digests that are not committed yet, in one commit; None if all are."""
    dirty = find_dirty(context.repository, [page.path for page in pages])
    due = [page for page in pages if page.path in dirty]
    if not due:
        return None
    trailers = {MEMORY_ID: ", ".join(page.id for page in due)}
    old = [id_ for page in due if page.change == CHANGED for id_ in page.replaces]
    if old:
        trailers[SUPERSEDES] = ", ".join(old)
    what = due[0].category if len(due) == 1 else f"{len(due)} categories"
    paths = [page.path for page in due]
    tree = context.tree()
    # Include an old digest that was never committed.
    paths += sorted(find_dirty(context.repository, [tree[id_].path for id_ in old]))
    return commit_files(context, paths, f"digest {what}", trailers)
