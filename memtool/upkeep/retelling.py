"""Retelling: the lines of a digest in the words of the user's model, as far as they are true.

Only redacted text is sent. A sentence is believed where its words stand in the memory that it
tells, with every name and number in it; the page has the memory's own words for all others. Which
memories are told, and where, is never the model's choice.
"""

from __future__ import annotations

from memtool import templates
from memtool.sessions.extract import llm
from memtool.sessions.model import Message
from memtool.sessions.redaction import clean_texts
from memtool.upkeep.digests import MOST_SENTENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from memtool.memory.memory import Memory
    from memtool.redaction.find import Allowlist
    from memtool.sessions.extract.llm import Model

PROMPT = "prompts/digest.md"
MOST_SENT = 2_000
"""Characters of one memory that are sent."""


def words(model: Model, allowed: Allowlist, told: Sequence[Memory]) -> dict[str, str]:
    """Return sentences of a model by id, those that the memories bear out.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    import json

    texts = {one.id: f"{one.title}\n{one.body}"[:MOST_SENT] for one in told}
    clean = clean_texts(set(texts.values()), allowed)
    rows = [json.dumps({"id": id_, "text": clean[text]}) for id_, text in texts.items()]
    said = llm.ask(model, templates.read(PROMPT) + "\n".join(rows) + "\n", "lines")
    found = {}
    for row in said:
        id_, text = (row.get("id"), row.get("text")) if isinstance(row, dict) else (None, None)
        if isinstance(text, str) and id_ in texts and _is_true(text, clean[texts[id_]]):
            found[id_] = " ".join(text.split())
    return found


def _is_true(text: str, memory: str) -> bool:
    line = " ".join(text.split())
    if not line.isprintable() or len(line) > MOST_SENTENCE:
        return False
    return llm.is_supported(line, [Message(1, "user", memory)])
