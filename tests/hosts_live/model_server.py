"""A made-up model on loopback: it speaks four APIs, plays a script, records what it is sent.

A request that offers tools belongs to the conversation, and takes the next step of the script;
after the last step the answer is `DONE`. What clients ask beside it (a title, a count of tokens)
takes no step. The wire formats are those of the Anthropic Messages, OpenAI Chat Completions, OpenAI
Responses and Gemini APIs, as far as the clients read them.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, TypeAlias

DONE = "Done."
USAGE = 100
"""Tokens that each answer claims to have cost, in and out."""


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool of the client."""

    tool: str
    arguments: Mapping[str, Any]


Step: TypeAlias = "str | Call"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client: `is_turn` if it offers tools, as a turn of the conversation does."""

    path: str
    body: dict[str, Any]
    is_turn: bool

    @property
    def text(self) -> str:
        """All strings of the request but the schemas of tools, in order, a line each."""
        body = {key: value for key, value in self.body.items() if key not in {"tools", "text"}}
        return "\n".join(strings(body))

    @property
    def tools(self) -> set[str]:
        """The names of the tools that are offered."""
        rows = self.body.get("tools") or []
        inner = [tool for row in rows for tool in row.get("functionDeclarations", [row])]
        return {str(tool.get("function", tool).get("name")) for tool in inner}

    @property
    def tools_bytes(self) -> int:
        """The size of the schemas of the tools, as JSON."""
        return len(json.dumps(self.body.get("tools") or []))


def strings(value: object) -> Iterator[str]:
    """Yield every string in a value that came from JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in {"encrypted_content", "thoughtSignature"}:
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@dataclass
class ModelServer:
    """The server; `script` may be set again before each run of a client.

    `aside` is the answer to what is no turn of the conversation.
    """

    script: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    aside: str = DONE

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def turns(self) -> list[Request]:
        """The requests of the conversation, the oldest first."""
        return [request for request in self.requests if request.is_turn]

    def play(self, *steps: Step) -> None:
        """Set what the model answers next, and forget what was recorded."""
        self.script, self.requests = list(steps), []

    def answer(self, request: Request) -> Step:
        """Record a request and return the answer to it."""
        with self._lock:
            self.requests.append(request)
            if not request.is_turn:
                return self.aside
            return self.script.pop(0) if self.script else DONE


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"data": [], "models": []}', "application/json")

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        try:
            body = json.loads(self.rfile.read(size) or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            count = {"input_tokens": USAGE, "totalTokens": USAGE}
            self._send(json.dumps(count).encode(), "application/json")
            return
        api = next((api for end, api in _APIS.items() if path.endswith(end)), None)
        if api is None:  # telemetry and the like
            self._send(b"{}", "application/json")
            return
        step = self.model.answer(Request(path, body, bool(body.get("tools"))))
        is_streamed = body.get("stream") is True or path.endswith(":streamGenerateContent")
        if is_streamed:
            end = b"data: [DONE]\n\n" if api is _completions else b""
            self._send(b"".join(map(_event, api(step))) + end, "text/event-stream")
        else:
            self._send(json.dumps(_WHOLE[api](step)).encode(), "application/json")

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _event(data: Mapping[str, Any]) -> bytes:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n".encode()


def _id(step: Step) -> str:
    return f"toolu_{abs(hash(repr(step))) % 10**12:012}"


def _messages(step: Step) -> Sequence[dict[str, Any]]:
    """Return the events of the Anthropic Messages API."""
    whole = _message(step)
    start = {**whole, "content": [], "stop_reason": None}
    block = whole["content"][0]
    if block["type"] == "text":
        opened = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    else:
        opened = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    return (
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": opened},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": USAGE},
        },
        {"type": "message_stop"},
    )


def _message(step: Step) -> dict[str, Any]:
    is_call = isinstance(step, Call)
    block = (
        {"type": "tool_use", "id": _id(step), "name": step.tool, "input": dict(step.arguments)}
        if isinstance(step, Call)
        else {"type": "text", "text": step}
    )
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "made-up",
        "content": [block],
        "stop_reason": "tool_use" if is_call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": USAGE, "output_tokens": USAGE},
    }


def _responses(step: Step) -> Sequence[dict[str, Any]]:
    """Return the events of the OpenAI Responses API."""
    whole = _response(step)
    item = whole["output"][0]
    return (
        {"type": "response.created", "response": {**whole, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    )


def _response(step: Step) -> dict[str, Any]:
    item: dict[str, Any]
    if isinstance(step, str):
        content = [{"type": "output_text", "text": step, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    elif isinstance(step.arguments.get("freeform"), str):
        text = step.arguments["freeform"]
        item = {"type": "custom_tool_call", "name": step.tool, "input": text}
    else:
        arguments = json.dumps(dict(step.arguments))
        item = {"type": "function_call", "name": step.tool, "arguments": arguments}
        space, dot, name = step.tool.rpartition(".")
        if dot:
            item |= {"namespace": space, "name": name}
    if not isinstance(step, str):
        item |= {"id": f"fc_{_id(step)}", "call_id": _id(step)}
    usage = {
        "input_tokens": USAGE,
        "output_tokens": USAGE,
        "total_tokens": 2 * USAGE,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    item["status"] = "completed"
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "made-up",
        "output": [item],
        "usage": usage,
    }


def _contents(step: Step) -> Sequence[dict[str, Any]]:
    """Return the events of the Gemini API."""
    part = (
        {"functionCall": {"name": step.tool, "args": dict(step.arguments)}}
        if isinstance(step, Call)
        else {"text": step}
    )
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": USAGE, "candidatesTokenCount": USAGE, "totalTokenCount": 2 * USAGE}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return ({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "made-up"},)


_NUMBERS = itertools.count(1)


def _completions(step: Step) -> Sequence[dict[str, Any]]:
    """Return the events of the OpenAI Chat Completions API."""
    whole = _completion(step)
    choice = whole["choices"][0]
    delta = choice["message"]
    if "tool_calls" in delta:
        delta = {**delta, "tool_calls": [{"index": 0, **call} for call in delta["tool_calls"]]}
    kind = {**whole, "object": "chat.completion.chunk"}
    open_ = {key: value for key, value in kind.items() if key != "usage"}
    return (
        {**open_, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**open_, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**kind, "choices": []},
    )


def _completion(step: Step) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step}
    if isinstance(step, Call):
        function = {"name": step.tool, "arguments": json.dumps(dict(step.arguments))}
        # Qwen Code runs no second call with the same id.
        call = {"id": f"call_{next(_NUMBERS)}", "type": "function", "function": function}
        message |= {"content": None, "tool_calls": [call]}
    reason = "tool_calls" if isinstance(step, Call) else "stop"
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 1,
        "model": "made-up",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            "prompt_tokens": USAGE,
            "completion_tokens": USAGE,
            "total_tokens": 2 * USAGE,
        },
    }


_APIS = {
    "/chat/completions": _completions,
    "/messages": _messages,
    "/responses": _responses,
    ":streamGenerateContent": _contents,
    ":generateContent": _contents,
}
_WHOLE = {
    _completions: _completion,
    _messages: _message,
    _responses: _response,
    _contents: lambda step: _contents(step)[0],
}
