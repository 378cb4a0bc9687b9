"""Calling procedures: convert JSON arguments to those of the verb, and its value to an answer.

Arguments that do not fit the input schema are refused before the verb runs. Every call opens the
repository again, so that it sees the changes of other processes.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager

from memtool.calls import boundary
from memtool.calls.bind import bind, describe_old_names, split_arguments
from memtool.calls.lenient import read_arguments
from memtool.calls.output import make_visible
from memtool.calls.procedures import DIRECTORY, GLOBAL, READ, Procedure
from memtool.calls.verb import run_verb
from memtool.calls.wording import reword, with_tools, with_tools_quoted
from memtool.commands import _record
from memtool.errors import MemtoolError
from memtool.store.context import Context
from memtool.store.repository import read_head_ref
from memtool.value import Value, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from memtool.commands._layout import Layout

    Shaped = TypeVar("Shaped")


def refuse_outside(top: str, cwd: str, paths: list[str]) -> None:
    """Raise MemtoolError if a path leads out of the repository, directly or through a link."""
    root = os.path.realpath(top)
    for path in paths:
        place = os.path.realpath(os.path.join(cwd, path))
        if path.startswith("~") or (place != root and not place.startswith(root + os.sep)):
            raise MemtoolError(
                f"{path} is not in the repository",
                hint="use the path from the top of the repository",
                code="outside",
            )


BLOCK = "inject"
"""The verb with a budget of its own, whose text must not be truncated."""
MAX_ROWS = 500
MAX_CHARS = 100_000
"""Limits of one answer: more would fill the context window of any agent."""


class ServedRepository(Value):
    """The repository of a server, and the name of the client.

    `is_structured` adds the value of an answer to its text.
    """

    # Off by default: some hosts give their model the value instead of the text, which is half as
    # long.

    directory: str
    env: Mapping[str, str]
    is_global: bool = False
    agent: str = ""
    is_structured: bool = False
    roots: tuple[str, ...] = ()
    """The directories in which the client works, as reported by it."""
    tools: Mapping[str, Procedure] = {}
    """The tools that the client is offered, by name: hints speak of no others."""

    def open(self, *, is_global: bool = False, directory: str = "") -> Context:
        """Open the repository in its current state, in another worktree if `directory` names one.

        Raises:
            MemtoolError: it does not exist, or the directory is in another repository.
        """
        if is_global or self.is_global:
            context = Context.at_global(self.env)
        elif directory:
            context = self._open_elsewhere(os.path.join(self.directory, directory))
        else:
            context = Context.at(self.directory, self.env)
        context.caller.agent = self.agent
        context.caller.is_resident = True
        return context

    def _open_elsewhere(self, directory: str) -> Context:
        context = Context.at(directory, self.env)
        place = f"{os.path.realpath(directory)}/"
        if any(place.startswith(f"{os.path.realpath(root)}/") for root in self.roots):
            return context
        own = Context.at(self.directory, self.env).repository.common_dir
        if os.path.realpath(context.repository.common_dir) != os.path.realpath(own):
            raise MemtoolError(
                f"{directory} is in another repository",
                hint="directory must be a worktree of this repository, or in a root of the client",
                code="outside",
            )
        return context


class Answer(Value):
    """The answer of a tool: the verb's text, its notes, and its value as JSON.

    A refusal has `error`, for programs, instead of a value.
    """

    text: str
    notes: tuple[str, ...] = ()
    structured: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


def call(procedure: Procedure, arguments: Mapping[str, Any], place: ServedRepository) -> Answer:
    """Run the verb of a tool on a repository; an error is returned as an answer."""
    return boundary.answer_request(
        lambda: _call(procedure, arguments, place),
        lambda error: build_refusal(error, procedure, place),
        log_as=("mcp", procedure.name),
    )


def build_refusal(error: MemtoolError, procedure: Procedure, place: ServedRepository) -> Answer:
    """Build an answer from an error: its message and hint."""
    body = build_error_object(error, lambda text: _word(text, procedure, place))
    hints = [f"hint: {line}" for line in filter(None, body["hint"].split("\n"))]
    return Answer(error.shorten("\n".join([body["message"], *hints])), error=body)


def build_error_object(
    error: MemtoolError, word: Callable[[str], str] = lambda text: text
) -> dict[str, Any]:
    """Convert an error for programs; `word` gives its texts the words of the interface."""
    return {
        "code": error.code,
        "message": make_visible(word(error.message)),
        "hint": make_visible(word(error.hint)),
        "recoverable": error.recoverable,
    }


def _word(text: str, procedure: Procedure, place: ServedRepository) -> str:
    """Name the tools and arguments in a text, instead of commands and options."""
    return reword(with_tools(text, place.tools), procedure)


def _call(procedure: Procedure, arguments: Mapping[str, Any], place: ServedRepository) -> Answer:
    layouts: list[Layout] = []
    values = read_arguments(procedure.parameters, arguments)

    def shape(value: Any, layout: Layout) -> str:
        layouts[:] = [layout]
        layout.hint = lambda text: reword(with_tools_quoted(text, place.tools), procedure)
        text = procedure.face.render(value, layout)
        whole = text if isinstance(text, str) else "".join(text)
        if procedure.name == BLOCK:
            whole = _word_block(whole, place.tools)
        return make_visible("\n".join(filter(None, [*layout.reports, whole])))

    value, text, noted = run_procedure(procedure, bind(procedure.signature, values), place, shape)
    content, cut = to_structured(value, MAX_ROWS) if place.is_structured else (None, [])
    if procedure.name == BLOCK and content is not None:
        content["text"] = text
        for item in content["items"]:  # the block has their text already
            del item["text"]
    if len(text) > MAX_CHARS and procedure.name != BLOCK:
        text = text[: text.rfind("\n", 0, MAX_CHARS) + 1 or MAX_CHARS]
        cut.append(f"the text ends here, after {len(text):,} characters; ask for less")
    old_names = describe_old_names(procedure.signature, arguments)
    notes = [_word(layouts[0].shorten(note), procedure, place) for note in noted]
    return Answer(text, (*old_names, *map(make_visible, [*notes, *cut])), content)


def _word_block(text: str, tools: Mapping[str, Procedure]) -> str:
    """Name the tools in the sentences of a block. Memories are in lines with a bar."""
    lines = text.split("\n")
    return "\n".join(line if line.startswith("| ") else with_tools(line, tools) for line in lines)


def run_procedure(
    procedure: Procedure,
    values: Mapping[str, Any],
    place: ServedRepository,
    shape: Callable[[Any, Layout], Shaped],
) -> tuple[Any, Shaped, tuple[str, ...]]:
    """Run a verb; return its value, the result of `shape` for it, and its notes as they are.

    `values` are bound arguments. The answer is recorded in the usage log, as on the command line.

    Raises:
        MemtoolError: the verb refuses, or the repository does not exist.
    """
    began = time.perf_counter()
    is_global, directory = values.get(GLOBAL, False), values.get(DIRECTORY, "")
    context = place.open(is_global=is_global, directory=directory)
    top = context.repository.top or context.repository.git_dir
    paths = [path for name in procedure.choice.inside for path in values.get(name, ())]
    refuse_outside(top, context.caller.cwd, paths)
    places, names = split_arguments(procedure.face, values)
    is_dry = bool(names.get("dry_run"))
    with _as_file(procedure, places):
        value, shaped = run_verb(context, procedure.face, places, names, shape)
    if DIRECTORY in procedure.parameters and procedure.effect != READ:
        context.notes.append(_where_written(context, is_dry=is_dry))
    if not is_dry:
        verb = procedure.choice.verb.partition(" ")[0]
        _record.record_answer(context, verb, value, (time.perf_counter() - began) * 1000)
    return value, shaped, tuple(context.notes)


def _where_written(context: Context, *, is_dry: bool) -> str:
    """Return a note on the worktree that a verb wrote to, and its branch."""
    branch = read_head_ref(context.repository).partition("refs/heads/")[2]
    on = f"on the branch {branch}" if branch else "on no branch"
    would = "would be written" if is_dry else "written"
    return f"{would} in {context.repository.top or context.repository.git_dir}, {on}"


@contextmanager
def _as_file(procedure: Procedure, places: list[Any]) -> Iterator[None]:
    """Replace the text of a `contents` parameter with the path of a private temporary file."""
    if not procedure.choice.contents:
        yield
        return
    import tempfile  # needed for few procedures only

    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".txt") as file:
        file.write(places[0])
        file.flush()
        places[0] = file.name
        yield


def to_structured(value: object, max_rows: int) -> tuple[Any, list[str]]:
    """Return a value in its JSON shape, and a note for each list that was truncated.

    The shape is an object, for a few verbs a list of rows. Lists are truncated to `max_rows`, and
    invisible characters are escaped.
    """
    whole, cut = plain(value), []
    named = whole.items() if isinstance(whole, dict) else [("rows", whole)]
    shown = {}
    for name, rows in named:
        shown[name] = rows
        if isinstance(rows, list) and len(rows) > max_rows:
            cut.append(f"{name}: the first {max_rows:,} of {len(rows):,}")
            shown[name] = rows[:max_rows]
    return _make_visible(shown if isinstance(whole, dict) else shown["rows"]), cut


def _make_visible(value: Any) -> Any:
    if isinstance(value, str):
        return make_visible(value)
    if isinstance(value, dict):
        return {key: _make_visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_make_visible(item) for item in value]
    return value
