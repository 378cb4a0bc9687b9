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

from memtool.calls.bind import bind
from memtool.calls.boundary import answer_request
from memtool.calls.procedures import HTTP, READ, Procedure, addressed, procedures
from memtool.calls.run import ServedRepository, error_object, invoke, structured
from memtool.errors import MemtoolError
from memtool.value import Value
from memtool.web.security import Denied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from memtool.calls.signature import Signature

    Arguments = dict[str, Any]

PROCEDURES = procedures(HTTP)
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", re.ASCII)
QUICK = ("search", "show", "inject")
"""Reads that answer in milliseconds, whose callers wait for nothing slower."""
LONG = ("capture", "curate", "digest", "maintain", "promote")
"""Verbs that answer with a job, unless the caller wants to wait: `Prefer: wait=60`."""
ABSENT = ("no-job", "no-route", "no-session", "unknown-id", "unknown-revision")
STATUSES = {"bug": 500, "busy": 503}
MOST_PATIENCE_S = 120.0
"""Seconds after which a caller that waits for a long verb is answered with the job."""
MISFIT, REFUSED = 400, 422
"""The statuses of a call that does not fit its schema, and of one that the verb refuses."""
RUNNING, DONE, FAILED = "running", "done", "failed"
"""The states of a job."""
MOST_JOBS = 100
MOST_ROWS = 10_000
"""What a list in an answer holds at most."""


class HttpAnswer(Value):
    """A status of HTTP and the object that is sent."""

    status: int
    body: dict[str, Any]


def procedure(name: str) -> Procedure:
    """Return a procedure by its name. Raises Denied where there is none."""
    if name not in PROCEDURES:
        raise no_route(name)
    return PROCEDURES[name]


def no_route(name: str) -> Denied:
    """Return the refusal of what is no verb, with the one that it is most like."""
    near = get_close_matches(name[:60], PROCEDURES, n=1)
    return Denied(
        404,
        f"there is no verb {name[:60]!r} here",
        hint=f"did you mean {near[0]}?" if near else "GET /api/openapi.json lists them",
        code="no-route",
    )


def refuse_writing(name: str, effect: str, given: Mapping[str, Any], *, is_writing: bool) -> None:
    """Raise Denied where a call would write, and the server only reads; a dry run may be."""
    if effect == READ or is_writing or given.get("dry_run") is True:
        return
    raise Denied(
        403,
        f"{name} writes, and this server only reads",
        hint="a server that is started to write does it; `dry_run` shows what it would do",
        code="read-only",
    )


def arguments(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body, an empty one for nothing. Raises Denied for no such."""
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Denied(400, "the body is no JSON object", hint='send {"query": "…"}', code="no-json")
    return found


def of_pairs(found: Procedure, pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return arguments from an address or a form, in the types of the verb."""
    given: dict[str, Any] = {}
    for name, text in pairs:
        parameter = found.parameters.get(name)
        if parameter is None or text == "":
            given.update({} if parameter is not None else {name: text})
        elif parameter.is_many:
            given.setdefault(name, []).append(text)
        elif parameter.kind is bool:
            given[name] = {"true": True, "false": False}.get(text, text)
        elif parameter.kind in (int, float):
            given[name] = _number(text)
        else:
            given[name] = text
    return given


def bound(signature: Signature, given: Mapping[str, Any]) -> Arguments:
    """Return what a call takes by the names of its parameters.

    Raises:
        Denied: it does not fit its schema, of which null is no value.
    """
    for name, value in given.items():
        if value is None:
            raise Denied(MISFIT, f"{name[:40]} is null", hint="leave it out")
    try:
        return bind(signature, given)
    except MemtoolError as error:
        status = MISFIT if error.code == "usage" else REFUSED
        raise Denied(status, error.message, hint=error.hint, code=error.code) from None


def ask(
    found: Procedure,
    given: Mapping[str, Any],
    place: ServedRepository,
    hinted: Callable[[str], str] = addressed,
) -> HttpAnswer:
    """Run a verb and return its answer, or its refusal with a fitting status.

    `hinted` words the hints of refusals: for programs by routes, for people as they are.
    """

    def run() -> HttpAnswer:
        values = bound(found.signature, given)
        shape = partial(structured, most=MOST_ROWS)
        _value, (shaped, cut), notes = invoke(found, values, place, shape)
        return HttpAnswer(200, {"value": shaped, "notes": [*map(addressed, notes), *cut]})

    refused = partial(refusal, found=found, hinted=hinted)
    return answer_request(run, refused, log_as=("http", found.name))


LOST = ("no-repository", "no-directory")
"""Codes of a repository that is gone while it is served."""
LOOKS_AGAIN = "each request looks again; or end this server, and start it where the memories are"


def refusal(
    error: MemtoolError,
    found: Procedure | None = None,
    hinted: Callable[[str], str] = addressed,
) -> HttpAnswer:
    """Return an error as it is sent: in words of HTTP, with a status."""
    body = error_object(error, found)
    hint = LOOKS_AGAIN if error.code in LOST else hinted(body["hint"])
    return HttpAnswer(status_of(error), {"error": body | {"hint": hint}})


def status_of(error: MemtoolError) -> int:
    """Return the status of a refusal: its own, or that of its code."""
    if isinstance(error, Denied):
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
        """What the last job that ended said, where it failed."""

    def begin(self, verb: str) -> str:
        """Note that a job begins, and return its id. Raises Denied where too many are at work."""
        if len(self._jobs) >= MOST_JOBS:
            ended = (one for one, job in self._jobs.items() if job["status"] != RUNNING)
            oldest = next(ended, None)
            if oldest is None:
                raise Denied(
                    503, f"{MOST_JOBS} jobs are at work", hint="ask again later", code="busy"
                )
            del self._jobs[oldest]
        self._begun += 1
        number = f"job-{self._begun}"
        self._jobs[number] = {"id": number, "verb": verb, "status": RUNNING}
        return number

    def end(self, number: str, answer: HttpAnswer) -> None:
        """Note the answer of a job."""
        error = answer.body.get("error")
        kept = answer.body if error or "value" in answer.body else {"value": answer.body}
        self._jobs[number] |= {"status": FAILED if error else DONE, **kept}
        self.last_error = error["message"] if error else None

    def get(self, number: str) -> dict[str, Any]:
        """Return a job. Raises Denied where none has the id."""
        if number not in self._jobs:
            raise Denied(
                404,
                f"there is no job {number[:40]!r}",
                hint="jobs are forgotten when the server ends",
                code="no-job",
            )
        return self._jobs[number]

    @property
    def running(self) -> list[str]:
        """The verbs that are at work."""
        return [job["verb"] for job in self._jobs.values() if job["status"] == RUNNING]


def patience_s(prefer: str, unasked: float = 0.0) -> float:
    """Return the seconds that a caller waits for a long verb, by the header Prefer of RFC 7240."""
    for one in prefer.lower().split(","):
        name, _equals, seconds = one.strip().partition("=")
        if name.strip() == "wait":
            text = seconds.strip()
            return min(float(text), MOST_PATIENCE_S) if text.isdigit() else MOST_PATIENCE_S
    return unasked


def _number(text: str) -> Any:
    """Return the number that a text is in JSON, else the text, which the verb then refuses."""
    return json.loads(text) if _JSON_NUMBER.fullmatch(text) else text
