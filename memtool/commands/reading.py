"""Reading: who reads the messages of a session for findings, the rules or the user's model."""

from __future__ import annotations

from memtool.errors import MemtoolError
from memtool.sessions import learning
from memtool.sessions.finding import Finding
from memtool.sessions.store import Sessions
from memtool.store.config import Config
from memtool.store.context import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memtool.sessions.learning import Learned
    from memtool.sessions.message import Message
    from memtool.sessions.model import Model

COMMAND = "extractor.command"
MOST_ASKED = 20
"""Sessions of one run that a model reads; each may take minutes."""


def model(context: Context) -> Model | None:
    """Return the user's model, None where they have set none.

    A program that the settings of a repository name is not run: whoever clones it has not chosen
    it.
    """
    from memtool.sessions.model import Model

    if not context.is_global and COMMAND in context.settings.given:
        context.notes.append(
            f"{COMMAND} of {context.config_path} is not run: only your own settings choose a "
            "program, with memtool --global config"
        )
    own = _own(context)
    argv = own.texts(COMMAND)
    if not argv:
        return None
    timeout_s, retries = own.number("extractor.timeout_s"), own.count("extractor.retries")
    return Model(argv, timeout_s, retries, context.env)


def _own(context: Context) -> Config:
    """Return the user's own settings alone, whatever the project says."""
    return context.settings if context.is_global else context.settings.replace(given={})


def learned(
    context: Context,
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
    chosen = model(context) if with_model else None
    found: dict[str, Finding] = {}
    left = MOST_ASKED
    for id_ in sorted(ids, reverse=True):
        try:
            if chosen is not None and left > 0 and _is_unread(sessions, id_, chosen):
                left -= 1
                chosen = _asked(context, sessions, id_, chosen)
            read = _by_rules(sessions, id_, is_kept=is_kept)
        except MemtoolError as error:
            context.notes.append(f"{id_} is passed over: {error.message}")
            continue
        found |= {one.id: one for one in read.findings}
    return dict(sorted(found.items()))


def _by_rules(sessions: Sessions, id: str, *, is_kept: bool) -> Learned:
    """Bring a session up to date by the rules; where the disk refuses, without keeping it."""
    try:
        return learning.learn(sessions, id, is_kept=is_kept)
    except MemtoolError as error:
        if not is_kept or error.code != "disk":
            raise
    return learning.learn(sessions, id, is_kept=False)


def _asked(context: Context, sessions: Sessions, id: str, chosen: Model) -> Model | None:
    """Let the model read a session; return it where it may be asked again."""
    from memtool.sessions.model import Unusable

    try:
        learning.learn(sessions, id, _reader(context, chosen), chosen.name)
    except Unusable as error:
        context.notes.append(f"{error.message}; the rules were used instead")
        return None
    return chosen


def _is_unread(sessions: Sessions, id: str, chosen: Model) -> bool:
    known, last = learning.known(sessions, id), sessions.last(id)
    return last is not None and (known.through < last.number or known.by != chosen.name)


def _reader(context: Context, chosen: Model) -> learning.Extract:
    from memtool.sessions import modelling

    least = _own(context).number("extractor.confidence")

    def read(messages: Sequence[Message], session: str, agent: str) -> tuple[Finding, ...]:
        return modelling.extract(chosen, least, messages, session, agent)

    return read
