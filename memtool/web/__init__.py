"""The web view and the HTTP API, for browsers and programs on this machine.

`server` listens, `app` handles requests, `security` authenticates, `pages` has the pages, `render`
makes HTML, `state` decides how long an answer may be cached. The static site uses the same pages
and templates: `site_pages` and `site_lists` build its content, `site_links` maps the addresses of
the live view, `words` is its search, `folder` writes it.
"""

from __future__ import annotations

from memtool import installation
from memtool.errors import MemtoolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from memtool.calls.bind import Call

PACKAGES = ("jinja2", "starlette", "uvicorn")


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Serve until interrupted, and return the exit code.

    The verb `site` builds the static site instead.

    Raises:
        MemtoolError: the packages are missing, there are no memories, or the port is taken.
    """
    try:
        if call.face.name == "site":
            from memtool.web import site  # no server

            return site.run(call, env)
        from memtool.web import server  # it loads every verb
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise MemtoolError(
            f"cannot start the web view: {error.name} is not installed",
            hint=installation.install("web"),
            code="not-installed",
        ) from None
    return server.serve(call.directory, env, is_global=call.is_global, **call.options)
