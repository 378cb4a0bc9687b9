"""Publishing: the trusted memories of a repository into the shared index, by its CI.

Nothing is locked. Every document has a version, which depends on the history of the default branch
alone: how often its first parents changed the memory directory, with `fleet.epoch` above. The
server takes no older version in place of a newer one. A publisher writes its documents, then the
manifest of the repository, and last it sweeps: whatever of the repository is older than the
manifest goes, whoever wrote it. So the later of two sees both, and may come late, be killed, or run
twice; a run that was cut short is mended by the next one. A repository does not switch at once:
while it is published, documents of both versions are found.

A plain delete would not do: the server forgets deleted versions after a minute, and a late writer
would bring them back. It is the sweep that is right.
"""

from __future__ import annotations

import time
from urllib.parse import quote

from memtool.errors import MemtoolError
from memtool.fleet.backend import (
    MOST_INDEXED,
    TEAM,
    FleetUnavailable,
    terms_of,
)
from memtool.fleet.opensearch import (
    MOST_PATH,
    MOST_TEXT,
    TEXT_FIELD,
    document_id,
    is_commit,
    is_repository,
    part,
)
from memtool.fleet.repositories import label, name_of
from memtool.gate import gate, sources
from memtool.memory.changes import stem
from memtool.memory.fields import PRIVATE_LABELS
from memtool.memory.visibility import why_kept_back
from memtool.store import config as config_file
from memtool.store import provenance, snapshot
from memtool.store.provenance import SHORT
from memtool.store.tree import read_tree
from memtool.value import Value
from memtool.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from memtool.fleet.opensearch import SearchServer
    from memtool.gate.content import Content
    from memtool.memory.schema import Problem
    from memtool.store.context import Context

    Action = tuple[dict[str, Any], dict[str, Any] | None]
    """A line of a bulk request that says what to do, and the document, where there is one."""

EPOCH = "fleet.epoch"
EPOCH_BITS = 32
"""Bits of the version below the epoch: they count changes."""
BATCH, BATCH_BYTES = 500, 4 << 20
"""Documents and bytes of one request."""
REQUEST_S = 60.0
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""How long a publisher waits before it tries again what the server did not take."""
PASSING = (408, 429, 502, 503, 504)
"""Statuses of a server that is busy, or whose nodes are about to change."""
CONFLICT = 409
"""The status of a document of which the server has a newer version."""
TAKEN = (200, 201, 404, CONFLICT)
"""Statuses of a document that is as it should be; 404 is one that is gone already."""
MANIFEST = "manifest:"
"""What the id of a manifest begins with; no name of a repository has a colon."""
LISTED = 1_000
PUBLISHED, UNCHANGED, LATE = "published", "unchanged", "late"


class KeptBack(Value):
    """A memory that must not leave, and why: the code and the words of the check."""

    id: str
    path: str
    code: str
    reason: str


class Draft(Value):
    """What a repository has to publish. `left_out` counts what is nobody's business, by reason."""

    repository: str
    commit: str
    tree: str
    gen: int
    documents: Mapping[str, dict[str, Any]]
    kept_back: tuple[KeptBack, ...]
    left_out: Mapping[str, int]


class Published(Value):
    """What publishing did. `state` is published, unchanged, or late: then `ahead` is what is newer.

    `newer` counts documents that somebody else had written in a later version. `index` is where it
    was published, empty where no server was asked.
    """

    repository: str
    commit: str
    ahead: str
    version: int
    state: str
    memories: int
    written: int
    newer: int
    deleted: int
    kept_back: tuple[KeptBack, ...]
    left_out: Mapping[str, int]
    index: str
    dry_run: bool

    @property
    def exit_code(self) -> int:
        """1 where a memory was kept back."""
        return int(bool(self.kept_back))


def draft(context: Context) -> Draft:
    """Return what is to be published: the default branch's memories, as last fetched.

    Raises:
        MemtoolError: this clone cannot tell what is trusted, or how often it changed.
    """
    repository = context.repository
    if repository.is_shallow:
        raise MemtoolError(
            "this clone is shallow: how often the memories changed, which orders what is "
            "published, cannot be counted in it",
            hint="fetch-depth: 0 in GitHub's checkout, GIT_DEPTH: 0 in GitLab, or git fetch "
            "--unshallow",
            code="shallow",
        )
    tip = _trusted(context)
    git = repository.git
    directory = context.project.directory_at(tip)
    at = f"{directory}/{config_file.CONFIG_NAME}"
    settings = config_file.parse(context.project.stored_file(at, tip) or b"", at)
    if settings.is_newer:
        context.project.refuse_newer()
    listed = git.ls_tree(tip, directory, recursive=False)
    if not listed or listed[0].kind != "tree":
        raise MemtoolError(
            f"there is no {directory} in the default branch", hint="memtool init", code="no-memory"
        )
    walk = ("--first-parent", tip, "--", directory)
    count = int(git.line("rev-list", "--count", *walk))
    commit = git.line("rev-list", "--max-count=1", *walk)
    name = name_of(repository)
    if not is_repository(name):
        raise MemtoolError(
            f"the remote's address gives {name!r} as the name of the repository, not ORG/NAME",
            hint="git remote set-url origin ADDRESS",
            code="config",
        )
    content = sources.of_commit(context, settings, tip)
    leaving, kept_back, left_out = _leaving(context, content)
    gen = (settings.count(EPOCH) << EPOCH_BITS) + count
    shared = {"repo": name, "commit": commit, "gen": gen}
    if (team := settings.text(TEAM)).strip():
        shared["team"] = label(team)
    documents = {id_: shared | own for id_, own in leaving.items()}
    return Draft(name, commit, listed[0].oid, gen, documents, kept_back, left_out)


def _trusted(context: Context) -> str:
    """Return the tip of the default branch. Raises MemtoolError where we are on another one."""
    ref = context.project.trust_settings.text("trust.ref")
    tip = provenance.resolve_trusted(context.repository, ref)
    if not tip:
        raise MemtoolError(
            "nothing here is trusted, since this clone knows no default branch of a remote",
            hint="git fetch origin, and git remote set-head origin --auto",
            code="no-revision",
        )
    git, head = context.repository.git, context.repository.git.head()
    base = git.line("merge-base", head, tip, allowed=(0, 1)) if head else ""
    if base != head or not head:
        branch = provenance.trusted_name(context.repository, ref)
        raise MemtoolError(
            f"what is checked out is not in {branch}: only the default branch is published",
            hint=f"git switch --detach {branch}; memtool publish --dry-run there shows what leaves",
            code="elsewhere",
        )
    return tip


def _leaving(
    context: Context, content: Content
) -> tuple[dict[str, dict[str, Any]], tuple[KeptBack, ...], dict[str, int]]:
    """Return the documents by id, what is kept back by the gate, and what is nobody's business.

    Labels of privacy count that the repository or this user keeps from agents, and the usual ones.
    """
    settings = content.settings
    labels = settings.private_labels.union(
        context.project.own_settings.private_labels, PRIVATE_LABELS
    )
    taken = snapshot.of_commit(context.repository, content.directory, content.head)
    tree = read_tree(taken, settings.categories)
    faults: dict[str, list[Problem]] = {}
    for problem in gate.problems(content):
        if problem.severity == "error":
            faults.setdefault(problem.path, []).append(problem)
    leaving: dict[str, dict[str, Any]] = {}
    kept_back: list[KeptBack] = []
    left_out: dict[str, int] = {}
    texts = {file.path: file.text for file in content.files}
    for record in sorted(tree.records, key=lambda one: (-one.memory.timestamp, one.path)):
        path, memory = record.path, record.memory
        why = why_kept_back(memory, labels, is_head=tree.lineage.is_head(memory.id))
        if len(leaving) >= MOST_INDEXED:
            why = why or f"more than the newest {MOST_INDEXED:,}"
        if why:
            left_out[why] = left_out.get(why, 0) + 1
            continue
        if found := faults.pop(path, None):
            kept_back.append(_kept_back(record.id, path, found))
            continue
        text = terms_of(memory)
        if len(path) > MOST_PATH or len(text) > MOST_TEXT:
            kept_back.append(KeptBack(record.id, path, "too-large", "it is too long for the fleet"))
            continue
        leaving[record.id] = {
            "id": record.id,
            "path": path,
            "type": memory.type,
            "tags": list(memory.items("tags")),
            "data": texts[path],
            "size": len(texts[path].encode()) + len(text),
            TEXT_FIELD: text.decode(),
        }
    unreadable = {file.path: file for file in content.files if file.memory is None}
    kept_back += [
        _kept_back(stem(path), path, faults[path]) for path in sorted(faults) if path in unreadable
    ]
    kept_back.sort(key=lambda one: one.path)
    return leaving, tuple(kept_back), dict(sorted(left_out.items()))


def _kept_back(id_: str, path: str, found: Sequence[Problem]) -> KeptBack:
    first = min(found, key=lambda one: (one.code not in gate.STRICT_CODES, one.line))
    return KeptBack(id_, path, first.code, first.message)


def planned(made: Draft) -> Published:
    """Return what publishing would do to an empty index."""
    return Published(
        repository=made.repository,
        commit=made.commit,
        ahead="",
        version=made.gen,
        state=PUBLISHED,
        memories=len(made.documents),
        written=0,
        newer=0,
        deleted=0,
        kept_back=made.kept_back,
        left_out=made.left_out,
        index="",
        dry_run=True,
    )


def publish(context: Context, server: SearchServer, made: Draft) -> Published:
    """Bring the index to what a draft holds, where nobody has published something newer.

    Raises:
        FleetUnavailable: the server did not take it, however often it was asked. What is written by
            then does no harm, and the next run goes on.
        MemtoolError: history was rewritten, so that nobody can tell which is newer.
    """
    place = place_of(server, made.repository)
    before = place.manifest()
    state = PUBLISHED
    if before is not None and before.gen >= made.gen:
        if _is_parted(context, before, made):
            raise MemtoolError(
                f"{before.commit[:SHORT]} was published, and is not in this history: it was "
                "rewritten, and what is newer cannot be counted",
                hint=f"memtool config {EPOCH} {(before.gen >> EPOCH_BITS) + 1}, commit that to the "
                "default branch, and publish it",
                code="rewritten",
            )
        if before.gen > made.gen:
            state = LATE
        elif before.version == __version__ and place.holds(before):
            state = UNCHANGED
    ahead = before.commit if before is not None and state == LATE else ""
    written = newer = 0
    if state == PUBLISHED:
        written, newer = place.write(made)
    deleted = place.sweep(made if state == PUBLISHED else None)
    return planned(made).replace(
        ahead=ahead,
        state=state,
        written=written,
        newer=newer,
        deleted=deleted,
        index=place.index,
        dry_run=False,
    )


def _is_parted(context: Context, before: RepositoryManifest, made: Draft) -> bool:
    """Tell whether what was published is surely of another history, as far as this clone knows.

    Where it does not know the commit, a late run and a rewritten history look the same: a late run
    is what happens every day.
    """
    if before.gen == made.gen:
        return before.tree != made.tree
    git = context.repository.git
    (known,) = git.infos([before.commit])
    if known is None:
        return False
    return git.line("merge-base", made.commit, before.commit, allowed=(0, 1)) != made.commit


class RepositoryManifest(Value):
    """Up to where a repository was published. `version` is memtool's, `count` that of memories."""

    gen: int
    commit: str
    tree: str
    version: str
    count: int


def place_of(server: SearchServer, repository: str) -> Partition:
    """Return where a repository is published: in its own index, its organisation's, or that of all.

    Raises:
        FleetUnavailable: there is none of them, or the server does not say.
    """
    for index in server.indexes_of(repository):
        place = Partition(server, repository, index)
        if place.is_there():
            return place
    raise FleetUnavailable(f"{server.name} has no index {server.index}")


class Partition:
    """The documents of one repository in an index, which all lie on one shard."""

    def __init__(self, server: SearchServer, repository: str, index: str = "") -> None:
        self.index = index or server.index
        self._server = server
        self._repository = repository
        self._routing = f"routing={quote(repository, safe='')}"
        self._index = f"/{self.index}"
        self._manifest = f"{self._index}/_doc/{quote(MANIFEST + repository, safe='')}"

    def is_there(self) -> bool:
        """Tell whether there is such an index. Raises FleetUnavailable where it is not said."""
        status, found = self._ask("GET", f"{self._manifest}?{self._routing}")
        if status == 404 and part(found, "error", "type") == "index_not_found_exception":
            return False
        if status not in (200, 404):
            raise self._server.refusal(status, found)
        return True

    def manifest(self) -> RepositoryManifest | None:
        """Return the manifest as it is at this moment, None where there is none.

        Raises:
            FleetUnavailable: it cannot be read, or there is no index.
        """
        status, found = self._ask("GET", f"{self._manifest}?{self._routing}")
        if status == 404 and found.get("found") is False:
            return None
        if status != 200:
            raise self._server.refusal(status, found)
        values = [part(found, "_source", name) for name in RepositoryManifest.field_names]
        if [*map(type, values)] != [int, str, str, str, int] or not is_commit(values[1]):
            raise FleetUnavailable(
                f"{self._server.name} has a manifest of {self._repository} that is none of memtool"
            )
        return RepositoryManifest(*values)

    def holds(self, manifest: RepositoryManifest) -> bool:
        """Tell whether all memories of a manifest are there, and no others of the repository."""
        self._refresh()
        of_it = {"term": {"gen": manifest.gen}}
        return self._count() == self._count(of_it) == manifest.count

    def write(self, made: Draft) -> tuple[int, int]:
        """Write documents and then the manifest; return how many, and how many were newer there."""
        version = {"version": made.gen, "version_type": "external_gte"}
        rows = [
            ({"index": {"_id": document_id(self._repository, id_), **version}}, document)
            for id_, document in made.documents.items()
        ]
        newer = self._bulk(rows)
        manifest = {
            "of": self._repository,
            "gen": made.gen,
            "commit": made.commit,
            "tree": made.tree,
            "version": __version__,
            "count": len(made.documents),
        }
        self._bulk([({"index": {"_id": MANIFEST + self._repository, **version}}, manifest)])
        return len(rows) - newer, newer

    def sweep(self, made: Draft | None) -> int:
        """Delete what is older than the manifest, and return how much that was.

        After a draft was written, what has its version and is not in it goes as well: another
        version of memtool may have let it pass.
        """
        self._refresh()
        manifest = self.manifest()
        if manifest is None:
            return 0
        version = manifest.gen
        stale = [{"range": {"gen": {"lt": version}}}]
        older = {"version": version, "version_type": "external"}
        rows = [({"delete": {"_id": id_, **older}}, None) for id_ in self._ids(stale)]
        if made is not None and made.gen == version:
            own = {document_id(self._repository, id_) for id_ in made.documents}
            same = {"version": version, "version_type": "external_gte"}
            rows += [
                ({"delete": {"_id": id_, **same}}, None)
                for id_ in self._ids([{"term": {"gen": version}}])
                if id_ not in own
            ]
        return len(rows) - self._bulk(rows)

    def _ids(self, filters: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Yield the ids of the documents of the repository that pass some filters."""
        after = None
        while True:
            body = self._query(*filters) | {"size": LISTED, "_source": False, "sort": ["id"]}
            found = self._get("_search", body | ({"search_after": after} if after else {}))
            hits = part(found, "hits", "hits") or []
            yield from (str(part(hit, "_id")) for hit in hits)
            after = part(hits[-1], "sort") if len(hits) == LISTED else None
            if not after:
                return

    def _count(self, *filters: dict[str, Any]) -> int:
        count = part(self._get("_count", self._query(*filters)), "count")
        return count if isinstance(count, int) else -1

    def _query(self, *filters: dict[str, Any]) -> dict[str, Any]:
        return {"query": {"bool": {"filter": [{"term": {"repo": self._repository}}, *filters]}}}

    def _refresh(self) -> None:
        status, found = self._ask("POST", f"{self._index}/_refresh")
        if status != 200:
            raise self._server.refusal(status, found)

    def _get(self, verb: str, body: object) -> dict[str, Any]:
        status, found = self._ask("POST", f"{self._index}/{verb}?{self._routing}", body)
        if status != 200 or found.get("timed_out") or part(found, "_shards", "failed") != 0:
            raise self._server.refusal(status, found)
        return found

    def _ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """Ask, and wait and ask again where the server is busy or a node of it is going."""
        for pause in (*PAUSES_S, None):
            try:
                status, found = self._server.ask(method, path, body, within=REQUEST_S)
            except FleetUnavailable:
                if pause is None:
                    raise
            else:
                if status not in PASSING or pause is None:
                    return status, found
            time.sleep(pause)
        raise AssertionError("the last pause is None")

    def _bulk(self, rows: Sequence[Action]) -> int:
        """Send actions in batches; return of how many the server has a newer version."""
        newer = 0
        for batch in _batches(rows):
            left = batch
            for pause in (*PAUSES_S, None):
                lines = [line for row in left for line in row if line is not None]
                status, found = self._ask("POST", f"{self._index}/_bulk?{self._routing}", lines)
                items = found.get("items")
                if status != 200 or not isinstance(items, list) or len(items) != len(left):
                    raise self._server.refusal(status, found)
                states = [
                    part(item, next(iter(row[0])), "status")
                    for item, row in zip(items, left, strict=True)
                ]
                newer += states.count(CONFLICT)
                again = [row for row, one in zip(left, states, strict=True) if one in PASSING]
                failed = [one for one in states if one not in TAKEN]
                if 403 in failed:
                    raise self._server.refusal(403, {})
                if len(failed) > len(again) or (again and pause is None):
                    why = f"does not take documents: status {failed[0]}"
                    raise FleetUnavailable(f"{self._server.name} {why}")
                if not again:
                    break
                left = again
                time.sleep(pause or 0)
        return newer


def _batches(rows: Sequence[Action]) -> Iterator[list[Action]]:
    """Yield actions, so many at a time as one request may hold."""
    batch: list[Action] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row[1].get("size", 0) if row[1] else 0
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
