"""The pages of the static site: what git knows of a commit, made for all memories at once.

A page is its file, a key of all that it is made of, and how to make it. What has the same key as
before is not made again. Values are those of the live pages and go to the same templates; what they
ask of git one by one is asked here in one walk over history.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby
from urllib.parse import parse_qsl, quote, unquote

from memtool.commands.blame import of_lines
from memtool.commands.log import Log, log
from memtool.commands.show import view_of
from memtool.commands.status import status as status_of
from memtool.commands.why import chains
from memtool.index import index
from memtool.memory import timestamps
from memtool.memory.changes import stem
from memtool.memory.document import MAX_BYTES
from memtool.memory.fields import RELATIONS
from memtool.search.features import Facts
from memtool.search.scope import drift_in
from memtool.store.history import History, matches
from memtool.value import Value, cached_property, digest
from memtool.web import compare, render, words
from memtool.web.markdown import wiki_links
from memtool.web.page import PageQuery
from memtool.web.pages.conflicts import conflicts
from memtool.web.pages.history import days
from memtool.web.pages.lineage import MOST, around, picture
from memtool.web.pages.memory import EVENTS, contrary, keys, links
from memtool.web.pages.reports import digests
from memtool.web.pages.status import LAST, growth, tone
from memtool.web.render import PageView

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeVar

    from memtool.commands.blame import Blame
    from memtool.commands.log import LogEntry
    from memtool.commands.show import MemoryView
    from memtool.commands.why import Why
    from memtool.store.context import Context
    from memtool.store.git import Git, Touch
    from memtool.store.history import Commit
    from memtool.store.snapshot import Record, Tree

    Item = TypeVar("Item")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
MENU = (
    ("/", "Status"), ("/search", "Search"), ("/lists", "Lists"), ("/timeline", "Timeline"),
    ("/conflicts", "Conflicts"), ("/digests", "Digests"),
)  # fmt: skip
STATIC = (*render.FILES, "search.js")
LISTED = 200
"""Memories of one page of a list."""
TOLD = 300
"""Changes of one page of the timeline."""
CONFLICTS = 50
"""Conflicts that are shown; each is a wide table."""
ABSENT = "absent.html"
"""The page of a memory that is not in the site."""
KINDS = {"month": "By month", "category": "By category", "type": "By type", "status": "By status"}


class SitePage(Value):
    """A file of the site, below its folder; `key` names all that it is made of."""

    file: str
    key: str
    make: Callable[[], bytes]


class Listed(Value):
    """A page of a list; `kind` and `subject` say of what, such as `type` and `type decision`.

    A section is a heading, empty for none, the memories below it, the newest first, and how many
    more there are. `newer` and `older` are files of the same list, empty for none.
    """

    file: str
    kind: str
    subject: str
    name: str
    title: str
    sections: tuple[tuple[str, tuple[Record, ...], int], ...]
    newer: str = ""
    older: str = ""


class Chain(Value):
    """How a file came to its bytes: commits with the blobs that they left, the newest first.

    `is_straight` says that each blob was made of the next alone, so that lines can be followed.
    """

    steps: tuple[tuple[str, str], ...]
    is_straight: bool


class TreeHistory:
    """The history of every memory of a commit, from one walk; `commits` are all that lead to it."""

    def __init__(self, git: Git, history: History, head: str, directory: str) -> None:
        self._git = git
        self._history = history
        self._head = head
        self._order: dict[str, int] = {}
        self._touches: dict[str, list[tuple[str, Touch]]] = {}
        for number, (commit, touches) in enumerate(history.walk(head, directory)):
            self._order[commit] = number
            for touch in touches:
                self._touches.setdefault(touch.path, []).append((commit, touch))
        self.commits = frozenset(git.line("rev-list", head).split())
        self._merges = frozenset(git.line("rev-list", "--min-parents=2", head).split())

    def author_of(self, id_: str) -> Commit:
        """Return the commit that wrote something."""
        return self._history.author_of(id_)

    def newest(self, commits: Iterable[str]) -> str:
        """Return the commit that no other one follows."""
        return min(commits, key=lambda one: self._order.get(one, -1), default="")

    def chain(self, record: Record) -> Chain:
        """Return how the file of a memory came to its bytes."""
        steps: list[tuple[str, str]] = []
        path, oid, after = record.path, record.oid, -1
        while oid:
            for commit, touch in self._touches.get(path, ()):
                if touch.oid == oid and self._order[commit] > after:
                    break
            else:
                return Chain(tuple(steps), is_straight=False)
            steps.append((commit, oid))
            path, oid, after = touch.old_path, touch.old_oid, self._order[commit]
        is_straight = not any(commit in self._merges for commit, _oid in steps)
        return Chain(tuple(steps), is_straight)

    def blame(self, record: Record, chain: Chain) -> Blame:
        """Return who wrote each part of a memory."""
        blobs = [*self._git.blobs([oid for _commit, oid in chain.steps] or [record.oid], MAX_BYTES)]
        rows = blobs[0].split(b"\n")
        if not chain.is_straight:
            found = self._history.blame(self._head, record.path)
            commits = [found.get(number + 1, "") for number in range(len(rows))]
        else:
            *_newer, (first, _oid) = chain.steps
            commits = [first] * (blobs[-1].count(b"\n") + 1)
            for at in range(len(chain.steps) - 2, -1, -1):
                before, after = blobs[at + 1].split(b"\n"), blobs[at].split(b"\n")
                next_ = [chain.steps[at][0]] * len(after)
                for old, new in matches(before, after):
                    next_[new] = commits[old]
                commits = next_
        if len(rows) > 1 and rows[-1] == b"":
            commits[-1] = commits[-2]
        return of_lines(record, blobs[0], commits, self)


class StaticSite:
    """All pages of a commit. `name` is how the site calls itself."""

    def __init__(self, context: Context, commit: str, name: str, version: str) -> None:
        """Read the memories of a commit; `context` holds that commit and nothing else."""
        self.context = context
        self.commit = commit
        self.tree: Tree = index.open(context, commit)
        self.records = [self.tree.by_id[id_] for id_ in self.tree.ids]
        self._version = digest(f"{version} {name} {context.directory}".encode())
        self._view = PageView(name, MENU, is_live=False, policy=POLICY)
        self._naming: dict[str, list[Record]] = {}
        for one in self.records:
            for named in {id_ for relation in RELATIONS for id_ in one.memory.items(relation)}:
                self._naming.setdefault(named, []).append(one)
        self._pairs = {
            (one.id, old)
            for one in self.records
            for old in one.memory.supersedes
            if old in self.tree.by_id and old != one.id
        }
        """Which memory is laid beside which: the newer one first."""
        self._lists = [*_lists(self.records)]
        self._newest = {one.subject: one.file for one in self._lists}
        """The last page of each list, by what it lists."""
        self._found: dict[str, str] = {}
        """Files of addresses that were asked for."""

    def pages(self, story: TreeHistory) -> Iterator[SitePage]:
        """Yield every page, and every other file."""
        yield self._made("index.html", "status.html", self._status(), "/")
        yield self._made(ABSENT, "error.html", {
            "title": "Not in this site", "near": (),
            "message": "This memory is not here: it was removed or forgotten, is labelled as "
            "private, or was never written.",
            "hint": "The lists lead to every memory of the site.",
        })  # fmt: skip
        yield from self._reports()
        yield from self._timeline()
        yield from self._listed()
        yield from self._memories(story)
        for name in STATIC:
            yield _plain(f"static/{name}", render.static(name))

    def _memories(self, story: TreeHistory) -> Iterator[SitePage]:
        """Yield the page of each memory, its lineage, and it beside what it replaced."""
        context, tree, records = self.context, self.tree, self.records
        origins = context.origins(tree, records)
        drift = drift_in(tree, lambda: context.witness(tree)).of(records)
        facts = Facts(tree, context.now, context.settings.categories, dict)
        by_id = self._events_by_id()
        reasons = chains(
            context, tree, records, self.commit, is_private=False, known=story.commits
        )  # fmt: skip
        holding = set()
        for record, why in zip(records, reasons, strict=True):
            naming = self._naming.get(record.id, ())
            origin = origins[record.path]
            shown = view_of(context, facts, record, origin, naming, drift.get(record.path))
            if shown.state == "alive" and tree.lineage.is_head(record.id):
                holding.add(record.id)
            yield self._memory(record, shown, why, self._log(by_id, record.id), story)
            if naming or self._related(record):
                yield self._graph(record, naming)
        for newer, older in sorted(self._pairs):
            yield self._diff(tree.by_id[older], tree.by_id[newer])
        language = context.settings.text(index.LANGUAGE_KEY)
        for file, data in words.scripts(records, lambda one: one.id in holding, language):
            yield _plain(file, data)

    def _memory(
        self, record: Record, shown: MemoryView, why: Why, log: Log, story: TreeHistory
    ) -> SitePage:
        chain = story.chain(record)
        named = [id_ for _name, ids in links(shown) for id_ in ids]
        against = self._contrary.get(record.id, [])
        named += [*shown.superseded_by, *against, *wiki_links(shown.body)]
        there = [id_ in self.tree.by_id for id_ in named]

        def values() -> dict[str, Any]:
            return {
                "title": shown.title, "shown": shown, "keys": keys(shown), "links": links(shown),
                "blame": story.blame(record, chain), "why": why, "log": log, "injected": None,
                "at": "", "notes": (), "to_fleet": False, "contrary": against,
            }  # fmt: skip

        key = (record.oid, shown, why, log, chain, against, there)
        return self._later(f"m/{record.id}.html", "memory.html", values, key)

    @cached_property
    def _contrary(self) -> dict[str, list[str]]:
        return contrary(self.context, self.tree)

    def _log(self, by_id: Mapping[str, list[tuple[int, LogEntry]]], id_: str) -> Log:
        """Return what happened to a memory, what it replaced and what replaced it."""
        lineage = self.tree.lineage.as_proposed
        todo, names = [id_, *lineage.predecessors(id_), *lineage.successors(id_)], dict[str, None]()
        while todo:  # what was renamed has events under its older names, too
            one = todo.pop()
            if one not in names:
                names[one] = None
                older = (event.details.get("from_id") for _at, event in by_id.get(one, ()))
                todo += [name for name in older if isinstance(name, str)]
        found = sorted(row for one in names for row in by_id.get(one, ()))
        events = tuple(event for _number, event in found[:EVENTS])
        return Log(id_, False, len(found) > EVENTS, events)

    def _events_by_id(self) -> dict[str, list[tuple[int, LogEntry]]]:
        found: dict[str, list[tuple[int, LogEntry]]] = {}
        for number, event in enumerate(self._events):
            found.setdefault(event.id, []).append((number, event))
        return found

    @cached_property
    def _events(self) -> list[LogEntry]:
        """What happened to the memories of the site, the newest first.

        What git alone still knows is left out: nobody can tell what its labels would be.
        """
        found = log(self.context, at=self.commit, limit=0).events
        renamed = {one.details.get("from_id") for one in found if one.id in self.tree.by_id}
        return [one for one in found if one.id in self.tree.by_id or one.id in renamed]

    def _related(self, record: Record) -> list[str]:
        """Return what a memory of the site names of the site in its relations."""
        named = {id_ for relation in RELATIONS for id_ in record.memory.items(relation)}
        return sorted(named & self.tree.by_id.keys())

    def _graph(self, record: Record, naming: Sequence[Record]) -> SitePage:
        ids = around(self.tree, record.id, naming)
        lineage = self.tree.lineage
        key = [(one, self.tree.by_id[one].oid, lineage.is_head(one)) for one in ids[:MOST]]
        return self._later(
            f"graph/{record.id}.html", "graph.html",
            lambda: picture(self.tree, record.id, ids), (key, len(ids)),
        )  # fmt: skip

    def _diff(self, before: Record, after: Record) -> SitePage:
        lineage = self._beside(after.id)

        def values() -> dict[str, Any]:
            return {
                "title": f"Compare: {after.memory.title}", "id": after.id,
                "before": before, "after": after, "old": "", "new": "",
                "keys": compare.keys(before.memory.fields, after.memory.fields),
                "lines": compare.lines(before.memory.body, after.memory.body),
                "lineage": lineage, "versions": (), "notes": (),
            }  # fmt: skip

        file = _diff_file(after.id, before.id)
        return self._later(file, "diff.html", values, (before.oid, after.oid, lineage))

    def _beside(self, id_: str) -> list[str]:
        """Return what a memory is laid beside: what it replaced, then what replaced it."""
        older = self.tree.by_id[id_].memory.supersedes
        newer = self.tree.lineage.as_proposed.superseded_by.get(id_, ())
        pairs = [(id_, one) for one in older] + [(one, id_) for one in newer]
        found = [one for pair in pairs if pair in self._pairs for one in pair if one != id_]
        return list(dict.fromkeys(found))

    def _status(self) -> dict[str, Any]:
        found = status_of(self.context, at=self.commit)
        left_out = {stem(path) for path in self.context.left_out}
        problems = tuple(
            one for one in found.problems if not any(id_ in one.message for id_ in left_out)
        )
        found = found.replace(problems=problems)
        waiting = [(name, ids[:LAST], len(ids), hint) for name, ids, hint in found.waiting() if ids]
        return {
            "title": "Status",
            "status": found,
            "tone": tone(found),
            "waiting": waiting,
            "titles": {
                id_: self.tree.by_id[id_].memory.title
                for _name, ids, *_rest in waiting
                for id_ in ids
            },
            "events": self._events[:LAST],
            "injected": "",
            "growth": growth(self.context, self.commit),
            "notes": self._notes,
            "committed": timestamps.render(self.context.now),
        }

    @property
    def _notes(self) -> list[str]:
        """What a reader should know: history is cut off, or some memories are left out."""
        count = len(self.context.left_out)
        verb = "is" if count == 1 else "are"
        private = [f"{count} of its memories {verb} labelled as private or forgotten, and not here"]
        cut = ["the clone that it was made of is shallow: what is older is not known"]
        return private * bool(count) + cut * bool(self.context.repository.shallow_commits())

    def _reports(self) -> Iterator[SitePage]:
        """Yield the pages of conflicts, of digests, and of the search."""
        at = ("at", self.commit)
        asked = [("limit", str(CONFLICTS)), at]
        found = conflicts(self.context, PageQuery({}, asked))
        for row, _sides in found["rows"]:
            if len(row.ids) == 2:
                self._pairs.add((row.ids[1], row.ids[0]))
        left = found["found"].total - len(found["rows"])
        more = [f"{left} more are not shown; memtool conflicts lists them"] if left else []
        values = found | {"more": 0, "notes": more}
        yield self._made("conflicts.html", "conflicts.html", values, "/conflicts")
        found = conflicts(self.context, PageQuery({}, [("accepted", "1"), at]))
        yield self._made("settled.html", "conflicts.html", found | {"notes": ()}, "/conflicts")
        for name in ("", *sorted(self.context.settings.categories)):
            parts = {"category": name} if name else {}
            found = digests(self.context, PageQuery(parts, [at])) | {"notes": ()}
            place = "" if name else "/digests"
            file = f"digests/{_name(name)}.html" if name else "digests.html"
            yield self._made(file, "digests.html", found, place)
        memories = [one.memory for one in self.records]
        values = {
            "title": "Search",
            "types": sorted({one.type for one in memories}),
            "categories": sorted({one.category for one in memories}),
            "statuses": sorted({one.status for one in memories}),
        }
        yield self._made("search.html", "site_search.html", values, "/search")

    def _timeline(self) -> Iterator[SitePage]:
        """Yield what happened, a page or more for each month, in which older pages stay."""
        parts: list[tuple[str, str, Sequence[LogEntry]]] = []
        for month, group in groupby(reversed(self._events), key=lambda one: one.date[:7]):
            for number, some in enumerate(chunks([*group], TOLD), 1):
                name = month or "not known"
                parts.append((f"timeline/{_name(month)}-{number}.html", name, some))
        shown = {"query": PageQuery({}), "kinds": (), "kind": "", "author": "", "agent": "",
                 "authors": (), "agents": (), "offset": 0, "size": 0, "more": 0,
                 "notes": ()}  # fmt: skip
        for at, (file, name, some) in enumerate(parts):
            newer = parts[at + 1][0] if at + 1 < len(parts) else ""
            older = parts[at - 1][0] if at else ""

            def values(
                some: Sequence[LogEntry] = some,
                name: str = name,
                near: tuple[str, str] = (newer, older),
            ) -> dict[str, Any]:
                told = days(some[::-1], (), is_first=True, is_last=True)
                return shown | {"title": f"Timeline: {name}", "days": told, "parts": (),
                                "newer": near[0], "older": near[1]}  # fmt: skip

            yield self._later(file, "timeline.html", values, (name, newer, older, some))
        told = days(parts[-1][2][::-1], (), is_first=True, is_last=True) if parts else []
        yield self._made("timeline.html", "timeline.html", shown | {
            "title": "Timeline", "days": told, "newer": "",
            "older": parts[-2][0] if len(parts) > 1 else "",
            "parts": [(name, file) for file, name, _some in reversed(parts)],
        }, "/timeline")  # fmt: skip

    def _listed(self) -> Iterator[SitePage]:
        """Yield the lists of memories, and the page that leads to them."""
        tags = _tags(self.records)
        groups = {
            title: [
                (one.name, one.file) for one in self._lists
                if one.kind == kind and one.file == self._newest[one.subject]
            ]
            for kind, title in KINDS.items()
        }  # fmt: skip
        groups["By month"].reverse()
        groups["By tag"] = [(one.name, one.file) for one in tags]
        values = {"title": "Lists", "groups": groups, "count": len(self.records)}
        yield self._made("lists.html", "lists.html", values, "/lists")
        for one in (*self._lists, *tags):
            key = (one.name, one.newer, one.older, [
                (tag, left, [(own.id, own.oid) for own in some]) for tag, some, left in one.sections
            ])  # fmt: skip
            shown = partial(_shown, title=one.title, list=one)
            yield self._later(one.file, "list.html", shown, key)

    def _later(
        self, file: str, template: str, values: Callable[[], dict[str, Any]], key: object
    ) -> SitePage:
        """Return a page that is made when it is wanted; `key` holds all that its values do."""
        name = digest(f"{self._version} {template} {key!r}".encode(errors="replace"), 16)
        return SitePage(file, name, lambda: self._rendered(file, template, values(), ""))

    def _made(
        self, file: str, template: str, values: Mapping[str, Any], place: str = ""
    ) -> SitePage:
        return _plain(file, self._rendered(file, template, values, place))

    def _rendered(self, file: str, template: str, values: Mapping[str, Any], place: str) -> bytes:
        up = "../" * file.count("/")

        def to(path: str) -> str:
            found = self._found.get(path)
            if found is None:
                found = self._found[path] = quote(self._file_of(path), safe="/~")
            return up + found if found else ""

        text = render.page(template, values, view=self._view, place=place, to=to)
        return text.encode(errors="replace")

    def _file_of(self, address: str) -> str:
        """Return the file of an address of the live view, empty where the site has no such page."""
        path, _mark, asked = address.partition("?")
        query = dict(parse_qsl(asked))
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                return "index.html"
            case ["m", id_] if not query:
                return f"m/{id_}.html" if id_ in self.tree.by_id else ABSENT
            case ["m", id_, "diff"] if id_ in self.tree.by_id and query.keys() <= {"with"}:
                other = query.get("with") or next(iter(self._beside(id_)), "")
                pairs = [one for one in ((id_, other), (other, id_)) if one in self._pairs]
                return _diff_file(*pairs[0]) if pairs else ""
            case ["m", id_, "graph"] if id_ in self.tree.by_id:
                is_drawn = self._naming.get(id_) or self._related(self.tree.by_id[id_])
                return f"graph/{id_}.html" if is_drawn else ""
            case ["digests", category]:
                return f"digests/{_name(category)}.html"
            case ["search"] if query:
                return self._newest.get(" ".join(*query.items()), "")
            case ["conflicts"] if query:
                return "settled.html" if query.keys() == {"accepted"} else ""
            case ["search" | "lists" | "timeline" | "conflicts" | "digests" as name] if not query:
                return f"{name}.html"
            case ["static" | "file", *_rest]:
                return path.removeprefix("/file/").removeprefix("/")
        return ""


def _shown(**values: Any) -> dict[str, Any]:
    return values


def _plain(file: str, data: bytes) -> SitePage:
    return SitePage(file, digest(data, 16), lambda: data)


def _name(text: str) -> str:
    """Return a text as a part of a file name, which any disk takes."""
    if text and all(char in "abcdefghijklmnopqrstuvwxyz0123456789-" for char in text):
        return text
    return "x." + text.encode(errors="surrogatepass").hex()


def _diff_file(newer: str, older: str) -> str:
    return f"diff/{newer}~{older}.html"


def chunks(found: Sequence[Item], most: int) -> Iterator[Sequence[Item]]:
    """Yield parts of a sequence, from its beginning on, each but the last of the same length."""
    for start in range(0, len(found), most):
        yield found[start : start + most]


def _lists(records: Sequence[Record]) -> Iterator[Listed]:
    """Yield the pages of each list; a new memory changes the last page of it."""
    ordered = sorted(records, key=lambda one: (one.memory.timestamp, one.id))
    for kind in KINDS:
        grouped: dict[str, list[Record]] = {}
        for one in ordered:
            month = timestamps.date(one.memory.timestamp)[:7]
            value = month if kind == "month" else str(getattr(one.memory, kind))
            grouped.setdefault(value, []).append(one)
        for value in sorted(grouped):
            parts = [*chunks(grouped[value], LISTED)]
            files = [f"list/{kind}-{_name(value)}-{at}.html" for at in range(1, len(parts) + 1)]
            for at, some in enumerate(parts):
                of = f", part {at + 1}" if len(parts) > 1 else ""
                yield Listed(
                    files[at], kind, f"{kind} {value}", value, f"Memories: {kind} {value}{of}",
                    (("", tuple(some[::-1]), 0),),
                    files[at + 1] if at + 1 < len(parts) else "", files[at - 1] if at else "",
                )  # fmt: skip


def _tags(records: Sequence[Record]) -> list[Listed]:
    """Return the pages of tags: those that begin alike are on one."""
    tagged: dict[str, list[Record]] = {}
    for one in sorted(records, key=lambda one: (-one.memory.timestamp, one.id)):
        for tag in dict.fromkeys(one.memory.items("tags")):
            tagged.setdefault(tag, []).append(one)
    sizes = {tag: min(LISTED, len(some)) for tag, some in tagged.items()}
    found = []
    for prefix, tags in words.split(sizes, LISTED).items():
        sections = tuple(
            (tag, tuple(tagged[tag][:LISTED]), len(tagged[tag]) - sizes[tag]) for tag in tags
        )
        name = f"{prefix}…" if len(tags) > 1 else tags[0]
        found.append(
            Listed(f"list/tags-{_name(prefix)}.html", "tag", "", name, f"Tags: {name}", sections)
        )
    return found
