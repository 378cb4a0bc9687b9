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
from starlette.routing import Route, compile_path

from memtool.calls.boundary import to_refusal
from memtool.calls.procedures import READ
from memtool.commands import _features
from memtool.commands._layout import WIDE_WIDTH, build_layout
from memtool.errors import MemtoolError
from memtool.store import derived
from memtool.value import Value
from memtool.web import clients, openapi, render, rest, visits
from memtool.web.form_refusal import build_form_refusal
from memtool.web.page import PageQuery
from memtool.web.pages import PAGES, forms, near
from memtool.web.refusals import word_refusal
from memtool.web.render import PageView
from memtool.web.security import COOKIE, HEADERS, SAFE, DeniedError, Guard, refuse_form
from memtool.web.sent_form import BACK, DO, SHOW, SentForm, parse_form, split_address
from memtool.web.state import AnswerCache, IndexBuild, Stamp, StateMonitor

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

MAX_BODY = 1 << 20
MAX_FIELDS, MAX_VALUES = 100, 10_000
"""Values that the address of a page, and of a verb, may hold."""
BODY_S, READ_S, WRITE_S = 15.0, 60.0, rest.MAX_PATIENCE_S
"""Seconds that a body, a reading and a writing verb may take."""
SOON_S = 0.5
"""Seconds that a page waits for the index before it says that it is being built."""
LOOK_S = 1.0
"""Seconds between checks for a change while a page is open."""
LATER = '<meta http-equiv="refresh" content="0">'
"""The end of the page that waits: it is sent when there is something to wait for no more."""
BUILDING = "the search index is being built"
DRY_RUN = "dry_run"
STRANGE = (401, 421)
"""Statuses of a request to a name, or with a session, that this process does not know."""
KEPT_STATUSES = (401, 403, 421, 500, 503)
"""Statuses with which a form is refused that is not wrong itself."""


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
            raise DeniedError(
                503,
                f"the answer took over {self._limit_s:g} seconds; the call is still running",
                hint="ask again later",
                code="too-slow",
            ) from None


class ServedSite(Value):
    """What a process serves: its address, its clients, and whether it may write."""

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
        self.watch = StateMonitor(served.place)
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
            Route("/seen", self.seen, methods=["POST"]),
            Route("/static/{name}", self.static, methods=["GET"]),
            Route("/events", self.events, methods=["GET"]),
            Route("/do/{verb}", self.form, methods=["POST"]),
            *(
                Route(
                    f"/memory/{name}",
                    partial(self.memory, client_name=client_name),
                    methods=_list_methods(is_address=client_name.is_address),
                )
                for name, client_name in clients.NAMES.items()
            ),
            Route("/api/openapi.json", self.openapi, methods=["GET"]),
            Route("/api/jobs/{id}", self.job, methods=["GET"]),
            *(
                Route(
                    f"/api/{name}",
                    partial(self.api, procedure=procedure),
                    methods=_list_methods(is_address=procedure.effect == READ),
                )
                for name, procedure in rest.PROCEDURES.items()
            ),
        ]

    async def page(self, request: Request, *, page: Page) -> Response:
        """Answer with a page, the kept one while nothing changed."""
        stamp = await self._read_stamp()
        visitor: Visitor = request.state.visitor
        building = self.build.wait_for(stamp)
        if building is not None:
            await asyncio.wait([building], timeout=SOON_S)
            if not building.done():
                return self._answer_building(stamp, visitor, building)
            stamp = await self._read_stamp()
        jobs = f"{self.jobs.running} {self.jobs.last_error}"
        session = visitor.session  # the forms of a page hold its nonce
        key = (request.url.path, request.url.query, session, str(visitor.is_person), jobs)
        mark = stamp.private if page.is_private else stamp.memories
        cached = self.cache.get(key, mark)
        if cached is None:
            query = PageQuery(request.path_params, _parse_pairs(request, MAX_FIELDS))
            lane = self.slow if page.is_slow else self.quick
            address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            status, text = await lane.run(lambda: self._render(page, query, visitor, address))
            body = text.encode(errors="replace")
            if status != 200:
                return Response(body, status, media_type="text/html")
            cached = self.cache.put(key, mark, body), body
        tag, body = cached
        headers = {"etag": tag, "cache-control": "private, no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="text/html")

    async def _read_stamp(self) -> Stamp:
        stamp = self.watch.fresh
        return stamp if stamp is not None else await self.look.run(self.watch.look)

    async def _wait_for_index(self, limit_s: float | None = READ_S) -> None:
        """Wait until the index is built. Raises DeniedError if that takes too long."""
        building = self.build.wait_for(self.watch.last or await self._read_stamp())
        if building is None:
            return
        await asyncio.wait([building], timeout=limit_s)
        if not building.done():
            raise DeniedError(503, BUILDING, hint="ask again later", code="too-slow")

    def _answer_building(
        self, stamp: Stamp, visitor: Visitor, building: asyncio.Task[None]
    ) -> Response:
        """Say that the index is being built, and lead on when it is there."""
        values = {"title": "Reading the memories", "count": stamp.to_build}
        page = render.render_page("building.html", values, view=self.view(visitor), place="")
        begin, mark, end = page.partition(LATER)

        async def parts() -> AsyncIterator[str]:
            yield begin
            await asyncio.wait([building])
            yield f"{mark}{end}"

        headers = {"retry-after": "5", "cache-control": "no-store"}
        return StreamingResponse(parts(), 503, headers=headers, media_type="text/html")

    def _render(
        self,
        page: Page,
        query: PageQuery,
        visitor: Visitor,
        address: str,
        sent: SentForm | None = None,
    ) -> tuple[int, str]:
        """Return the status and the HTML of a page, which may show a refusal itself.

        `sent` is a form of it that was refused.
        """
        context = self.served.place.open()
        context.caller.is_person = visitor.is_person
        context.trees_by_commit = {}  # a page is of one moment

        def make() -> tuple[int, str]:
            values = page.values(context, query)
            place = page.path.format(**query.parts)
            error = values.get("error")
            return rest.find_status(error) if error else 200, render.render_page(
                page.template,
                values,
                view=self.view(visitor, address, sent),
                place=place,
                layout=build_layout(context, width=WIDE_WIDTH),
            )

        return derived.retry_if_damaged(context, make)

    def view(self, visitor: Visitor, address: str = "/", sent: SentForm | None = None) -> PageView:
        """Return the context in which a page is rendered."""
        menu = tuple(
            (page.path, page.menu)
            for page in PAGES
            if page.menu and (not page.feature or self._has(page.feature))
        )
        return PageView(
            self.served.name,
            menu,
            self.served.is_writing,
            nonce=visitor.nonce,
            running=tuple(self.jobs.running),
            failure=self.jobs.last_error or "",
            address=address,
            sent=sent,
        )

    def _has(self, feature: str) -> bool:
        """Return whether the user has set a feature up; False if that is unknown."""
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
        await self._note_visit(visits.begin)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
        return answer

    async def seen(self, request: Request) -> Response:
        """Note that the reader knows what changed, and go back to the first page."""
        fields = dict(parse_qsl((await _read_body(request)).decode(errors="replace")))
        refuse_form(request.state.visitor, fields.get("nonce", ""))
        await self._note_visit(visits.mark_seen)
        return RedirectResponse("/", 303)

    async def _note_visit(self, note: Callable[[str, str, int], None]) -> None:
        """Note what the reader was told, by the commit that is here now."""

        def work() -> None:
            with suppress(MemtoolError):  # the repository is gone, as the next page says
                context = self.served.place.open()
                head = context.repository.git.head()
                note(context.repository.cache_dir, head, context.clock.now)

        await self.look.run(work)
        self.watch.forget()

    def _link(self, request: Request) -> Response:
        """Answer a program of the same user with a new login link."""
        if request.headers.get("authorization") != f"Bearer {self.served.guard.token}":
            raise DeniedError(401, "wrong token for this server", code="login")
        return JSONResponse({"url": self.served.guard.link()})

    async def static(self, request: Request) -> Response:
        """Answer with the style, the script or the icon."""
        name = request.path_params["name"]
        if name not in render.FILES:
            raise HTTPException(404)
        headers = {"cache-control": "max-age=3600"}
        return Response(render.read_static(name), media_type=render.FILES[name], headers=headers)

    async def events(self, _request: Request) -> Response:
        """Notify a page of changes as long as it is open."""

        async def stream() -> AsyncIterator[str]:
            last = ""
            while True:
                try:
                    stamp = await self._read_stamp()
                except MemtoolError:
                    return
                if stamp.private != last:
                    last = stamp.private
                    yield f"data: {last}\n\n"
                await asyncio.sleep(LOOK_S)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def openapi(self, request: Request) -> Response:
        """Answer with the OpenAPI document."""
        return JSONResponse(openapi.build_document(f"http://{request.headers['host']}"))

    async def job(self, request: Request) -> Response:
        """Answer with a job."""
        return JSONResponse(self.jobs.get(request.path_params["id"]))

    async def api(self, request: Request, *, procedure: Procedure) -> Response:
        """Run a verb: with arguments from the address if it only reads, else from a JSON object."""
        if request.method in SAFE:
            arguments = rest.parse_pairs(procedure, _parse_pairs(request, MAX_VALUES))
        else:
            arguments = await _read_arguments(request)
        rest.bind_arguments(procedure.signature, arguments)  # before a job begins
        rest.refuse_writing(
            procedure.name, procedure.effect, arguments, is_writing=self.served.is_writing
        )
        work = partial(
            rest.ask, procedure, arguments, self.served.place.replace(agent=_find_agent(request))
        )
        if procedure.name in rest.LONG:
            patience_s = rest.parse_patience_s(request.headers.get("prefer", ""))
            return _send(await self._do_work(procedure.name, work, patience_s))
        await self._wait_for_index()
        is_write = procedure.effect != READ
        lane = self.write if is_write else self.slow
        answer = await (self.quick if procedure.name in rest.QUICK else lane).run(work)
        if is_write:
            self.watch.forget()
        self._tell(procedure.name, answer)
        return _send(answer)

    async def memory(self, request: Request, *, client_name: ClientName) -> Response:
        """Answer a name that clients of other memory servers know."""
        is_posted = request.method not in SAFE
        arguments = client_name.fit(
            await _read_arguments(request) if is_posted else dict(request.query_params)
        )
        rest.refuse_writing(
            client_name.name, client_name.effect, arguments, is_writing=self.served.is_writing
        )
        place = self.served.place.replace(agent=_find_agent(request))
        work = partial(clients.answer, client_name, arguments, place, self.jobs)
        if client_name.is_long:
            patience_s = rest.parse_patience_s(
                request.headers.get("prefer", ""), client_name.patience_s
            )
            answer = await self._do_work(client_name.name, work, patience_s)
        else:
            if client_name.name != "get-status":  # it says how the server is, at once
                await self._wait_for_index()
            answer = await (self.quick if client_name.effect == READ else self.write).run(work)
            if client_name.effect != READ:
                self.watch.forget()
        if "error" in answer.body:
            return JSONResponse(clients.build_error_object(answer.body["error"]), answer.status)
        return _send(answer)

    async def _do_work(
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
            await self._wait_for_index(None)
        answer = await asyncio.get_running_loop().run_in_executor(self.write.pool, work)
        self.jobs.end(number, answer)
        self.watch.forget()
        return answer

    async def form(self, request: Request) -> Response:
        """Run a verb for a form, then redirect; or show a preview or the result.

        A form that is refused is shown again, with what was typed.
        """
        procedure = rest.find_procedure(request.path_params["verb"])
        sent = parse_form(procedure.name, await _read_body(request))
        try:
            if sent.step == BACK:
                return await self._show_again(request, sent, procedure, None)
            return await self._do_form(request, sent, procedure)
        except MemtoolError as error:
            return await self._show_again(request, sent, procedure, error)

    async def _do_form(self, request: Request, sent: SentForm, procedure: Procedure) -> Response:
        """Run the verb of a form. Raises MemtoolError if it is refused."""
        visitor: Visitor = request.state.visitor
        refuse_form(visitor, sent.control.get("nonce", ""))
        forms.refuse_unreasoned(sent)
        arguments = rest.parse_pairs(procedure, sent.arguments)
        if sent.step == SHOW and DRY_RUN in procedure.parameters:
            arguments[DRY_RUN] = True
        is_done = DRY_RUN not in arguments
        rest.refuse_writing(
            procedure.name, procedure.effect, arguments, is_writing=self.served.is_writing
        )
        await self._wait_for_index()

        def run() -> tuple[rest.HttpAnswer, str]:
            seen = forms.compute_stamp(self.served.place.open(), sent)
            if is_done and sent.control.get("seen", seen) != seen:
                raise forms.changed_error()
            return rest.ask(procedure, arguments, self.served.place, _raise_error), seen

        answer, seen = await self.write.run(run)
        self.watch.forget()
        if sent.step not in (SHOW, DO):
            return RedirectResponse(sent.goal, 303)

        def render_form() -> str:
            context = self.served.place.open()
            values = forms.build_outcome(context, sent, answer.body, seen=seen, is_done=is_done)
            layout = build_layout(context, width=WIDE_WIDTH)
            view = self.view(visitor, sent.page)
            return render.render_page("done.html", values, view=view, place="", layout=layout)

        return _send_page(await self.slow.run(render_form))

    async def _show_again(
        self, request: Request, sent: SentForm, procedure: Procedure, error: MemtoolError | None
    ) -> Response:
        """Answer with the page of a form, with what was typed, and with what is wrong, if any."""
        visitor: Visitor = request.state.visitor
        status = 200
        if error is not None:
            status = rest.find_status(error)
            status = status if status in KEPT_STATUSES else rest.REFUSED

        def render_again() -> str:
            context, form = self.served.place.open(), sent
            if error is not None:
                form = sent.replace(refusal=build_form_refusal(context, error, procedure, sent))
            page, query = _find_page(sent.page)
            with suppress(MemtoolError):  # the memory of the page is gone
                text = self._render(page, query, visitor, sent.page, form)[1]
                if render.has_form(text, sent.name) or form.refusal is None:
                    return text
                refusal = form.refusal.replace(texts=tuple(sent.list_texts()))
                again = form.replace(refusal=refusal)
                return self._render(page, query, visitor, sent.page, again)[1]
            return self._render_texts(form, error, self.view(visitor))

        try:
            return _send_page(await self.slow.run(render_again), status)
        except MemtoolError:  # the repository is gone, or it takes too long
            return _send_page(self._render_texts(sent, error, self.view(visitor)), status)

    async def answer_denied(self, request: Request, error: DeniedError) -> Response:
        """Answer a request that is not let in.

        A form of a server that has ended gets its texts back: its page is at a name that is gone.
        """
        origin = f"http://{request.headers.get('host', '')}"
        is_own_form = request.headers.get("origin", "").lower() == origin.lower()
        if error.status not in STRANGE or not request.url.path.startswith("/do/"):
            return self.answer_refusal(request, error)
        if not is_own_form or request.headers.get("sec-fetch-site", "") != "same-origin":
            return self.answer_refusal(request, error)
        try:
            sent = parse_form("", await _read_body(request))
        except (ClientDisconnect, DeniedError):
            return self.answer_refusal(request, error)
        ended = DeniedError(
            error.status,
            "the server was started again since this page was opened",
            hint="open the link that it printed then, and type this in again there",
        )
        text = self._render_texts(sent, ended, PageView("memtool", (), is_live=False))
        return _send_page(text, error.status)

    def _render_texts(self, sent: SentForm, error: MemtoolError | None, view: PageView) -> str:
        """Return a page with what was typed, to be copied, if its form cannot be shown again."""
        error = error or DeniedError(404, "the page of this form is gone")
        values = {
            "title": "That was refused",
            "refused": word_refusal(error, error.hint),
            "near": (),
            "texts": sent.list_texts(),
        }
        return render.render_page("error.html", values, view=view, place="")

    def _tell(self, verb: str, answer: rest.HttpAnswer) -> None:
        """Write the scores of a search to stderr if requested."""
        value = answer.body.get("value")
        rows = value.get("results") or value.get("items") if isinstance(value, dict) else ()
        if self.served.is_verbose and verb in rest.QUICK:
            for row in rows or ():
                sys.stderr.write(f"  {row.get('score')}  {row['id']}\n")

    async def answer_failure(self, request: Request, error: Exception) -> Response:
        """Answer a request whose handler raised an error, bugs included."""
        if isinstance(error, HTTPException):
            answer = self.answer_refusal(request, _find_unanswered(request, error))
            answer.headers.update(error.headers or {})  # the methods that a 405 has to name
            return answer
        refusal = to_refusal(error)
        return self.answer_refusal(request, refusal, await self._find_near(request, refusal.code))

    async def _find_near(self, request: Request, code: str) -> Offers:
        """Return what may be meant by an address of a page that is refused."""
        route = request.scope.get("route")
        path = route.path if isinstance(route, Route) else ""
        if all(page.path != path for page in PAGES):
            return ()
        address = path, request.path_params, parse_qsl(request.url.query)
        offers: Offers = ()
        if code in near.NAMES:
            with suppress(MemtoolError):  # the repository is gone, or it takes too long
                offers = await self.slow.run(
                    lambda: near.build_offers(self.served.place.open(), code, *address)
                )
        return [*offers, *near.without_query(*address)]

    def answer_refusal(self, request: Request, error: MemtoolError, meant: Offers = ()) -> Response:
        """Return a refusal: a page for a browser, an object for a program."""
        answer = rest.build_refusal(error)
        path, status = request.url.path, answer.status
        if path.startswith("/memory/"):
            return JSONResponse(clients.build_error_object(answer.body["error"]), status)
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
        hint = rest.LOOKS_AGAIN if error.code in rest.LOST else error.hint
        values = {
            "title": _refusal_title(request, status),
            "refused": word_refusal(error, hint),
            "near": meant,
        }
        text = render.render_page("error.html", values, view=view, place="")
        return Response(text, status, media_type="text/html")


def build_application(served: ServedSite) -> ASGIApp:
    """Return the application as a server runs it, with who may ask in front."""
    made = Application(served)

    kinds: tuple[type[Exception], ...] = (MemtoolError, HTTPException, Exception)
    handlers: dict[Any, Any] = {
        **dict.fromkeys(kinds, made.answer_failure),
        ClientDisconnect: _answer_closed,
    }
    inner = Starlette(routes=made.routes(), exception_handlers=handlers)

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
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
        except DeniedError as error:
            refusal = await made.answer_denied(Request(scope, listen), error)
            await refusal(scope, listen, answer)
            return
        await inner(scope, listen, answer)

    return guard


async def _answer_closed(_request: Request, _error: Exception) -> Response:
    """Answer a client that closed the connection while sending; it reads no answer."""
    return Response(status_code=400)


def _parse_pairs(request: Request, max_values: int) -> list[tuple[str, str]]:
    """Return the pairs of a query string. Raises DeniedError if there are too many."""
    try:
        return parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=max_values)
    except ValueError:
        raise DeniedError(
            400, f"the address has over {max_values:,} values", hint="ask for less at once"
        ) from None


async def _read_arguments(request: Request) -> dict[str, Any]:
    """Return the JSON object of a body; one without a type may be empty.

    Raises:
        Denied: it is of another type, which a page of another site could send, or no object.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await _read_body(request)
    if kind != openapi.JSON and (kind or body):
        raise DeniedError(
            415, "the body must be JSON", hint=f"content-type: {openapi.JSON}", code="no-json"
        )
    return rest.parse_arguments(body)


async def _read_body(request: Request) -> bytes:
    """Return the body of a request. Raises DeniedError if it is too long or too slow."""
    body = b""

    async def read() -> None:
        nonlocal body
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY:
                raise DeniedError(
                    413, f"the body is longer than {MAX_BODY:,} bytes", code="too-large"
                )

    try:
        await asyncio.wait_for(read(), BODY_S)
    except TimeoutError:
        raise DeniedError(408, "the body did not arrive in time", code="too-slow") from None
    return body


def _raise_error(error: MemtoolError) -> rest.HttpAnswer:
    raise error


def _send_page(text: str, status: int = 200) -> Response:
    """Return a page that nobody keeps: it may hold what was typed into a form."""
    headers = {"cache-control": "no-store"}
    return Response(text.encode(errors="replace"), status, headers, "text/html")


def _find_page(address: str) -> tuple[Page, PageQuery]:
    """Return the page at an address with its query; the first page if no page is there."""
    path, pairs = split_address(address)
    for page in PAGES:
        match = compile_path(page.path)[0].match(path)
        if match is not None:
            with suppress(DeniedError):  # the address is too long
                return page, PageQuery(match.groupdict(), pairs)
    return PAGES[0], PageQuery({})


def _refusal_title(request: Request, status: int) -> str:
    """Return the title of a page for a refusal."""
    if status == 404:
        return "Not found"
    if status not in (400, 422):
        return "Refused"
    return "That cannot be shown" if request.method in SAFE else "That was refused"


def _list_methods(*, is_address: bool) -> list[str]:
    """Return how a route is asked: all take an object, and some an address."""
    return ["GET", "POST"] if is_address else ["POST"]


def _send(answer: rest.HttpAnswer) -> Response:
    """Return the response for an answer; for a job with the address of its result."""
    where = {"location": f"/api/jobs/{answer.body['id']}"} if answer.status == 202 else None
    return JSONResponse(answer.body, answer.status, headers=where)


def _find_agent(request: Request) -> str:
    """Return the program that asks, as it names itself."""
    name = request.headers.get("memtool-agent", "")[:60]
    return name if name.isprintable() else ""


def _find_unanswered(request: Request, error: HTTPException) -> DeniedError:
    """Return the refusal of what no route leads to, or none of this method."""
    path = request.url.path
    if error.status_code == 405:
        takes = (error.headers or {}).get("Allow", "")
        return DeniedError(
            405, f"{path[:80]} does not take {request.method}", hint=f"it takes {takes}"
        )
    if path.startswith("/api/"):
        return rest.no_route_error(path.removeprefix("/api/"))
    return DeniedError(
        404,
        f"no page at {path[:80]}",
        hint="use the menu",
        code="no-route",
    )
