"""Git-native memory for coding agents.

    import memtool

    context = memtool.open(".")
    for hit in context.search("where do we keep sessions?").results:
        print(hit.id, hit.title)

Every verb of the command line is a method of what `open` returns, with the same name, the same
parameters and the same result.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from memtool.api import Project
    from memtool.errors import MemtoolError as MemtoolError
    from memtool.version import __version__ as __version__

__all__ = ["MemtoolError", "__version__", "open"]


def open(  # noqa: A001  # `memtool.open` reads as it should
    directory: str | PathLike[str] = ".", *, global_: bool = False
) -> Project:
    """Open the repository of a directory, or the one of the user's global memories.

    In the global repository each write is committed, as by `memtool --global`.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    from memtool import api  # the verbs are imported when first wanted

    return api.open_project(directory, is_global=global_)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from memtool.version import __version__

        return __version__
    if name == "MemtoolError":
        from memtool.errors import MemtoolError

        return MemtoolError
    raise AttributeError(f"module 'memtool' has no attribute {name!r}")
