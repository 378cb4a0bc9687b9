"""The OpenAPI document: each route with its parameters, answers and refusals.

All of it is read from the tables that check and answer calls: the procedures, the client endpoints,
and the fields of the values that verbs return.
"""

from __future__ import annotations

from memtool.calls.docstring import parse_docstring
from memtool.calls.json_schema import build_parameter_schema, build_reference, build_value_schema
from memtool.calls.procedures import READ, Procedure
from memtool.calls.wording import with_routes
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


def build_document(address: str) -> Schema:
    """Return the document of all routes that programs call, as served under an address."""
    values: dict[str, Schema] = {}
    paths = {
        f"/api/{name}": _describe_verb(procedure, values)
        for name, procedure in rest.PROCEDURES.items()
    }
    paths |= {
        f"/memory/{name}": _describe_client(client_name) for name, client_name in NAMES.items()
    }
    error = _describe_object(code=_TEXT, message=_TEXT, hint=_TEXT, recoverable={"type": "boolean"})
    context = _describe_object(hint=_TEXT, recoverable={"type": "boolean"})
    job = _describe_object(
        ("id", "verb", "status"),
        id=_TEXT,
        verb=_TEXT,
        status={"enum": [rest.RUNNING, rest.DONE, rest.FAILED]},
        value={},
        notes={"type": "array", "items": _TEXT},
        error=build_reference("schemas", "Error"),
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
        "paths": paths | _other_operations(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Error": error,
                "Refusal": _describe_object(error=build_reference("schemas", "Error")),
                "ClientRefusal": _describe_object(
                    error={"const": True}, code=_TEXT, message=_TEXT, context=context
                ),
                "Job": job,
                **dict(sorted(values.items())),
            },
            "responses": {
                f"{schema}{status}": _describe_response(
                    description, build_reference("schemas", schema)
                )
                for schema in ("Refusal", "ClientRefusal")
                for status, description in REFUSALS.items()
            },
        },
    }


def _describe_verb(procedure: Procedure, values: dict[str, Schema]) -> Schema:
    """Return the operations of a verb; the schemas of its value are added to `values`."""
    run = procedure.face.run
    value = build_value_schema(run.__annotations__["return"], run.__module__, values)
    answer = _describe_object(value=value, notes={"type": "array", "items": _TEXT})
    about: Schema = {
        "summary": procedure.title,
        "description": with_routes(procedure.description),
        "tags": ["read" if procedure.effect == READ else "write"],
    }
    answers = {"200": _describe_response("the value of the verb, and notes for the user", answer)}
    if procedure.name in rest.LONG:
        answers |= _JOB
    schema = procedure.input_schema
    return _describe_operations(
        procedure.name,
        about,
        schema,
        schema["required"],
        answers,
        refusal="Refusal",
        has_get=procedure.effect == READ,
    )


def _describe_operations(
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
    operations = {"post": {**post, "responses": answers | _describe_refusals(refusal)}}
    if has_get:
        operations["get"] = {
            "operationId": f"get-{name}",
            **about,
            "parameters": _address_parameters(schema, needed),
            "responses": answers | _describe_refusals(refusal, has_body=False),
        }
    return operations


def _describe_client(client_name: ClientName) -> Schema:
    """Return the operations of a name that clients of other memory servers know."""
    summary, body, _sections = parse_docstring(client_name.run.__doc__ or "")
    about: Schema = {"summary": summary, "description": body, "tags": ["clients"]}
    answers = {"200": _describe_response(summary, _describe_object(None, **client_name.answer))}
    if client_name.is_long:
        answers |= _JOB
    needed = [name for name, parameter in client_name.fields.items() if parameter.is_required]
    return _describe_operations(
        f"memory-{client_name.name}",
        about,
        _describe_fields(client_name),
        needed,
        answers,
        refusal="ClientRefusal",
        has_get=client_name.is_address,
    )


def _describe_fields(client_name: ClientName) -> Schema:
    """Return the schema of an endpoint's arguments, each field under each of its names."""
    properties = {
        name: build_parameter_schema(parameter, is_bounded=True)
        for field, parameter in client_name.fields.items()
        for name in client_name.find_names(field)
    }
    needed = [
        {"anyOf": [{"required": [name]} for name in client_name.find_names(field)]}
        for field, parameter in client_name.fields.items()
        if parameter.is_required
    ]
    schema: Schema = {"type": "object", "properties": properties}
    if client_name.is_strict:
        schema["additionalProperties"] = False
    return {**schema, "allOf": needed} if needed else schema


def _other_operations() -> Schema:
    """Return the operations that are neither a verb nor a name of clients."""
    id_ = {"name": "id", "in": "path", "required": True, "schema": _TEXT}
    link = _describe_object(url=_TEXT)
    refused = ("400", "404", "422")
    return {
        "/api/jobs/{id}": {
            "get": {
                "operationId": "job",
                "summary": "A long verb that was begun: running, done or failed, with its answer",
                "tags": ["read"],
                "parameters": [id_],
                "responses": {
                    "200": _describe_response("the job", build_reference("schemas", "Job"))
                }
                | _describe_refusals("Refusal", has_body=False),
            }
        },
        "/api/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "This document",
                "tags": ["read"],
                "responses": {"200": _describe_response("the document", {"type": "object"})}
                | _describe_refusals("Refusal", has_body=False, without=refused),
            }
        },
        "/health": {
            "get": {
                "operationId": "health",
                "summary": "Whether the server is there",
                "tags": ["read"],
                "security": [],
                "responses": {
                    "200": _describe_response("it is", _describe_object(status={"const": "ok"})),
                    "421": build_reference("responses", "Refusal421"),
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
                        str(status): {"description": REFUSALS[status], "content": {"text/html": {}}}
                        for status in (403, 421)
                    },
                },
            },
            "post": {
                "operationId": "login",
                "summary": "Make a link that logs a browser in, once",
                "tags": ["write"],
                "responses": {"200": _describe_response("the link", link)}
                | _describe_refusals("Refusal", has_body=False, without=refused),
            },
        },
    }


def _address_parameters(schema: Schema, needed: list[str]) -> list[Schema]:
    """Return the properties of a schema as parameters of an address; a list is given as several."""
    return [
        {
            "name": name,
            "in": "query",
            "required": name in needed,
            "description": shape["description"],
            "schema": {key: value for key, value in shape.items() if key != "description"},
        }
        for name, shape in schema["properties"].items()
    ]


def _describe_object(needed: tuple[str, ...] | None = None, **properties: Schema) -> Schema:
    """Return the schema of an object; all of its properties are there unless some are named."""
    required = list(properties if needed is None else needed)
    return {"type": "object", "properties": properties, "required": required}


def _describe_response(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {JSON: {"schema": schema}}}


_JOB: Schema = {
    "202": {
        "description": "a job was begun, which can be asked after; `Prefer: wait` waits for it",
        "headers": {"Location": {"description": "where to ask", "schema": _TEXT}},
        "content": {JSON: {"schema": build_reference("schemas", "Job")}},
    }
}


def _describe_refusals(
    schema: str, *, has_body: bool = True, without: tuple[str, ...] = ()
) -> Schema:
    """Return a response for each status of a refusal; an address may be too long to be read."""
    refusals = {
        str(status): build_reference("responses", f"{schema}{status}")
        for status in REFUSALS
        if (has_body or status not in OF_BODIES) and str(status) not in without
    }
    if not has_body and "400" in refusals:
        content = {
            JSON: {"schema": build_reference("schemas", schema)},
            "text/plain": {"schema": _TEXT},
        }
        description = f"{REFUSALS[400]}; in plain text where the address is too long"
        refusals["400"] = {"description": description, "content": content}
    return refusals
