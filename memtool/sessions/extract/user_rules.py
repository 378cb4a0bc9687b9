"""Statements that a person asks to remember, lays down as a rule, or agrees to.

This module is a small table of plain requests ("remember that", "from now on", "we decided",
"never", "always", "careful") and of the usual ways to word a project's rules. Rows go from plain
words to faint hints, and the first one that matches a sentence decides its category. Exceptions are
inside the patterns, as `(?!…)`.

An assistant's proposal counts if a plain yes follows directly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import (
    ASKED,
    PINNED,
    Sentence,
    compile_any,
    find_content_words,
    find_paths,
    split_sentences,
    strip_opening,
    strip_pasted,
    to_sentence,
)
from memtool.sessions.model import INTENT, PIN, Finding
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TERMS = 3
"""Minimum content words of a statement that makes sense alone."""
ASKED_IMPORTANCE = 0.8
LEAD_IMPORTANCE = 0.65


class RequestPhrase(Value):
    """One way to state a lasting rule. The match of `cut` at the start is removed."""

    category: str
    example: str
    sign: re.Pattern[str]
    importance: float
    cut: re.Pattern[str] | None = None


_WE = r"\b(?:we|i|the team)(?:'ve| have)? (?:all |both |finally |now |just )?"
_HERE = (
    r"(?:here|everywhere|anywhere|(?:in|throughout|across) (?:this|our|the) "
    r"(?:repo|repository|project|code ?base|monorepo|team|company))"
)
_VERB = (
    r"(?!(?:a|an|the|again|mind|in|on|of|to|from|as|for|by|with|at|outside|inside|worry"
    r"|\w*[^s\W]s|\w+ed)\b)[a-z]+ \w+"
)
"""An imperative verb and the next word: not an article or preposition, nor forms like `runs` or
`ran`."""
_NOT_PAST = r"(?!had\b|was\b|were\b|did\b|got\b|saw\b|knew\b|could\b|would\b|wanted\b|\w+ed\b)"
_WE_DO_NOT = r"we (?:don't|do not) (?!have|need|want|see)\S+"
_NAMED = r"(?!(?:it|this|that|them|these|those|into|out|the (?:one|same))\b)"
"""A name that can be understood without the previous sentence."""
_CAREFUL = (
    r"^(?:be )?(?:very )?"
    r"(?:careful|caution|beware|watch out|heads[- ]?up|warning|danger|gotcha|attention)"
)
_FROM_NOW = r"(?:f(?:ro|or)m now on|going forward|from here on|in (?:the )?future|next time)"
_TURNS_OUT = (
    r"^(?:it )?turns? out(?: that)?,? ",
    r"^til:? ",
    (
        r"^(?:i |we )?(?:finally )?found (?:it|the (?:bug|problem|issue|cause))(?: myself)?"
        r" ?[:,\u2014\u2013-]+ (?=(?:the|it|a|an|that|because)\b(?: \S+){6})"
    ),
)

PHRASES: tuple[RequestPhrase, ...] = (
    RequestPhrase(
        "decision",
        "We decided to keep the audit trail in Postgres.",
        compile_any(
            (
                _WE + r"(?:decided|agreed|settled on|chose|picked|opted|standardi[sz]ed on)"
                r"\b(?! (?:nothing|later|up)\b)"
            ),
            r"^(?:the |final |our )*decision(?: is\b| ?[:,-]) ?(?=\S)",
            r"\b(?:we're|we are) (?:now )?(?:going with|standardi[sz]ing on)\b"
            r"(?! (?:option|that|it|this|the (?:first|second|third|flow))\b|#?\d)",
        ),
        0.75,
        cut=compile_any(r"^(?:the |final |our )*decision(?: is)?(?: that)? ?[:,-]? ?"),
    ),
    RequestPhrase(
        "warning",
        "Careful: the staging database is shared with QA.",
        compile_any(_CAREFUL + r"\b"),
        0.75,
        cut=compile_any(_CAREFUL + r" ?[:,!;.\u2014\u2013-]+ ?"),
    ),
    RequestPhrase(
        "warning",
        "Don't edit files under gen/ because they are overwritten.",
        compile_any(
            r"(?:^|[,;:] |\b(?:and|so|but|please|you|must|should) )(?:never|don't|do not|not) "
            r"(?!(?:a|an|the|only|just|even|all|every)\b)[a-z]+ (?!(?:this|that|it|them)\b).+"
            r"(?:\b(?:because|otherwise|or else|or (?:it|the|we|you))\b"
            r"|[,;:] (?:it|they|the \w+)(?:'ll| will|'s| is|'re| are)? \w+)",
            r"\b(?:must|may) not (?:ever )?(?:change|break|be \w+ed)\b",
        ),
        0.75,
    ),
    RequestPhrase(
        "preference",
        "From now on, write the tests before the code.",
        compile_any(rf"\b{_FROM_NOW}\b"),
        0.75,
        cut=compile_any(rf"^{_FROM_NOW}[,:]? "),
    ),
    RequestPhrase(
        "preference",
        "I prefer small pull requests.",
        compile_any(
            r"\bi(?:'d| would)? (?:really |much |strongly |always |generally )?"
            r"(?:prefer|rather (?:you|have|we))\b"
            r"(?! (?:the (?:first|second|third|last|other|former|latter|\w+ one)"
            r"|that|this|it|option)\b)",
            r"\bi always (?:want|need|like|expect) (?:you|us)\b",
        ),
        0.7,
    ),
    RequestPhrase(
        "preference",
        "Always ask before you install a new dependency.",
        compile_any(
            r"^(?:please )?(?:always|never|don't ever|do not ever) " + _VERB,
            r"^.{3,120}[,;:] (?:so )?(?:please )?(?:always|never|don't ever) " + _VERB,
            r"^(?:please )?(?:don't|do not|never) [a-z]+ " + _NAMED + r".+ without \w+",
        ),
        0.7,
    ),
    RequestPhrase(
        "pattern",
        "In this repo all scripts are written in bash.",
        compile_any(
            rf"^{_HERE}[, ](?!.*\b(?:broken|fail\w*)\b)",
            rf"^(?:use|prefer|avoid|keep|put|write|name|we use|{_WE_DO_NOT}) {_NAMED}.+"
            rf"\b{_HERE}(?:[,;.!]|$)(?!.*\b(?:broken|fail\w*|do we)\b)",
            r"\b(?:our|the) (?:\w+ )?(?:convention|rule|policy)s?(?: here)? (?:is|are)\b",
            r"^as a (?:general )?rule\b",
        ),
        0.65,
    ),
    RequestPhrase(
        "pattern",
        "We always squash merge feature branches.",
        compile_any(
            r"\bwe (?:also )?(?:always|never|only) (?:ever )?" + _NOT_PAST + r"\w+",
            r"^we " + _NOT_PAST + r"\w+ (?:.+[ ,])?(?:always|only|never [\w ]{2,40})[.!]?$",
        ),
        0.7,
    ),
    RequestPhrase(
        "pattern",
        "Handlers must never touch the database.",
        compile_any(
            r"\b(?:must|should) (?:always|never|only)\b",
            r"^(?:all|every|each)\b"
            r"(?!.*\b(?:fails?|failing|pass|passes|broken|now|bug|my machine)\b)"
            r".+\b(?:must|has to|have to|lives?|goes?|go|belongs?|(?:is|are) under)\b",
        ),
        0.65,
    ),
    RequestPhrase(
        "pattern",
        "Tests live in tests/ next to the package.",
        compile_any(
            r"^(?!it\b|this\b|that\b|they\b)[\w`./-]+(?: [\w`./-]+){0,4} "
            r"(?:goes?|lives?|belongs?|go|live|belong) (?:to|in|into|under) "
            r"(?:`|[\w-]*/|[\w-]+\.\w)",
        ),
        0.6,
    ),
    RequestPhrase(
        "discovery",
        "Turns out that the CDN strips the header.",
        compile_any(*_TURNS_OUT, r"\b(?:i|we) (?:found out|figured out|discovered|reali[sz]ed)\b"),
        0.6,
        cut=compile_any(*_TURNS_OUT),
    ),
)

LEADS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("decision", compile_any(r"\bdecisions?\b", r"\bwe (?:have )?(?:decided|agreed)\b")),
    ("preference", compile_any(r"\bpreferences?\b", r"\bi prefer\b", rf"\b{_FROM_NOW}\b")),
    ("warning", compile_any(r"\b(?:warnings?|gotchas?|traps?|pitfalls?)\b")),
    (
        "pattern",
        compile_any(r"\b(?:conventions?|rules|guidelines|standards|remember|keep in mind)\b"),
    ),
)
"""Introductions to lists, and the category they give to items that have none of their own."""


def find(scene: Scene) -> Iterator[Finding]:
    """Yield the statements that people ask to remember or lay down."""
    for message in scene.people:
        for sentence in scene.sentences[message.number]:
            finding = None if sentence.reason else build_finding(sentence, scene)
            if finding is not None:
                yield finding


_FORBIDS = compile_any(
    r"(?:^|[,;:] |\b(?:and|so|but|please|you) )(?:never|don't|do not) "
    r"(?!(?:forget|only|just)\b)\w+",
    r"\b(?:must|may|should|can)(?: not|n't| never)\b|\bcannot\b|\bnobody\b",
)
_MADE_OF = compile_any(
    r"\b(?:is|are) (?:all |now |only )?"
    r"(?:written|built|implemented|deployed|hosted|stored|based|split|generated)\b",
    r"\b(?:depends|relies|builds) on\b|\b(?:talks|speaks|connects) to\b",
)
"""Describes how the parts of a system fit together."""
_IS_SO = compile_any(r"^(?:\S+ ){1,6}(?:is|are|was|were|has|have|means?|contains?)\b(?! to\b)")
"""States a fact and requests nothing."""


def classify(text: str, files: Sequence[str] = ()) -> str:
    """Return the category of a text that a user asks to remember, by its first decisive sentence.

    A prohibition about files is a warning: it is shown to agents that edit them.
    """
    texts = [sentence.text for sentence in split_sentences(0, text)] or [" ".join(text.split())]
    plain = [ASKED.sub("", strip_opening(text).replace("\u2019", "'"), count=1) for text in texts]
    if any(_forbids(text) and (files or find_paths(text)) for text in plain):
        return "warning"
    phrases = [phrase for text in plain if (phrase := _find_phrase(text)) is not None]
    if phrases:
        return phrases[0].category
    return next(filter(None, map(_classify_statement, plain)), "preference")


def _find_phrase(text: str) -> RequestPhrase | None:
    return next((phrase for phrase in PHRASES if phrase.sign.search(text)), None)


def _forbids(text: str) -> bool:
    return bool(_FORBIDS.search(text))


def _classify_statement(text: str) -> str:
    """Return the category of a plain statement of fact, empty for any other text."""
    if _MADE_OF.search(text):
        return "architecture"
    return "discovery" if _IS_SO.search(text) else ""


def build_finding(stated: Sentence, scene: Scene) -> Finding | None:
    """Build the finding of one sentence; None if it makes none."""
    text = strip_opening(stated.text).replace("\u2019", "'")
    pinned = PINNED.match(text)
    text = text[pinned.end() :] if pinned else text
    request = ASKED.match(text)
    text = text[request.end() :] if request else text
    is_asked = bool(request or pinned)
    phrase = _find_phrase(text)
    lead = _clean_lead(stated.lead)
    if phrase is not None:
        category, importance = phrase.category, phrase.importance
    elif lead:
        category, importance = lead, LEAD_IMPORTANCE
    elif is_asked:
        category, importance = _classify_statement(text) or "discovery", ASKED_IMPORTANCE
    else:
        return None
    files = find_paths(text)
    category = "warning" if files and _forbids(text) else category
    is_intent = is_asked or category != "discovery"  # a statement of fact is not an intent
    text = phrase.cut.sub("", text, count=1) if phrase is not None and phrase.cut else text
    if len(find_content_words(text)) < (1 if is_asked else MIN_TERMS):
        return None
    signals = ((INTENT,) if is_intent else ()) + ((PIN,) if pinned else ())
    return scene.build_finding(
        category,
        to_sentence(text),
        max(importance, ASKED_IMPORTANCE) if is_asked else importance,
        (stated.number,),
        confidence="high" if signals else "medium",
        place=stated.place,
        signals=signals,
        files=files,
    )


def _clean_lead(lead: str) -> str:
    if not lead or "?" in lead:
        return ""
    return next((category for category, sign in LEADS if sign.search(lead)), "")


MAX_YES_WORDS = 8
"""Maximum words of a plain yes; a longer answer has its own content."""
PROPOSAL_TERMS = 4
LAST_LINES = 6
"""Number of last lines searched for a proposal: it comes at the end, before the answer."""
PROPOSAL_IMPORTANCE = 0.6

_YES = re.compile(
    r"^(?:yes|yep|yeah|yup|agreed|exactly|sounds good|go ahead|do (?:it|that)|perfect|approved|lgtm"
    r"|makes sense|let's do (?:that|it|this)|sure|ok(?:ay)?(?=[,!. ]+(?:do|go|let's|yes)))\b|^👍",
    re.IGNORECASE,
)
_NOT_PLAIN = re.compile(
    r"\b(?:but|no|not|except|instead|wait|later|first|for now|this time|though|only|don't)\b|\?",
    re.IGNORECASE,
)
_VERBS = (
    r"(?P<verb>use|go with|adopt|switch (?:\S+ ){0,4}?to|standardi[sz]e on|migrate|replace|keep"
    r"|store|put|move|model|drop|support)"
)
_ASKING = re.compile(
    rf"^(?:so,? )?(?:should|shall) (?:we|i) (?:then )?{_VERBS}\b (?P<rest>.+)\?$", re.IGNORECASE
)
_ADVISING = re.compile(
    r"^(?:so |therefore |overall |here |then )*(?:i(?:'d| would)?|my) (?:strongly )?(?:recommend"
    r"|suggest|propose|recommendation is|suggestion is|proposal is)(?: to| that we| we)?:? "
    rf"(?:{_VERBS} )?(?P<rest>.+?)[.!]?$",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"^(?:ok(?:ay)?|agreed|agree|sounds? (?:good|ok)|is that ok(?:ay)?"
    r"|does that (?:work|sound good)(?: for you)?|do you agree"
    r"|shall i(?: go ahead| do (?:that|it|so))?|right|good|alright)\?$",
    re.IGNORECASE,
)
"""A question that only asks for agreement with the text before it."""
_OBJECT = re.compile(r"^(?:it|this|that|them|these|those|me)\b", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def find_agreed(scene: Scene) -> Iterator[Finding]:
    """Yield the decisions that an assistant proposed and a person accepted."""
    for message in scene.people:
        proposer = scene.before.get(message.number)
        answer = " ".join(strip_pasted(message.text).replace("\u2019", "'").split())
        agreed = find_proposal(proposer.text) if proposer is not None and is_yes(answer) else ""
        if proposer is not None and len(find_content_words(agreed)) >= PROPOSAL_TERMS:
            yield scene.build_finding(
                "decision",
                to_sentence(agreed),
                PROPOSAL_IMPORTANCE,
                (proposer.number, message.number),
                files=find_paths(agreed),
            )


def is_yes(answer: str) -> bool:
    """Return whether an answer is just a yes."""
    if len(answer.split()) > MAX_YES_WORDS or _NOT_PLAIN.search(answer):
        return False
    return bool(_YES.match(answer))


def find_proposal(text: str) -> str:
    """Return an assistant's proposal at the end of a text as a statement; empty if none.

    With two proposals it is unclear which one a yes refers to, so there is none.
    """
    lines = [line.strip() for line in strip_pasted(text).splitlines() if line.strip()]
    pieces = [piece.strip() for line in lines[-LAST_LINES:] for piece in _BREAK.split(line)]
    if len(pieces) > 1 and _TAG.match(pieces[-1]):
        pieces.pop()
    requests = [match for piece in pieces if (match := _ASKING.match(piece))]
    if requests:
        return (
            _word_proposal(requests[0])
            if len(requests) == 1 and pieces[-1] == requests[0][0]
            else ""
        )
    if any(piece.endswith("?") for piece in pieces):
        return ""  # the yes answers that question
    advised = [match for piece in pieces if (match := _ADVISING.match(piece))]
    return _word_proposal(advised[0]) if len(advised) == 1 else ""


def _word_proposal(match: re.Match[str]) -> str:
    """Word a proposal as a statement: `using X` stays, `X` becomes `Go with X`."""
    tail = match["rest"].strip()
    if _OBJECT.match(tail):
        return ""
    if match["verb"]:
        return f"{match['verb']} {tail}"
    first, _space, following = tail.partition(" ")
    return tail if first.lower().endswith("ing") and following else f"Go with {tail}"
