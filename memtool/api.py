"""The Python API: a context whose methods are the verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from memtool.authoring import citations, write
from memtool.authoring.draft import draft_from_record
from memtool.authoring.write import WrittenTogether
from memtool.calls.bind import OLD_OPTIONS, bind, describe_old_names, fit, split_arguments
from memtool.calls.signature import Interface, Parameter, Signature, read_interface
from memtool.calls.verb import run_verb as _run_verb
from memtool.commands import VERBS, Verb
from memtool.commands import alias as _alias
from memtool.commands import archive as _archive
from memtool.commands import blame as _blame
from memtool.commands import capture as _capture
from memtool.commands import check as _check
from memtool.commands import completion as _completion
from memtool.commands import config as _config
from memtool.commands import conflicts as _conflicts
from memtool.commands import curate as _curate
from memtool.commands import demo as _demo
from memtool.commands import diff as _diff
from memtool.commands import digest as _digest
from memtool.commands import doctor as _doctor
from memtool.commands import drift as _drift
from memtool.commands import eval as _eval
from memtool.commands import fleet as _fleet
from memtool.commands import fleet_similar as _fleet_similar
from memtool.commands import forget as _forget
from memtool.commands import hook as _hook
from memtool.commands import import_ as _import
from memtool.commands import import_git as _import_git
from memtool.commands import init as _init
from memtool.commands import inject as _inject
from memtool.commands import install as _install
from memtool.commands import list as _list
from memtool.commands import log as _log
from memtool.commands import maintain as _maintain
from memtool.commands import mcp as _mcp
from memtool.commands import merge_file as _merge_file
from memtool.commands import new as _new
from memtool.commands import package as _package
from memtool.commands import promote as _promote
from memtool.commands import publish as _publish
from memtool.commands import purge as _purge
from memtool.commands import redact as _redact
from memtool.commands import resolve as _resolve
from memtool.commands import review as _review
from memtool.commands import schema as _schema
from memtool.commands import search as _search
from memtool.commands import serve as _serve
from memtool.commands import session as _session
from memtool.commands import session_data as _session_data
from memtool.commands import show as _show
from memtool.commands import sign as _sign
from memtool.commands import site as _site
from memtool.commands import stats as _stats
from memtool.commands import status as _status
from memtool.commands import tag as _tag
from memtool.commands import undo as _undo
from memtool.commands import verify as _verify
from memtool.commands import why as _why
from memtool.errors import MemtoolError
from memtool.store import derived as _derived
from memtool.store.context import Context


class Project(Context):
    """A repository with every verb as a method; `memtool.open` makes one.

        project = memtool.open(".")
        made = project.new("decision", "Keep sessions in Redis", tag=("auth",), commit=True)
        for hit in project.search("where do sessions live?").results:
            print(hit.id, hit.title)
        project.supersede(made.id, "Keep sessions in Postgres")

    A method has the name, parameters, defaults and docstring of its verb (`import` is `import_`,
    `session start` is `session_start`). Arguments of the command line are positional, options are
    keywords, and an option that may be repeated takes a tuple or a list. A method returns the value
    that `--json` prints: its fields are attributes, and `plain()` gives the dict. A refusal is a
    `MemtoolError` with `message`, `hint` and `code`, also for a missing argument, an unknown one,
    or one of the wrong type.

    Nothing is printed. Notes, which the command line prints on stderr, are collected in `notes`.
    Each call reads the current files. Settings and the clock are read once, so a long-running
    program should open a new project from time to time.
    """

    init = _init.init
    status = _status.status
    stats = _stats.stats
    config = _config.config
    completion = _completion.completion
    demo = _demo.demo
    schema = _schema.schema
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
    tag = _tag.tag
    forget = _forget.forget
    restore = _archive.restore
    undo = _undo.undo
    purge = _purge.purge
    redact = _redact.redact
    sign = _sign.sign
    review = _review.review
    list = _list.list
    show = _show.show
    search = _search.search
    fleet_status = _fleet.fleet_status
    fleet_sync = _fleet.fleet_sync
    fleet_init = _fleet.fleet_init
    fleet_similar = _fleet_similar.fleet_similar
    serve = _serve.serve
    site = _site.site
    inject = _inject.inject
    eval = _eval.eval
    log = _log.log
    blame = _blame.blame
    why = _why.why
    drift = _drift.drift
    verify = _verify.verify
    diff = _diff.diff
    check = _check.check
    conflicts = _conflicts.conflicts
    resolve = _resolve.resolve
    merge_file = _merge_file.merge_file
    install = _install.install
    uninstall = _install.uninstall
    package = _package.package
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
    session_diff = _session_data.session_diff
    session_export = _session_data.session_export
    session_prune = _session_data.session_prune
    session_delete = _session_data.session_delete
    capture = _capture.capture
    promote = _promote.promote
    curate = _curate.curate
    maintain = _maintain.maintain
    digest = _digest.digest
    import_ = _import.import_
    import_git = _import_git.import_git
    migrate = _import.migrate
    export = _import.export
    publish = _publish.publish

    def add_many(
        self,
        records: Iterable[Mapping[str, Any]],
        *,
        keep_citation: bool = False,
        commit: bool = False,
        dry_run: bool = False,
    ) -> WrittenTogether:
        """Write many new memories as `new` does, in one commit if asked: all of them or none.

        A record has the keys of a memory; `type`, `title` and `body` are required. A memory that
        repeats another one, here or in the repository, is refused; so is one that cites what is not
        there or no longer holds, unless `keep_citation` is given.

            project.add_many([
                {"type": "decision", "title": "Keep sessions in Postgres", "body": "…",
                 "tags": ["auth"], "confidence": "high", "importance": 0.9},
                {"type": "semantic", "title": "Ports are fixed", "body": "…"},
            ], commit=True)

        Raises:
            MemtoolError: a record cannot be written; the message has its number. Nothing is
                written then.
        """
        flags = {"keep_citation": keep_citation, "commit": commit, "dry_run": dry_run}
        for name, flag in flags.items():
            if not isinstance(flag, bool):
                raise MemtoolError(f"{name} takes true or false", hint=f"{name}=True")
        if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
            raise MemtoolError("add_many takes a list of mappings", hint=_RECORD)
        items = [*records]
        is_committed = commit or isinstance(self, GlobalProject)

        def run() -> WrittenTogether:
            write.prepare(self, dry_run=dry_run)
            memories = []
            for number, record in enumerate(items, 1):
                try:
                    if not isinstance(record, Mapping):
                        raise MemtoolError("a record is not a mapping", hint=_RECORD)
                    memories.append(draft_from_record(self, record))
                except MemtoolError as error:
                    raise write.with_number(error, number) from None
            memories = citations.check_together(
                self, memories, is_kept=keep_citation, dry_run=dry_run
            )
            return write.write_together(self, memories, commit=is_committed, dry_run=dry_run)

        return _derived.retry_if_damaged(self, run)


_RECORD = 'add_many([{"type": "decision", "title": "…", "body": "…"}])'


class GlobalProject(Project):
    """The user's global memories; `memtool.open(global_=True)` makes one.

    It is like any other project, but whatever a method writes is committed.
    """


def open_project(directory: Any, *, is_global: bool) -> Project:
    """Open a project, as `memtool.open` does.

    Raises:
        MemtoolError: there is none, git refuses it, or the directory is not a text or a path.
    """
    if is_global:
        return GlobalProject.at_global()
    hint = 'memtool.open("."), or the path of another repository'
    return Project.at(fit(_DIRECTORY, directory, name="directory", hint=hint))


_DIRECTORY = Parameter(name="directory", default=".", is_required=True)


def _name_arguments(
    face: Interface, args: tuple[Any, ...], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a call by name.

    Raises:
        MemtoolError: there are too many, or one is given twice.
    """
    named, places = dict(options), [*args]
    hint = _format_help(face)
    for parameter in face.positional:
        if not places:
            break
        if parameter.name in named:
            raise MemtoolError(f"{parameter.name} has two values", hint=hint)
        named[parameter.name] = places if parameter.is_many else places.pop(0)
        places = [] if parameter.is_many else places
    if places:
        arity = len(face.positional)
        words = "1 argument" if arity == 1 else f"{arity or 'no'} arguments"
        raise MemtoolError(
            f"{face.name} takes {words} by position, not {len(args)}",
            hint=f"name the others: {hint}",
        )
    return named


def _format_help(face: Interface) -> str:
    return f"memtool {face.name} --help"


def _build_signature(face: Interface) -> Signature:
    parameters = {parameter.name: parameter for parameter in face.parameters}
    return Signature(
        title=face.name,
        parameters=parameters,
        help=_format_help(face),
        old_names=OLD_OPTIONS.get(face.name, {}),
    )


def _make_method(run: Callable[..., Any], verb: Verb) -> Callable[..., Any]:
    """Return a verb as a method: it checks its arguments, and runs again on a damaged index."""

    @wraps(run)
    def method(self: Project, *args: Any, **options: Any) -> Any:
        face = read_interface(verb, with_texts=False)
        signature = _build_signature(face)
        values = bind(signature, _name_arguments(face, args, options))
        self.notes.extend(describe_old_names(signature, options))
        places, names = split_arguments(face, values)
        value, _shown = _run_verb(self, face, places, names, lambda _value, _layout: None)
        return value

    return method


for _verb in VERBS:
    setattr(Project, _verb.function, _make_method(vars(Project)[_verb.function], _verb))
