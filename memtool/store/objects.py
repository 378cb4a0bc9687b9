"""Objects: what git stores, read in several rounds by one process of git.

A process costs a hook a tenth of an interpreter start, whatever it is asked; and it must be asked
for sizes before contents, since nobody knows how large a blob is that somebody staged.
"""

from __future__ import annotations

from memtool.store.git import TIMEOUT_S, GitError, unstarted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from memtool.store.git import Git
    from memtool.store.process import Child


class Objects:
    """The objects of a repository, by one `git cat-file` that runs until the context ends.

    It is started by the first question; `over` is called at the end.
    """

    def __init__(self, git: Git, over: Callable[[], None] = lambda: None) -> None:
        self._git = git
        self._over = over
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._over()
        if self._child is not None:
            self._child.close()
            self._child = None

    def infos(self, names: Sequence[str]) -> list[tuple[str, str, int] | None]:
        """Return ids, types and sizes as `Git.infos` does."""
        if not names:
            return []
        asked = "".join(f"info {name}\n" for name in names).encode(errors="surrogateescape")
        found: list[tuple[str, str, int] | None] = []
        for row in self._ask(asked, lines=len(names)).splitlines():
            *_name, size = parts = row.decode(errors="replace").split(" ")
            is_there = size.isdigit() and len(parts) == 3
            found.append((parts[0], parts[1], int(size)) if is_there else None)
        return found

    def blobs(self, oids: Sequence[str], most: int) -> Iterator[bytes]:
        """Yield contents as `Git.blobs` does."""
        infos = self.infos(oids)
        sizes = []
        asked = []
        length = 0
        for oid, info in zip(oids, infos, strict=True):
            if info is None:
                raise GitError(("cat-file",), 1, f"object {oid} is missing".encode())
            sizes.append(info[2])
            if info[2] <= most:
                asked.append(f"contents {oid}\n")
                length += len(f"{info[0]} {info[1]} {info[2]}\n") + info[2] + 1
        answer = self._ask("".join(asked).encode(), size=length) if asked else b""
        position = 0
        for size in sizes:
            if size > most:
                yield bytes(most + 1)
                continue
            start = answer.index(b"\n", position) + 1
            yield answer[start : start + size]
            position = start + size + 1

    def _ask(self, question: bytes, *, lines: int = 0, size: int = 0) -> bytes:
        if self._child is None:
            self._child = self._git.started("cat-file", "--batch-command", "--buffer")
        try:
            return self._child.ask(
                question + b"flush\n", lines=lines, size=size, timeout_s=TIMEOUT_S
            )
        except EOFError as error:
            raise self._git.failed(("cat-file",), 1, str(error).encode()) from None
        except TimeoutError as error:
            self._child.kill()
            raise unstarted("cat-file", error) from None
