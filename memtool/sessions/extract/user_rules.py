"""What a person asks to keep, lays down once and for all, or agrees to.

A small table of plain requests ("remember that", "from now on", "we decided", "never", "always",
"careful") and of how a project's rules are worded. The order is from the plain word to the faint
hint: the first row that a sentence holds decides what it is. Where a pattern refuses something,
the refusal is in it as `(?!…)`.

What an assistant proposes counts with a plain yes right behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memtool.sessions.extract.scene import Scene
from memtool.sessions.extract.sentences import (
    ASKED,
    PINNED,
    Sentence,
    any_of,
    content_words,
    opening_off,
    paths_in,
    sentence,
    sentences,
    typed,
)
from memtool.sessions.model import INTENT, PIN, Finding
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_TERMS = 3
"""Words with a meaning that a statement needs to stand alone."""
ASKED_IMPORTANCE = 0.8
LEAD_IMPORTANCE = 0.65


class RequestPhrase(Value):
    """One way to say something that lasts. What `cut` matches at the start is not part of it."""

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
"""A verb as an order has it, with what follows: no article, preposition, or `runs` and `ran`."""
_NOT_PAST = r"(?!had\b|was\b|were\b|did\b|got\b|saw\b|knew\b|could\b|would\b|wanted\b|\w+ed\b)"
_WE_DO_NOT = r"we (?:don't|do not) (?!have|need|want|see)\S+"
_NAMED = r"(?!(?:it|this|that|them|these|those|into|out|the (?:one|same))\b)"
"""What can be named without the sentence before."""
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
        any_of(
            (
                _WE + r"(?:decided|agreed|settled on|chose|picked|opted|standardi[sz]ed on)"
                r"\b(?! (?:nothing|later|up)\b)"
            ),
            r"^(?:the |final |our )*decision(?: is\b| ?[:,-]) ?(?=\S)",
            r"\b(?:we're|we are) (?:now )?(?:going with|standardi[sz]ing on)\b"
            r"(?! (?:option|that|it|this|the (?:first|second|third|flow))\b|#?\d)",
        ),
        0.75,
        cut=any_of(r"^(?:the |final |our )*decision(?: is)?(?: that)? ?[:,-]? ?"),
    ),
    RequestPhrase(
        "warning",
        "Careful: the staging database is shared with QA.",
        any_of(_CAREFUL + r"\b"),
        0.75,
        cut=any_of(_CAREFUL + r" ?[:,!;.\u2014\u2013-]+ ?"),
    ),
    RequestPhrase(
        "warning",
        "Don't edit files under gen/ because they are overwritten.",
        any_of(
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
        any_of(rf"\b{_FROM_NOW}\b"),
        0.75,
        cut=any_of(rf"^{_FROM_NOW}[,:]? "),
    ),
    RequestPhrase(
        "preference",
        "I prefer small pull requests.",
        any_of(
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
        any_of(
            r"^(?:please )?(?:always|never|don't ever|do not ever) " + _VERB,
            r"^.{3,120}[,;:] (?:so )?(?:please )?(?:always|never|don't ever) " + _VERB,
            r"^(?:please )?(?:don't|do not|never) [a-z]+ " + _NAMED + r".+ without \w+",
        ),
        0.7,
    ),
    RequestPhrase(
        "pattern",
        "In this repo all scripts are written in bash.",
        any_of(
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
        any_of(
            r"\bwe (?:also )?(?:always|never|only) (?:ever )?" + _NOT_PAST + r"\w+",
            r"^we " + _NOT_PAST + r"\w+ (?:.+[ ,])?(?:always|only|never [\w ]{2,40})[.!]?$",
        ),
        0.7,
    ),
    RequestPhrase(
        "pattern",
        "Handlers must never touch the database.",
        any_of(
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
        any_of(
            r"^(?!it\b|this\b|that\b|they\b)[\w`./-]+(?: [\w`./-]+){0,4} "
            r"(?:goes?|lives?|belongs?|go|live|belong) (?:to|in|into|under) "
            r"(?:`|[\w-]*/|[\w-]+\.\w)",
        ),
        0.6,
    ),
    RequestPhrase(
        "discovery",
        "Turns out that the CDN strips the header.",
        any_of(*_TURNS_OUT, r"\b(?:i|we) (?:found out|figured out|discovered|reali[sz]ed)\b"),
        0.6,
        cut=any_of(*_TURNS_OUT),
    ),
)

LEADS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("decision", any_of(r"\bdecisions?\b", r"\bwe (?:have )?(?:decided|agreed)\b")),
    ("preference", any_of(r"\bpreferences?\b", r"\bi prefer\b", rf"\b{_FROM_NOW}\b")),
    ("warning", any_of(r"\b(?:warnings?|gotchas?|traps?|pitfalls?)\b")),
    ("pattern", any_of(r"\b(?:conventions?|rules|guidelines|standards|remember|keep in mind)\b")),
)
"""Lines that lead a list: what they make of its items, unless an item says more itself."""


def find(scene: Scene) -> Iterator[Finding]:
    """Yield what people ask to keep, or lay down."""
    for message in scene.people:
        for said in scene.said[message.number]:
            found = None if said.reason else finding_of(said, scene)
            if found is not None:
                yield found


_FORBIDS = any_of(
    r"(?:^|[,;:] |\b(?:and|so|but|please|you) )(?:never|don't|do not) "
    r"(?!(?:forget|only|just)\b)\w+",
    r"\b(?:must|may|should|can)(?: not|n't| never)\b|\bcannot\b|\bnobody\b",
)
_MADE_OF = any_of(
    r"\b(?:is|are) (?:all |now |only )?"
    r"(?:written|built|implemented|deployed|hosted|stored|based|split|generated)\b",
    r"\b(?:depends|relies|builds) on\b|\b(?:talks|speaks|connects) to\b",
)
"""How the parts of a system fit together."""
_IS_SO = any_of(r"^(?:\S+ ){1,6}(?:is|are|was|were|has|have|means?|contains?)\b(?! to\b)")
"""Says how something is, and asks for nothing."""


def category_of(text: str, files: Sequence[str] = ()) -> str:
    """Return the category of what somebody asks to keep, by its first sentence that says one.

    What is forbidden about files is a warning: it is shown to whoever edits them.
    """
    said = [one.text for one in sentences(0, text)] or [" ".join(text.split())]
    plain = [ASKED.sub("", opening_off(one).replace("\u2019", "'"), count=1) for one in said]
    if any(_forbids(one) and (files or paths_in(one)) for one in plain):
        return "warning"
    phrases = [phrase for one in plain if (phrase := _phrase_of(one)) is not None]
    if phrases:
        return phrases[0].category
    return next(filter(None, map(_kind_of, plain)), "preference")


def _phrase_of(text: str) -> RequestPhrase | None:
    return next((phrase for phrase in PHRASES if phrase.sign.search(text)), None)


def _forbids(text: str) -> bool:
    return bool(_FORBIDS.search(text))


def _kind_of(text: str) -> str:
    """Return the category of a plain statement of what is so, empty for anything else."""
    if _MADE_OF.search(text):
        return "architecture"
    return "discovery" if _IS_SO.search(text) else ""


def finding_of(said: Sentence, scene: Scene) -> Finding | None:
    """Return the finding of one sentence, None where it makes none."""
    text = opening_off(said.text).replace("\u2019", "'")
    pinned = PINNED.match(text)
    text = text[pinned.end() :] if pinned else text
    asked = ASKED.match(text)
    text = text[asked.end() :] if asked else text
    is_asked = bool(asked or pinned)
    phrase = _phrase_of(text)
    lead = _lead(said.lead)
    if phrase is not None:
        category, importance = phrase.category, phrase.importance
    elif lead:
        category, importance = lead, LEAD_IMPORTANCE
    elif is_asked:
        category, importance = _kind_of(text) or "discovery", ASKED_IMPORTANCE
    else:
        return None
    files = paths_in(text)
    category = "warning" if files and _forbids(text) else category
    is_intent = is_asked or category != "discovery"  # what is so is no wish
    text = phrase.cut.sub("", text, count=1) if phrase is not None and phrase.cut else text
    if len(content_words(text)) < (1 if is_asked else LEAST_TERMS):
        return None
    signals = ((INTENT,) if is_intent else ()) + ((PIN,) if pinned else ())
    return scene.finding(
        category,
        sentence(text),
        max(importance, ASKED_IMPORTANCE) if is_asked else importance,
        (said.number,),
        confidence="high" if signals else "medium",
        place=said.place,
        signals=signals,
        files=files,
    )


def _lead(lead: str) -> str:
    if not lead or "?" in lead:
        return ""
    return next((category for category, sign in LEADS if sign.search(lead)), "")


MOST_YES_WORDS = 8
"""A longer answer says something of its own."""
PROPOSAL_TERMS = 4
LAST_LINES = 6
"""Of what the assistant said: a proposal is at the end, where the answer was asked for."""
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
"""A question that only asks for the yes to what is before it."""
_OBJECT = re.compile(r"^(?:it|this|that|them|these|those|me)\b", re.IGNORECASE)
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def find_agreed(scene: Scene) -> Iterator[Finding]:
    """Yield decisions that an assistant worded and a person made."""
    for message in scene.people:
        proposer = scene.before.get(message.number)
        answer = " ".join(typed(message.text).replace("\u2019", "'").split())
        said = proposal(proposer.text) if proposer is not None and is_yes(answer) else ""
        if proposer is not None and len(content_words(said)) >= PROPOSAL_TERMS:
            yield scene.finding(
                "decision",
                sentence(said),
                PROPOSAL_IMPORTANCE,
                (proposer.number, message.number),
                files=paths_in(said),
            )


def is_yes(answer: str) -> bool:
    """Tell whether an answer is nothing but a yes."""
    if len(answer.split()) > MOST_YES_WORDS or _NOT_PLAIN.search(answer):
        return False
    return bool(_YES.match(answer))


def proposal(text: str) -> str:
    """Return what an assistant proposes at the end of a text, as a statement; empty for nothing.

    Two proposals in one text leave open which one a yes is for.
    """
    lines = [line.strip() for line in typed(text).splitlines() if line.strip()]
    pieces = [piece.strip() for line in lines[-LAST_LINES:] for piece in _BREAK.split(line)]
    if len(pieces) > 1 and _TAG.match(pieces[-1]):
        pieces.pop()
    asked = [match for piece in pieces if (match := _ASKING.match(piece))]
    if asked:
        return _worded(asked[0]) if len(asked) == 1 and pieces[-1] == asked[0][0] else ""
    if any(piece.endswith("?") for piece in pieces):
        return ""  # the yes answers that question
    advised = [match for piece in pieces if (match := _ADVISING.match(piece))]
    return _worded(advised[0]) if len(advised) == 1 else ""


def _worded(match: re.Match[str]) -> str:
    """Return a proposal as a statement: `using X` stays, `X` becomes `Go with X`."""
    rest = match["rest"].strip()
    if _OBJECT.match(rest):
        return ""
    if match["verb"]:
        return f"{match['verb']} {rest}"
    first, _space, others = rest.partition(" ")
    return rest if first.lower().endswith("ing") and others else f"Go with {rest}"
