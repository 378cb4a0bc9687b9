"""The Python API: a context whose methods are the verbs."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from memtool.cli.main import undamaged as _undamaged
from memtool.commands._filters import options as _options
from memtool.commands.alias import alias as _alias
from memtool.commands.archive import archive as _archive
from memtool.commands.auto import auto as _auto
from memtool.commands.blame import blame as _blame
from memtool.commands.capture import capture as _capture
from memtool.commands.check import check as _check
from memtool.commands.config import config as _config
from memtool.commands.confirm import confirm as _confirm
from memtool.commands.conflicts import conflicts as _conflicts
from memtool.commands.curate import curate as _curate
from memtool.commands.deprecate import deprecate as _deprecate
from memtool.commands.diff import diff as _diff
from memtool.commands.digest import digest as _digest
from memtool.commands.doctor import doctor as _doctor
from memtool.commands.eval import eval as _eval
from memtool.commands.export import export as _export
from memtool.commands.forget import forget as _forget
from memtool.commands.hook import hook as _hook
from memtool.commands.import_ import import_ as _import
from memtool.commands.init import init as _init
from memtool.commands.inject import inject as _inject
from memtool.commands.install import install as _install
from memtool.commands.list import list as _list
from memtool.commands.log import log as _log
from memtool.commands.maintain import maintain as _maintain
from memtool.commands.mcp import mcp as _mcp
from memtool.commands.new import new as _new
from memtool.commands.pin import pin as _pin
from memtool.commands.promote import promote as _promote
from memtool.commands.purge import purge as _purge
from memtool.commands.redact import redact as _redact
from memtool.commands.remember import remember as _remember
from memtool.commands.resolve import resolve as _resolve
from memtool.commands.restore import restore as _restore
from memtool.commands.review import review as _review
from memtool.commands.search import search as _search
from memtool.commands.session import session_add as _session_add
from memtool.commands.session import session_checkpoint as _session_checkpoint
from memtool.commands.session import session_end as _session_end
from memtool.commands.session import session_fork as _session_fork
from memtool.commands.session import session_list as _session_list
from memtool.commands.session import session_prune as _session_prune
from memtool.commands.session import session_show as _session_show
from memtool.commands.session import session_start as _session_start
from memtool.commands.show import show as _show
from memtool.commands.stats import stats as _stats
from memtool.commands.status import status as _status
from memtool.commands.supersede import supersede as _supersede
from memtool.commands.uninstall import uninstall as _uninstall
from memtool.commands.unpin import unpin as _unpin
from memtool.commands.why import why as _why
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

    Nothing is printed. What the command line tells beside an answer is collected in `notes`.
    Each call reads the files as they are then; only the settings and the clock are read once, so
    a program that runs for long opens a new project from time to time.
    """

    init = _init
    status = _status
    stats = _stats
    config = _config
    alias = _alias
    auto = _auto
    new = _new
    remember = _remember
    supersede = _supersede
    confirm = _confirm
    pin = _pin
    unpin = _unpin
    deprecate = _deprecate
    archive = _archive
    forget = _forget
    restore = _restore
    purge = _purge
    redact = _redact
    review = _review
    list = _list
    show = _show
    search = _search
    inject = _inject
    eval = _eval
    log = _log
    blame = _blame
    why = _why
    diff = _diff
    check = _check
    conflicts = _conflicts
    resolve = _resolve
    install = _install
    uninstall = _uninstall
    doctor = _doctor
    hook = _hook
    mcp = _mcp
    session_list = _session_list
    session_start = _session_start
    session_add = _session_add
    session_checkpoint = _session_checkpoint
    session_end = _session_end
    session_fork = _session_fork
    session_show = _session_show
    session_prune = _session_prune
    capture = _capture
    promote = _promote
    curate = _curate
    maintain = _maintain
    digest = _digest
    import_ = _import
    export = _export


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
