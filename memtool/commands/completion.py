"""`memtool completion`: verbs, options, values and ids for the TAB key of a shell.

The command line does the work, since it parses the words. This module only has what every
interface reads: the name, the options and the help.
"""

from __future__ import annotations

from typing import Literal, Never, NoReturn

from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.store.context import Context


def completion(
    context: Context, shell: Literal["bash", "zsh", "fish"], *, line: str | None = None
) -> NoReturn:
    """Print the script that lets a shell complete memtool's words with the TAB key.

    It completes verbs, options, filters, settings, saved queries and ids. Ids are also found by
    words of their titles.

    How to set it up:
        bash    eval "$(memtool completion bash)" in ~/.bashrc
        zsh     eval "$(memtool completion zsh)" in ~/.zshrc, after compinit
        fish    memtool completion fish | source, in config.fish

    Example:
        memtool completion bash > ~/.local/share/bash-completion/completions/memtool

    Args:
        shell: bash, zsh or fish
        line: print the completions of this command line; for the script
    """
    del context, shell, line
    raise MemtoolError(
        "completion can only be started from the command line",
        hint='eval "$(memtool completion bash)"',
        code="surface",
    )


def render(_answered: Never, _layout: Layout) -> str:
    """Return nothing: the command line prints the script."""
    return ""
