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
    """Maps addresses to files. `lists` has the last page of each list, by what it lists."""

    def __init__(self, tree: Tree, lists: Mapping[str, str]) -> None:
        self._tree = tree
        self._lists = lists
        self._files: dict[str, str] = {}
        """Files of addresses that were asked for."""
        self.naming: dict[str, list[Record]] = {}
        """The memories that name each id in one of their relations."""
        firsts = [tree[id_] for id_ in tree.ids]
        for record in firsts:
            for id_ in _related(record):
                self.naming.setdefault(id_, []).append(record)
        self.pairs = {
            (record.id, old)
            for record in firsts
            for old in record.memory.supersedes
            if old in tree and old != record.id
        }
        """Which memory is laid beside which: the newer one first."""

    def to(self, address: str, up: str) -> str:
        """Return the link to an address, empty where the site has no such page.

        `up` leads from the page to the folder of the site.
        """
        file = self._files.get(address)
        if file is None:
            file = self._files[address] = quote(self._file_of(address), safe="/~")
        return up + file if file else ""

    def beside(self, id_: str) -> list[str]:
        """Return what a memory is laid beside: what it replaced, then what replaced it."""
        older = self._tree[id_].memory.supersedes
        newer = self._tree.lineage.as_proposed.superseded_by.get(id_, ())
        pairs = [(id_, other) for other in older] + [(other, id_) for other in newer]
        others = [each for pair in pairs if pair in self.pairs for each in pair if each != id_]
        return list(dict.fromkeys(others))

    def has_graph(self, id_: str) -> bool:
        """Tell whether a memory of the site names another one of it, or is named."""
        related = _related(self._tree[id_])
        return id_ in self.naming or any(one in self._tree for one in related)

    def _file_of(self, address: str) -> str:
        """Return the file of an address of the live view, empty where the site has no such page."""
        path, _mark, asked = address.partition("?")
        query = dict(parse_qsl(asked))
        match [unquote(part) for part in path.strip("/").split("/")]:
            case [""]:
                return "index.html"
            case ["m", id_] if not query:
                return f"m/{id_}.html" if id_ in self._tree else ABSENT
            case ["m", id_, "diff"] if id_ in self._tree and query.keys() <= {"with"}:
                other = query.get("with") or next(iter(self.beside(id_)), "")
                pairs = [one for one in ((id_, other), (other, id_)) if one in self.pairs]
                return diff_file(*pairs[0]) if pairs else ""
            case ["m", id_, "graph"] if id_ in self._tree:
                return f"graph/{id_}.html" if self.has_graph(id_) else ""
            case ["digests", category]:
                return f"digests/{file_name(category)}.html"
            case ["search"] if query:
                return self._lists.get(" ".join(*query.items()), "")
            case ["conflicts"] if query:
                return "settled.html" if query.keys() == {"accepted"} else ""
            case ["search" | "lists" | "timeline" | "conflicts" | "digests" as name] if not query:
                return f"{name}.html"
            case ["static" | "file", *_rest]:
                return path.removeprefix("/file/").removeprefix("/")
        return ""


def _related(record: Record) -> set[str]:
    return {id_ for relation in RELATIONS for id_ in record.memory.items(relation)}


def file_name(text: str) -> str:
    """Return a text as a part of a file name, which any disk takes."""
    if text and all(char in "abcdefghijklmnopqrstuvwxyz0123456789-" for char in text):
        return text
    return "x." + text.encode(errors="surrogatepass").hex()


def diff_file(newer: str, older: str) -> str:
    """Return the file in which two memories stand side by side."""
    return f"diff/{newer}~{older}.html"
