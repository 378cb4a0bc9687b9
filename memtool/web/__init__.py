"""The web view and the HTTP API: a surface for browsers and programs on this machine.

`server` listens, `app` carries requests, `security` says who may ask, `pages` holds what there is
to see, `render` makes HTML of it, `state` says when an answer is still good. The static site has
the same pages and templates: `site_pages` and `site_lists` say what is in it, `site_links` where an
address of the live view leads to, `words` is its search, `folder` where it lies.
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
    """Serve what a command line names until it is interrupted, and return the exit code.

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
            f"the web view needs {error.name}, which is not installed",
            hint=installation.install("web"),
            code="no-web",
        ) from None
    return server.serve(call.directory, env, is_global=call.is_global, **call.options)
