"""The application: each request to a page, a procedure or a file, and its answer back.

Verbs run in three lanes of one thread each: quick reads, slow reads, writes. So a search does not
wait for a report, and no two verbs of this process write at once. Looks for a change have a lane of
their own. Pages are kept while the stamp of the repository holds.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from urllib.parse import parse_qsl

from h11 import LocalProtocolError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from memtool.calls.boundary import as_refusal
from memtool.calls.output import visible
from memtool.calls.procedures import READ
from memtool.commands import _features
from memtool.errors import MemtoolError
from memtool.store import derived
from memtool.value import Value
from memtool.web import clients, openapi, render, rest
from memtool.web.page import PageQuery
from memtool.web.pages import PAGES, forms, near
from memtool.web.render import PageView
from memtool.web.security import COOKIE, HEADERS, SAFE, Denied, Guard, refuse_form
from memtool.web.state import AnswerCache, IndexBuild, Stamp, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from typing import Any, TypeVar

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from memtool.calls.procedures import Procedure
    from memtool.calls.run import ServedRepository
    from memtool.web.clients import ClientName
    from memtool.web.page import Page
    from memtool.web.security import Visitor

    Answer = TypeVar("Answer")
    Offers = Sequence[tuple[str, str]]

MOST_BODY = 1 << 20
MOST_FIELDS, MOST_VALUES = 100, 10_000
"""Values that the address of a page, and of a verb, may hold."""
BODY_S, READ_S, WRITE_S = 15.0, 60.0, rest.MOST_PATIENCE_S
"""Seconds that a body, a reading and a writing verb may take."""
SOON_S = 0.5
"""Seconds that a page waits for the index before it says that it is being built."""
LOOK_S = 1.0
"""Seconds between looks for a change while somebody watches a page."""
LATER = '<meta http-equiv="refresh" content="0">'
"""The end of the page that waits: it is sent when there is something to wait for no more."""
BUILDING = "the search index is being built"
DRY_RUN = "dry_run"
SHOW, DO = "show", "do"
"""What a form wants besides: to see what it would do, or what it did; else it leads on."""


class Lane:
    """One thread in which calls run one after another."""

    def __init__(self, name: str, limit_s: float) -> None:
        self.pool = ThreadPoolExecutor(1, thread_name_prefix=f"memtool-{name}")
        self._limit_s = limit_s

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Run a call and return its answer.

        Raises:
            Denied: it takes too long; it goes on meanwhile.
        """
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self.pool, work)
        try:
            return await asyncio.wait_for(asyncio.shield(running), self._limit_s)
        except TimeoutError:
            raise Denied(
                503,
                f"the answer took over {self._limit_s:g} seconds; the call goes on",
                hint="ask again later",
                code="too-slow",
            ) from None


class ServedSite(Value):
    """What a process serves: where, to whom, and whether it may write."""

    place: ServedRepository
    guard: Guard
    name: str
    is_writing: bool
    is_verbose: bool = False


class Application:
    """The pages and routes of one repository. Its state: lanes, jobs, and kept answers."""

    def __init__(self, served: ServedSite) -> None:
        self.served = served
        self.jobs = rest.JobList()
        self.watch = Watch(served.place)
        self.cache = AnswerCache()
        self.build = IndexBuild(self.watch, served.place)
        self.quick, self.slow = Lane("quick", READ_S), Lane("slow", READ_S)
        self.write, self.look = Lane("write", WRITE_S), Lane("look", READ_S)
        self._tasks: set[asyncio.Task[rest.HttpAnswer]] = set()

    def routes(self) -> list[Route]:
        """Return every route; pages come from their table."""
        pages = [
            Route(page.path, partial(self.page, page=page), methods=["GET"], name=page.template)
            for page in PAGES
        ]
        return [
            *pages,
            Route("/health", self.health, methods=["GET"]),
            Route("/login", self.login, methods=["GET", "POST"]),
            Route("/static/{name}", self.static, methods=["GET"]),
            Route("/events", self.events, methods=["GET"]),
            Route("/do/{verb}", self.form, methods=["POST"]),
            *(
                Route(
                    f"/memory/{name}",
                    partial(self.memory, one=one),
                    methods=_methods(is_address=one.is_address),
                )
                for name, one in clients.NAMES.items()
            ),
            Route("/api/openapi.json", self.openapi, methods=["GET"]),
            Route("/api/jobs/{id}", self.job, methods=["GET"]),
            *(
                Route(
                    f"/api/{name}",
                    partial(self.api, found=found),
                    methods=_methods(is_address=found.effect == READ),
                )
                for name, found in rest.PROCEDURES.items()
            ),
        ]

    async def page(self, request: Request, *, page: Page) -> Response:
        """Answer with a page, the kept one while nothing changed."""
        stamp = await self._stamp()
        visitor: Visitor = request.state.visitor
        building = self.build.awaited(stamp)
        if building is not None:
            await asyncio.wait([building], timeout=SOON_S)
            if not building.done():
                return self._building(stamp, visitor, building)
            stamp = await self._stamp()
        writer = visitor.session if self.served.is_writing else ""
        key = (request.url.path, request.url.query, writer, str(visitor.is_person))
        mark = stamp.private if page.is_private else stamp.memories
        kept = self.cache.get(key, mark)
        if kept is None:
            query = PageQuery(request.path_params, _pairs(request, MOST_FIELDS))
            lane = self.slow if page.is_slow else self.quick
            text = await lane.run(lambda: self._rendered(page, query, visitor))
            body = text.encode(errors="replace")
            kept = self.cache.put(key, mark, body), body
        tag, body = kept
        headers = {"etag": tag, "cache-control": "private, no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="text/html")

    async def _stamp(self) -> Stamp:
        known = self.watch.known
        return known if known is not None else await self.look.run(self.watch.look)

    async def _indexed(self, limit_s: float | None = READ_S) -> None:
        """Wait until the index is there. Raises Denied where that takes too long."""
        building = self.build.awaited(self.watch.last or await self._stamp())
        if building is None:
            return
        await asyncio.wait([building], timeout=limit_s)
        if not building.done():
            raise Denied(503, BUILDING, hint="ask again later", code="too-slow")

    def _building(self, stamp: Stamp, visitor: Visitor, building: asyncio.Task[None]) -> Response:
        """Say that the index is being built, and lead on when it is there."""
        values = {"title": "Reading the memories", "count": stamp.to_build}
        page = render.page("building.html", values, view=self.view(visitor), place="")
        begin, mark, end = page.partition(LATER)

        async def parts() -> AsyncIterator[str]:
            yield begin
            await asyncio.wait([building])
            yield f"{mark}{end}"

        headers = {"retry-after": "5", "cache-control": "no-store"}
        return StreamingResponse(parts(), 503, headers=headers, media_type="text/html")

    def _rendered(self, page: Page, query: PageQuery, visitor: Visitor) -> str:
        context = self.served.place.open()
        context.caller.is_person = visitor.is_person
        context.opened = {}  # a page is of one moment

        def make() -> str:
            values = page.values(context, query)
            place = page.path.format(**query.parts)
            return render.page(page.template, values, view=self.view(visitor), place=place)

        return derived.retry_if_damaged(context, make)

    def view(self, visitor: Visitor) -> PageView:
        """Return what a page is shown in."""
        menu = tuple(
            (page.path, page.menu)
            for page in PAGES
            if page.menu and (not page.feature or self._has(page.feature))
        )
        return PageView(self.served.name, menu, self.served.is_writing, nonce=visitor.nonce)

    def _has(self, feature: str) -> bool:
        """Tell whether the user has set a feature up; False where nobody can tell."""
        try:
            return _features.is_set(self.served.place.open(), feature)
        except MemtoolError:
            return False

    async def health(self, _request: Request) -> Response:
        """Answer that the server is there, and nothing else."""
        return JSONResponse({"status": "ok"})

    async def login(self, request: Request) -> Response:
        """Begin the session of a browser, and lead it to the first page; or make a new link."""
        if request.method not in SAFE:
            return self._link(request)
        host = request.headers.get("host", "").lower()
        session = self.served.guard.login(request.query_params.get("token", ""), host)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return answer

    def _link(self, request: Request) -> Response:
        """Answer a program of the same user with a new login link."""
        if request.headers.get("authorization") != f"Bearer {self.served.guard.token}":
            raise Denied(401, "the token is not that of this server", code="login")
        return JSONResponse({"url": self.served.guard.link()})

    async def static(self, request: Request) -> Response:
        """Answer with the style, the script or the icon."""
        name = request.path_params["name"]
        if name not in render.FILES:
            raise HTTPException(404)
        headers = {"cache-control": "max-age=3600"}
        return Response(render.static(name), media_type=render.FILES[name], headers=headers)

    async def events(self, _request: Request) -> Response:
        """Tell a page when something changed, for as long as it is open."""

        async def stream() -> AsyncIterator[str]:
            last = ""
            while True:
                try:
                    stamp = await self._stamp()
                except MemtoolError:
                    return
                if stamp.private != last:
                    last = stamp.private
                    yield f"data: {last}\n\n"
                await asyncio.sleep(LOOK_S)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        return JSONResponse(openapi.document(f"http://{request.headers['host']}"))

    async def job(self, request: Request) -> Response:
        """Answer with a job."""
        return JSONResponse(self.jobs.get(request.path_params["id"]))

    async def api(self, request: Request, *, found: Procedure) -> Response:
        """Run a verb: from the address where it only reads, else from a JSON object."""
        if request.method in SAFE:
            given = rest.of_pairs(found, _pairs(request, MOST_VALUES))
        else:
            given = await _given(request)
        rest.bound(found.signature, given)  # before a job begins
        rest.refuse_writing(found.name, found.effect, given, is_writing=self.served.is_writing)
        work = partial(rest.ask, found, given, self.served.place.replace(agent=_agent(request)))
        if found.name in rest.LONG:
            patience_s = rest.patience_s(request.headers.get("prefer", ""))
            return _sent(await self._worked(found.name, work, patience_s))
        await self._indexed()
        is_write = found.effect != READ
        lane = self.write if is_write else self.slow
        answer = await (self.quick if found.name in rest.QUICK else lane).run(work)
        if is_write:
            self.watch.forget()
        self._tell(found.name, answer)
        return _sent(answer)

    async def memory(self, request: Request, *, one: ClientName) -> Response:
        """Answer a name that clients of other memory servers know."""
        is_posted = request.method not in SAFE
        given = one.fitted(await _given(request) if is_posted else dict(request.query_params))
        rest.refuse_writing(one.name, one.effect, given, is_writing=self.served.is_writing)
        place = self.served.place.replace(agent=_agent(request))
        work = partial(clients.answer, one, given, place, self.jobs)
        if one.is_long:
            patience_s = rest.patience_s(request.headers.get("prefer", ""), one.patience_s)
            answer = await self._worked(one.name, work, patience_s)
        else:
            if one.name != "get-status":  # it says how the server is, at once
                await self._indexed()
            answer = await (self.quick if one.effect == READ else self.write).run(work)
            if one.effect != READ:
                self.watch.forget()
        if "error" in answer.body:
            return JSONResponse(clients.error_object(answer.body["error"]), answer.status)
        return _sent(answer)

    async def _worked(
        self, verb: str, work: Callable[[], rest.HttpAnswer], patience_s: float
    ) -> rest.HttpAnswer:
        """Do long work as a job, and return its answer if it ends in time, else the job."""
        number = self.jobs.begin(verb)
        task = asyncio.get_running_loop().create_task(self._job(number, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if patience_s:
            await asyncio.wait({task}, timeout=patience_s)
        return task.result() if task.done() else rest.HttpAnswer(202, self.jobs.get(number))

    async def _job(self, number: str, work: Callable[[], rest.HttpAnswer]) -> rest.HttpAnswer:
        with suppress(MemtoolError):  # the verb will say it, too
            await self._indexed(None)
        answer = await asyncio.get_running_loop().run_in_executor(self.write.pool, work)
        self.jobs.end(number, answer)
        self.watch.forget()
        return answer

    async def form(self, request: Request) -> Response:
        """Run a verb that a form asks for, then lead on; or show what it would do, or did."""
        found = rest.procedure(request.path_params["verb"])
        sent = parse_qsl((await _body(request)).decode(errors="replace"), keep_blank_values=True)
        pairs = [(name, value.replace("\r\n", "\n")) for name, value in sent]  # as HTML sends lines
        fields = dict(pairs)
        refuse_form(request.state.visitor, fields.get("nonce", ""))
        pairs = [one for one in pairs if one[0] not in ("nonce", "next", "step")]
        given = rest.of_pairs(found, pairs)
        step = fields.get("step", "")
        if step == SHOW and DRY_RUN in found.parameters:
            given[DRY_RUN] = True
        rest.refuse_writing(found.name, found.effect, given, is_writing=self.served.is_writing)
        await self._indexed()
        ask = partial(rest.ask, found, given, self.served.place, hinted=str)
        answer = await self.write.run(ask)
        self.watch.forget()
        if "error" in answer.body:
            raise Denied(answer.status, **answer.body["error"])
        goal = fields.get("next", "/")
        is_own = goal.startswith("/") and not goal.startswith(("//", "/\\")) and goal.isprintable()
        goal = goal if is_own else "/"
        if step not in (SHOW, DO):
            return RedirectResponse(goal, 303)
        is_done = DRY_RUN not in given

        def shown() -> str:
            context = self.served.place.open()
            values = forms.outcome(context, found.name, pairs, answer.body, is_done=is_done)
            view = self.view(request.state.visitor)
            return render.page("done.html", values | {"next": goal}, view=view, place="")

        return Response(await self.slow.run(shown), media_type="text/html")

    def _tell(self, verb: str, answer: rest.HttpAnswer) -> None:
        """Write the scores of what was found on stderr, where that was asked for."""
        value = answer.body.get("value")
        rows = value.get("results") or value.get("items") if isinstance(value, dict) else ()
        if self.served.is_verbose and verb in rest.QUICK:
            for row in rows or ():
                sys.stderr.write(f"  {row.get('score')}  {row['id']}\n")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer a request whose handler raised something; a bug is one, too."""
        if isinstance(error, HTTPException):
            answer = self.refused(request, _unanswered(request, error))
            answer.headers.update(error.headers or {})  # what it would take in place of a 405
            return answer
        refusal = as_refusal(error)
        return self.refused(request, refusal, await self._near(request, refusal.code))

    async def _near(self, request: Request, code: str) -> Offers:
        """Return what may be meant by an address of a page that is refused."""
        route = request.scope.get("route")
        path = route.path if isinstance(route, Route) else ""
        if all(page.path != path for page in PAGES):
            return ()
        asked = path, request.path_params, parse_qsl(request.url.query)
        found: Offers = ()
        if code in near.NAMES:
            with suppress(MemtoolError):  # the repository is gone, or it takes too long
                found = await self.slow.run(
                    lambda: near.offers(self.served.place.open(), code, *asked)
                )
        return [*found, *near.bare(*asked)]

    def refused(self, request: Request, error: MemtoolError, meant: Offers = ()) -> Response:
        """Return a refusal: a page for a browser, an object for a program."""
        answer = rest.refusal(error)
        path, status = request.url.path, answer.status
        if path.startswith("/memory/"):
            return JSONResponse(clients.error_object(answer.body["error"]), status)
        is_link = path == "/login" and request.method not in SAFE
        if (
            is_link
            or path == "/health"
            or path.startswith("/api/")
            or openapi.JSON in request.headers.get("accept", "")
        ):
            return JSONResponse(answer.body, status)
        visitor: Visitor | None = getattr(request.state, "visitor", None)
        view = PageView("memtool", (), is_live=False)
        if visitor is not None and visitor.is_known:
            view = self.view(visitor)
        values = {
            "title": _refusal_title(request, status),
            "message": visible(error.message),
            "hint": rest.LOOKS_AGAIN if error.code in rest.LOST else visible(error.hint),
            "near": meant,
        }
        text = render.page("error.html", values, view=view, place="")
        return Response(text, status, media_type="text/html")


def application(served: ServedSite) -> ASGIApp:
    """Return the application as a server runs it, with who may ask in front."""
    made = Application(served)

    kinds: tuple[type[Exception], ...] = (MemtoolError, HTTPException, Exception)
    handlers: dict[Any, Any] = {**dict.fromkeys(kinds, made.failed), ClientDisconnect: _left}
    inner = Starlette(routes=made.routes(), exception_handlers=handlers)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        headers = {name.lower(): value for name, value in request.headers.items()}
        is_gone = False

        async def listen() -> Message:
            nonlocal is_gone
            message = await receive()
            is_gone = is_gone or message["type"] == "http.disconnect"
            return message

        async def answer(message: Message) -> None:
            nonlocal is_gone
            if is_gone:
                return
            if message["type"] == "http.response.start":
                rows = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *rows]
                if served.is_verbose:
                    sys.stderr.write(f"{request.method} {scope['path']} {message['status']}\n")
            try:
                await send(message)
            except LocalProtocolError:  # the server has refused a broken body meanwhile
                is_gone = True

        try:
            request.state.visitor = served.guard.visitor(request.method, scope["path"], headers)
        except Denied as error:
            await made.refused(request, error)(scope, listen, answer)
            return
        await inner(scope, listen, answer)

    return guarded


async def _left(_request: Request, _error: Exception) -> Response:
    """Answer a client that closed while it was sending: nobody reads this."""
    return Response(status_code=400)


def _pairs(request: Request, most: int) -> list[tuple[str, str]]:
    """Return what follows the `?` of an address. Raises Denied where it is too much."""
    try:
        return parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=most)
    except ValueError:
        raise Denied(
            400, f"the address holds over {most:,} values", hint="ask for less at once"
        ) from None


async def _given(request: Request) -> dict[str, Any]:
    """Return the JSON object of a body; one without a type may be empty.

    Raises:
        Denied: it is of another type, which a page of another site could send, or no object.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await _body(request)
    if kind != openapi.JSON and (kind or body):
        raise Denied(
            415, "the body must be JSON", hint=f"content-type: {openapi.JSON}", code="media-type"
        )
    return rest.arguments(body)


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises Denied where it is too long, or too slow to come."""
    found = b""

    async def read() -> None:
        nonlocal found
        async for part in request.stream():
            found += part
            if len(found) > MOST_BODY:
                raise Denied(413, f"the body is longer than {MOST_BODY:,} bytes", code="too-large")

    try:
        await asyncio.wait_for(read(), BODY_S)
    except TimeoutError:
        raise Denied(408, "the body did not come in time", code="too-slow") from None
    return found


def _refusal_title(request: Request, status: int) -> str:
    """Return what a page that says no is called."""
    if status == 404:
        return "Not found"
    if status not in (400, 422):
        return "Refused"
    return "That cannot be shown" if request.method in SAFE else "That was refused"


def _methods(*, is_address: bool) -> list[str]:
    """Return how a route is asked: all take an object, and some an address."""
    return ["GET", "POST"] if is_address else ["POST"]


def _sent(answer: rest.HttpAnswer) -> Response:
    """Return an answer as it is sent; where it is a job, with the address to ask after it."""
    where = {"location": f"/api/jobs/{answer.body['id']}"} if answer.status == 202 else None
    return JSONResponse(answer.body, answer.status, headers=where)


def _agent(request: Request) -> str:
    """Return the program that asks, as it names itself."""
    name = request.headers.get("memtool-agent", "")[:60]
    return name if name.isprintable() else ""


def _unanswered(request: Request, error: HTTPException) -> Denied:
    """Return the refusal of what no route leads to, or none of this method."""
    path = request.url.path
    if error.status_code == 405:
        takes = (error.headers or {}).get("Allow", "")
        return Denied(405, f"{path[:80]} does not take {request.method}", hint=f"it takes {takes}")
    if path.startswith("/api/"):
        return rest.no_route(path.removeprefix("/api/"))
    return Denied(
        404,
        f"there is nothing at {path[:80]}",
        hint="the menu leads to every page",
        code="no-route",
    )
