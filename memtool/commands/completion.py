"""`memtool completion`: verbs, options, values and ids for the TAB key of a shell.

The command line answers it itself: only it knows how words are read. Here is only what every
surface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Literal, Never, NoReturn

from memtool.errors import MemtoolError
from memtool.store.context import Context


def completion(
    context: Context, shell: Literal["bash", "zsh", "fish"], *, line: str | None = None
) -> NoReturn:
    """Print what makes a shell complete the words of memtool.

    The script asks memtool at each TAB, so that it never has to be written again. Completed are
    verbs, options and their values, filters, names of settings and saved queries, and ids: from
    their beginning, and where one memory alone fits, from words of its id.

    For bash put eval "$(memtool completion bash)" into ~/.bashrc, for zsh the same with zsh into
    ~/.zshrc behind compinit, for fish memtool completion fish | source into config.fish.

    Example:
        memtool completion bash > ~/.local/share/bash-completion/completions/memtool

    Args:
        shell: for which shell
        line: print what may stand at the end of this command line, as the script asks
    """
    del context, shell, line
    raise MemtoolError(
        "completion is for a shell, which asks the command line",
        hint='eval "$(memtool completion bash)"',
        code="surface",
    )


def render(_answered: Never) -> str:
    """Return nothing: the command line answers."""
    return ""
