"""Publishing: a repository's CI writes its trusted memories to the shared index.

There are no locks. Every document has a version that depends only on the history of the default
branch: the number of first-parent commits that changed the memory directory, with `fleet.epoch` in
the higher bits. The server rejects a version older than the stored one. A publisher writes its
documents, then the repository's manifest, and finally sweeps: it deletes all documents of the
repository that are older than the manifest, whoever wrote them. So a publisher may be late, be
killed, or run twice; the next run completes an interrupted one. A repository does not switch
atomically: during a run, queries find documents of both versions.

Plain deletes would not be enough: the server forgets deleted versions after a minute, and a late
writer would restore them. Only the sweep is reliable.
"""

from __future__ import annotations

import time
from urllib.parse import quote

from memtool.errors import MemtoolError
from memtool.fleet.backend import (
    MAX_INDEXED,
    TEAM,
    FleetUnavailable,
    build_terms,
)
from memtool.fleet.opensearch import (
    MAX_PATH_CHARS,
    MAX_TERMS_BYTES,
    TERMS_FIELD,
    build_document_id,
    find_value,
    is_commit,
    is_repository,
)
from memtool.fleet.repositories import find_name, to_label
from memtool.gate import gate, sources
from memtool.memory.changes import id_from_path
from memtool.memory.fields import PRIVATE_LABELS
from memtool.memory.trust import SHORT_ID_DIGITS
from memtool.memory.visibility import explain_kept_back
from memtool.store import config as config_file
from memtool.store import provenance, snapshot
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
    """The action line of a bulk request, and its document if any."""

EPOCH_SETTING = "fleet.epoch"
EPOCH_BITS = 32
"""Low bits of the version, below the epoch; they count changes."""
BATCH_DOCUMENTS, BATCH_BYTES = 500, 4 << 20
"""Limits of one request: documents and bytes."""
REQUEST_TIMEOUT_S = 60.0
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Waiting times before each retry."""
BUSY_STATUSES = (408, 429, 502, 503, 504)
"""Statuses that are retried: the server is busy, or its nodes are changing."""
CONFLICT = 409
"""Status of a document if the server has a newer version."""
SETTLED_STATUSES = (200, 201, 404, CONFLICT)
"""Statuses of a document that need no retry; 404 is one that is already deleted."""
MANIFEST_PREFIX = "manifest:"
"""Prefix of a manifest's id; repository names have no colon, so ids never collide."""
PAGE_SIZE = 1_000
PUBLISHED, UNCHANGED, LATE = "published", "unchanged", "late"


class WithheldMemory(Value):
    """A memory that the gate does not let out: code and message of the check."""

    id: str
    path: str
    code: str
    reason: str


class Publication(Value):
    """The memories to publish. `left_out` counts those not meant for publishing, by reason."""

    repository: str
    commit: str
    tree: str
    gen: int
    documents: Mapping[str, dict[str, Any]]
    kept_back: tuple[WithheldMemory, ...]
    left_out: Mapping[str, int]


class PublishResult(Value):
    """The result of publishing. `state` is published, unchanged or late.

    If late, `ahead` is the newer commit that was already published. `newer` counts documents that
    another publisher had written in a later version. `index` is empty for a dry run.
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
    kept_back: tuple[WithheldMemory, ...]
    left_out: Mapping[str, int]
    index: str
    dry_run: bool

    @property
    def exit_code(self) -> int:
        """1 if a memory was withheld."""
        return int(bool(self.kept_back))


def build_publication(context: Context) -> Publication:
    """Collect the memories to publish: those of the default branch, as last fetched.

    Raises:
        MemtoolError: this clone has no trusted ref, or not the history to count changes.
    """
    repository = context.repository
    if repository.is_shallow:
        raise MemtoolError(
            "cannot publish from a shallow clone: versions are ordered by counting all commits",
            hint="git fetch --unshallow\nin CI: fetch-depth: 0 (GitHub), GIT_DEPTH: 0 (GitLab)",
            code="shallow",
        )
    tip = _find_trusted_tip(context)
    git = repository.git
    directory = context.project.read_directory_at(tip)
    config_path = f"{directory}/{config_file.CONFIG_NAME}"
    settings = config_file.parse(
        context.project.read_stored_file(config_path, tip) or b"", config_path
    )
    if settings.is_newer:
        context.project.refuse_newer()
    entries = git.ls_tree(tip, directory, recursive=False)
    if not entries or entries[0].kind != "tree":
        raise MemtoolError(
            f"cannot publish: the default branch has no {directory}",
            hint="memtool init",
            code="no-memory",
        )
    walk = ("--first-parent", tip, "--", directory)
    count = int(git.line("rev-list", "--count", *walk))
    commit = git.line("rev-list", "--max-count=1", *walk)
    name = find_name(repository)
    if not is_repository(name):
        raise MemtoolError(
            f"cannot publish: the remote's address must end with ORG/NAME, not {name!r}",
            hint="git remote set-url origin ADDRESS",
            code="config",
        )
    content = sources.read_commit(context, settings, tip)
    leaving, kept_back, left_out = _select_documents(context, content)
    gen = (settings.count(EPOCH_SETTING) << EPOCH_BITS) + count
    common_fields = {"repo": name, "commit": commit, "gen": gen}
    if (team := settings.text(TEAM)).strip():
        common_fields["team"] = to_label(team)
    documents = {id_: common_fields | own for id_, own in leaving.items()}
    return Publication(name, commit, entries[0].oid, gen, documents, kept_back, left_out)


def _find_trusted_tip(context: Context) -> str:
    """Return the tip of the default branch. Raises MemtoolError if HEAD is not in it."""
    ref = context.project.trust_settings.text("trust.ref")
    tip = provenance.resolve_trusted(context.repository, ref)
    if not tip:
        raise MemtoolError(
            "cannot publish: this clone has no default branch of a remote",
            hint="git fetch origin\ngit remote set-head origin --auto",
            code="no-revision",
        )
    git, head = context.repository.git, context.repository.git.head()
    base = git.line("merge-base", head, tip, allowed=(0, 1)) if head else ""
    if base != head or not head:
        branch = provenance.format_trusted_ref(context.repository, ref)
        raise MemtoolError(
            f"cannot publish: HEAD is not on {branch}, and only the default branch is published",
            hint=f"git switch --detach {branch}\nmemtool publish --dry-run",
            code="elsewhere",
        )
    return tip


def _select_documents(
    context: Context, content: Content
) -> tuple[dict[str, dict[str, Any]], tuple[WithheldMemory, ...], dict[str, int]]:
    """Return documents by id, memories withheld by the gate, and counts of memories left out.

    Privacy labels are the defaults, the repository's and the user's.
    """
    settings = content.settings
    labels = settings.private_labels.union(
        context.project.user_settings.private_labels, PRIVATE_LABELS
    )
    tree_snapshot = snapshot.snapshot_commit(context.repository, content.directory, content.head)
    tree = read_tree(tree_snapshot, settings.categories)
    faults: dict[str, list[Problem]] = {}
    for problem in gate.find_problems(content):
        if problem.severity == "error":
            faults.setdefault(problem.path, []).append(problem)
    documents: dict[str, dict[str, Any]] = {}
    kept_back: list[WithheldMemory] = []
    left_out: dict[str, int] = {}
    texts = {file.path: file.text for file in content.files}
    for record in sorted(tree.records, key=lambda item: (-item.memory.timestamp, item.path)):
        path, memory = record.path, record.memory
        why = explain_kept_back(memory, labels, is_head=tree.lineage.is_head(memory.id))
        if len(documents) >= MAX_INDEXED:
            why = why or f"more than the newest {MAX_INDEXED:,}"
        if why:
            left_out[why] = left_out.get(why, 0) + 1
            continue
        if problems := faults.pop(path, None):
            kept_back.append(_withhold(record.id, path, problems))
            continue
        text = build_terms(memory)
        if len(path) > MAX_PATH_CHARS or len(text) > MAX_TERMS_BYTES:
            kept_back.append(
                WithheldMemory(record.id, path, "too-large", "it is too long for the fleet")
            )
            continue
        documents[record.id] = {
            "id": record.id,
            "path": path,
            "type": memory.type,
            "tags": list(memory.items("tags")),
            "data": texts[path],
            "size": len(texts[path].encode()) + len(text),
            TERMS_FIELD: text.decode(),
        }
    unreadable = {file.path: file for file in content.files if file.memory is None}
    kept_back += [
        _withhold(id_from_path(path), path, faults[path])
        for path in sorted(faults)
        if path in unreadable
    ]
    kept_back.sort(key=lambda item: item.path)
    return documents, tuple(kept_back), dict(sorted(left_out.items()))


def _withhold(id_: str, path: str, problems: Sequence[Problem]) -> WithheldMemory:
    first = min(problems, key=lambda problem: (problem.code not in gate.STRICT_CODES, problem.line))
    return WithheldMemory(id_, path, first.code, first.message)


def build_dry_result(publication: Publication) -> PublishResult:
    """Return the result of publishing to an empty index."""
    return PublishResult(
        repository=publication.repository,
        commit=publication.commit,
        ahead="",
        version=publication.gen,
        state=PUBLISHED,
        memories=len(publication.documents),
        written=0,
        newer=0,
        deleted=0,
        kept_back=publication.kept_back,
        left_out=publication.left_out,
        index="",
        dry_run=True,
    )


def publish(context: Context, server: SearchServer, publication: Publication) -> PublishResult:
    """Update the index to a publication, unless a newer one was published.

    Raises:
        FleetUnavailable: the server failed in spite of retries. A partial write is harmless, and
        the
            next run completes it.
        MemtoolError: history was rewritten, so that the order of versions is unknown.
    """
    partition = find_partition(server, publication.repository)
    before = partition.read_manifest()
    state = PUBLISHED
    if before is not None and before.gen >= publication.gen:
        if _was_rewritten(context, before, publication):
            raise MemtoolError(
                f"cannot publish: {before.commit[:SHORT_ID_DIGITS]} was published before, but this "
                "history does not contain it, so versions cannot be ordered",
                hint=f"memtool config {EPOCH_SETTING} {(before.gen >> EPOCH_BITS) + 1} --commit\n"
                "then publish that commit from the default branch",
                code="rewritten",
            )
        if before.gen > publication.gen:
            state = LATE
        elif before.version == __version__ and partition.matches_manifest(before):
            state = UNCHANGED
    ahead = before.commit if before is not None and state == LATE else ""
    written = newer = 0
    if state == PUBLISHED:
        written, newer = partition.write(publication)
    deleted = partition.sweep(publication if state == PUBLISHED else None)
    return build_dry_result(publication).replace(
        ahead=ahead,
        state=state,
        written=written,
        newer=newer,
        deleted=deleted,
        index=partition.index,
        dry_run=False,
    )


def _was_rewritten(context: Context, before: RepositoryManifest, publication: Publication) -> bool:
    """Return whether the published commit is certainly from a rewritten history."""
    if before.gen == publication.gen:
        return before.tree != publication.tree
    git = context.repository.git
    (info,) = git.infos([before.commit])
    if info is None:  # an unknown commit usually means that this run is late
        return False
    return (
        git.line("merge-base", publication.commit, before.commit, allowed=(0, 1))
        != publication.commit
    )


class RepositoryManifest(Value):
    """The published state of a repository: `version` of memtool, `count` of memories."""

    gen: int
    commit: str
    tree: str
    version: str
    count: int


def find_partition(server: SearchServer, repository: str) -> Partition:
    """Find the index of a repository: its own, its organisation's, or the common one.

    Raises:
        FleetUnavailable: none of them exists, or the server does not answer.
    """
    for index in server.find_indexes(repository):
        partition = Partition(server, repository, index)
        if partition.has_index():
            return partition
    raise FleetUnavailable(f"{server.name} has no index {server.index}")


class Partition:
    """The documents of one repository in an index, all on one shard."""

    def __init__(self, server: SearchServer, repository: str, index: str = "") -> None:
        self.index = index or server.index
        self._server = server
        self._repository = repository
        self._routing = f"routing={quote(repository, safe='')}"
        self._index = f"/{self.index}"
        self._manifest = f"{self._index}/_doc/{quote(MANIFEST_PREFIX + repository, safe='')}"

    def has_index(self) -> bool:
        """Return whether the index exists. Raises FleetUnavailable if that is unknown."""
        status, answer = self._send_with_retries("GET", f"{self._manifest}?{self._routing}")
        if status == 404 and find_value(answer, "error", "type") == "index_not_found_exception":
            return False
        if status not in (200, 404):
            raise self._server.build_error(status, answer)
        return True

    def read_manifest(self) -> RepositoryManifest | None:
        """Read the current manifest; None if there is none.

        Raises:
            FleetUnavailable: it cannot be read, or the index does not exist.
        """
        status, answer = self._send_with_retries("GET", f"{self._manifest}?{self._routing}")
        if status == 404 and answer.get("found") is False:
            return None
        if status != 200:
            raise self._server.build_error(status, answer)
        values = [find_value(answer, "_source", name) for name in RepositoryManifest.field_names]
        if [*map(type, values)] != [int, str, str, str, int] or not is_commit(values[1]):
            raise FleetUnavailable(
                f"{self._server.name} has a manifest of {self._repository} that is none of memtool"
            )
        return RepositoryManifest(*values)

    def matches_manifest(self, manifest: RepositoryManifest) -> bool:
        """Return whether the index has exactly the memories of a manifest."""
        self._refresh()
        same_version = {"term": {"gen": manifest.gen}}
        return self._count() == self._count(same_version) == manifest.count

    def write(self, publication: Publication) -> tuple[int, int]:
        """Write documents, then the manifest; return the numbers of written and of newer ones."""
        version = {"version": publication.gen, "version_type": "external_gte"}
        rows = [
            ({"index": {"_id": build_document_id(self._repository, id_), **version}}, document)
            for id_, document in publication.documents.items()
        ]
        newer = self._send_bulk(rows)
        manifest = {
            "of": self._repository,
            "gen": publication.gen,
            "commit": publication.commit,
            "tree": publication.tree,
            "version": __version__,
            "count": len(publication.documents),
        }
        self._send_bulk(
            [({"index": {"_id": MANIFEST_PREFIX + self._repository, **version}}, manifest)]
        )
        return len(rows) - newer, newer

    def sweep(self, publication: Publication | None) -> int:
        """Delete documents that are older than the manifest, and return their number.

        If a publication was written, also delete documents of its version that are not in it, which
        another version of memtool may have published.
        """
        self._refresh()
        manifest = self.read_manifest()
        if manifest is None:
            return 0
        version = manifest.gen
        stale = [{"range": {"gen": {"lt": version}}}]
        older = {"version": version, "version_type": "external"}
        rows = [({"delete": {"_id": id_, **older}}, None) for id_ in self._find_ids(stale)]
        if publication is not None and publication.gen == version:
            own = {build_document_id(self._repository, id_) for id_ in publication.documents}
            same = {"version": version, "version_type": "external_gte"}
            rows += [
                ({"delete": {"_id": id_, **same}}, None)
                for id_ in self._find_ids([{"term": {"gen": version}}])
                if id_ not in own
            ]
        return len(rows) - self._send_bulk(rows)

    def _find_ids(self, filters: Sequence[dict[str, Any]]) -> Iterator[str]:
        """Yield the ids of the repository's documents that pass the filters."""
        after = None
        while True:
            body = self._build_query(*filters) | {
                "size": PAGE_SIZE,
                "_source": False,
                "sort": ["id"],
            }
            answer = self._request("_search", body | ({"search_after": after} if after else {}))
            hits = find_value(answer, "hits", "hits") or []
            yield from (str(find_value(hit, "_id")) for hit in hits)
            after = find_value(hits[-1], "sort") if len(hits) == PAGE_SIZE else None
            if not after:
                return

    def _count(self, *filters: dict[str, Any]) -> int:
        count = find_value(self._request("_count", self._build_query(*filters)), "count")
        return count if isinstance(count, int) else -1

    def _build_query(self, *filters: dict[str, Any]) -> dict[str, Any]:
        return {"query": {"bool": {"filter": [{"term": {"repo": self._repository}}, *filters]}}}

    def _refresh(self) -> None:
        status, answer = self._send_with_retries("POST", f"{self._index}/_refresh")
        if status != 200:
            raise self._server.build_error(status, answer)

    def _request(self, verb: str, body: object) -> dict[str, Any]:
        status, answer = self._send_with_retries(
            "POST", f"{self._index}/{verb}?{self._routing}", body
        )
        if status != 200 or answer.get("timed_out") or find_value(answer, "_shards", "failed") != 0:
            raise self._server.build_error(status, answer)
        return answer

    def _send_with_retries(
        self, method: str, path: str, body: object = None
    ) -> tuple[int, dict[str, Any]]:
        """Send a request, with retries while the server is busy or unavailable."""
        for pause in (*PAUSES_S, None):
            try:
                status, answer = self._server.send(method, path, body, timeout_s=REQUEST_TIMEOUT_S)
            except FleetUnavailable:
                if pause is None:
                    raise
            else:
                if status not in BUSY_STATUSES or pause is None:
                    return status, answer
            time.sleep(pause)
        raise AssertionError("the last pause is None")

    def _send_bulk(self, rows: Sequence[Action]) -> int:
        """Send actions in batches; return for how many the server has a newer version."""
        newer = 0
        for batch in _split_batches(rows):
            pending = batch
            for pause in (*PAUSES_S, None):
                lines = [line for row in pending for line in row if line is not None]
                status, answer = self._send_with_retries(
                    "POST", f"{self._index}/_bulk?{self._routing}", lines
                )
                items = answer.get("items")
                if status != 200 or not isinstance(items, list) or len(items) != len(pending):
                    raise self._server.build_error(status, answer)
                states = [
                    find_value(item, next(iter(row[0])), "status")
                    for item, row in zip(items, pending, strict=True)
                ]
                newer += states.count(CONFLICT)
                retried = [
                    row
                    for row, state in zip(pending, states, strict=True)
                    if state in BUSY_STATUSES
                ]
                failed = [state for state in states if state not in SETTLED_STATUSES]
                if 403 in failed:
                    raise self._server.build_error(403, {})
                if len(failed) > len(retried) or (retried and pause is None):
                    why = f"does not take documents: status {failed[0]}"
                    raise FleetUnavailable(f"{self._server.name} {why}")
                if not retried:
                    break
                pending = retried
                time.sleep(pause or 0)
        return newer


def _split_batches(rows: Sequence[Action]) -> Iterator[list[Action]]:
    """Split actions into batches of the size of a request."""
    batch: list[Action] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += row[1].get("size", 0) if row[1] else 0
        if len(batch) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
