"""The folder of a static site: replaced as a whole, and only our own files are removed.

A new folder is filled next to the old one, with the new files and links to unchanged ones, and is
then renamed into place. After a kill either the old or the new site is there, whole; the next run
removes leftovers. A manifest lists our files, with the inputs of each and the hash of its bytes;
all other files stay.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from memtool.errors import MemtoolError
from memtool.store.files import explaining_errors
from memtool.value import Value, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from memtool.web.site_pages import SitePage

MANIFEST = "memtool-site.json"
FORMAT = 1
_NEW, _OLD = "memtool-new", "memtool-old"


class SiteFile(Value):
    """A file in the manifest: a key of its inputs, and its hash."""

    key: str
    hash: str


class ReplaceReport(Value):
    """How many files the site has, how many of them were written, and how many old ones went."""

    files: int
    written: int
    removed: int


class SiteFolder:
    """A folder that holds a static site, or is going to."""

    def __init__(self, place: str) -> None:
        """Read a folder, and finish what a killed run had begun.

        Raises:
            MemtoolError: it holds something else, or cannot be read.
        """
        self.place = os.path.realpath(place)
        parent, name = os.path.split(self.place)
        self._new = os.path.join(parent, f".{name}.{_NEW}")
        self._old = os.path.join(parent, f".{name}.{_OLD}")
        self.earlier_files: dict[str, SiteFile] = {}
        with _refuse_disk_errors(self.place):
            self._recover()
            self._read()

    def _recover(self) -> None:
        """Restore the old site if a run was killed between both renames, and remove leftovers."""
        if _is_ours(self._old) and not os.path.lexists(self.place):
            os.rename(self._old, self.place)
        for leftover in (self._new, self._old):
            if _is_ours(leftover):
                shutil.rmtree(leftover)

    def _read(self) -> None:
        try:
            entries = os.listdir(self.place)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise MemtoolError(
                f"{self.place} is a file", hint="name a directory", code="exists"
            ) from None
        if entries and MANIFEST not in entries:
            raise MemtoolError(
                f"cannot write to {self.place}: it has files that are not a site of memtool",
                hint="name a new or empty directory",
                code="exists",
            )
        if entries:
            self.earlier_files = _read_manifest(os.path.join(self.place, MANIFEST))

    def stays(self, page: SitePage) -> bool:
        """Return whether a file exists, from the same inputs and unchanged since.

        Always false without an old manifest.
        """
        entry = self.earlier_files.get(page.file)
        if entry is None or entry.key != page.key:
            return False
        try:
            with open(os.path.join(self.place, page.file), "rb") as file:
                return digest(file.read(), 16) == entry.hash
        except OSError:
            return False

    def count(self, pages: Iterable[SitePage]) -> ReplaceReport:
        """Return what `replace` would do."""
        changed = {page.file: not self.stays(page) for page in pages}
        return ReplaceReport(
            len(changed), sum(changed.values()), len(self.earlier_files.keys() - changed.keys())
        )

    def replace(
        self, pages: Iterable[SitePage], revision: str, tell: Callable[[int], None]
    ) -> ReplaceReport:
        """Write these pages into the folder; `tell` gets the number of files checked so far.

        Raises:
            MemtoolError: a foreign file has the name of a page, or the disk refuses.
        """
        entries: dict[str, SiteFile] = {}
        written = 0
        try:
            with _refuse_disk_errors(self.place):
                os.makedirs(self._new)
                _write(os.path.join(self._new, MANIFEST), b"{}")
                for page in pages:
                    if self.stays(page):
                        entries[page.file] = self.earlier_files[page.file]
                    else:
                        data = page.make()
                        entries[page.file] = SiteFile(page.key, digest(data, 16))
                        _write(os.path.join(self._new, page.file), data)
                        written += 1
                    tell(len(entries))
                removed = len(self.earlier_files.keys() - entries.keys())
                text = _format_manifest(entries, revision)
                if (
                    self.earlier_files
                    and not (written or removed)
                    and text == Path(self.place, MANIFEST).read_bytes()
                ):
                    shutil.rmtree(self._new)
                    return ReplaceReport(len(entries), 0, 0)
                self._link_unchanged(entries)
                _write(os.path.join(self._new, MANIFEST), text)
                self._swap()
        except BaseException:
            if _is_ours(self._new):
                shutil.rmtree(self._new, ignore_errors=True)
            raise
        return ReplaceReport(len(entries), written, removed)

    def _link_unchanged(self, entries: Mapping[str, SiteFile]) -> None:
        """Link into the new folder what stays: files that are the same, and those of others."""
        for path in _walk_files(self.place):
            goal = os.path.join(self._new, path)
            if path in self.earlier_files:
                if path in entries and not os.path.lexists(goal):
                    _link(os.path.join(self.place, path), goal)
            elif path != MANIFEST:
                if os.path.lexists(goal):
                    raise MemtoolError(
                        f"cannot write {path} in {self.place}: another file has this name",
                        hint="move it, then run the command again",
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


def _read_manifest(path: str) -> dict[str, SiteFile]:
    """Return the files of a site by name. Raises MemtoolError if the manifest is invalid."""
    try:
        with open(path, "rb") as file:
            manifest = json.load(file)
        if manifest["format"] != FORMAT:
            raise ValueError(manifest["format"])
        return {name: SiteFile(*text.split(" ")) for name, text in manifest["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MemtoolError(
            f"{path} is not the manifest of a site",
            hint="name another directory",
            code="exists",
        ) from None


def _format_manifest(entries: Mapping[str, SiteFile], revision: str) -> bytes:
    rows = {name: f"{entry.key} {entry.hash}" for name, entry in sorted(entries.items())}
    manifest = {"format": FORMAT, "revision": revision, "files": rows}
    return (json.dumps(manifest, indent=0) + "\n").encode()


def _is_ours(place: str) -> bool:
    return os.path.isfile(os.path.join(place, MANIFEST)) and not os.path.islink(place)


def _walk_files(place: str, below: str = "") -> Iterator[str]:
    """Yield the files and links of a folder, by their paths in it."""
    try:
        entries = sorted(os.scandir(os.path.join(place, below)), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        path = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk_files(place, f"{path}/")
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
    """Link a file under a second name, or copy it if the disk does not support links."""
    os.makedirs(os.path.dirname(goal), exist_ok=True)
    try:
        os.link(path, goal, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, goal, follow_symlinks=False)


def _refuse_disk_errors(place: str) -> explaining_errors:
    """Return what says of the folder that the disk refuses to write it."""
    inside = os.path.join(place, "site")
    hint = f"name a folder that you can write to and that is not a mount point, such as {inside}"
    return explaining_errors(f"{place} cannot be written", hint)
