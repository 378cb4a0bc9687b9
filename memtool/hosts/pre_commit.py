"""The pre-commit framework: the hook `memtool-check` in `.pre-commit-config.yaml`.

The entry is put after all others, and only its own lines change: comments, order and indentation
of the rest stay. Before and after, the file is read by pre-commit's own `load_config`, the function
behind `pre-commit validate-config`; a file that it refuses, or whose list of repos is not written
one entry below the other, is refused. A hook of that id that is there counts, whatever it runs.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any

from memtool.errors import MemtoolError
from memtool.hosts import PRE_COMMIT
from memtool.hosts.edits import ConfigEdit
from memtool.hosts.install import Host, Site, bytes_at, home_of

CONFIG = ".pre-commit-config.yaml"
HOOK = "memtool-check"
ENTRY = f"""\
- repo: local
  hooks:
    - id: {HOOK}
      name: memtool check
      entry: memtool check --staged
      language: system
      always_run: true
      pass_filenames: false
      stages: [pre-commit, pre-merge-commit]
"""
"""Without `files:`, which would skip a commit that only deletes memories: git is asked."""
INSTALL = "pre-commit install -t pre-commit -t pre-merge-commit"
_REPOS = re.compile(r"^repos:[ \t]*(?:#.*)?\r?$\n", re.MULTILINE)
_DASH = re.compile(r"^( *)- ", re.MULTILINE)


class FrameworkHook(ConfigEdit):
    """The entry in the configuration of pre-commit."""

    is_hook = True

    def put(self, before: bytes | None) -> bytes:
        """Return the configuration with the entry, unless it has a hook of that id."""
        if before is None:
            return f"repos:\n{_indented('  ')}".encode()
        config = _load(before)
        if _has_hook(config):
            return before
        after = _inserted(before.decode()).encode()
        *others, last = _load(after)["repos"]
        if others != config["repos"] or not _has_hook({"repos": [last]}):
            raise _odd()
        return after

    def take(self, before: bytes) -> bytes | None:
        """Return the configuration without the entry, which must be as `put` wrote it."""
        text = before.decode()
        newline = _newline(text)
        for margin in dict.fromkeys(_DASH.findall(text)):
            lines = _indented(margin, newline)
            ended = f"{newline}{lines}"  # a line of its own
            if ended in text:
                after = text.replace(ended, newline, 1)
            elif text.endswith(ended.removesuffix(newline)):  # `put` found no final line feed
                after = text.removesuffix(ended.removesuffix(newline))
            else:
                continue
            _load(after.encode())
            return after.encode()
        raise MemtoolError(
            f"{HOOK} in {CONFIG} is not as memtool wrote it; nothing was changed",
            hint=f"take it out of {CONFIG} by hand",
            code="edited",
        )

    def has(self, data: bytes) -> bool:
        """Tell whether a configuration has a hook of that id."""
        try:
            return _has_hook(_load(data))
        except MemtoolError:
            return False


def _load(data: bytes) -> dict[str, Any]:
    """Return a configuration as pre-commit reads it. Raises MemtoolError where it refuses it."""
    import logging

    from pre_commit.clientlib import InvalidConfigError, load_config

    logger = logging.getLogger("pre_commit")
    if not logger.handlers:  # its advice on what is there already is not asked for
        logger.addHandler(logging.NullHandler())
    with tempfile.NamedTemporaryFile(suffix=CONFIG) as file:
        file.write(data)
        file.flush()
        try:
            config: dict[str, Any] = load_config(file.name)
        except InvalidConfigError as error:
            reason = " ".join(str(error).rpartition("==>")[2].split())
            raise MemtoolError(
                f"{CONFIG} would be refused by pre-commit: {reason}; nothing was changed",
                hint="pre-commit validate-config says what is wrong with it; mend that first",
                code="broken-settings",
            ) from None
    return config


def _has_hook(config: dict[str, Any]) -> bool:
    return any(hook["id"] == HOOK for repo in config["repos"] for hook in repo["hooks"])


def _inserted(text: str) -> str:
    """Return a configuration with the entry after the last one of its list of repos."""
    start = _REPOS.search(text)
    dash = _DASH.search(text, start.end()) if start else None
    if start is None or dash is None:
        raise _odd()
    at = start.end()
    end = at
    for line in text[at:].splitlines(keepends=True):
        at += len(line)
        is_inside = line.startswith((f"{dash[1]} ", f"{dash[1]}- "))
        if not is_inside and line.strip() and not line.lstrip().startswith("#"):
            break
        if is_inside and line.strip():
            end = at
    newline = _newline(text)
    entry = _indented(dash[1], newline)
    if text[end - 1] == "\n":
        return text[:end] + entry + text[end:]
    return f"{text}{newline}{entry.removesuffix(newline)}"


def _indented(margin: str, newline: str = "\n") -> str:
    return "".join(f"{margin}{line}{newline}" for line in ENTRY.splitlines())


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _odd() -> MemtoolError:
    return MemtoolError(
        f"{CONFIG} does not list its repos one below the other; nothing was changed",
        hint="write `repos:` on a line of its own with the entries below it, as "
        "pre-commit sample-config does",
        code="odd-settings",
    )


def is_installed(project: str) -> bool:
    """Tell whether the configuration of a project has the hook."""
    data = bytes_at(os.path.join(project, CONFIG))
    return data is not None and FrameworkHook(CONFIG, ()).has(data)


def parts(site: Site) -> list[ConfigEdit]:
    """Return the entry; the framework has no configuration for all projects."""
    return [] if site.is_user else [FrameworkHook(os.path.join(site.project, CONFIG), ())]


HOST = Host(
    name=PRE_COMMIT,
    title="pre-commit",
    program="pre-commit",
    folder=CONFIG,
    home=home_of,
    parts=parts,
    trust=f"git runs it when each clone has the hooks of pre-commit: {INSTALL}",
)
