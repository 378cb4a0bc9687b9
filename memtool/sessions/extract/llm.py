"""A language model as a program of the user's own choice, and the findings that it words.

It owns how the program is started, how long it may take and how much it may say, and what counts
as an answer: prompt on stdin, JSON on stdout. Only redacted messages are sent. What it says is not
believed by itself: a finding counts where its words are in the messages that it names, and a
person or a tool said one of them; the points that need a person's intent come from the rules.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress

from memtool import templates
from memtool.errors import MemtoolError, reason_of
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import title_of
from memtool.sessions import extract as rules
from memtool.sessions.extract.sentences import content_words, paths_in, sentence, tags_of
from memtool.sessions.model import (
    INTENT,
    MOST_CONTENT,
    PIN,
    RESOLVED,
    Finding,
    Message,
    finding_id,
    json_row,
    list_of,
    printable,
)
from memtool.sessions.transcripts.markup import ASKED, without_own
from memtool.store.deadline import Deadline
from memtool.store.git import LOCATION_VARIABLES
from memtool.store.process import end_group
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

MOST_ANSWER = 1_000_000
"""Bytes of an answer; a program that says more is stopped."""
MOST_ERRORS = 200
"""Characters that are repeated of what a program that failed wrote last."""
_POLL_S = 0.05
_WRAPPERS = ("result", "response", "content", "text", "output")
"""Where programs that answer with JSON of their own put what the model said."""


class Unusable(MemtoolError):
    """The program gave no answer that can be used."""


class Model(Value):
    """The program, and its limits. `env` is the environment that it gets.

    `place` is the worktree of the session in which it goes on; by default it knows of none, and
    runs in an empty directory.
    """

    argv: tuple[str, ...]
    timeout_s: float
    retries: int
    env: Mapping[str, str]
    place: str = ""

    @property
    def name(self) -> str:
        """What it is called in journals and messages."""
        return os.path.basename(self.argv[0])


def ask(model: Model, prompt: str, key: str) -> list[Any]:
    """Ask until an answer is JSON with a list under a key, and return the list.

    Raises:
        Unusable: no answer was, however often it was asked.
    """
    reason = ""
    for _try in range(1 + model.retries):
        try:
            return answer_of(_answer(model, f"{ASKED}\n{prompt}"), key)
        except Unusable as error:
            reason = error.message
            if error.code == "model-absent":
                break
    raise Unusable(
        f"{model.name} {reason}", hint="memtool config extractor shows how it is run", code="model"
    )


def answer_of(text: str, key: str) -> list[Any]:
    """Return the list under a key of the JSON that a text holds, maybe in a fence or a wrapper.

    Raises:
        Unusable: it holds none.
    """
    for found in _objects(text):
        inner = next((found[name] for name in _WRAPPERS if name in found), None)
        is_wrapped = isinstance(inner, str) and key not in found
        for row in _objects(inner) if is_wrapped else [found]:
            if isinstance(row.get(key), list):
                return list(row[key])
    raise Unusable(f'did not answer with JSON {{"{key}": […]}}')


def _objects(text: Any) -> list[dict[str, Any]]:
    """Return the JSON objects that a text may be: all of it, in a fence, or between braces."""
    fenced = text.partition("```")[2].partition("\n")[2].partition("```")[0]
    braced = text[text.find("{") : text.rfind("}") + 1]
    return [row for one in (text, fenced, braced) if (row := json_row(one)) is not None]


def _answer(model: Model, prompt: str) -> str:
    """Run the program once and return its answer.

    It runs in an empty directory, so that it reads no settings of the repository, unless it goes on
    in a session; and with MEMTOOL_OFF, so that an agent is neither given memories nor captured.

    Raises:
        Unusable: it cannot be started, takes too long, says too much, or fails.
    """
    env = {name: value for name, value in model.env.items() if name not in LOCATION_VARIABLES}
    with (
        tempfile.TemporaryDirectory(prefix="memtool-") as folder,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(prompt.encode(errors="replace"))
        given.seek(0)
        try:
            process = subprocess.Popen(
                model.argv,
                stdin=given,
                stdout=out,
                stderr=err,
                cwd=model.place or folder,
                env=env | {"MEMTOOL_OFF": "1", "PWD": model.place or folder},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Unusable(f"cannot be started: {reason_of(error)}", code="model-absent") from None
        try:
            _wait(process, model.timeout_s, (out.fileno(), err.fileno()))
        finally:
            end_group(process.pid)
            process.wait()
        out.seek(0)
        err.seek(0)
        answer, errors = (file.read().decode(errors="replace") for file in (out, err))
    if process.returncode:
        words = printable(" ".join(errors.split())[-MOST_ERRORS:])
        raise Unusable(f"ended with status {process.returncode}{words and f': {words}'}")
    return answer


def _wait(process: subprocess.Popen[bytes], timeout_s: float, outputs: Iterable[int]) -> None:
    """Wait until a program ends. Raises Unusable where it takes too long or writes too much."""
    deadline = Deadline(timeout_s)
    while process.returncode is None:
        if deadline.has_passed():
            raise Unusable(f"did not answer within {timeout_s:g} seconds")
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
        if any(os.fstat(handle).st_size > MOST_ANSWER for handle in outputs):
            raise Unusable(f"said more than {MOST_ANSWER:,} bytes")


PROMPT = "prompts/extract.md"
_CATEGORIES = (
    "decision",
    "preference",
    "pattern",
    "architecture",
    "warning",
    "error",
    "discovery",
)
"""A tuple: what a model answers need not be hashable."""
MOST_SENT = 120_000
"""Characters of the rows that are sent with an instruction."""
MOST_SAID = 4_000
MOST_PRINTED = 1_200
"""Characters of one message: of what was said, and of what a tool printed."""
MOST_BEGUN = 160
"""Characters of one that the model knows."""
_MOST_FINDINGS = 50
_MOST_CITED = 12
LEAST_TERMS = 3
LEAST_SUPPORT = 0.6
"""Share of the words of a finding that are in the messages it names."""
LEAST_SAME = 0.5
"""Share of its words that a finding of the rules has in common with one that rewords it."""
_DENIALS = frozenset(
    (
        "not",
        "no",
        "never",
        "cannot",
        "avoid",
        "avoids",
        "avoiding",
        "neither",
        "nor",
        "none",
        "without",
        "against",
        "nothing",
        "nobody",
    )
)
_FROM_RULES = frozenset((INTENT, PIN, RESOLVED))
"""Signals that a model cannot give: what they mark stays, whatever it says."""
HIGH = 0.9
"""From this confidence on it is `high`; below, `medium`."""


def extract(
    model: Model, least: float, messages: Sequence[Message], session: str, agent: str = ""
) -> tuple[Finding, ...]:
    """Return the findings of a session as a model words them, as far as its messages say so.

    `least` is the confidence that the model must have. What a person asked to keep, and what tools
    show to be resolved, stays whether or not the model kept it.

    Raises:
        Unusable: the model gave no answer that can be used.
    """
    ruled = rules.extract(messages, session, agent)
    if not messages:
        return ruled
    rows = ask(model, prompt(messages, is_known=bool(model.place)), "findings")
    by_number = {message.number: message for message in messages}
    found: dict[str, Finding] = {}
    for row in rows[:_MOST_FINDINGS]:
        made = _finding(row, by_number, session, agent, least)
        if made is not None and not any(_is_opposite(made, one) for one in ruled):
            found.setdefault(made.id, _backed(made, ruled))
    reworded = tuple(found.values())
    for one in ruled:
        is_wanted = not _FROM_RULES.isdisjoint(one.signals)
        if is_wanted and not any(_is_same(one, other) for other in reworded):
            found[one.id] = one
    return tuple(sorted(found.values(), key=lambda one: (one.messages, one.id)))


def prompt(messages: Sequence[Message], *, is_known: bool = False) -> str:
    """Return what is sent: the instruction, and the last messages as far as they fit.

    To who knows the session already, only the beginnings of messages go with their numbers.
    """
    sent = map(_sent, reversed(messages))
    rows = fitting_rows(map(_begun, sent) if is_known else sent)
    return templates.read(PROMPT) + "\n".join(reversed(rows)) + "\n"


def fitting_rows(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the first rows as lines of JSON, as many as fit into `MOST_SENT` characters."""
    import json

    lines: list[str] = []
    room = MOST_SENT
    for row in rows:
        line = json.dumps(row, ensure_ascii=False)
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return lines


def _sent(message: Message) -> dict[str, Any]:
    """Return what is sent of a message."""
    said = {
        "n": message.number,
        "role": message.role,
        "tool": message.tool,
        "call": message.call[:MOST_PRINTED],
        "ok": message.is_ok,
        "text": _clipped(message),
    }
    return {name: value for name, value in said.items() if value not in ("", None)}


def _begun(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is sent of a message to who knows it."""
    return {name: v[:MOST_BEGUN] if isinstance(v, str) else v for name, v in row.items()}


def _clipped(message: Message) -> str:
    """Return the text of a message, of a long output its beginning and its end."""
    if message.role != "tool":
        return without_own(message.text)[:MOST_SAID]
    text = message.text
    half = MOST_PRINTED // 2
    return text if len(text) <= MOST_PRINTED else f"{text[:half]}\n[…]\n{text[-half:]}"


def _finding(
    row: Any, by_number: Mapping[int, Message], session: str, agent: str, least: float
) -> Finding | None:
    """Return what one row of the answer says, None where it is malformed, unsure or unsupported."""
    if not isinstance(row, dict) or row.get("category") not in _CATEGORIES:
        return None
    content, numbers = row.get("content"), row.get("messages")
    confidence, importance = _share(row.get("confidence")), _share(row.get("importance"))
    if not isinstance(content, str) or not isinstance(numbers, list) or confidence < least:
        return None
    content = sentence(printable(content))
    cited = [by_number[n] for n in numbers if type(n) is int and n in by_number]
    if len(content) > MOST_CONTENT or not 0 < len(cited) == len(numbers) <= _MOST_CITED:
        return None
    if not is_supported(content, cited):
        return None
    tags = [tag for tag in list_of(row.get("tags")) if isinstance(tag, str)]
    known = {message.agent for message in cited if message.agent}
    who = min(known) if known else agent
    return Finding(
        id=finding_id(session, content),
        session=session,
        content=content,
        title=title_of(content),
        category=row["category"],
        confidence=CONFIDENCES[2] if confidence >= HIGH else CONFIDENCES[1],
        importance=round(max(importance, 0.0), 2),
        messages=tuple(sorted({message.number for message in cited})),
        files=paths_in(content),
        tags=tags_of(" ".join([content, *tags])),
        fields=(("agent", who),) if who else (),
    )


def is_supported(content: str, cited: Sequence[Message]) -> bool:
    """Tell whether messages say what a finding says: its words, and every name and number in it.

    One of them at least must be a person's or a tool's.
    """
    if not any(message.role in ("user", "tool") for message in cited):
        return False
    wanted = _words(content)
    said = _words("\n".join(f"{without_own(one.text)}\n{one.call}" for one in cited))
    names = {term for term in wanted if not term.isalpha()}
    shared = len(wanted & said)
    return len(wanted) >= LEAST_TERMS and names <= said and shared >= LEAST_SUPPORT * len(wanted)


def _words(text: str) -> set[str]:
    return set(content_words(text))


def _share(value: Any) -> float:
    """Return a number from 0 to 1, -1 for anything else."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        return -1.0
    return float(value)


def _is_same(one: Finding, other: Finding) -> bool:
    mine, theirs = _words(one.content), _words(other.content)
    has_common = not set(one.messages).isdisjoint(other.messages)
    return has_common and len(mine & theirs) >= LEAST_SAME * min(len(mine), len(theirs))


def _is_opposite(made: Finding, one: Finding) -> bool:
    """Tell whether a model claims what the rules found denied, or the other way round.

    Words alone do not show it: all of `never retry payments` but one are in `retry payments`.
    """
    return _is_same(made, one) and is_denial(made.content) != is_denial(one.content)


def is_denial(text: str) -> bool:
    """Tell whether a statement says what is not, or not to be; `X, not Y` says what is."""
    said = text.lower().replace("\u2019", "'").replace("n't", " not")
    return not _DENIALS.isdisjoint(said.partition(", not ")[0].partition(", never ")[0].split())


def _backed(made: Finding, ruled: Sequence[Finding]) -> Finding:
    """Return a finding with the signals and fields that the rules found for the same.

    What a person asked to pin keeps the person's words.
    """
    for one in ruled:
        if _is_same(made, one):
            if PIN in one.signals:
                return one
            kept = tuple(name for name in one.signals if name in _FROM_RULES)
            fields = dict(one.fields) | dict(made.fields)
            return made.replace(signals=kept, fields=tuple(fields.items()))
    return made
