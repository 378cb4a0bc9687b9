"""A language model, run as a program of the user's choice, that words findings.

This module owns how the program is started, its limits on time and output, and the protocol: prompt
on stdin, JSON on stdout. Only redacted messages are sent. The answer is not trusted by itself. A
finding counts only if its words appear in the messages that it cites, and a person or a tool wrote
one of these. Its length, that of the messages and secrets in it are judged as for the rules. Points
that require a person's intent come from the rules.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import suppress

from memtool import templates
from memtool.authoring.classification import find_paths
from memtool.errors import MemtoolError, find_reason
from memtool.memory.fields import CONFIDENCES
from memtool.memory.memory import first_sentence
from memtool.sessions.extract import extraction, statements
from memtool.sessions.extract.sentences import (
    find_content_words,
    find_tags,
    split_sentences,
    to_sentence,
)
from memtool.sessions.model import (
    BY_MODEL,
    INTENT,
    MAX_CONTENT_CHARS,
    PIN,
    RESOLVED,
    Finding,
    Message,
    as_list,
    make_finding_id,
    make_printable,
    parse_json_row,
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

MAX_ANSWER = 1_000_000
"""Maximum bytes of an answer; a program that writes more is stopped."""
MAX_ERRORS = 200
"""Characters quoted from the end of a failed program's error output."""
TRIES = 2
"""How often a program is asked that does not answer with JSON."""
_POLL_S = 0.05
_WRAPPERS = ("result", "response", "content", "text", "output")
"""Keys under which programs with JSON output put the model's text."""


class Unusable(MemtoolError):
    """The program gave no usable answer."""


class Absent(Unusable):
    """The program cannot be started."""


class Model(Value):
    """The program, its limits, and its environment `env`.

    `place` is the worktree if the program resumes a session; by default it resumes none and runs in
    an empty directory.
    """

    argv: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str]
    place: str = ""

    @property
    def name(self) -> str:
        """Its name in journals and messages."""
        return os.path.basename(self.argv[0])


def ask(model: Model, prompt: str, key: str) -> list[Any]:
    """Ask until the answer is JSON with a list under `key`, and return the list.

    Raises:
        Unusable: no answer was usable, nor was a second one.
    """
    reason = ""
    for _try in range(TRIES):
        try:
            return parse_answer(_answer(model, f"{ASKED}\n{prompt}"), key)
        except Unusable as error:
            reason = error.message
            if isinstance(error, Absent):
                break
    raise Unusable(
        f"{model.name} {reason}",
        hint="memtool config extraction.command",
        code="model",
    )


def parse_answer(text: str, key: str) -> list[Any]:
    """Return the list under `key` in an answer, which may be fenced or wrapped.

    Raises:
        Unusable: there is no such list.
    """
    for answer in _parse_objects(text):
        inner = next((answer[name] for name in _WRAPPERS if name in answer), None)
        is_wrapped = isinstance(inner, str) and key not in answer
        for row in _parse_objects(inner) if is_wrapped else [answer]:
            if isinstance(row.get(key), list):
                return list(row[key])
    raise Unusable(f'did not answer with JSON {{"{key}": […]}}')


def _parse_objects(text: Any) -> list[dict[str, Any]]:
    """Return all JSON objects found in a text: the whole, in a fence, or between braces."""
    fenced = text.partition("```")[2].partition("\n")[2].partition("```")[0]
    braced = text[text.find("{") : text.rfind("}") + 1]
    return [
        row
        for candidate in (text, fenced, braced)
        if (row := parse_json_row(candidate)) is not None
    ]


def _answer(model: Model, prompt: str) -> str:
    """Run the program once and return its answer.

    It runs in an empty directory, so that it reads no settings of the repository, unless it resumes
    a session. MEMTOOL_OFF is set, so that an agent gets no memories and is not captured.

    Raises:
        Unusable: it cannot be started, takes too long, writes too much, or fails.
    """
    env = {name: value for name, value in model.env.items() if name not in LOCATION_VARIABLES}
    with (
        tempfile.TemporaryDirectory(prefix="memtool-") as folder,
        tempfile.TemporaryFile() as stdin_file,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        stdin_file.write(prompt.encode(errors="replace"))
        stdin_file.seek(0)
        try:
            process = subprocess.Popen(
                model.argv,
                stdin=stdin_file,
                stdout=out,
                stderr=err,
                cwd=model.place or folder,
                env=env | {"MEMTOOL_OFF": "1", "PWD": model.place or folder},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Absent(f"cannot be started: {find_reason(error)}") from None
        try:
            _wait(process, model.timeout_s, (out.fileno(), err.fileno()))
        finally:
            end_group(process.pid)
            process.wait()
        out.seek(0)
        err.seek(0)
        answer, errors = (file.read().decode(errors="replace") for file in (out, err))
    if process.returncode:
        words = make_printable(" ".join(errors.split())[-MAX_ERRORS:])
        raise Unusable(f"ended with status {process.returncode}{words and f': {words}'}")
    return answer


def _wait(process: subprocess.Popen[bytes], timeout_s: float, outputs: Iterable[int]) -> None:
    """Wait until a program ends. Raises Unusable if it takes too long or writes too much."""
    deadline = Deadline(timeout_s)
    while process.returncode is None:
        if deadline.has_passed():
            raise Unusable(f"did not answer within {timeout_s:g} seconds")
        with suppress(subprocess.TimeoutExpired):
            process.wait(_POLL_S)
        if any(os.fstat(handle).st_size > MAX_ANSWER for handle in outputs):
            raise Unusable(f"said more than {MAX_ANSWER:,} bytes")


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
"""A tuple, because the model's value may not be hashable."""
MAX_SENT = 120_000
"""Maximum characters of the rows in a prompt."""
MAX_SAID = 4_000
MAX_PRINTED = 1_200
"""Maximum characters of one message: of speech, and of tool output."""
MAX_BEGUN = 160
"""Maximum characters of a message that the model already has."""
_MAX_FINDINGS = 50
_MAX_CITED_MESSAGES = 12
MIN_TERMS = 3
MIN_SUPPORT = 0.6
"""Minimum share of a finding's words that must be in the messages it cites."""
MIN_SAME = 0.5
"""Minimum share of words that a rules' finding has in common with its rewording."""
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
"""Signals that only rules can give: findings with them are kept, whatever the model says."""
SURE, HIGH = 0.75, 0.9
"""From these confidences on a finding counts, as `medium`, and is `high`."""


def extract(
    model: Model, messages: Sequence[Message], session: str, agent: str = ""
) -> tuple[Finding, ...]:
    """Return the findings of a session as a model words them, if its messages support them.

    Findings that a person asked for, and fixes proved by tools, are kept even if the model drops
    them.

    Raises:
        Unusable: the model gave no usable answer.
    """
    ruled = extraction.extract(messages, session, agent)
    rows = ask(model, build_prompt(messages, is_known=bool(model.place)), "findings")
    by_number = {message.number: message for message in messages}
    findings_by_id: dict[str, Finding] = {}
    for row in rows[:_MAX_FINDINGS]:
        made = _build_finding(row, by_number, session, agent)
        if made is not None and not any(_is_opposite(made, finding) for finding in ruled):
            findings_by_id.setdefault(made.id, _with_rule_evidence(made, ruled))
    reworded = tuple(findings_by_id.values())
    for finding in ruled:
        is_wanted = not _FROM_RULES.isdisjoint(finding.signals)
        if is_wanted and not any(_is_same(finding, other) for other in reworded):
            findings_by_id[finding.id] = finding
    return tuple(
        sorted(findings_by_id.values(), key=lambda finding: (finding.messages, finding.id))
    )


def build_prompt(messages: Sequence[Message], *, is_known: bool = False) -> str:
    """Build the prompt: the instruction, and as many of the last messages as fit.

    A model that resumes the session already has the text, so only the start of each message is
    sent.
    """
    sent = map(_to_payload, reversed(messages))
    rows = take_fitting_rows(map(_to_beginning, sent) if is_known else sent)
    return templates.read(PROMPT) + "\n".join(reversed(rows)) + "\n"


def take_fitting_rows(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the first rows as JSON lines, as many as fit into `MAX_SENT` characters."""
    import json

    lines: list[str] = []
    room = MAX_SENT
    for row in rows:
        line = json.dumps(row, ensure_ascii=False)
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    return lines


def _to_payload(message: Message) -> dict[str, Any]:
    """Convert a message for the prompt."""
    fields = {
        "n": message.number,
        "role": message.role,
        "tool": message.tool,
        "call": message.call[:MAX_PRINTED],
        "ok": message.is_ok,
        "text": _clip_text(message),
    }
    return {name: value for name, value in fields.items() if value not in ("", None)}


def _to_beginning(row: Mapping[str, Any]) -> dict[str, Any]:
    """Cut all texts of a row, for a model that already has them."""
    return {name: v[:MAX_BEGUN] if isinstance(v, str) else v for name, v in row.items()}


def _clip_text(message: Message) -> str:
    """Return the text of a message, or only both ends of a long output."""
    if message.role != "tool":
        return without_own(message.text)[:MAX_SAID]
    text = message.text
    half = MAX_PRINTED // 2
    return text if len(text) <= MAX_PRINTED else f"{text[:half]}\n[…]\n{text[-half:]}"


def _build_finding(
    row: Any, by_number: Mapping[int, Message], session: str, agent: str
) -> Finding | None:
    """Build a finding from a row of the answer; None if malformed, unsure or unsupported."""
    if not isinstance(row, dict) or row.get("category") not in _CATEGORIES:
        return None
    content, numbers = row.get("content"), row.get("messages")
    confidence, importance = (
        _parse_share(row.get("confidence")),
        _parse_share(row.get("importance")),
    )
    if not isinstance(content, str) or not isinstance(numbers, list) or confidence < SURE:
        return None
    content = to_sentence(make_printable(content))
    cited = [by_number[n] for n in numbers if type(n) is int and n in by_number]
    if _is_too_long(content, row["category"]) or (
        not 0 < len(cited) == len(numbers) <= _MAX_CITED_MESSAGES
    ):
        return None
    if not is_supported(content, [message for message in cited if not _is_pasted(message)]):
        return None
    tags = [tag for tag in as_list(row.get("tags")) if isinstance(tag, str)]
    agents = {message.agent for message in cited if message.agent}
    who = min(agents) if agents else agent
    return Finding(
        id=make_finding_id(session, content),
        session=session,
        content=content,
        title=first_sentence(content),
        category=row["category"],
        confidence=CONFIDENCES[2] if confidence >= HIGH else CONFIDENCES[1],
        importance=round(max(importance, 0.0), 2),
        messages=tuple(sorted({message.number for message in cited})),
        files=find_paths(content),
        tags=find_tags(" ".join([content, *tags])),
        fields=(("agent", who),) if who else (),
        reader=BY_MODEL,
    )


def _is_too_long(content: str, category: str) -> bool:
    """Return whether a finding says more than one thing, by the limits of the rules."""
    is_long = category != "error" and statements.count_words(content) > statements.MAX_WORDS
    return is_long or len(content) > MAX_CONTENT_CHARS


def _is_pasted(message: Message) -> bool:
    """Return whether a person's message is too long to have been typed: it is no evidence."""
    if message.role != "user":
        return False
    return statements.is_pasted(split_sentences(message.number, message.text), message.text)


def is_supported(content: str, cited: Sequence[Message]) -> bool:
    """Return whether messages support a finding: its words, and every name and number in it.

    At least one of them must be a person's or a tool's.
    """
    if not any(message.role in ("user", "tool") for message in cited):
        return False
    wanted = _split_words(content)
    words = _split_words(
        "\n".join(f"{without_own(message.text)}\n{message.call}" for message in cited)
    )
    names = {term for term in wanted if not term.isalpha()}
    shared = len(wanted & words)
    return len(wanted) >= MIN_TERMS and names <= words and shared >= MIN_SUPPORT * len(wanted)


def _split_words(text: str) -> set[str]:
    return set(find_content_words(text))


def _parse_share(value: Any) -> float:
    """Return a number from 0 to 1, or -1 for any other value."""
    if type(value) not in (int, float) or not 0 <= value <= 1:
        return -1.0
    return float(value)


def _is_same(finding: Finding, other: Finding) -> bool:
    mine, theirs = _split_words(finding.content), _split_words(other.content)
    has_common = not set(finding.messages).isdisjoint(other.messages)
    return has_common and len(mine & theirs) >= MIN_SAME * min(len(mine), len(theirs))


def _is_opposite(made: Finding, ruled_finding: Finding) -> bool:
    """Return whether the model affirms what the rules' finding denies, or vice versa.

    Words alone do not show this: `never retry payments` contains all of `retry payments`.
    """
    return _is_same(made, ruled_finding) and is_denial(made.content) != is_denial(
        ruled_finding.content
    )


def is_denial(text: str) -> bool:
    """Return whether a statement is a negation. `X, not Y` is not one."""
    lowered = text.lower().replace("\u2019", "'").replace("n't", " not")
    return not _DENIALS.isdisjoint(lowered.partition(", not ")[0].partition(", never ")[0].split())


def _with_rule_evidence(made: Finding, ruled: Sequence[Finding]) -> Finding:
    """Add the signals and fields of the matching rules' finding.

    If a person asked to pin it, the person's words are kept instead.
    """
    for ruled_finding in ruled:
        if _is_same(made, ruled_finding):
            if PIN in ruled_finding.signals:
                return ruled_finding
            signals = tuple(name for name in ruled_finding.signals if name in _FROM_RULES)
            fields = dict(ruled_finding.fields) | dict(made.fields)
            return made.replace(signals=signals, fields=tuple(fields.items()))
    return made
