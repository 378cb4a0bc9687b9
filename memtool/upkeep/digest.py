"""Digests: one summary memory for a category.

Here is which memories are summed up, how they are grouped, and the line of each. The text depends
on the memories alone, without a clock, so the same memories give the same page, and a digest is
replaced only when one of them changed.

A model may only word the lines. It gets redacted text; a sentence of it is used where its words are
in the memory that it is about, with every name and number in it, and all other lines have the
memory's own words.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from memtool import templates
from memtool.authoring import write
from memtool.authoring.tree import is_dirty
from memtool.errors import MemtoolError
from memtool.memory import ids, timestamps
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import SOURCE, Fields, Memory, inputs_of, is_generated
from memtool.memory.visibility import GONE, private_label
from memtool.redaction.find import Allowlist
from memtool.search import conflicts
from memtool.search.levels import digests_in_use
from memtool.sessions.extract import llm
from memtool.sessions.extract.llm import Model
from memtool.sessions.model import Message
from memtool.sessions.store import clean_texts
from memtool.store import files
from memtool.store.commits import commit_files
from memtool.store.config import Config
from memtool.store.context import Context
from memtool.store.tree import Record, Tree
from memtool.value import Value, digest

Word = Callable[[Sequence[Memory]], Mapping[str, str]]

NEW, CHANGED, UNCHANGED, EMPTY = "new", "changed", "unchanged", "empty"
"""The change of a digest: it is the first one, another one, as before, or without memories."""
MOST_TOLD = 100
"""Memories on a page; nobody reads more."""
MOST_HEADER = 12_000
"""Characters of ids in the frontmatter, which may have 16 KiB."""
MOST_PAGE = 36_000
"""Bytes of the lines of a page; a memory may have 64 KiB."""
MOST_TITLE = 200
MOST_SENTENCE = 240
MOST_LEAD = 700
"""Characters of the first paragraph, which is what an agent is shown of a long digest."""
LEAST_SHARED = 2
"""Memories that make a group; a single one is under `OTHERS`."""
OTHERS = "Others"
_WIDTH = 96
PROMPT = "prompts/digest.md"
MOST_SENT = 2_000
"""Characters of one memory that are sent."""


class Digest(Value):
    """The change of the digest of a category. `memory` is to be written, None for none.

    `replaces` are the digests in use; with EMPTY they have nothing left to sum up, and are to be
    archived. `told` counts the memories on the page, `left_out` those beyond its bounds.
    """

    category: str
    change: str
    memory: Memory | None
    replaces: tuple[Record, ...]
    told: int
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
    """Return the digests that are to be written or archived, by category.

    Without `wanted` these are of the categories that have a digest already: nothing is summed up
    unasked.
    """
    names = sorted(set(wanted) or {record.memory.category for record in digests_in_use(tree)})
    found = [sum_up(tree, name, now, random, word=word, withholds=withholds) for name in names]
    return [one for one in found if one.change != UNCHANGED]


def sum_up(
    tree: Tree,
    category: str,
    now: int,
    random: Callable[[str], bytes],
    *,
    word: Word | None = None,
    withholds: Collection[str] = (),
) -> Digest:
    """Return the change of the digest of one category.

    `random` draws the end of an id. `word` may give other words for the lines of memories, by id;
    it is called only where the page changes. `withholds` are labels of what it never quotes.
    """
    replaces = tuple(one for one in digests_in_use(tree) if one.memory.category == category)
    living = memories(tree, category, now, withholds)
    if not living:
        return Digest(category, EMPTY, None, replaces, 0)
    members = _bounded(living)
    more = len(living) - len(members)
    inputs = _fingerprint(page(members, more))
    if [inputs_of(one.memory) for one in replaces] == [inputs]:
        return Digest(category, UNCHANGED, None, replaces, len(members), more)
    title = f"Digest: {category}"
    fields: Fields = {
        "id": ids.make_id("semantic", now, title, random(inputs)),
        "timestamp": timestamps.render(now),
        "type": "semantic",
        "title": title,
        "category": category,
        "status": "confirmed",
        "confidence": min((one.confidence for one in members), key=CONFIDENCES.index),
        "source": (SOURCE + inputs, *(f"memory:{one.id}" for one in members)),
        "tags": ("digest",),
        "derived_from": tuple(sorted(one.id for one in members)),
        "temporal_class": "eternal",
    }
    if replaces:
        fields["supersedes"] = tuple(one.id for one in replaces)
    memory = Memory(fields=fields, body=page(members, more, word(members) if word else {}))
    change = CHANGED if replaces else NEW
    return Digest(category, change, memory, replaces, len(members), more)


def unquoted_labels(config: Config) -> frozenset[str]:
    """Return the labels of what no digest quotes: the project's own, so that clones agree."""
    return config.replace(personal={}).private_labels


def memories(
    tree: Tree,
    category: str,
    now: int,
    withholds: Collection[str] = (),
) -> list[Memory]:
    """Return the living memories of a category, the most important first, then the newest.

    What has one of the labels `withholds` is left out.
    """
    found = {
        record.id: record.memory
        for record in conflicts.living(tree, now)
        if record.memory.category == category
        and not is_generated(record.memory)
        and not private_label(record.memory, withholds)
    }
    return sorted(found.values(), key=_rank)


def _rank(memory: Memory) -> tuple[bool, float, int, str]:
    return memory.status != "pinned", -memory.importance, -memory.timestamp, memory.id


def _bounded(living: Sequence[Memory]) -> list[Memory]:
    """Return as many as a page and its frontmatter hold, one at least."""
    members: list[Memory] = []
    header, lines = MOST_HEADER, MOST_PAGE
    for memory in living[:MOST_TOLD]:
        header -= 2 * len(memory.id) + len("  - memory:\n  - \n")
        lines -= len(_line(memory, "").encode())
        if header < 0 or lines < 0:
            break
        members.append(memory)
    return members


def _fingerprint(text: str) -> str:
    return digest(text.encode())


def page(members: Sequence[Memory], more: int, words: Mapping[str, str] | None = None) -> str:
    """Return the text of a digest: a lead, then a line for each memory under its group."""
    groups = _grouped(members)
    parts = [_lead(members, more)]
    for name, group in groups:
        lines = [_line(one, (words or {}).get(one.id, "")) for one in group]
        heading = [f"## {name}"] if len(groups) > 1 else []
        parts.append("\n\n".join([*heading, "\n".join(lines)]))
    if more:
        category = members[0].category
        parts.append(f"{more} more are less important: `memtool list category:{category}`")
    return "\n\n".join(parts) + "\n"


def _lead(members: Sequence[Memory], more: int) -> str:
    count = len(members) + more
    what = f"{count} memories hold" if count > 1 else "One memory holds"
    titles = list(dict.fromkeys(map(_title, members)))
    shown: list[str] = []
    room = MOST_LEAD
    for title in titles:
        room -= len(title) + 2
        if room < 0 and shown:
            break
        shown.append(title)
    rest = " …" if len(shown) < len(titles) or more else "."
    text = f"{what} in the category {members[0].category}: {'; '.join(shown)}{rest}"
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _grouped(members: Sequence[Memory]) -> list[tuple[str, list[Memory]]]:
    """Return groups of memories in the order of their most important member, the rest last."""
    shared: dict[str, int] = {}
    for memory in members:
        for name in _names(memory):
            shared[name] = shared.get(name, 0) + 1
    chosen: dict[str, list[Memory]] = {}
    for memory in members:
        names = [name for name in _names(memory) if shared[name] >= LEAST_SHARED]
        best = min(names, key=lambda name: (-shared[name], names.index(name)), default=OTHERS)
        chosen.setdefault(best, []).append(memory)
    alone = {name for name, group in chosen.items() if len(group) < LEAST_SHARED} | {OTHERS}
    rest = [memory for name in alone & chosen.keys() for memory in chosen[name]]
    groups = [(name, group) for name, group in chosen.items() if name not in alone]
    return [*groups, (OTHERS, sorted(rest, key=_rank))] if rest else groups


def _names(memory: Memory) -> list[str]:
    """Return what a memory may be grouped by: its domain, else tags, else a folder of its files."""
    if memory.text("domain"):
        return [_plain(memory.text("domain"))]
    tags = [_plain(tag) for tag in memory.items("tags")]
    folders = [path.partition("/")[0] for path in memory.items("files") if "/" in path]
    return list(dict.fromkeys(tags or folders))


def _line(memory: Memory, worded: str) -> str:
    sentence = _plain(worded or first_sentence(memory.statement))
    title = _title(memory)
    if sentence.rstrip(".").lower() == title.lower():
        sentence = ""
    marks = [timestamps.date(memory.timestamp)]
    marks += ["candidate"] if memory.status == "candidate" else []
    marks += ["low confidence"] if memory.confidence == CONFIDENCES[0] else []
    parts = [f"- **{title}.**", sentence, f"({', '.join(marks)})", f"[[{memory.id}]]"]
    return " ".join(filter(None, parts))


def _title(memory: Memory) -> str:
    return _cut(_plain(memory.title).rstrip("."), MOST_TITLE)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, cut between words where it is long."""
    line = " ".join(text.split())
    at = 0
    while (at := _next_end(line, at)) > 0:
        if not line[at + 1 : at + 2].islower():  # such as "e.g. this"
            line = line[:at]
            break
    return _cut(line, MOST_SENTENCE)


def _next_end(line: str, at: int) -> int:
    """Return the position after the next mark that may end a sentence, 0 for none."""
    found = [place for mark in (". ", "! ", "? ") if (place := line.find(mark, at)) >= 0]
    return min(found) + 1 if found else 0


def _cut(line: str, most: int) -> str:
    """Return a line that is not too long, cut between words."""
    return line if len(line) <= most else (line[:most].rpartition(" ")[0] or line[:most]) + " …"


def _plain(text: str) -> str:
    """Return a text that neither links nor begins a comment on the page."""
    return text.replace("[[", "[ [").replace("<!--", "< !--")


def words(model: Model, allowed: Allowlist, members: Sequence[Memory]) -> dict[str, str]:
    """Return the sentences of a model by id that the memories support.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    texts = {one.id: f"{one.title}\n{one.body}"[:MOST_SENT] for one in members}
    clean = clean_texts(set(texts.values()), allowed)
    rows = [json.dumps({"id": id_, "text": clean[text]}) for id_, text in texts.items()]
    found = {}
    for row in llm.ask(model, templates.read(PROMPT) + "\n".join(rows) + "\n", "lines"):
        id_, text = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
        if isinstance(text, str) and id_ in texts and _is_true(text, clean[texts[id_]]):
            found[id_] = " ".join(text.split())
    return found


def _is_true(text: str, memory: str) -> bool:
    line = " ".join(text.split())
    if not line.isprintable() or len(line) > MOST_SENTENCE:
        return False
    return llm.is_supported(line, [Message(1, "user", memory)])


class DigestChange(Value):
    """What became of the digest of a category: `new`, `changed`, `unchanged`, or `archived`.

    `id` and `path` are those of the digest that holds now. `told` counts its memories,
    `left_out` those beyond its bounds, `replaces` the digests before it.
    """

    category: str
    change: str
    id: str
    path: str
    told: int
    left_out: int
    replaces: tuple[str, ...]
    text: str = ""


def renew(
    context: Context, gone: Collection[str], *, commit: bool = False, dry_run: bool = False
) -> None:
    """Rebuild the digests that quote memories which no longer hold, and note it.

    What cannot be rebuilt now is left to `memtool digest`, with a note: the change that made a
    digest stale is done, and searches leave it out meanwhile.
    """
    tree = write.current(context, dry_run=dry_run)
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
            page = _renewed(context, category, commit=commit)
        except MemtoolError as error:
            context.notes.append(
                f"the digest of {category} still quotes it: {error.message}; "
                f"memtool digest {category} rebuilds it"
            )
            continue
        if page.change == UNCHANGED:
            continue
        done = "is archived" if page.change == "archived" else f"is now {page.id}"
        context.notes.append(f"the digest of {category} quoted it, and {done}")


def _renewed(context: Context, category: str, *, commit: bool) -> DigestChange:
    """Rebuild the digest of a category in the memories' own words: nobody waits for a model."""
    with files.locked(context.repository.cache_dir, "digest.lock"):
        plan = sum_up(
            context.tree(),
            category,
            context.clock.now,
            context.random_for,
            withholds=unquoted_labels(context.settings),
        )
        page = written(context, plan, dry_run=False)
    if commit:
        committed(context, [page])
    return page


def written(context: Context, plan: Digest, *, dry_run: bool) -> DigestChange:
    """Write the digest of a plan, or archive the one that has nothing left to sum up."""
    old = tuple(one.id for one in plan.replaces)
    if plan.memory is None:
        first = plan.replaces[0]
        if plan.change == EMPTY:
            for one in plan.replaces:
                write.change(
                    context, one.id, lambda _old: {"status": "archived"}, "archive", dry_run=dry_run
                )
        change = "archived" if plan.change == EMPTY else plan.change
        gone = old if plan.change == EMPTY else ()
        return DigestChange(
            plan.category, change, first.id, first.path, plan.told, plan.left_out, gone
        )
    written = write.write_new(context, plan.memory, dry_run=dry_run)
    return DigestChange(
        plan.category,
        plan.change,
        written.id,
        written.path,
        plan.told,
        plan.left_out,
        old,
        written.text if dry_run else "",
    )


def committed(context: Context, pages: Sequence[DigestChange]) -> str | None:
    """Commit what is not committed yet of the digests, in one commit; None where all is."""
    due = [page for page in pages if is_dirty(context.repository, page.path)]
    if not due:
        return None
    trailers = {"Memory-Id": ", ".join(page.id for page in due)}
    old = [id_ for page in due if page.change == CHANGED for id_ in page.replaces]
    if old:
        trailers["Supersedes"] = ", ".join(old)
    what = due[0].category if len(due) == 1 else f"{len(due)} categories"
    paths = [page.path for page in due]
    tree = context.tree()
    before = (tree[id_].path for id_ in old)  # one that was never committed goes along
    paths += [path for path in before if is_dirty(context.repository, path)]
    return commit_files(context, paths, f"memory: digest {what}", trailers)
