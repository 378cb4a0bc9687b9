"""The HTTP API: procedures as routes, with statuses, and the names that other clients know.

`POST /api/VERB` takes the arguments of a verb as a JSON object, `GET` does so for verbs that only
read, from the address. An answer is `{"value": …, "notes": […]}`, a refusal `{"error": …}` as with
`--json`. Nothing here knows the server: a call is a function of its arguments.
"""

from __future__ import annotations

import json
import re
from difflib import get_close_matches
from functools import partial

from memtool.calls.bind import bind, describe_old_names
from memtool.calls.boundary import answer_request
from memtool.calls.output import make_visible
from memtool.calls.procedures import HTTP, READ, Procedure, build_procedures
from memtool.calls.run import ServedRepository, build_error_object, run_procedure, to_structured
from memtool.calls.wording import reword, with_routes
from memtool.errors import MemtoolError
from memtool.value import Value
from memtool.web.security import DeniedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from memtool.calls.signature import Signature

    Arguments = dict[str, Any]

PROCEDURES = build_procedures(HTTP)
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
QUICK = ("search", "show", "inject")
"""Reads that answer in milliseconds, so that callers never need a job for them."""
LONG = ("capture", "curate", "digest", "maintain", "promote")
"""Verbs that answer with a job, unless the caller wants to wait: `Prefer: wait=60`."""
ABSENT = ("no-job", "no-route", "no-session", "unknown-id", "unknown-revision")
STATUSES = {"bug": 500, "busy": 503}
MAX_PATIENCE_S = 120.0
"""Seconds after which a caller that waits for a long verb is answered with the job."""
MISFIT, REFUSED = 400, 422
"""The statuses of a call that does not fit its schema, and of one that the verb refuses."""
RUNNING, DONE, FAILED = "running", "done", "failed"
"""The states of a job."""
MAX_JOBS = 100
MAX_ROWS = 10_000
"""Maximum rows of a list in an answer."""


class HttpAnswer(Value):
    """A status of HTTP and the object that is sent."""

    status: int
    body: dict[str, Any]


def find_procedure(name: str) -> Procedure:
    """Return a procedure by its name. Raises DeniedError if there is none."""
    if name not in PROCEDURES:
        raise no_route_error(name)
    return PROCEDURES[name]


def no_route_error(name: str) -> DeniedError:
    """Return the refusal of an unknown verb, with the most similar one."""
    near = get_close_matches(name[:60], PROCEDURES, n=1)
    return DeniedError(
        404,
        f"unknown verb {name[:60]!r}",
        hint=f"did you mean {near[0]}?" if near else "GET /api/openapi.json",
        code="no-route",
    )


def refuse_writing(
    name: str, effect: str, arguments: Mapping[str, Any], *, is_writing: bool
) -> None:
    """Raise DeniedError if a call would write and the server is read-only; dry runs are allowed."""
    if effect == READ or is_writing or arguments.get("dry_run") is True:
        return
    raise DeniedError(
        403,
        f"cannot {name}: this server is read-only",
        hint="use `dry_run`, or start the server with memtool serve --write",
        code="read-only",
    )


def parse_arguments(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; empty for no body. Raises DeniedError for other JSON."""
    try:
        parsed = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise DeniedError(
            400, "the body is not a JSON object", hint='send {"query": "…"}', code="no-json"
        )
    return parsed


def parse_pairs(procedure: Procedure, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return arguments from an address or a form, in the types of the verb."""
    arguments: dict[str, Any] = {}
    for name, text in pairs:
        parameter = procedure.parameters.get(name)
        if parameter is None or text == "":
            arguments.update({} if parameter is not None else {name: text})
        elif parameter.is_many:
            arguments.setdefault(name, []).append(text)
        elif parameter.kind is bool:
            arguments[name] = {"true": True, "false": False}.get(text, text)
        elif parameter.kind in (int, float):
            arguments[name] = _parse_number(text)
        else:
            arguments[name] = text
    return arguments


def bind_arguments(signature: Signature, arguments: Mapping[str, Any]) -> Arguments:
    """Return the arguments of a call by the names of its parameters.

    Raises:
        DeniedError: they do not match its schema; null is not a value.
    """
    for name, value in arguments.items():
        if value is None:
            raise DeniedError(MISFIT, f"{name[:40]} is null", hint="leave it out")
    try:
        return bind(signature, arguments)
    except MemtoolError as error:
        status = MISFIT if error.code == "usage" else REFUSED
        raise DeniedError(status, error.message, hint=error.hint, code=error.code) from None


def ask(
    procedure: Procedure,
    arguments: Mapping[str, Any],
    place: ServedRepository,
    refused: Callable[[MemtoolError], HttpAnswer] | None = None,
) -> HttpAnswer:
    """Run a verb and return its answer, or its refusal with a fitting status.

    `refused` builds the answer of a refusal, or raises it; by default it is worded for programs.
    """

    def run() -> HttpAnswer:
        values = bind_arguments(procedure.signature, arguments)
        _value, (shaped, cut), notes = run_procedure(
            procedure, values, place, lambda value, _layout: to_structured(value, MAX_ROWS)
        )
        old_names = describe_old_names(procedure.signature, arguments)
        worded = [make_visible(with_routes(reword(note, procedure))) for note in notes]
        all_notes = [*old_names, *worded, *cut]
        return HttpAnswer(200, {"value": shaped, "notes": all_notes})

    refused = refused or partial(build_refusal, procedure=procedure)
    return answer_request(run, refused, log_as=("http", procedure.name))


LOST = ("no-repository", "no-directory")
"""Codes of a repository that is gone while it is served."""
LOOKS_AGAIN = "each request looks again; or end this server, and start it where the memories are"


def build_refusal(
    error: MemtoolError,
    procedure: Procedure | None = None,
) -> HttpAnswer:
    """Return an error as an HTTP answer, with a status."""
    body = build_error_object(error, lambda text: reword(text, procedure) if procedure else text)
    hint = LOOKS_AGAIN if error.code in LOST else with_routes(body["hint"])
    return HttpAnswer(find_status(error), {"error": body | {"hint": hint}})


def find_status(error: MemtoolError) -> int:
    """Return the status of a refusal: its own, or that of its code."""
    if isinstance(error, DeniedError):
        return error.status
    if error.code in ABSENT or error.code.startswith("no-session"):
        return 404
    return STATUSES.get(error.code, REFUSED)


class JobList:
    """Jobs of this process: a long verb that was begun, and its answer when it is there."""

    def __init__(self) -> None:
        self._jobs: dict[str, dict[str, Any]] = {}
        self._begun = 0
        self.last_error: str | None = None
        """The message of the last job, if it failed."""

    def begin(self, verb: str) -> str:
        """Start a job, and return its id. Raises DeniedError if too many are running."""
        if len(self._jobs) >= MAX_JOBS:
            ended = (job_id for job_id, job in self._jobs.items() if job["status"] != RUNNING)
            oldest = next(ended, None)
            if oldest is None:
                raise DeniedError(
                    503, f"{MAX_JOBS} jobs are running", hint="ask again later", code="busy"
                )
            del self._jobs[oldest]
        self._begun += 1
        number = f"job-{self._begun}"
        self._jobs[number] = {"id": number, "verb": verb, "status": RUNNING}
        return number

    def end(self, number: str, answer: HttpAnswer) -> None:
        """Note the answer of a job."""
        error = answer.body.get("error")
        body = answer.body if error or "value" in answer.body else {"value": answer.body}
        self._jobs[number] |= {"status": FAILED if error else DONE, **body}
        self.last_error = error["message"] if error else None

    def get(self, number: str) -> dict[str, Any]:
        """Return a job. Raises DeniedError if none has the id."""
        if number not in self._jobs:
            raise DeniedError(
                404,
                f"unknown job {number[:40]!r}",
                hint="jobs end with the server",
                code="no-job",
            )
        return self._jobs[number]

    @property
    def running(self) -> list[str]:
        """The verbs that are at work."""
        return [job["verb"] for job in self._jobs.values() if job["status"] == RUNNING]


def parse_patience_s(prefer: str, unasked: float = 0.0) -> float:
    """Return the seconds that a caller waits for a long verb, by the header Prefer of RFC 7240."""
    for preference in prefer.lower().split(","):
        name, _equals, seconds = preference.strip().partition("=")
        if name.strip() == "wait":
            text = seconds.strip()
            return min(float(text), MAX_PATIENCE_S) if text.isdigit() else MAX_PATIENCE_S
    return unasked


def _parse_number(text: str) -> Any:
    """Return the number that a text is in JSON, else the text, which the verb then refuses."""
    return json.loads(text) if _JSON_NUMBER.fullmatch(text) else text
