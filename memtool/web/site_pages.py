"""The pages of the static site: the live pages of one commit, made for all memories at once.

A page has its file, a key of all its inputs, and a function that makes it. A page with an unchanged
key is not made again. The values come from the functions of the live pages; git's history, which
those ask for memory by memory, is read once for all.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby

from memtool.commands._layout import Layout
from memtool.commands.blame import build_blame
from memtool.commands.log import build_logs, log
from memtool.commands.show import build_view
from memtool.commands.status import status as status_of
from memtool.commands.why import build_chains
from memtool.index import index
from memtool.index.keys import LANGUAGE_KEY
from memtool.memory import timestamps
from memtool.memory.changes import id_from_path
from memtool.search.features import Facts
from memtool.search.scope import build_drift_witness
from memtool.search.unsettled import Unsettled
from memtool.value import Value, cached_property, digest, split_batches
from memtool.web import render, words
from memtool.web.graph_picture import MAX_NODES
from memtool.web.markdown import find_wiki_links
from memtool.web.page import PageQuery
from memtool.web.pages.conflicts import conflicts
from memtool.web.pages.history import compare_memories, draw_timeline, group_by_day
from memtool.web.pages.lineage import build_picture, find_nearby
from memtool.web.pages.memory import EVENTS, find_contradicting, list_links, with_proof
from memtool.web.pages.reports import digests
from memtool.web.pages.status import LAST, build_overview
from memtool.web.refusals import PageRefusal
from memtool.web.render import PageView
from memtool.web.site_links import ABSENT, SiteLinks, diff_file, to_file_name
from memtool.web.site_lists import KINDS, build_lists, build_tag_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from memtool.commands.log import Log, LogEntry
    from memtool.commands.show import MemoryView
    from memtool.commands.why import Why
    from memtool.store.blame import FileHistories
    from memtool.store.context import Context
    from memtool.store.tree import Record, Tree
    from memtool.web.site_lists import ListPage

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
MENU = (
    ("/", "Status"),
    ("/search", "Search"),
    ("/lists", "Lists"),
    ("/timeline", "Timeline"),
    ("/conflicts", "Conflicts"),
    ("/digests", "Digests"),
)
STATIC = (*render.FILES, "search.js")
TOLD = 300
"""Changes of one page of the timeline."""
WAITING = 8
"""Memories that are named for each reason to wait; no search leads to the others."""
CONFLICTS = 50
"""Conflicts that are shown; each is a wide table."""


class SitePage(Value):
    """A file of the site, below its folder; `key` names all that it is made of."""

    file: str
    key: str
    make: Callable[[], bytes]


class SitePart(Value):
    """Pages that may be absent: the address and title of the first of them, and their maker."""

    address: str
    title: str
    build: Callable[[StaticSite], Iterator[SitePage]]


class StaticSite:
    """All pages of a commit. `name` is how the site calls itself."""

    def __init__(
        self,
        context: Context,
        commit: str,
        name: str,
        version: str,
        left_out: frozenset[str] = frozenset(),
        parts: Sequence[SitePart] = (),
    ) -> None:
        """Read the memories of a commit; `context` holds that commit and nothing else.

        `left_out` are the paths of the memories that are in no page. The menu has the `parts`
        behind the status.
        """
        menu = (*MENU[:1], *((part.address, part.title) for part in parts), *MENU[1:])
        self._parts = parts
        self.context = context
        self.commit = commit
        self.tree: Tree = index.open(context, commit)
        self.records = [self.tree[id_] for id_ in self.tree.ids]
        self._version = digest(f"{version} {name} {context.directory}".encode())
        self._view = PageView(name, menu, is_live=False, policy=POLICY)
        self._lists = [*build_lists(self.records)]
        self._newest = {list_.subject: list_.file for list_ in self._lists}
        """The last page of each list, by its subject."""
        self._left_out = left_out
        self._layout = Layout(lambda: self.tree, context.clock.now, has_trusted=lambda: False)
        self.links = SiteLinks(self.tree, self._newest)

    def pages(self, history: FileHistories) -> Iterator[SitePage]:
        """Yield every page, and every other file."""
        yield self.make_page("index.html", "status.html", self._status(), "/")
        yield self.make_page(
            ABSENT,
            "error.html",
            {
                "title": "Not in this site",
                "near": (),
                "refused": PageRefusal(
                    "This memory is not here: it was removed or forgotten, is labelled as private, "
                    "or was never written.",
                    hint="The lists lead to every memory of the site.",
                ),
            },
        )
        yield from self._reports()
        yield from self._timeline()
        for part in self._parts:
            yield from part.build(self)
        yield from self._build_lists()
        yield from self._memories(history)
        for name in STATIC:
            yield _plain_page(f"static/{name}", render.read_static(name))

    def _memories(self, history: FileHistories) -> Iterator[SitePage]:
        """Yield the page of each memory, its lineage, and the comparisons with its predecessors."""
        context, tree, records = self.context, self.tree, self.records
        origins = context.origins(tree, records)
        witness = build_drift_witness(tree, lambda: context.provenance_reader(tree))
        drift = witness.find(records)
        facts = Facts(tree, context.clock.now, dict)
        unsettled = Unsettled(tree, context.clock.now, witness)
        past = build_logs(tree, self._events, [record.id for record in records], EVENTS)
        reasons = build_chains(
            context, tree, records, self.commit, is_private=False, public_commits=history.commits
        )
        holding = set()
        for record, why, memory_log in zip(records, reasons, past, strict=True):
            naming = self.links.naming.get(record.id, ())
            origin = origins[record.path]
            commit = history.find_author_commit(origin.commit)
            shown = build_view(
                context, facts, unsettled, record, origin, commit, naming, drift.get(record.path)
            )
            if shown.state == "alive" and tree.lineage.is_head(record.id):
                holding.add(record.id)
            yield self._memory(record, shown, why, memory_log, history)
            if self.links.has_graph(record.id):
                yield self._graph(record, naming)
        for newer, older in sorted(self.links.pairs):
            yield self._diff(tree[older], tree[newer])
        language = context.settings.text(LANGUAGE_KEY)
        for file, data in words.build_scripts(
            records, lambda record: record.id in holding, language
        ):
            yield _plain_page(file, data)

    def _memory(
        self, record: Record, shown: MemoryView, why: Why, memory_log: Log, history: FileHistories
    ) -> SitePage:
        named = [id_ for _name, ids in list_links(shown) for id_ in ids]
        against = self._contrary.get(record.id, [])
        named += [*shown.superseded_by, *shown.heads, *shown.rivals, *against]
        named += [id_ for cause in shown.causes for id_ in (cause.id, *cause.chain)]
        names = [self._layout.name(id_) for id_ in (*named, *find_wiki_links(shown.body))]

        def values() -> dict[str, Any]:
            blame = build_blame(record, *history.blame_lines(record), history)
            return with_proof(shown, contrary=against, blame=blame, why=why, log=memory_log)

        key = (record.oid, shown, why, memory_log, history.trace(record), against, names)
        return self.make_later(f"m/{record.id}.html", "memory.html", values, key)

    @cached_property
    def _contrary(self) -> dict[str, list[str]]:
        return find_contradicting(self.context, self.tree)

    @cached_property
    def _events(self) -> list[LogEntry]:
        """The events of the memories of the site, the newest first.

        Memories that are only in history are left out: their labels are unknown.
        """
        events = log(self.context, at=self.commit, limit=0).events
        renamed = {event.details.get("from_id") for event in events if event.id in self.tree}
        return [event for event in events if event.id in self.tree or event.id in renamed]

    def _graph(self, record: Record, naming: Sequence[Record]) -> SitePage:
        ids = find_nearby(self.tree, record.id, naming)
        lineage = self.tree.lineage
        key = [(id_, self.tree[id_].oid, lineage.is_head(id_)) for id_ in ids[:MAX_NODES]]
        return self.make_later(
            f"graph/{record.id}.html",
            "graph.html",
            lambda: build_picture(self.tree, record.id, ids),
            (key, len(ids)),
        )

    def _diff(self, before: Record, after: Record) -> SitePage:
        lineage = self.links.pairs_of(after.id)

        def values() -> dict[str, Any]:
            return compare_memories(before.memory, after.memory) | {"lineage": lineage}

        file = diff_file(after.id, before.id)
        return self.make_later(file, "diff.html", values, (before.oid, after.oid, lineage))

    def _status(self) -> dict[str, Any]:
        status = status_of(self.context, at=self.commit)
        left_out = {id_from_path(path) for path in self._left_out}
        problems = tuple(
            problem
            for problem in status.problems
            if not any(id_ in problem.message for id_ in left_out)
        )
        status = status.replace(problems=problems)
        return build_overview(self.context, status, self.commit, WAITING) | {
            "events": self._events[:LAST],
            "notes": self._notes,
            "committed": timestamps.render(self.context.clock.now),
        }

    @property
    def _notes(self) -> list[str]:
        """Notes for readers: history is cut off, or some memories are left out."""
        count = len(self._left_out)
        verb = "is" if count == 1 else "are"
        private = [f"{count} of its memories {verb} labelled as private or forgotten, and not here"]
        cut = ["the clone that it was made of is shallow: what is older is not known"]
        return private * bool(count) + cut * bool(self.context.repository.shallow_commits())

    def _reports(self) -> Iterator[SitePage]:
        """Yield the pages of conflicts, of digests, and of the search."""
        at = ("at", self.commit)
        pairs = [("limit", str(CONFLICTS)), at]
        report = conflicts(self.context, PageQuery({}, pairs))
        for row, _sides in report["rows"]:
            if len(row.ids) == 2:
                self.links.pairs.add((row.ids[1], row.ids[0]))
        hidden = report["found"].total - len(report["rows"])
        notes = [f"{hidden} more are not shown; memtool conflicts lists them"] if hidden else []
        values = report | {"more": 0, "notes": notes}
        yield self.make_page("conflicts.html", "conflicts.html", values, "/conflicts")
        report = conflicts(self.context, PageQuery({}, [("accepted", "1"), at]))
        yield self.make_page("settled.html", "conflicts.html", report | {"notes": ()}, "/conflicts")
        for name in ("", *sorted(self.context.settings.categories)):
            parts = {"category": name} if name else {}
            report = digests(self.context, PageQuery(parts, [at])) | {"notes": ()}
            place = "" if name else "/digests"
            file = f"digests/{to_file_name(name)}.html" if name else "digests.html"
            yield self.make_page(file, "digests.html", report, place)
        memories = [record.memory for record in self.records]
        values = {
            "title": "Search",
            "types": sorted({memory.type for memory in memories}),
            "categories": sorted({memory.category for memory in memories}),
            "statuses": sorted({memory.status for memory in memories}),
        }
        yield self.make_page("search.html", "site_search.html", values, "/search")

    def _timeline(self) -> Iterator[SitePage]:
        """Yield what happened, a page or more for each month, in which older pages stay."""
        parts: list[tuple[str, str, list[LogEntry]]] = []
        for month, group in groupby(reversed(self._events), key=lambda event: event.date[:7]):
            for number, some in enumerate(split_batches(group, TOLD), 1):
                name = month or "not known"
                parts.append((f"timeline/{to_file_name(month)}-{number}.html", name, some))
        shown = {"query": PageQuery({}), "offset": 0, "more": 0, "notes": ()}
        for at, (file, name, some) in enumerate(parts):
            newer = parts[at + 1][0] if at + 1 < len(parts) else ""
            older = parts[at - 1][0] if at else ""

            def values(
                some: list[LogEntry] = some,
                name: str = name,
                near: tuple[str, str] = (newer, older),
            ) -> dict[str, Any]:
                return (
                    shown
                    | self._draw_timeline(some[::-1])
                    | {
                        "title": f"Timeline: {name}",
                        "parts": (),
                        "newer": near[0],
                        "older": near[1],
                    }
                )

            yield self.make_later(file, "timeline.html", values, (name, newer, older, some))
        drawn = self._draw_timeline(parts[-1][2][::-1] if parts else [])
        yield self.make_page(
            "timeline.html",
            "timeline.html",
            shown
            | drawn
            | {
                "title": "Timeline",
                "newer": "",
                "older": parts[-2][0] if len(parts) > 1 else "",
                "parts": [(name, file) for file, name, _some in reversed(parts)],
            },
            "/timeline",
        )

    def _draw_timeline(self, events: Sequence[LogEntry]) -> dict[str, Any]:
        days = group_by_day(events, (), is_first=True, is_last=True)
        return draw_timeline(self.tree, events, days, [*self.context.settings.categories])

    @cached_property
    def tag_lists(self) -> list[ListPage]:
        """The lists of memories by tag."""
        return build_tag_lists(self.records)

    def _build_lists(self) -> Iterator[SitePage]:
        """Yield the lists of memories, and the page that leads to them."""
        groups = {
            title: [
                (list_.name, list_.file)
                for list_ in self._lists
                if list_.kind == kind and list_.file == self._newest[list_.subject]
            ]
            for kind, title in KINDS.items()
        }
        groups["By month"].reverse()
        groups["By tag"] = [(page.name, page.file) for page in self.tag_lists]
        values = {"title": "Lists", "groups": groups, "count": len(self.records)}
        yield self.make_page("lists.html", "lists.html", values, "/lists")
        for list_ in (*self._lists, *self.tag_lists):
            key = (
                list_.name,
                list_.newer,
                list_.older,
                [
                    (tag, hidden, [(own.id, own.oid) for own in some])
                    for tag, some, hidden in list_.sections
                ],
            )
            yield self.make_later(
                list_.file, "list.html", partial(dict, title=list_.title, list=list_), key
            )

    def make_later(
        self, file: str, template: str, values: Callable[[], dict[str, Any]], key: object
    ) -> SitePage:
        """Return a page that is made when it is wanted; `key` holds all that its values do."""
        name = digest(f"{self._version} {template} {key!r}".encode(errors="replace"), 16)
        return SitePage(file, name, lambda: self._render(file, template, values(), ""))

    def make_page(
        self, file: str, template: str, values: Mapping[str, Any], place: str = ""
    ) -> SitePage:
        """Return a page that is made at once; the menu marks its `place`."""
        return _plain_page(file, self._render(file, template, values, place))

    def _render(self, file: str, template: str, values: Mapping[str, Any], place: str) -> bytes:
        up = "../" * file.count("/")
        to = partial(self.links.link, up=up)
        text = render.render_page(
            template, values, view=self._view, place=place, to=to, layout=self._layout
        )
        return text.encode(errors="replace")


def _plain_page(file: str, data: bytes) -> SitePage:
    return SitePage(file, digest(data, 16), lambda: data)
