"""Calling: one tool call to one answer, whatever happens on the way.

Every call opens the repository anew, so that it sees what other processes have done to it.
"""

from __future__ import annotations

import time

from memtool.cli.output import visible
from memtool.cli.running import bug, undamaged
from memtool.commands import globally, noting
from memtool.errors import MemtoolError
from memtool.mcp import arguments
from memtool.mcp.tools import GLOBAL, Tool
from memtool.value import Value, plain
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


BLOCK = "inject"
"""The verb that keeps to a budget of its own, and whose text must end as it ends."""
MOST_ROWS = 500
MOST_CHARS = 100_000
"""What one answer holds at most: more would fill the window of any agent."""


class Place(Value):
    """Where the memories are that a server serves, and the name of the client that asks."""

    directory: str
    env: Mapping[str, str]
    is_global: bool = False
    agent: str = ""

    def open(self, *, is_global: bool = False) -> Workspace:
        """Open the repository as it is now. Raises MemtoolError where there is none."""
        if is_global or self.is_global:
            workspace = Workspace.at_global(self.env)
        else:
            workspace = Workspace.at(self.directory, self.env)
        workspace.agent = self.agent
        return workspace


class Answer(Value):
    """What a tool answers: the verb's text, what it tells beside it, and its value as JSON.

    A refusal has no value, but the error as programs read it: some clients hold whatever stands in
    the place of the value to the shape that the tool promises.
    """

    text: str
    notes: tuple[str, ...] = ()
    structured: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


def call(tool: Tool, given: Mapping[str, Any], place: Place) -> Answer:
    """Run the verb of a tool on the repository of a place; a refusal is an answer, too."""
    try:
        return _call(tool, given, place)
    except MemtoolError as error:
        return refusal(error)
    except Exception as error:  # noqa: BLE001  # the boundary: a bad call must not end the server
        return refusal(bug(error))


def refusal(error: MemtoolError) -> Answer:
    """Return an error as an answer: what is wrong, and what to do next."""
    told = {
        "code": error.code,
        "message": visible(error.message),
        "hint": visible(error.hint),
        "recoverable": error.recoverable,
    }
    text = f"{told['message']}\nhint: {told['hint']}" if error.hint else told["message"]
    return Answer(str(text), error=told)


def _call(tool: Tool, given: Mapping[str, Any], place: Place) -> Answer:
    began = time.perf_counter()
    places, names = arguments.read(tool, given)
    workspace = place.open(is_global=bool(names.pop(GLOBAL, False)))
    top = workspace.repository.top or workspace.repository.git_dir
    arguments.refuse_outside(top, workspace.cwd, arguments.paths(tool, given))
    run = tool.face.run
    options = globally.options(workspace, run, names)
    try:
        value, text = undamaged(workspace, lambda: _asked(tool, run(workspace, *places, **options)))
    except MemtoolError as error:
        globally.pointed(workspace, error, tool.name, places)
        raise
    found, cut = structured(tool, value)
    if len(text) > MOST_CHARS and tool.name != BLOCK:
        text = text[: text.rfind("\n", 0, MOST_CHARS) + 1 or MOST_CHARS]
        cut.append(f"the text ends here, after {len(text):,} characters; ask for less")
    notes = tuple(visible(note) for note in (*workspace.notes, *cut))
    answer = Answer(text, notes, found)
    if not workspace.is_dry:
        noting.note(workspace, tool.name, value, (time.perf_counter() - began) * 1000)
    return answer


def _asked(tool: Tool, value: Any) -> tuple[Any, str]:
    return value, visible(tool.face.render(value))


def structured(tool: Tool, value: object) -> tuple[dict[str, Any], list[str]]:
    """Return the value in its JSON shape, nothing invisible left in it, and what was cut off.

    An item of a block comes without its text: that stands in the block already, and an agent
    would pay for it twice.
    """
    whole: dict[str, Any] = plain(value)
    cut = []
    for name, rows in whole.items():
        if isinstance(rows, list) and len(rows) > MOST_ROWS:
            cut.append(f"{name}: the first {MOST_ROWS} of {len(rows):,}")
            whole[name] = rows[:MOST_ROWS]
    found: dict[str, Any] = _visible(whole)
    if tool.name == BLOCK:
        for item in found["items"]:
            del item["text"]
    return found, cut


def _visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_visible(item) for item in value]
    return value
