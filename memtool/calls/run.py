"""Calls of procedures: JSON arguments into the verb's own, and its value into an answer.

Arguments that do not fit the input schema are refused with one sentence before the verb runs. Every
call opens the repository again, so that it sees what other processes have changed.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from memtool.calls import boundary
from memtool.calls.bind import bind, spread
from memtool.calls.output import visible
from memtool.calls.procedures import DIRECTORY, GLOBAL, READ, Procedure, worded
from memtool.calls.verb import run_verb
from memtool.commands import _record
from memtool.errors import MemtoolError
from memtool.store.context import Context
from memtool.store.repository import checked_out
from memtool.value import Value, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    Shaped = TypeVar("Shaped")


def refuse_outside(top: str, cwd: str, paths: list[str]) -> None:
    """Raise MemtoolError where a path leads out of the repository, by itself or through a link."""
    root = os.path.realpath(top)
    for path in paths:
        place = os.path.realpath(os.path.join(cwd, path))
        if path.startswith("~") or (place != root and not place.startswith(root + os.sep)):
            raise MemtoolError(
                f"{path} is not in the repository",
                hint="name files by their path from the top of the repository",
                code="outside",
            )


BLOCK = "inject"
"""The verb that keeps to a budget of its own, and whose text must end as it ends."""
MOST_ROWS = 500
MOST_CHARS = 100_000
"""What one answer holds at most: more would fill the window of any agent."""


class ServedRepository(Value):
    """Where the memories are that a server serves, and the name of the client that asks.

    `is_structured` asks for the value of an answer beside its text. Some hosts give their model the
    value in place of the text, which is half as long.
    """

    directory: str
    env: Mapping[str, str]
    is_global: bool = False
    agent: str = ""
    is_structured: bool = False
    roots: tuple[str, ...] = ()
    """Directories that the client says it works in."""

    def open(self, *, is_global: bool = False, directory: str = "") -> Context:
        """Open the repository as it is now, in another of its worktrees where one is named.

        Raises:
            MemtoolError: there is none, or the directory is in another repository.
        """
        if is_global or self.is_global:
            context = Context.at_global(self.env)
        elif directory:
            context = self._elsewhere(os.path.join(self.directory, directory))
        else:
            context = Context.at(self.directory, self.env)
        context.caller.agent = self.agent
        context.caller.is_resident = True
        return context

    def _elsewhere(self, directory: str) -> Context:
        context = Context.at(directory, self.env)
        place = f"{os.path.realpath(directory)}/"
        if any(place.startswith(f"{os.path.realpath(root)}/") for root in self.roots):
            return context
        own = Context.at(self.directory, self.env).repository.common_dir
        if os.path.realpath(context.repository.common_dir) != os.path.realpath(own):
            raise MemtoolError(
                f"{directory} is in another repository",
                hint="directory names a worktree of this one, or lies in a root of the client",
                code="outside",
            )
        return context


class Answer(Value):
    """What a tool answers: the verb's text, its notes, and its value as JSON.

    A refusal has no value but an error for programs.
    """

    text: str
    notes: tuple[str, ...] = ()
    structured: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


def call(procedure: Procedure, given: Mapping[str, Any], place: ServedRepository) -> Answer:
    """Run the verb of a tool on the repository of a place; a refusal is an answer, too."""
    return boundary.answer_request(
        lambda: _call(procedure, given, place),
        lambda error: refusal(error, procedure),
        log_as=("mcp", procedure.name),
    )


def refusal(error: MemtoolError, procedure: Procedure) -> Answer:
    """Return an error as an answer: what is wrong, and what to do next."""
    body = error_object(error, procedure)
    text = f"{body['message']}\nhint: {body['hint']}" if error.hint else body["message"]
    return Answer(str(text), error=body)


def error_object(error: MemtoolError, procedure: Procedure | None = None) -> dict[str, Any]:
    """Return an error as programs read it, with arguments named as they give them."""
    message, hint = error.message, error.hint
    if procedure is not None:
        message, hint = worded(message, procedure), worded(hint, procedure)
    return {
        "code": error.code,
        "message": visible(message),
        "hint": visible(hint),
        "recoverable": error.recoverable,
    }


def _call(procedure: Procedure, given: Mapping[str, Any], place: ServedRepository) -> Answer:
    def shape(value: Any) -> str:
        text = procedure.face.render(value)
        return visible(text if isinstance(text, str) else "".join(text))

    value, text, noted = invoke(procedure, bind(procedure.signature, given), place, shape)
    found, cut = structured(value, MOST_ROWS) if place.is_structured else (None, [])
    if procedure.name == BLOCK and found is not None:
        for item in found["items"]:  # the block has their text already; nobody pays for it twice
            del item["text"]
    if len(text) > MOST_CHARS and procedure.name != BLOCK:
        text = text[: text.rfind("\n", 0, MOST_CHARS) + 1 or MOST_CHARS]
        cut.append(f"the text ends here, after {len(text):,} characters; ask for less")
    return Answer(text, (*noted, *map(visible, cut)), found)


def invoke(
    procedure: Procedure,
    values: Mapping[str, Any],
    place: ServedRepository,
    shape: Callable[[Any], Shaped],
) -> tuple[Any, Shaped, tuple[str, ...]]:
    """Run a verb; return its value, what `shape` makes of it, and the notes for the user.

    `values` are bound. The answer counts as shown, as that of the command line does. A value may
    read derived files when it is shaped; if one turns out to be damaged, the verb runs again.

    Raises:
        MemtoolError: the verb refuses, or there is no repository.
    """
    began = time.perf_counter()
    is_global, directory = values.get(GLOBAL, False), values.get(DIRECTORY, "")
    context = place.open(is_global=is_global, directory=directory)
    top = context.repository.top or context.repository.git_dir
    paths = [path for name in procedure.choice.inside for path in values.get(name, ())]
    refuse_outside(top, context.caller.cwd, paths)
    places, names = spread(procedure.face, values)
    is_dry = bool(names.get("dry_run"))
    with _as_file(procedure, places):
        value, shaped = run_verb(context, procedure.face, places, names, shape)
    if DIRECTORY in procedure.parameters and procedure.effect != READ:
        context.notes.append(_where(context, is_dry=is_dry))
    if not is_dry:
        verb = procedure.choice.verb.partition(" ")[0]
        _record.note(context, verb, value, (time.perf_counter() - began) * 1000)
    return value, shaped, tuple(visible(worded(note, procedure)) for note in context.notes)


def _where(context: Context, *, is_dry: bool) -> str:
    """Return the worktree that a verb wrote in, and the branch that is checked out there."""
    branch = checked_out(context.repository).partition("refs/heads/")[2]
    on = f"on the branch {branch}" if branch else "on no branch"
    would = "would be written" if is_dry else "written"
    return f"{would} in {context.repository.top or context.repository.git_dir}, {on}"


@contextmanager
def _as_file(procedure: Procedure, places: list[Any]) -> Iterator[None]:
    """Let a text that was given in place of a file be one, which only this user may read."""
    if not procedure.choice.contents:
        yield
        return
    import tempfile  # a text that is a file is rare

    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(places[0])
        file.flush()
        places[0] = file.name
        yield


def structured(value: object, most: int) -> tuple[Any, list[str]]:
    """Return the value in its JSON shape, nothing invisible left in it, and what was cut off.

    It is an object, for a few verbs a list of rows. `most` are the rows that a list in it keeps.
    """
    whole, cut = plain(value), []
    named = whole.items() if isinstance(whole, dict) else [("rows", whole)]
    kept = {}
    for name, rows in named:
        kept[name] = rows
        if isinstance(rows, list) and len(rows) > most:
            cut.append(f"{name}: the first {most:,} of {len(rows):,}")
            kept[name] = rows[:most]
    return _visible(kept if isinstance(whole, dict) else kept["rows"]), cut


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return value
