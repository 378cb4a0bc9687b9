"""What a client asks for: calls of tools, and memories as resources `memory://ID`.

Arguments that do not fit the input schema are refused with one sentence before the verb runs. Every
call opens the repository again, so that it sees what other processes have changed. Only living
heads are listed as resources; any memory can be read by its id.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left, bisect_right
from itertools import islice, takewhile

from memtool.cli.arguments import Parameter, fit, fit_one, shown
from memtool.cli.main import bug, undamaged
from memtool.cli.output import log, visible
from memtool.commands import _filters, _record
from memtool.commands.show import render, show
from memtool.errors import MemtoolError
from memtool.index import index
from memtool.mcp.tools import GLOBAL, MOST_ITEMS, SETTABLE, Tool, is_required
from memtool.memory.schema import is_id
from memtool.search.scope import scope_of
from memtool.store.context import Context
from memtool.value import Value, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from memtool.store.snapshot import Record


def read(tool: Tool, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what the verb takes by place and what it takes by name.

    Raises:
        MemtoolError: something is missing, unknown, of another type, too long, or not allowed.
    """
    for name in given:
        if name not in tool.parameters:
            raise _unknown(tool, name)
    places: list[Any] = []
    names: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        found = given.get(name)
        is_absent = found is None or (isinstance(found, str) and not found.strip())
        if is_required(tool.choice, parameter) and (is_absent or found == []):
            raise MemtoolError(f"{name} is missing", hint=f"{name}: {_described(tool, name)}")
        value = parameter.default if found is None else _value(tool, name, parameter, found)
        if not parameter.is_positional:
            names[parameter.name] = value
        elif parameter.is_many:
            places += value
        else:
            places.append(value)
    return places, names


def paths(tool: Tool, given: Mapping[str, Any]) -> list[str]:
    """Return the arguments of a call that name files of the repository."""
    wanted = [name for name in tool.choice.inside if name in tool.parameters]
    return [path for name in wanted for path in given.get(name) or ()]


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


def _value(tool: Tool, name: str, parameter: Parameter, found: Any) -> Any:
    hint = f"{name}: {_described(tool, name)}"
    if parameter.name == tool.choice.joined:
        return [_allowed(name, fit_one(parameter, found, name=name, hint=hint))]
    if not parameter.is_many:
        return _allowed(name, fit(parameter, found, name=name, hint=hint))
    if isinstance(found, list) and len(found) > MOST_ITEMS:
        raise MemtoolError(f"{name} takes {MOST_ITEMS:,} items at most, not {len(found):,}")
    items = fit(parameter, found, name=name, hint=hint)
    return tuple(_allowed(name, item) for item in items)


def _allowed(name: str, found: Any) -> Any:
    """Return a value if a tool may take it: some texts are for people alone."""
    if not isinstance(found, str):
        return found
    if found == "-":
        raise MemtoolError(f"{name} is -, and there is nothing to read", hint="give the text")
    if name == "set" and found.partition("=")[0] not in SETTABLE:
        raise MemtoolError(
            f"{name} takes no {shown(found.partition('=')[0])} here",
            hint=f"KEY=VALUE with one of {', '.join(SETTABLE)}",
        )
    return found


def _unknown(tool: Tool, name: str) -> MemtoolError:
    import difflib

    near = difflib.get_close_matches(name, list(tool.parameters), n=1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(tool.parameters)}"
    return MemtoolError(f"{tool.name} has no argument {shown(name)}", hint=hint)


def _described(tool: Tool, name: str) -> str:
    described: str = tool.input_schema["properties"][name]["description"]
    return described


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

    def open(self, *, is_global: bool = False) -> Context:
        """Open the repository as it is now. Raises MemtoolError where there is none."""
        if is_global or self.is_global:
            context = Context.at_global(self.env)
        else:
            context = Context.at(self.directory, self.env)
        context.agent = self.agent
        context.is_resident = True
        return context


class Answer(Value):
    """What a tool answers: the verb's text, its notes, and its value as JSON.

    A refusal has no value but an error for programs.
    """

    text: str
    notes: tuple[str, ...] = ()
    structured: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


def call(tool: Tool, given: Mapping[str, Any], place: ServedRepository) -> Answer:
    """Run the verb of a tool on the repository of a place; a refusal is an answer, too."""
    began, code = time.perf_counter(), ""
    try:
        return _call(tool, given, place)
    except MemtoolError as error:
        code = error.code
        return refusal(error)
    except Exception as error:  # noqa: BLE001  # the boundary: a bad call must not end the server
        wrong = bug(error)
        code = wrong.code
        return refusal(wrong)
    finally:
        log("mcp", tool.name, began, error=code)


def refusal(error: MemtoolError) -> Answer:
    """Return an error as an answer: what is wrong, and what to do next."""
    body = {
        "code": error.code,
        "message": visible(error.message),
        "hint": visible(error.hint),
        "recoverable": error.recoverable,
    }
    text = f"{body['message']}\nhint: {body['hint']}" if error.hint else body["message"]
    return Answer(str(text), error=body)


def _call(tool: Tool, given: Mapping[str, Any], place: ServedRepository) -> Answer:
    began = time.perf_counter()
    places, names = read(tool, given)
    context = place.open(is_global=bool(names.pop(GLOBAL, False)))
    top = context.repository.top or context.repository.git_dir
    refuse_outside(top, context.cwd, paths(tool, given))
    run = tool.face.run
    options = _filters.options(context, run, names)
    try:
        value, text = undamaged(context, lambda: _asked(tool, run(context, *places, **options)))
    except MemtoolError as error:
        _filters.pointed(context, error, tool.name, places)
        raise
    found, cut = structured(tool, value) if place.is_structured else (None, [])
    if len(text) > MOST_CHARS and tool.name != BLOCK:
        text = text[: text.rfind("\n", 0, MOST_CHARS) + 1 or MOST_CHARS]
        cut.append(f"the text ends here, after {len(text):,} characters; ask for less")
    notes = tuple(visible(note) for note in (*context.notes, *cut))
    answer = Answer(text, notes, found)
    if not context.is_dry:
        _record.note(context, tool.name, value, (time.perf_counter() - began) * 1000)
    return answer


def _asked(tool: Tool, value: Any) -> tuple[Any, str]:
    text = tool.face.render(value)
    return value, visible(text if isinstance(text, str) else "".join(text))


def structured(tool: Tool, value: object) -> tuple[dict[str, Any], list[str]]:
    """Return the value in its JSON shape, nothing invisible left in it, and what was cut off.

    An item of a block comes without its text: the block has it already, and an agent would pay
    for it twice.
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


SCHEME = "memory://"
TEMPLATE = f"{SCHEME}{{id}}"
PAGE = 100
"""Memories of one page, and completions of one answer: as many as the protocol allows."""


def resource_page(context: Context, cursor: str) -> tuple[list[Record], str]:
    """Return the living heads after the id in `cursor`, sorted, and the cursor of the next page.

    An empty cursor asks for the first page, and says that there is no next one.

    Raises:
        MemtoolError: the cursor is not one of ours, or there are no memories.
    """
    if cursor and not is_id(cursor):
        raise MemtoolError(f"{cursor[:60]!r} is no cursor", hint="list from the beginning")
    found = list(islice(_current(context, cursor, is_after=True), PAGE + 1))
    return found[:PAGE], found[PAGE - 1].id if len(found) > PAGE else ""


def read_resource(context: Context, uri: str) -> str:
    """Return a memory as text: its title, citation, keys, what is derived from it, and its body.

    Raises:
        MemtoolError: the address is none of ours, or no memory has that id.
    """
    id_ = uri.removeprefix(SCHEME).rstrip("/")
    if not uri.startswith(SCHEME) or not is_id(id_):
        raise MemtoolError(f"{uri[:200]!r} is not {TEMPLATE}", hint="list the resources")
    shown = show(context, id_)
    if shown.id != id_:  # `show` also takes the beginning of an id
        raise MemtoolError(f"no memory has the id {id_!r}", hint=SCHEME + shown.id)
    return visible(render(shown))


def complete(context: Context, prefix: str) -> tuple[str, ...]:
    """Return the ids of living heads that begin so, sorted, as many as one answer may hold."""
    found = (record.id for record in _current(context, prefix, is_after=False))
    return tuple(islice(takewhile(lambda id_: id_.startswith(prefix), found), PAGE))


def _current(context: Context, start: str, *, is_after: bool) -> Iterator[Record]:
    """Yield the living heads from an id on, or from the one after it."""
    catalog = index.open(context)
    facts = scope_of(context, catalog, context.now).facts()
    find = bisect_right if is_after else bisect_left
    last = ""
    for record in islice(
        catalog.records, find(catalog.records, start, key=lambda record: record.id), None
    ):
        if record.id != last and facts.is_current(record):
            yield record
        last = record.id
