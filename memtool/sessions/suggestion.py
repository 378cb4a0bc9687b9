"""The suggestion to keep what a person says: one line for an agent, next to its block.

People who want something to last say so to the agent: "from now on", "I told you", "make this a
rule". The agent is the one that understands the sentence, so it is told that `remember` is there. A
wrong hit costs a line of context and writes nothing.
"""

from __future__ import annotations

from memtool.authoring.phrases import normalize
from memtool.inject import session_seen
from memtool.sessions.extract.rules import may_be_wish
from memtool.value import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context

KEY = "capture.suggest"
MAX_A_SESSION = 3
MAX_CHARACTERS = 20_000
"""Of a prompt that is read."""
MARK = "=suggested"
"""Stands in what a session has seen for the id of a memory."""
LINE = (
    "This prompt may state something worth keeping. If the user means it to last, save it in their "
    'own words: `memtool remember "SENTENCE"`; if you are unsure, ask them.\n'
)


def suggest(context: Context, session: str, prompt: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the line for a prompt, and what the session has seen with it; both may be empty.

    At most once a prompt, and `MAX_A_SESSION` times a session.
    """
    if not (session and context.settings.text(KEY) == "on" and asks_to_keep(prompt)):
        return "", ()
    mark = (MARK, digest(prompt.encode(errors="replace"), 8))
    earlier = {
        row for row in session_seen.read(context.repository.cache_dir, session) if row[0] == MARK
    }
    if mark in earlier or len(earlier) >= MAX_A_SESSION:
        return "", ()
    return LINE, (mark,)


def asks_to_keep(prompt: str) -> bool:
    """Return whether a prompt seems to state something to be kept, so that an agent may ask."""
    text = prompt[:MAX_CHARACTERS]
    if not may_be_wish(normalize(text)):
        return False
    # Most prompts have none of the phrases, and reading sentences loads five times as much.
    from memtool.sessions.extract.sentences import split_sentences
    from memtool.sessions.extract.statements import is_pasted, is_wish

    sentences = split_sentences(0, text)
    return is_wish(sentences, is_long=is_pasted(sentences, text))
