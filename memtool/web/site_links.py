"""Links of the static site: the file that each address of the live pages is, if the site has it."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote

from memtool.memory.fields import RELATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.store.tree import Record, Tree

ABSENT = "absent.html"
"""The page of a memory that is not in the site."""


class SiteLinks:
    """Maps addresses to files. `lists` has the last page of each list, by its subject."""

    def __init__(self, tree: Tree, lists: Mapping[str, str]) -> None:
        self._tree = tree
        self._lists = lists
        self._files: dict[str, str] = {}
        """Files of addresses that were asked for."""
        self.naming: dict[str, list[Record]] = {}
        """The memories that name each id in one of their relations."""
        firsts = [tree[id_] for id_ in tree.ids]
        for record in firsts:
            for id_ in _find_related(record):
                self.naming.setdefault(id_, []).append(record)
        self.pairs = {
            (record.id, old)
            for record in firsts
            for old in record.memory.supersedes
            if old in tree and old != record.id
        }
        """Pairs of memories that are compared: the newer one first."""

    def add(self, address: str, file: str) -> None:
        """Add a page whose file does not follow from its address."""
        self._files[address] = quote(file, safe="/~")

    def link(self, address: str, up: str) -> str:
        """Return the link to an address; empty if the site has no such page.

        `up` leads from the page to the folder of the site.
        """
        file = self._files.get(address)
        if file is None:
            file = self._files[address] = quote(self._find_file(address), safe="/~")
        return up + file if file else ""

    def pairs_of(self, id_: str) -> list[str]:
        """Return the memories compared with a memory: its predecessors, then its successors."""
        older = self._tree[id_].memory.supersedes
        newer = self._tree.lineage.as_proposed.superseded_by.get(id_, ())
        pairs = [(id_, other) for other in older] + [(other, id_) for other in newer]
        partners = [each for pair in pairs if pair in self.pairs for each in pair if each != id_]
        return list(dict.fromkeys(partners))

    def has_graph(self, id_: str) -> bool:
        """Return whether a memory of the site names another one of it, or is named."""
        related = _find_related(self._tree[id_])
        return id_ in self.naming or any(other in self._tree for other in related)

    def _find_file(self, address: str) -> str:
        """Return the file for an address of the live view; empty if the site has no such page."""
        path, _mark, query_text = address.partition("?")
        query = dict(parse_qsl(query_text))
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                return "index.html"
            case ["m", id_] if not query:
                return f"m/{id_}.html" if id_ in self._tree else ABSENT
            case ["m", id_, "diff"] if id_ in self._tree and query.keys() <= {"with"}:
                other = query.get("with") or next(iter(self.pairs_of(id_)), "")
                pairs = [pair for pair in ((id_, other), (other, id_)) if pair in self.pairs]
                return diff_file(*pairs[0]) if pairs else ""
            case ["m", id_, "graph"] if id_ in self._tree:
                return f"graph/{id_}.html" if self.has_graph(id_) else ""
            case ["digests", category]:
                return f"digests/{to_file_name(category)}.html"
            case ["search"] if query:
                return self._lists.get(" ".join(*query.items()), "")
            case ["conflicts"] if query:
                return "settled.html" if query.keys() == {"accepted"} else ""
            case ["search" | "lists" | "map" | "timeline" | "conflicts" | "digests" as name] if (
                not query
            ):
                return f"{name}.html"
            case ["static" | "file", *_tail]:
                return path.removeprefix("/file/").removeprefix("/")
        return ""


def _find_related(record: Record) -> set[str]:
    return {id_ for relation in RELATIONS for id_ in record.memory.items(relation)}


def to_file_name(text: str) -> str:
    """Return a text as a part of a file name, which any disk takes."""
    if text and all(char in "abcdefghijklmnopqrstuvwxyz0123456789-" for char in text):
        return text
    return "x." + text.encode(errors="surrogatepass").hex()


def diff_file(newer: str, older: str) -> str:
    """Return the file that compares two memories."""
    return f"diff/{newer}~{older}.html"
