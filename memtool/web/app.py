"""The application: each request to a page, a procedure or a file, and its answer back.

Verbs run in three lanes of one thread each: quick reads, slow reads, writes. So a search does not
wait for a report, and no two verbs of this process write at once. Pages are kept while the stamp of
the repository holds.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from memtool.cli.main import bug, undamaged
from memtool.cli.output import visible
from memtool.errors import MemtoolError
from memtool.value import Value
from memtool.web import clients, render, rest
from memtool.web.page import PageQuery
from memtool.web.pages import PAGES, forms
from memtool.web.pages.memory import near as near_ids
from memtool.web.render import PageView
from memtool.web.security import COOKIE, HEADERS, SAFE, Denied, Guard, refuse_form
from memtool.web.state import AnswerCache, Stamp, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TypeVar

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from memtool.rpc.call import ServedRepository
    from memtool.web.page import Page
    from memtool.web.security import Visitor

    Answer = TypeVar("Answer")

MOST_BODY = 1 << 20
BODY_S, READ_S, WRITE_S = 15.0, 60.0, 120.0
"""Seconds that a body, a reading and a writing verb may take."""
LOOK_S = 1.0
"""Seconds between looks for a change while somebody watches a page."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
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
            raise Denied(503, MemtoolError(
                f"the answer took over {self._limit_s:g} seconds; the call goes on",
                hint="ask again later",
                code="too-slow",
            )) from None  # fmt: skip


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
        self.quick, self.slow = Lane("quick", READ_S), Lane("slow", READ_S)
        self.write = Lane("write", WRITE_S)
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        """Return every route; pages come from their table."""
        pages = [
            Route(page.path, partial(self.page, page=page), methods=["GET"], name=page.template)
            for page in PAGES
        ]
        return [
            *pages,
            Route("/health", self.health, methods=["GET"]),
            Route("/login", self.login, methods=["GET"]),
            Route("/login", self.link, methods=["POST"]),
            Route("/static/{name}", self.static, methods=["GET"]),
            Route("/events", self.events, methods=["GET"]),
            Route("/do/{verb}", self.form, methods=["POST"]),
            Route("/memory/{name}", self.memory, methods=["GET", "POST"]),
            Route("/api/openapi.json", self.openapi, methods=["GET"]),
            Route("/api/jobs/{id}", self.job, methods=["GET"]),
            Route("/api/{verb}", self.api, methods=["GET", "POST"]),
        ]

    async def page(self, request: Request, *, page: Page) -> Response:
        """Answer with a page, the kept one while nothing changed."""
        stamp = await self._stamp()
        visitor: Visitor = request.state.visitor
        writer = visitor.session if self.served.is_writing else ""
        key = (request.url.path, request.url.query, writer, str(visitor.is_person))
        mark = stamp.private if page.is_private else stamp.memories
        kept = self.cache.get(key, mark)
        if kept is None:
            pairs = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=100)
            query = PageQuery(request.path_params, pairs)
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
        return known if known is not None else await self.slow.run(self.watch.look)

    def _rendered(self, page: Page, query: PageQuery, visitor: Visitor) -> str:
        context = self.served.place.open()
        context.is_person = visitor.is_person

        def make() -> str:
            values = page.values(context, query)
            place = page.path.format(**query.parts)
            return render.page(page.template, values, view=self.view(visitor), place=place)

        return undamaged(context, make)

    def view(self, visitor: Visitor) -> PageView:
        """Return what a page is shown in."""
        menu = tuple((page.path, page.menu) for page in PAGES if page.menu)
        return PageView(self.served.name, menu, self.served.is_writing, nonce=visitor.nonce)

    async def health(self, _request: Request) -> Response:
        """Answer that the server is there, and nothing else."""
        return JSONResponse({"status": "ok"})

    async def login(self, request: Request) -> Response:
        """Begin the session of a browser, and lead it to the first page."""
        host = request.headers.get("host", "").lower()
        session = self.served.guard.login(request.query_params.get("token", ""), host)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return answer

    async def link(self, request: Request) -> Response:
        """Answer a program of the same user with a new login link."""
        if request.headers.get("authorization") != f"Bearer {self.served.guard.token}":
            raise Denied(401, MemtoolError("the token is not that of this server", code="login"))
        return JSONResponse({"url": self.served.guard.link()})

    async def static(self, request: Request) -> Response:
        """Answer with the style, the script or the icon."""
        name = request.path_params["name"]
        if name not in render.FILES:
            raise _absent(request)
        headers = {"cache-control": "max-age=3600"}
        return Response(render.static(name), media_type=render.FILES[name], headers=headers)

    async def events(self, _request: Request) -> Response:
        """Tell a page when something changed, for as long as it is open."""

        async def stream() -> AsyncIterator[str]:
            last = ""
            while True:
                try:
                    stamp = await self._stamp()
                except (Denied, MemtoolError):
                    return
                if stamp.memories != last:
                    last = stamp.memories
                    yield f"data: {last}\n\n"
                await asyncio.sleep(LOOK_S)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        return JSONResponse(rest.openapi(f"http://{request.headers['host']}"))

    async def job(self, request: Request) -> Response:
        """Answer with a job."""
        return JSONResponse(self.jobs.get(request.path_params["id"]))

    async def api(self, request: Request) -> Response:
        """Run a verb: from the address where it only reads, else from a JSON object."""
        found = rest.procedure(request.path_params["verb"])
        if request.method in SAFE:
            if rest.is_write(found):
                raise Denied(405, MemtoolError(f"{found.name} may write", hint="POST it"))
            pairs = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=1000)
            given = rest.of_pairs(found, pairs)
        else:
            _refuse_other_types(request)
            given = rest.arguments(await _body(request))
        rest.refuse_writing(found, given, is_writing=self.served.is_writing)
        work = partial(rest.ask, found, given, self.served.place.replace(agent=_agent(request)))
        if rest.is_long(found, request.headers.get("prefer", "")):
            return self._begun(found.name, work)
        lane = self.write if rest.is_write(found) else self.slow
        answer = await (self.quick if found.name in rest.QUICK else lane).run(work)
        if rest.is_write(found):
            self.watch.forget()
        self._tell(found.name, answer)
        return JSONResponse(answer.body, answer.status)

    async def memory(self, request: Request) -> Response:
        """Answer a name that clients of other memory servers know."""
        name = request.path_params["name"]
        if name == "get-status":
            is_busy, error = bool(self.jobs.running), self.jobs.last_error
            state = "processing" if is_busy else "error" if error else "ready"
            found = {"status": state, "lastError": error, "maintenanceInProgress": is_busy}
            return JSONResponse(found)
        name = "get-stats" if name == "stats" else name
        if name not in clients.READING and name not in clients.WRITING:
            raise _absent(request)
        given: rest.Arguments = {}
        if request.method not in SAFE:
            _refuse_other_types(request)
            given = rest.arguments(await _body(request))
        elif name in clients.GET:
            given = dict(request.query_params)
        else:
            raise Denied(405, MemtoolError(f"{name} takes a JSON object", hint="POST it"))
        place = self.served.place.replace(agent=_agent(request))
        work = partial(clients.answer, name, given, place, is_writing=self.served.is_writing)
        if name == "checkpoint" and self.served.is_writing:
            return self._begun(name, work)
        answer = await (self.quick if name in clients.READING else self.write).run(work)
        if name in clients.WRITING:
            self.watch.forget()
        body = clients.refusal(answer.body["error"]) if "error" in answer.body else answer.body
        return JSONResponse(body, answer.status)

    def _begun(self, verb: str, work: Callable[[], rest.HttpAnswer]) -> Response:
        """Begin a job and answer at once where it can be asked after."""
        number = self.jobs.begin(verb)
        task = asyncio.get_running_loop().create_task(self._job(number, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        where = {"location": f"/api/jobs/{number}"}
        return JSONResponse(self.jobs.get(number), 202, headers=where)

    async def _job(self, number: str, work: Callable[[], rest.HttpAnswer]) -> None:
        loop = asyncio.get_running_loop()
        self.jobs.end(number, await loop.run_in_executor(self.write.pool, work))
        self.watch.forget()

    async def form(self, request: Request) -> Response:
        """Run a verb that a form asks for, then lead on; or show what it would do, or did."""
        found = rest.procedure(request.path_params["verb"])
        pairs = parse_qsl((await _body(request)).decode(errors="replace"), keep_blank_values=True)
        fields = dict(pairs)
        refuse_form(request.state.visitor, fields.get("nonce", ""))
        pairs = [one for one in pairs if one[0] not in ("nonce", "next", "step")]
        given = rest.of_pairs(found, pairs)
        step = fields.get("step", "")
        if step == SHOW and DRY_RUN in found.parameters:
            given[DRY_RUN] = True
        rest.refuse_writing(found, given, is_writing=self.served.is_writing)
        answer = await self.write.run(partial(rest.ask, found, given, self.served.place))
        self.watch.forget()
        if "error" in answer.body:
            error = answer.body["error"]
            raise Denied(answer.status, MemtoolError(error["message"], hint=error["hint"]))
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
        value = answer.body.get("value", {})
        rows = value.get("results") or value.get("items") or []
        if self.served.is_verbose and verb in rest.QUICK:
            for row in rows:
                sys.stderr.write(f"  {row.get('score')}  {row['id']}\n")

    async def failed(self, request: Request, error: Exception) -> Response:
        """Answer a request whose handler raised something; a bug is one, too."""
        if isinstance(error, Denied):
            return self.refused(request, error.status, error.error)
        if isinstance(error, MemtoolError):
            near: tuple[str, ...] = ()
            if error.code == "unknown-id" and "id" in request.path_params:
                id_ = request.path_params["id"]
                near = await self.slow.run(lambda: near_ids(self.served.place.open(), id_))
            return self.refused(request, rest.status_of(error), error, near)
        if isinstance(error, HTTPException):
            return self.refused(request, error.status_code, _absent(request).error)
        return self.refused(request, 500, bug(error))

    def refused(
        self, request: Request, status: int, error: MemtoolError, near: tuple[str, ...] = ()
    ) -> Response:
        """Return a refusal: a page for a browser, an object for a program."""
        if request.url.path.startswith(("/api/", "/memory/")) or JSON in request.headers.get(
            "accept", ""
        ):
            answer = rest.refusal(error, status=status)
            return JSONResponse(answer.body, answer.status)
        visitor: Visitor | None = getattr(request.state, "visitor", None)
        view = PageView("memtool", (), is_live=False)
        if visitor is not None and visitor.is_known:
            view = self.view(visitor)
        values = {
            "title": "Not found" if status == 404 else "Refused",
            "message": visible(error.message),
            "hint": visible(error.hint),
            "near": near,
        }
        text = render.page("error.html", values, view=view, place="")
        return Response(text, status, media_type="text/html")


def application(served: ServedSite) -> ASGIApp:
    """Return the application as a server runs it, with who may ask in front."""
    made = Application(served)

    kinds: tuple[type[Exception], ...] = (Denied, MemtoolError, HTTPException, Exception)
    inner = Starlette(routes=made.routes(), exception_handlers=dict.fromkeys(kinds, made.failed))

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        headers = {name.lower(): value for name, value in request.headers.items()}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                rows = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *rows]
                if served.is_verbose:
                    sys.stderr.write(f"{request.method} {scope['path']} {message['status']}\n")
            await send(message)

        try:
            request.state.visitor = served.guard.visitor(request.method, scope["path"], headers)
        except Denied as error:
            refusal = made.refused(request, error.status, error.error)
            await refusal(scope, receive, answer)
            return
        await inner(scope, receive, answer)

    return guarded


def _refuse_other_types(request: Request) -> None:
    if request.headers.get("content-type", "").partition(";")[0].strip() != JSON:
        raise Denied(415, MemtoolError(
            "the body must be JSON", hint=f"content-type: {JSON}", code="media-type"
        ))  # fmt: skip


async def _body(request: Request) -> bytes:
    """Return the body of a request. Raises Denied where it is too long, or too slow to come."""
    found = b""

    async def read() -> None:
        nonlocal found
        async for part in request.stream():
            found += part
            if len(found) > MOST_BODY:
                raise Denied(413, MemtoolError(
                    f"the body is longer than {MOST_BODY:,} bytes", code="too-large"
                ))  # fmt: skip

    try:
        await asyncio.wait_for(read(), BODY_S)
    except TimeoutError:
        raise Denied(408, MemtoolError("the body did not come in time", code="too-slow")) from None
    return found


def _agent(request: Request) -> str:
    """Return the program that asks, as it names itself."""
    name = request.headers.get("memtool-agent", "")[:60]
    return name if name.isprintable() else ""


def _absent(request: Request) -> Denied:
    return Denied(404, MemtoolError(
        f"there is nothing at {request.url.path[:80]}",
        hint="the menu leads to every page",
        code="no-route",
    ))  # fmt: skip
