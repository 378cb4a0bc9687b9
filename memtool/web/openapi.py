"""The OpenAPI document: each route with what it takes, what it answers and how it refuses.

All of it is read from the tables by which calls are checked and answered: the procedures, the names
of clients, and the fields of the values that verbs return.
"""

from __future__ import annotations

from memtool.calls.json_schema import parameter_schema, reference, value_schema
from memtool.calls.procedures import READ, Procedure, addressed
from memtool.calls.signature import parse_docstring
from memtool.version import __version__
from memtool.web import rest
from memtool.web.clients import NAMES, ClientName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

JSON = "application/json"
REFUSALS: dict[int, str] = {
    400: "the call does not fit its schema, or the body is no JSON object",
    401: "the token is missing, or not that of this server",
    403: "the request comes from another site, or it would write and the server only reads",
    404: "there is no such verb, id, revision, session or job",
    408: "the body did not come in time",
    413: "the body is longer than 1 MiB",
    415: "the body is of another type than JSON",
    421: "the server is not known by that name",
    422: "the call fits its schema, and what it asks for cannot be done",
    500: "a bug; the hint names the log file",
    503: "it takes too long, or too much is at work already",
}
"""The statuses of refusals, and when they are sent."""
OF_BODIES = (408, 413, 415)
"""What only a request with a body is answered with."""
_TEXT: Schema = {"type": "string"}


def document(address: str) -> Schema:
    """Return the document of all routes that programs call, as served under an address."""
    values: dict[str, Schema] = {}
    paths = {f"/api/{name}": _verb(one, values) for name, one in rest.PROCEDURES.items()}
    paths |= {f"/memory/{name}": _client(one) for name, one in NAMES.items()}
    error = _object(code=_TEXT, message=_TEXT, hint=_TEXT, recoverable={"type": "boolean"})
    context = _object(hint=_TEXT, recoverable={"type": "boolean"})
    job = _object(
        ("id", "verb", "status"),
        id=_TEXT,
        verb=_TEXT,
        status={"enum": [rest.RUNNING, rest.DONE, rest.FAILED]},
        value={},
        notes={"type": "array", "items": _TEXT},
        error=reference("schemas", "Error"),
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memtool",
            "version": __version__,
            "summary": "The memory of a repository",
        },
        "servers": [{"url": address}],
        "security": [{"token": []}],
        "paths": paths | _others(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": error,
                "Refusal": _object(error=reference("schemas", "Error")),
                "ClientRefusal": _object(
                    error={"const": True}, code=_TEXT, message=_TEXT, context=context
                ),
                "Job": job,
                **dict(sorted(values.items())),
            },
            "responses": {
                f"{schema}{status}": _response(told, reference("schemas", schema))
                for schema in ("Refusal", "ClientRefusal")
                for status, told in REFUSALS.items()
            },
        },
    }


def _verb(one: Procedure, values: dict[str, Schema]) -> Schema:
    """Return the operations of a verb; the schemas of its value are added to `values`."""
    run = one.face.run
    value = value_schema(run.__annotations__["return"], run.__module__, values)
    answer = _object(value=value, notes={"type": "array", "items": _TEXT})
    about: Schema = {
        "summary": one.title,
        "description": addressed(one.description),
        "tags": ["read" if one.effect == READ else "write"],
    }
    answers = {"200": _response("the value of the verb, and notes for the user", answer)}
    if one.name in rest.LONG:
        answers |= _JOB
    schema = one.input_schema
    return _operations(
        one.name,
        about,
        schema,
        schema["required"],
        answers,
        refusal="Refusal",
        has_get=one.effect == READ,
    )


def _operations(
    name: str,
    about: Schema,
    schema: Schema,
    needed: list[str],
    answers: Schema,
    *,
    refusal: str,
    has_get: bool,
) -> Schema:
    """Return the operations of a path that takes a body, and perhaps the same in the address."""
    body = {"required": bool(needed), "content": {JSON: {"schema": schema}}}
    post = {"operationId": name, **about, "requestBody": body}
    found = {"post": {**post, "responses": answers | _refusals(refusal)}}
    if has_get:
        found["get"] = {
            "operationId": f"get-{name}",
            **about,
            "parameters": _in_address(schema, needed),
            "responses": answers | _refusals(refusal, has_body=False),
        }
    return found


def _client(one: ClientName) -> Schema:
    """Return the operations of a name that clients of other memory servers know."""
    summary, more, _sections = parse_docstring(one.run.__doc__ or "")
    about: Schema = {"summary": summary, "description": more, "tags": ["clients"]}
    answers = {"200": _response(summary, _object(None, **one.answer))}
    if one.is_long:
        answers |= _JOB
    needed = [name for name, parameter in one.fields.items() if parameter.is_required]
    return _operations(
        f"memory-{one.name}",
        about,
        _fields(one),
        needed,
        answers,
        refusal="ClientRefusal",
        has_get=one.is_address,
    )


def _fields(one: ClientName) -> Schema:
    """Return the schema of what a name takes, each field under each of its names."""
    properties = {
        name: parameter_schema(parameter, is_bounded=True)
        for field, parameter in one.fields.items()
        for name in one.names_of(field)
    }
    needed = [
        {"anyOf": [{"required": [name]} for name in one.names_of(field)]}
        for field, parameter in one.fields.items()
        if parameter.is_required
    ]
    schema: Schema = {"type": "object", "properties": properties}
    if one.is_strict:
        schema["additionalProperties"] = False
    return {**schema, "allOf": needed} if needed else schema


def _others() -> Schema:
    """Return the operations that are neither a verb nor a name of clients."""
    id_ = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    link = _object(url=_TEXT)
    refused = ("400", "404", "422")
    return {
        "/api/jobs/{id}": {
            "get": {
                "operationId": "job",
                "summary": "A long verb that was begun: running, done or failed, with its answer",
                "tags": ["read"],
                "parameters": [id_],
                "responses": {"200": _response("the job", reference("schemas", "Job"))}
                | _refusals("Refusal", has_body=False),
            }
        },
        "/api/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "This document",
                "tags": ["read"],
                "responses": {"200": _response("the document", {"type": "object"})}
                | _refusals("Refusal", has_body=False, without=refused),
            }
        },
        "/health": {
            "get": {
                "operationId": "health",
                "summary": "Whether the server is there",
                "tags": ["read"],
                "security": [],
                "responses": {
                    "200": _response("it is", _object(status={"const": "ok"})),
                    "421": reference("responses", "Refusal421"),
                },
            }
        },
        "/login": {
            "get": {
                "operationId": "enter",
                "summary": (
                    "Begin the session of a browser by a login link, and lead it to the pages"
                ),
                "tags": ["write"],
                "security": [],
                "parameters": [{"name": "token", "in": "query", "schema": _TEXT}],
                "responses": {
                    "303": {"description": "the session has begun"},
                    **{
                        str(one): {"description": REFUSALS[one], "content": {"text/html": {}}}
                        for one in (403, 421)
                    },
                },
            },
            "post": {
                "operationId": "login",
                "summary": "Make a link that logs a browser in, once",
                "tags": ["write"],
                "responses": {"200": _response("the link", link)}
                | _refusals("Refusal", has_body=False, without=refused),
            },
        },
    }


def _in_address(schema: Schema, needed: list[str]) -> list[Schema]:
    """Return the properties of a schema as parameters of an address; a list is given as several."""
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "description": shape["description"],
            "schema": {key: one for key, one in shape.items() if key != "description"},
        }
        for name, shape in schema["properties"].items()
    ]


def _object(needed: tuple[str, ...] | None = None, **properties: Schema) -> Schema:
    """Return the schema of an object; all of its properties are there unless some are named."""
    required = list(properties if needed is None else needed)
    return {"type": "object", "properties": properties, "required": required}


def _response(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON: {"schema": schema}}}


_JOB: Schema = {
    "202": {
        "description": "a job was begun, which can be asked after; `Prefer: wait` waits for it",
        "headers": {"Location": {"description": "where to ask", "schema": _TEXT}},
        "content": {JSON: {"schema": reference("schemas", "Job")}},
    }
}


def _refusals(schema: str, *, has_body: bool = True, without: tuple[str, ...] = ()) -> Schema:
    """Return a response for each status of a refusal; an address may be too long to be read."""
    found = {
        str(status): reference("responses", f"{schema}{status}")
        for status in REFUSALS
        if (has_body or status not in OF_BODIES) and str(status) not in without
    }
    if not has_body and "400" in found:
        content = {JSON: {"schema": reference("schemas", schema)}, "text/plain": {"schema": _TEXT}}
        told = f"{REFUSALS[400]}; in plain text where the address is too long"
        found["400"] = {"description": told, "content": content}
    return found
