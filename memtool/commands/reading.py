"""Reading: who reads the messages of a session for findings, the rules or the user's model."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions import findings
from memtool.sessions.model import Finding
from memtool.sessions.store import Sessions
from memtool.store.config import Config
from memtool.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.sessions.extract.llm import Model
    from memtool.sessions.findings import Learned
    from memtool.sessions.model import Message

COMMAND = "extractor.command"
MOST_ASKED = 20
"""Sessions of one run that a model reads; each may take minutes."""


def model(ws: Workspace) -> Model | None:
    """Return the user's model, None where they have set none.

    A program that the settings of a repository name is not run: whoever clones it has not chosen
    it.
    """
    from memtool.sessions.extract.llm import Model

    if not ws.is_global and COMMAND in ws.settings.given:
        ws.notes.append(
            f"{COMMAND} of {ws.config_path} is not run: only your own settings choose a program, "
            "with memtool --global config"
        )
    own = _own(ws)
    argv = own.texts(COMMAND)
    if not argv:
        return None
    timeout_s, retries = own.number("extractor.timeout_s"), own.count("extractor.retries")
    return Model(argv, timeout_s, retries, ws.env)


def _own(ws: Workspace) -> Config:
    """Return the user's own settings alone, whatever the project says."""
    return ws.settings if ws.is_global else ws.settings.replace(given={})


def learned(
    ws: Workspace,
    sessions: Sessions,
    ids: Iterable[str],
    *,
    is_kept: bool = True,
    with_model: bool = True,
) -> dict[str, Finding]:
    """Bring sessions up to date, and return their findings by id.

    A model reads what it has not read yet, the newest sessions first; once it has failed, the
    rules read the rest. A session that cannot be read is passed over with a note.
    """
    chosen = model(ws) if with_model else None
    found: dict[str, Finding] = {}
    left = MOST_ASKED
    for id_ in sorted(ids, reverse=True):
        try:
            if chosen is not None and left > 0 and _is_unread(sessions, id_, chosen):
                left -= 1
                chosen = _asked(ws, sessions, id_, chosen)
            read = _by_rules(sessions, id_, is_kept=is_kept)
        except MemtoolError as error:
            ws.notes.append(f"{id_} is passed over: {error.message}")
            continue
        found |= {one.id: one for one in read.findings}
    return dict(sorted(found.items()))


def _by_rules(sessions: Sessions, id: str, *, is_kept: bool) -> Learned:
    """Bring a session up to date by the rules; where the disk refuses, without keeping it."""
    try:
        return findings.learn(sessions, id, is_kept=is_kept)
    except MemtoolError as error:
        if not is_kept or error.code != "disk":
            raise
    return findings.learn(sessions, id, is_kept=False)


def _asked(ws: Workspace, sessions: Sessions, id: str, chosen: Model) -> Model | None:
    """Let the model read a session; return it where it may be asked again."""
    from memtool.sessions.extract.llm import Unusable

    try:
        findings.learn(sessions, id, _reader(ws, chosen), chosen.name)
    except Unusable as error:
        ws.notes.append(f"{error.message}; the rules were used instead")
        return None
    return chosen


def _is_unread(sessions: Sessions, id: str, chosen: Model) -> bool:
    known, last = findings.known(sessions, id), sessions.last(id)
    return last is not None and (known.through < last.number or known.by != chosen.name)


def _reader(ws: Workspace, chosen: Model) -> findings.Extract:
    from memtool.sessions.extract import llm

    least = _own(ws).number("extractor.confidence")

    def read(messages: Sequence[Message], session: str, agent: str) -> tuple[Finding, ...]:
        return llm.extract(chosen, least, messages, session, agent)

    return read
