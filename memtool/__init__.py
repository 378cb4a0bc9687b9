"""Git-native memory for coding agents.

    import memtool

    ws = memtool.open(".")
    for hit in ws.search("where do we keep sessions?").results:
        print(hit.id, hit.title)

Every verb of the command line is a method of what `open` returns, with the same name, the same
parameters and the same result.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.api import Project
    from memtool.errors import MemtoolError as MemtoolError

__all__ = ["MemtoolError", "__version__", "open"]


def open(directory: str = ".") -> Project:  # noqa: A001  # `memtool.open` reads as it should
    """Open the repository that a directory lies in.

    Raises:
        MemtoolError: there is none, or git refuses it.
    """
    from memtool.api import Project  # the verbs are imported when first wanted

    return Project.at(directory)


def __getattr__(name: str) -> object:
    if name == "MemtoolError":
        from memtool.errors import MemtoolError

        return MemtoolError
    raise AttributeError(f"module 'memtool' has no attribute {name!r}")
