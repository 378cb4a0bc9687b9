"""The folder of a static site: it is replaced as a whole, and only what was written here goes.

A new folder is filled beside the old one, with what is new in it and links to what stays, and takes
its place by a rename. Who kills this finds the old site or the new one, whole; the next run clears
up what lies beside it. A manifest in the folder says which files are ours, what each was made of
and the hash of its bytes; what else lies there stays as it is.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from memtool.errors import MemtoolError
from memtool.store.files import refusing
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from memtool.web.site_pages import SitePage

MANIFEST = "memtool-site.json"
FORMAT = 1
_NEW, _OLD = "memtool-new", "memtool-old"


class SiteFile(Value):
    """What the manifest says of a file: the key of what it was made of, and its hash."""

    key: str
    hash: str


class Replaced(Value):
    """How many files the site has, how many of them were written, and how many old ones went."""

    files: int
    written: int
    removed: int


class SiteFolder:
    """A folder that holds a static site, or is going to."""

    def __init__(self, place: str) -> None:
        """Look at a folder, and end what a killed run had begun.

        Raises:
            MemtoolError: it holds something else, or cannot be read.
        """
        self.place = os.path.realpath(place)
        parent, name = os.path.split(self.place)
        self._new = os.path.join(parent, f".{name}.{_NEW}")
        self._old = os.path.join(parent, f".{name}.{_OLD}")
        self.known: dict[str, SiteFile] = {}
        with _writing(self.place):
            self._recover()
            self._read()

    def _recover(self) -> None:
        """Put back the old site where a run was killed between both renames, and clear up."""
        if _is_ours(self._old) and not os.path.lexists(self.place):
            os.rename(self._old, self.place)
        for left in (self._new, self._old):
            if _is_ours(left):
                shutil.rmtree(left)

    def _read(self) -> None:
        try:
            held = os.listdir(self.place)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise MemtoolError(
                f"{self.place} is a file", hint="name a folder", code="exists"
            ) from None
        if held and MANIFEST not in held:
            raise MemtoolError(
                f"{self.place} holds something that is no site of memtool",
                hint="name a folder that is absent or empty",
                code="exists",
            )
        if held:
            self.known = _manifest(os.path.join(self.place, MANIFEST))

    def stays(self, page: SitePage) -> bool:
        """Tell whether a file is there, made of the same things, and nobody has changed it since.

        Without an old one it does not.
        """
        known = self.known.get(page.file)
        if known is None or known.key != page.key:
            return False
        try:
            with open(os.path.join(self.place, page.file), "rb") as file:
                return digest(file.read(), 16) == known.hash
        except OSError:
            return False

    def count(self, pages: Iterable[SitePage]) -> Replaced:
        """Return what `replace` would do."""
        changed = {page.file: not self.stays(page) for page in pages}
        return Replaced(
            len(changed), sum(changed.values()), len(self.known.keys() - changed.keys())
        )

    def replace(
        self, pages: Iterable[SitePage], revision: str, tell: Callable[[int], None]
    ) -> Replaced:
        """Make the folder hold these pages; `tell` hears how many files were looked at.

        Raises:
            MemtoolError: a file of somebody else has the name of a page, or the disk refuses.
        """
        entries: dict[str, SiteFile] = {}
        written = 0
        try:
            with _writing(self.place):
                os.makedirs(self._new)
                _write(os.path.join(self._new, MANIFEST), b"{}")
                for page in pages:
                    if self.stays(page):
                        entries[page.file] = self.known[page.file]
                    else:
                        data = page.make()
                        entries[page.file] = SiteFile(page.key, digest(data, 16))
                        _write(os.path.join(self._new, page.file), data)
                        written += 1
                    tell(len(entries))
                removed = len(self.known.keys() - entries.keys())
                text = _text(entries, revision)
                if (
                    self.known
                    and not (written or removed)
                    and text == Path(self.place, MANIFEST).read_bytes()
                ):
                    shutil.rmtree(self._new)
                    return Replaced(len(entries), 0, 0)
                self._carry(entries)
                _write(os.path.join(self._new, MANIFEST), text)
                self._swap()
        except BaseException:
            if _is_ours(self._new):
                shutil.rmtree(self._new, ignore_errors=True)
            raise
        return Replaced(len(entries), written, removed)

    def _carry(self, entries: Mapping[str, SiteFile]) -> None:
        """Link into the new folder what stays: files that are the same, and those of others."""
        for path in _files(self.place):
            goal = os.path.join(self._new, path)
            if path in self.known:
                if path in entries and not os.path.lexists(goal):
                    _link(os.path.join(self.place, path), goal)
            elif path != MANIFEST:
                if os.path.lexists(goal):
                    raise MemtoolError(
                        f"memtool has not written {path} in {self.place}, and a page has its name",
                        hint="move it elsewhere, and run the same command again",
                        code="exists",
                    )
                _link(os.path.join(self.place, path), goal)

    def _swap(self) -> None:
        """Let the new folder take the place of the old one."""
        if os.path.isdir(self.place) and os.listdir(self.place):
            os.rename(self.place, self._old)
            try:
                os.rename(self._new, self.place)
            except OSError:
                os.rename(self._old, self.place)
                raise
            shutil.rmtree(self._old, ignore_errors=True)
        else:
            os.rename(self._new, self.place)


def _manifest(path: str) -> dict[str, SiteFile]:
    """Return the files of a site by name. Raises MemtoolError where the manifest is none."""
    try:
        with open(path, "rb") as file:
            told = json.load(file)
        if told["format"] != FORMAT:
            raise ValueError(told["format"])
        return {name: SiteFile(*text.split(" ")) for name, text in told["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MemtoolError(
            f"{path} is no manifest of a site",
            hint="name another folder; what is in this one stays",
            code="exists",
        ) from None


def _text(entries: Mapping[str, SiteFile], revision: str) -> bytes:
    rows = {name: f"{one.key} {one.hash}" for name, one in sorted(entries.items())}
    told = {"format": FORMAT, "revision": revision, "files": rows}
    return (json.dumps(told, indent=0) + "\n").encode()


def _is_ours(place: str) -> bool:
    return os.path.isfile(os.path.join(place, MANIFEST)) and not os.path.islink(place)


def _files(place: str, below: str = "") -> Iterator[str]:
    """Yield the files and links of a folder, by their paths in it."""
    try:
        found = sorted(os.scandir(os.path.join(place, below)), key=lambda one: one.name)
    except FileNotFoundError:
        return
    for one in found:
        path = f"{below}{one.name}"
        if one.is_dir(follow_symlinks=False):
            yield from _files(place, f"{path}/")
        else:
            yield path


def _write(path: str, data: bytes) -> None:
    try:
        file = open(path, "wb")  # noqa: SIM115  # closed below
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        file = open(path, "wb")  # noqa: SIM115
    with file:
        file.write(data)


def _link(path: str, goal: str) -> None:
    """Give a file a second name, or copy it where the disk has no second names."""
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    try:
        os.link(path, goal, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, goal, follow_symlinks=False)


def _writing(place: str) -> refusing:
    """Return what says of the folder that the disk refuses to write it."""
    inside = os.path.join(place, "site")
    hint = f"name a folder that you may write and that is no mount point, such as {inside}"
    return refusing(f"{place} cannot be written", hint)
