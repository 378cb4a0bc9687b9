"""The Python API: a context whose methods are the verbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from memtool.cli.main import undamaged as _undamaged
from memtool.commands import alias as _alias
from memtool.commands import archive as _archive
from memtool.commands import blame as _blame
from memtool.commands import capture as _capture
from memtool.commands import check as _check
from memtool.commands import config as _config
from memtool.commands import conflicts as _conflicts
from memtool.commands import curate as _curate
from memtool.commands import diff as _diff
from memtool.commands import digest as _digest
from memtool.commands import doctor as _doctor
from memtool.commands import eval as _eval
from memtool.commands import forget as _forget
from memtool.commands import hook as _hook
from memtool.commands import import_ as _import
from memtool.commands import init as _init
from memtool.commands import inject as _inject
from memtool.commands import install as _install
from memtool.commands import list as _list
from memtool.commands import log as _log
from memtool.commands import maintain as _maintain
from memtool.commands import mcp as _mcp
from memtool.commands import new as _new
from memtool.commands import promote as _promote
from memtool.commands import purge as _purge
from memtool.commands import redact as _redact
from memtool.commands import resolve as _resolve
from memtool.commands import review as _review
from memtool.commands import search as _search
from memtool.commands import session as _session
from memtool.commands import session_data as _session_data
from memtool.commands import show as _show
from memtool.commands import stats as _stats
from memtool.commands import status as _status
from memtool.commands import why as _why
from memtool.commands._filters import options as _options
from memtool.store.context import Context


class Project(Context):
    """A repository with every verb as a method; `memtool.open` makes one.

        project = memtool.open(".")
        made = project.new("decision", "Keep sessions in Redis", tag=("auth",), commit=True)
        for hit in project.search("where do sessions live?").results:
            print(hit.id, hit.title)
        project.supersede(made.id, "Keep sessions in Postgres")

    A method has the name, parameters and defaults of its verb (`import` is `import_`, `session
    start` is `session_start`), and the verb's docstring. What the command line takes as an
    argument is positional, an option is a keyword, and one that may be repeated is a tuple. A
    method returns the value that `--json` prints: its fields are attributes, and `plain()` gives
    the dict. A refusal is a `MemtoolError` with `message`, `hint` and `code`.

    Nothing is printed. What the command line prints on stderr is collected in `notes`.
    Each call reads the files as they are then; only the settings and the clock are read once, so
    a program that runs for long opens a new project from time to time.
    """

    init = _init.init
    status = _status.status
    stats = _stats.stats
    config = _config.config
    alias = _alias.alias
    auto = _config.auto
    new = _new.new
    remember = _new.remember
    supersede = _new.supersede
    confirm = _archive.confirm
    pin = _archive.pin
    unpin = _archive.unpin
    deprecate = _archive.deprecate
    archive = _archive.archive
    forget = _forget.forget
    restore = _archive.restore
    purge = _purge.purge
    redact = _redact.redact
    review = _review.review
    list = _list.list
    show = _show.show
    search = _search.search
    inject = _inject.inject
    eval = _eval.eval
    log = _log.log
    blame = _blame.blame
    why = _why.why
    diff = _diff.diff
    check = _check.check
    conflicts = _conflicts.conflicts
    resolve = _resolve.resolve
    install = _install.install
    uninstall = _install.uninstall
    doctor = _doctor.doctor
    hook = _hook.hook
    mcp = _mcp.mcp
    session_list = _session.session_list
    session_start = _session.session_start
    session_add = _session.session_add
    session_checkpoint = _session.session_checkpoint
    session_end = _session.session_end
    session_fork = _session.session_fork
    session_show = _session.session_show
    session_export = _session_data.session_export
    session_prune = _session_data.session_prune
    session_delete = _session_data.session_delete
    capture = _capture.capture
    promote = _promote.promote
    curate = _curate.curate
    maintain = _maintain.maintain
    digest = _digest.digest
    import_ = _import.import_
    export = _import.export


class GlobalProject(Project):
    """The user's global memories; `memtool.open(global_=True)` makes one.

    It is like any other project, but whatever a method writes is committed.
    """


def _method(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb as a method, which is called again should the index be damaged."""

    @wraps(run)
    def method(self: Project, *args: Any, **options: Any) -> Any:
        given = _options(self, run, options) if isinstance(self, GlobalProject) else options
        return _undamaged(self, lambda: run(self, *args, **given))

    return method


for _name, _run in tuple(vars(Project).items()):
    if not _name.startswith("_"):
        setattr(Project, _name, _method(_run))
