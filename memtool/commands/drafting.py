"""Drafting: the options of `new` to a memory, with the body from the template of its type."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from memtool import templates
from memtool.commands import writing
from memtool.errors import MemtoolError
from memtool.memory import document, identity, moments
from memtool.memory.body import sections as sections_of
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import Fields, Memory
from memtool.workspace import Workspace


def draft(
    workspace: Workspace,
    type_: str,
    title: str,
    *,
    body: str,
    section: Sequence[str],
    fields: Fields,
    extra: Sequence[str],
) -> Memory:
    """Build a memory that is not written yet; `fields` wins over defaults, `extra` over both.

    Raises:
        MemtoolError: an option cannot be read.
    """
    given = {key: value for key, value in fields.items() if value not in ("", ())}
    base: Fields = {
        "timestamp": moments.render(workspace.now),
        "type": type_,
        "title": " ".join(title.split()),
        "status": "confirmed",
        "confidence": CONFIDENCES[1],
        "source": (f"human:{writing.author(workspace)}",),
    }
    merged = base | given | writing.settings(extra)
    if "id" not in merged:
        merged["id"] = draw_id(workspace, type_, title)
    return Memory(fields=merged, body=make_body(type_, read_body(body), section))


def draw_id(workspace: Workspace, type_: str, title: str) -> str:
    """Return a fresh random id for a memory that is written now."""
    return identity.make_id(type_, workspace.now, title, workspace.random(3))


def read_body(body: str) -> str:
    """Return the text of `--body`, from stdin where it is `-`."""
    if body != "-":
        return body
    try:
        return sys.stdin.buffer.read(document.MAX_BYTES + 1).decode()
    except UnicodeDecodeError:
        raise MemtoolError("the text on stdin is not UTF-8", code="not-utf8") from None


def make_body(type_: str, statement: str, section: Sequence[str]) -> str:
    """Join the statement and the sections; without any text the template's headings stand empty.

    Sections are matched to the template's headings by name, whatever the case; others follow.
    """
    text = statement.strip("\n").replace("\r\n", "\n")
    given = dict(_section(pair) for pair in section)
    template = [part.title for part in sections_of(templates.read(f"memory/{type_}.md"))]
    names = {name.lower(): name for name in template}
    filled = {names.get(name.lower(), name): value for name, value in given.items()}
    order = [name for name in template if name in filled or not text]
    order += [name for name in filled if name not in order]
    parts = [text] if text else []
    parts += [
        f"## {name}\n\n{filled[name]}" if filled.get(name) else f"## {name}" for name in order
    ]
    return "\n\n".join(parts) + "\n"


def _section(pair: str) -> tuple[str, str]:
    name, equals, text = pair.partition("=")
    if not equals or not name.strip():
        raise MemtoolError(
            f"--section {pair!r} is not NAME=TEXT",
            hint='--section "Rationale=it is the smallest change"',
        )
    return " ".join(name.split()), text.strip()


def edit(workspace: Workspace, memory: Memory) -> Memory:
    """Let the user edit a draft in their editor, and read it back.

    Raises:
        MemtoolError: the editor failed or what it left is no memory; the draft is kept.
    """
    folder = os.path.join(workspace.repository.cache_dir, "drafts")
    path = os.path.join(folder, f"{memory.id}.md")
    command = _editor(workspace)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(path, "wb") as file:
            file.write(document.write(memory))
        status = subprocess.run([*shlex.split(command), path], check=False).returncode
    except (OSError, ValueError) as error:
        raise MemtoolError(
            f"the editor {command!r} cannot be started: {error}",
            hint="set EDITOR, or leave out --edit",
            code="editor",
        ) from None
    if status != 0:
        raise MemtoolError(
            f"the editor {command!r} ended with status {status}, nothing was written",
            hint=f"the draft is kept in {path}",
            code="editor",
        )
    with open(path, "rb") as file:
        data = file.read()
    try:
        edited = document.read(data, "", workspace.config.categories)
    except document.Unreadable as error:
        problem = error.problems[0]
        raise MemtoolError(
            f"line {problem.line}: {problem.message}; nothing was written",
            hint=f"the draft is kept in {path}",
            code=problem.code,
        ) from None
    os.unlink(path)
    return edited


def _editor(workspace: Workspace) -> str:
    return workspace.env.get("VISUAL") or workspace.env.get("EDITOR") or "vi"
