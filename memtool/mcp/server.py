"""The server: the answer to each request of the Model Context Protocol.

`transport` reads requests and writes answers, `calls.run` runs the verb of a tool.

A host sends the descriptions of all tools with every request to the model. So by default only a few
tools are offered, and each only with the arguments that agents use.
"""

from __future__ import annotations

import os

from memtool.agents import BLOCK_FORMATS
from memtool.calls import run
from memtool.calls.boundary import answer_request
from memtool.calls.json_schema import build_result_schema
from memtool.calls.procedures import AGENT, EFFECTS, READ, Procedure, build_procedures
from memtool.calls.run import Answer, ServedRepository
from memtool.calls.wording import with_tools
from memtool.errors import MemtoolError
from memtool.mcp import consent, resources, transport
from memtool.mcp.transport import Client, RequestError, TransportError
from memtool.sessions.model import as_dict
from memtool.value import Value
from memtool.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from memtool.store.tree import Record


class Instruction(Value):
    """A sentence for the model; it is left out unless all tools that it `needs` are offered."""

    text: str
    needs: tuple[str, ...] = ()


INSTRUCTIONS = (
    Instruction(
        "Team memory of this repository: decisions, conventions, warnings and past failures, each "
        "a reviewed file in git."
    ),
    Instruction(
        "Before you choose or undo something, call `search`; before you change files, `inject` "
        "with their paths.",
        ("search", "inject"),
    ),
    Instruction(
        "Follow its decisions and cite them as [dec-2g54]; tell the user when you deviate, and ask "
        "when two conflict."
    ),
    Instruction(
        'When the user says "remember", "keep in mind", "from now on", "always", "never", "I told '
        'you", "stop doing" or "make this a rule", call `remember` with their own sentence; if '
        "unsure, ask them.",
        ("remember",),
    ),
    Instruction(
        "Keep a choice and its reason with `new`; correct with `supersede`. No secrets.",
        ("new", "supersede"),
    ),
)
PRIMER = "primer"
NAMELESS = "agent"
"""The name of a client that gives none: it is not a person in any case."""
ERROR = "memtool/error"
"""The key of the error object in a result, for programs."""
NOWHERE = ("no-repository", "no-directory")
"""Error codes for a directory without a repository."""
COMMON = ("search", "show", "list", "inject", "remember", "new", "supersede")
"""The tools that are offered by default."""


def list_tools(*, every: bool = False, read_only: bool = False) -> dict[str, Procedure]:
    """Return the tools by name: the common ones or all, optionally without those that write."""
    offered = build_procedures(AGENT, () if every else COMMON)
    return {
        name: procedure
        for name, procedure in offered.items()
        if procedure.effect == READ or not read_only
    }


def format_instructions(tools: Collection[str]) -> str:
    """Return the instructions for the model, without the sentences about tools it lacks."""
    return " ".join(row.text for row in INSTRUCTIONS if set(row.needs) <= set(tools))


class ServerMethods:
    """The methods of one server process: its tools, and the repository that they work on."""

    def __init__(self, place: ServedRepository, chosen: dict[str, Procedure]) -> None:
        self.is_placed = place.directory != "."
        """Whether the user named the directory, with -C."""
        self.is_off = bool(place.env.get("MEMTOOL_OFF"))
        self.tools = {} if self.is_off else chosen
        self.place = place.replace(tools=self.tools)

    def settle(self, client: Client) -> None:
        """Move to the first root of the client that is in a repository.

        A directory named with -C, or inside a root, is kept.
        """
        roots = () if self.place.is_global or self.is_placed else tuple(client.list_roots())
        self.place = self.place.replace(roots=roots)
        own = f"{os.path.realpath(self.place.directory)}/"
        is_inside = any(own.startswith(f"{os.path.realpath(root)}/") for root in roots)
        if is_inside and _is_somewhere(self.place):
            return
        for root in roots:
            place = self.place.replace(directory=root)
            if _is_somewhere(place):
                self.place = place
                return

    def list_tools(self, _client: Client, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the tools, which do not change while the process runs."""
        return {"tools": [_describe_tool(tool, self.place) for tool in self.tools.values()]}

    def call_tool(self, client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool. A refusal is a result with `isError`, so that the model can read it."""
        tool = self.tools.get(_require_text(params, "name"))
        if tool is None:
            raise RequestError(f"unknown tool {_require_text(params, 'name')[:60]!r}")
        arguments = _require_object(params, "arguments")
        self.settle(client)
        place = self.place.replace(agent=client.name or NAMELESS)
        return _build_result(consent.call(tool, arguments, place, client, params))

    def list_resources(self, client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with a page of active memories; an empty one without a repository."""
        self.settle(client)
        records, following = self._list_page(_require_text(params, "cursor"))
        cursor_field = {"nextCursor": following} if following else {}
        return {
            "resources": [resources.describe_memory(record) for record in records],
            **cursor_field,
        }

    def _refuse(self, error: MemtoolError) -> RequestError:
        return RequestError(with_tools(error.as_line, self.tools), {"code": error.code})

    def _list_page(self, cursor: str) -> tuple[list[Record], str]:
        nothing: tuple[list[Record], str] = [], ""
        if self.is_off:
            return nothing
        try:
            context = self.place.open()
            return (
                resources.list_page(context, cursor) if context.project.has_directory else nothing
            )
        except MemtoolError as error:
            if error.code in NOWHERE:
                return nothing
            raise self._refuse(error) from None

    def list_templates(self, _client: Client, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the URI template of memories."""
        template = {
            "uriTemplate": resources.TEMPLATE,
            "name": "memory",
            "title": "A memory by its id",
            "description": "title, citation, keys, what supersedes it, and its text",
            "mimeType": resources.MIME_TYPE,
        }
        return {"resourceTemplates": [] if self.is_off else [template]}

    def read_resource(self, client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with one memory as text."""
        self.settle(client)
        uri = _require_text(params, "uri")
        try:
            text = resources.read_resource(self.place.open(), uri, self.tools)
        except MemtoolError as error:
            raise self._refuse(error) from None
        return {"contents": [{"uri": uri, "mimeType": resources.MIME_TYPE, "text": text}]}

    def list_prompts(self, _client: Client, _params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the primer, which users can request in hosts without hooks."""
        primer = {
            "name": PRIMER,
            "title": "What to know before the work begins",
            "description": "what always applies, the work in progress, and what is new",
            "arguments": [{"name": "for", "description": f"the agent: {', '.join(BLOCK_FORMATS)}"}],
        }
        return {"prompts": [] if self.is_off else [primer]}

    def get_prompt(self, client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the primer as one message."""
        name, arguments = _require_text(params, "name"), _require_object(params, "arguments")
        if name != PRIMER or self.is_off:
            raise RequestError(f"unknown prompt {name[:60]!r}")
        self.settle(client)
        answer = run.call(self.tools["inject"], {"primer": True, **arguments}, self.place)
        if answer.error is not None:
            raise RequestError(answer.text, {"code": answer.error["code"]})
        content = {"type": "text", "text": answer.text or "There is no memory to begin with."}
        return {"messages": [{"role": "user", "content": content}]}

    def complete(self, client: Client, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the ids or agents that begin with the argument."""
        values: tuple[str, ...] = ()
        named, argument = as_dict(params.get("ref")), as_dict(params.get("argument"))
        begun = _require_text(argument, "value")
        if named.get("type") == "ref/prompt" and argument.get("name") == "for":
            values = tuple(
                block_format for block_format in BLOCK_FORMATS if block_format.startswith(begun)
            )
        elif named.get("uri") == resources.TEMPLATE:
            self.settle(client)
            values = self._complete_ids(begun)
        return {"completion": {"values": list(values), "hasMore": len(values) == resources.PAGE}}

    def _complete_ids(self, prefix: str) -> tuple[str, ...]:
        try:
            return () if self.is_off else resources.complete(self.place.open(), prefix)
        except MemtoolError:  # nothing to offer
            return ()


def serve(
    directory: str,
    env: Mapping[str, str],
    *,
    is_global: bool,
    all: bool,
    read_only: bool,
    structured: bool,
) -> int:
    """Serve until the client disconnects; return the exit code."""
    place = ServedRepository(directory, env, is_global, is_structured=structured)
    served = ServerMethods(place, list_tools(every=all, read_only=read_only))
    handlers = {
        "tools/list": served.list_tools,
        "tools/call": served.call_tool,
        "resources/list": served.list_resources,
        "resources/templates/list": served.list_templates,
        "resources/read": served.read_resource,
        "prompts/list": served.list_prompts,
        "prompts/get": served.get_prompt,
        "completion/complete": served.complete,
    }
    about = {
        "serverInfo": {
            "name": "memtool",
            "title": "memtool: the memory of this repository",
            "version": __version__,
        },
        "instructions": format_instructions(served.tools),
    }
    able: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    transport.run(about, able, {name: _guard(handler) for name, handler in handlers.items()})
    return 0


def _guard(handler: transport.Handler) -> transport.Handler:
    """Wrap a handler so that its bugs become errors: one bad request must not end the server."""

    def refuse(error: MemtoolError) -> dict[str, Any]:
        raise RequestError(error.as_line, {"code": error.code}) from None

    def answer(client: Client, params: dict[str, Any]) -> dict[str, Any]:
        return answer_request(
            lambda: handler(client, params), refuse, protocol_error=TransportError
        )

    return answer


def _describe_tool(tool: Procedure, place: ServedRepository) -> dict[str, Any]:
    run_verb = tool.face.run
    result = {
        "outputSchema": build_result_schema(run_verb.__annotations__["return"], run_verb.__module__)
    }
    return {
        "name": tool.name,
        "title": tool.title,
        "description": with_tools(tool.description, place.tools),
        "inputSchema": tool.input_schema,
        **(result if place.is_structured else {}),
        "annotations": {"openWorldHint": False, **EFFECTS[tool.effect]},
    }


def _build_result(answer: Answer) -> dict[str, Any]:
    texts = [answer.text] if answer.text else []  # some models refuse an empty text
    texts += [f"note: {note}" for note in answer.notes]
    content: dict[str, Any] = {"content": [{"type": "text", "text": text} for text in texts]}
    if answer.error is not None:
        return {**content, "isError": True, "_meta": {ERROR: answer.error}}
    return (
        content
        if answer.structured is None
        else {**content, "structuredContent": answer.structured}
    )


def _require_text(params: Mapping[str, Any], name: str) -> str:
    """Return a text parameter, empty if it is absent.

    Raises:
        RequestError: it is not a text.
    """
    value = params.get(name)
    if value is not None and not isinstance(value, str):
        raise RequestError(f"{name} is not a text")
    return value or ""


def _require_object(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object parameter, empty if it is absent.

    Raises:
        RequestError: it is not an object.
    """
    value = params.get(name)
    if value is not None and not isinstance(value, dict):
        raise RequestError(f"{name} is not an object")
    return value or {}


def _is_somewhere(place: ServedRepository) -> bool:
    try:
        place.open()
    except MemtoolError as error:
        return error.code not in NOWHERE  # the tool will report any other error
    return True
