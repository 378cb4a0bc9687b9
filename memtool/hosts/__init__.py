"""Where memtool can be installed: one module per host, all in one table."""

from __future__ import annotations

from memtool.hosts import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from memtool.hosts.plan import Step
    from memtool.store.repository import Repository

HOSTS: dict[str, tuple[Callable[[Repository], list[Step]], Callable[[Repository], list[Step]]]] = {
    "git": (git.install, git.uninstall),
}
"""What plans the installing, and the taking out again, by the name of the host."""
