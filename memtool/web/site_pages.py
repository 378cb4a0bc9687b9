"""The pages of the static site: the live pages of one commit, made for all memories at once.

A page is its file, a key of all that it is made of, and how to make it. What has the same key as
before is not made again. What a page shows comes from the functions of the live pages; what these
ask of git memory by memory is asked here in one walk over history.
"""

from __future__ import annotations

from functools import partial
from itertools import groupby

from memtool.commands.blame import of_lines
from memtool.commands.log import log, logs
from memtool.commands.show import view_of
from memtool.commands.status import status as status_of
from memtool.commands.why import chains
from memtool.index import index
from memtool.index.keys import LANGUAGE_KEY
from memtool.memory import timestamps
from memtool.memory.changes import stem
from memtool.search.features import Facts
from memtool.search.scope import drift_in
from memtool.value import Value, batches, cached_property, digest
from memtool.web import render, words
from memtool.web.markdown import wiki_links
from memtool.web.page import PageQuery
from memtool.web.pages.conflicts import conflicts
from memtool.web.pages.history import days, side_by_side
from memtool.web.pages.lineage import MOST, around, picture
from memtool.web.pages.memory import EVENTS, contrary, links, with_proof
from memtool.web.pages.reports import digests
from memtool.web.pages.status import LAST, overview
from memtool.web.render import PageView
from memtool.web.site_links import ABSENT, SiteLinks, diff_file, file_name
from memtool.web.site_lists import KINDS, all_lists, tag_lists

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


class StaticSite:
    """All pages of a commit. `name` is how the site calls itself."""

    def __init__(
        self,
        context: Context,
        commit: str,
        name: str,
        version: str,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        """Read the memories of a commit; `context` holds that commit and nothing else.

        `left_out` are the paths of the memories that are in no page.
        """
        self.context = context
        self.commit = commit
        self.tree: Tree = index.open(context, commit)
        self.records = [self.tree[id_] for id_ in self.tree.ids]
        self._version = digest(f"{version} {name} {context.directory}".encode())
        self._view = PageView(name, MENU, is_live=False, policy=POLICY)
        self._lists = [*all_lists(self.records)]
        self._newest = {one.subject: one.file for one in self._lists}
        """The last page of each list, by what it lists."""
        self._left_out = left_out
        self._links = SiteLinks(self.tree, self._newest)

    def pages(self, history: FileHistories) -> Iterator[SitePage]:
        """Yield every page, and every other file."""
        yield self._made("index.html", "status.html", self._status(), "/")
        yield self._made(
            ABSENT,
            "error.html",
            {
                "title": "Not in this site",
                "near": (),
                "message": "This memory is not here: it was removed or forgotten, is labelled as "
                "private, or was never written.",
                "hint": "The lists lead to every memory of the site.",
            },
        )
        yield from self._reports()
        yield from self._timeline()
        yield from self._listed()
        yield from self._memories(history)
        for name in STATIC:
            yield _plain(f"static/{name}", render.static(name))

    def _memories(self, history: FileHistories) -> Iterator[SitePage]:
        """Yield the page of each memory, its lineage, and it beside what it replaced."""
        context, tree, records = self.context, self.tree, self.records
        origins = context.origins(tree, records)
        drift = drift_in(tree, lambda: context.witness(tree)).of(records)
        facts = Facts(tree, context.clock.now, dict)
        past = logs(tree, self._events, [one.id for one in records], EVENTS)
        reasons = chains(
            context, tree, records, self.commit, is_private=False, known=history.commits
        )
        holding = set()
        for record, why, told in zip(records, reasons, past, strict=True):
            naming = self._links.naming.get(record.id, ())
            origin = origins[record.path]
            shown = view_of(context, facts, record, origin, naming, drift.get(record.path))
            if shown.state == "alive" and tree.lineage.is_head(record.id):
                holding.add(record.id)
            yield self._memory(record, shown, why, told, history)
            if self._links.has_graph(record.id):
                yield self._graph(record, naming)
        for newer, older in sorted(self._links.pairs):
            yield self._diff(tree[older], tree[newer])
        language = context.settings.text(LANGUAGE_KEY)
        for file, data in words.scripts(records, lambda one: one.id in holding, language):
            yield _plain(file, data)

    def _memory(
        self, record: Record, shown: MemoryView, why: Why, told: Log, history: FileHistories
    ) -> SitePage:
        named = [id_ for _name, ids in links(shown) for id_ in ids]
        against = self._contrary.get(record.id, [])
        named += [*shown.superseded_by, *against, *wiki_links(shown.body)]
        there = [id_ in self.tree for id_ in named]

        def values() -> dict[str, Any]:
            blame = of_lines(record, *history.lines(record), history)
            return with_proof(shown, contrary=against, blame=blame, why=why, log=told)

        key = (record.oid, shown, why, told, history.of(record), against, there)
        return self._later(f"m/{record.id}.html", "memory.html", values, key)

    @cached_property
    def _contrary(self) -> dict[str, list[str]]:
        return contrary(self.context, self.tree)

    @cached_property
    def _events(self) -> list[LogEntry]:
        """What happened to the memories of the site, the newest first.

        What git alone still knows is left out: nobody can tell what its labels would be.
        """
        found = log(self.context, at=self.commit, limit=0).events
        renamed = {one.details.get("from_id") for one in found if one.id in self.tree}
        return [one for one in found if one.id in self.tree or one.id in renamed]

    def _graph(self, record: Record, naming: Sequence[Record]) -> SitePage:
        ids = around(self.tree, record.id, naming)
        lineage = self.tree.lineage
        key = [(one, self.tree[one].oid, lineage.is_head(one)) for one in ids[:MOST]]
        return self._later(
            f"graph/{record.id}.html",
            "graph.html",
            lambda: picture(self.tree, record.id, ids),
            (key, len(ids)),
        )

    def _diff(self, before: Record, after: Record) -> SitePage:
        lineage = self._links.beside(after.id)

        def values() -> dict[str, Any]:
            return side_by_side(before.memory, after.memory) | {"lineage": lineage}

        file = diff_file(after.id, before.id)
        return self._later(file, "diff.html", values, (before.oid, after.oid, lineage))

    def _status(self) -> dict[str, Any]:
        found = status_of(self.context, at=self.commit)
        left_out = {stem(path) for path in self._left_out}
        problems = tuple(
            one for one in found.problems if not any(id_ in one.message for id_ in left_out)
        )
        found = found.replace(problems=problems)
        return overview(self.context, found, self.commit, WAITING) | {
            "events": self._events[:LAST],
            "notes": self._notes,
            "committed": timestamps.render(self.context.clock.now),
        }

    @property
    def _notes(self) -> list[str]:
        """What a reader should know: history is cut off, or some memories are left out."""
        count = len(self._left_out)
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
                self._links.pairs.add((row.ids[1], row.ids[0]))
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
            file = f"digests/{file_name(name)}.html" if name else "digests.html"
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
        parts: list[tuple[str, str, list[LogEntry]]] = []
        for month, group in groupby(reversed(self._events), key=lambda one: one.date[:7]):
            for number, some in enumerate(batches(group, TOLD), 1):
                name = month or "not known"
                parts.append((f"timeline/{file_name(month)}-{number}.html", name, some))
        shown = {"query": PageQuery({}), "offset": 0, "more": 0, "notes": ()}
        for at, (file, name, some) in enumerate(parts):
            newer = parts[at + 1][0] if at + 1 < len(parts) else ""
            older = parts[at - 1][0] if at else ""

            def values(
                some: list[LogEntry] = some,
                name: str = name,
                near: tuple[str, str] = (newer, older),
            ) -> dict[str, Any]:
                told = days(some[::-1], (), is_first=True, is_last=True)
                return shown | {
                    "title": f"Timeline: {name}",
                    "days": told,
                    "parts": (),
                    "newer": near[0],
                    "older": near[1],
                }

            yield self._later(file, "timeline.html", values, (name, newer, older, some))
        told = days(parts[-1][2][::-1], (), is_first=True, is_last=True) if parts else []
        yield self._made(
            "timeline.html",
            "timeline.html",
            shown
            | {
                "title": "Timeline",
                "days": told,
                "newer": "",
                "older": parts[-2][0] if len(parts) > 1 else "",
                "parts": [(name, file) for file, name, _some in reversed(parts)],
            },
            "/timeline",
        )

    def _listed(self) -> Iterator[SitePage]:
        """Yield the lists of memories, and the page that leads to them."""
        tags = tag_lists(self.records)
        groups = {
            title: [
                (one.name, one.file)
                for one in self._lists
                if one.kind == kind and one.file == self._newest[one.subject]
            ]
            for kind, title in KINDS.items()
        }
        groups["By month"].reverse()
        groups["By tag"] = [(one.name, one.file) for one in tags]
        values = {"title": "Lists", "groups": groups, "count": len(self.records)}
        yield self._made("lists.html", "lists.html", values, "/lists")
        for one in (*self._lists, *tags):
            key = (
                one.name,
                one.newer,
                one.older,
                [
                    (tag, left, [(own.id, own.oid) for own in some])
                    for tag, some, left in one.sections
                ],
            )
            yield self._later(one.file, "list.html", partial(dict, title=one.title, list=one), key)

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
        to = partial(self._links.to, up=up)
        text = render.page(template, values, view=self._view, place=place, to=to)
        return text.encode(errors="replace")


def _plain(file: str, data: bytes) -> SitePage:
    return SitePage(file, digest(data, 16), lambda: data)
