"""Phrases: how people say what lasts, as one table with an example of each way.

The order is from the plain word to the faint hint: the first phrase that a sentence holds decides
what it is. Where a pattern refuses something, the refusal stands in it as `(?!…)`.
"""

from __future__ import annotations

import re

from memtool.value import Value


class Phrase(Value):
    """One way to say something that lasts. What `cut` matches at the start is not part of it."""

    category: str
    example: str
    sign: re.Pattern[str]
    importance: float
    is_intent: bool = True
    """Whether it says what is to be, and not merely what is so."""
    needs_reason: bool = False
    """It counts only with a reason or an alternative beside it."""
    after_no: bool = False
    """It counts only right after a no to what was said before."""
    cut: re.Pattern[str] | None = None


def _any(*ways: str) -> re.Pattern[str]:
    """Return a pattern that takes any of some ways, whatever the case."""
    return re.compile("|".join(ways), re.IGNORECASE)


_WE = r"\b(?:we|i|the team)(?:'ve| have)? (?:all |both |finally |now |just )?"
_WE_WILL = (
    r"^(?:then )?(?:let's|lets|let us|we'll|we will|we're going to|we are going to"
    r"|i want us to|i'd like us to) (?:just |always |all |now )?"
)
_HERE = (
    r"(?:this|our|the) "
    r"(?:repo|repository|project|code ?base|monorepo|team|company|organi[sz]ation)"
)
_VERB = (
    r"(?!(?:a|an|the|again|mind|in|on|of|to|from|as|for|by|with|at|outside|inside"
    r"|\w*[^s\W]s|\w+ed)\b)[a-z]+ \w+"
)
"""A verb as an order has it, with what follows: no article, preposition, or `runs` and `ran`."""
_THING = r"(?!it\b|this\b|that\b|them\b|these\b|those\b|into\b|out\b|the (?:one|same)\b)"
"""What can be named without the sentence before."""
_NOT_PAST = r"(?!had\b|was\b|were\b|did\b|got\b|saw\b|knew\b|could\b|would\b|\w+ed\b)"
_CAREFUL = (
    r"^(?:be )?(?:very )?"
    r"(?:careful|caution|beware|watch out|heads[- ]?up|warning|danger|gotcha|attention)"
)
_FROM_NOW = r"(?:f(?:ro|or)m now on|going forward|from here on|in (?:the )?future|next time)"

_FOUND_IT = (
    r"^(?:i |we )?(?:finally )?found (?:it|the (?:bug|problem|issue|cause))(?: myself)?"
    r" ?[:,\u2014\u2013-]+ (?=(?:the|it|a|an|that|because)\b(?: \S+){6})"
)

PHRASES: tuple[Phrase, ...] = (
    Phrase(
        "decision", "We decided to keep the audit trail in Postgres.",
        _any(
            _WE + r"(?:decided|agreed|settled on|chose|picked|opted|standardi[sz]ed on"
                  r"|committed to)"
                  r"\b(?! (?:nothing|later|up)\b)",
            r"\b(?:we're|we are|i'm|i am) (?:now )?going with\b"
            r"(?! (?:option|that|it|this|my|you|him|her|them|us|the (?:first|second|third|flow))\b"
            r"|#?\d)",
        ),
        0.75,
    ),
    Phrase(
        "decision", "Decision: no ORM in the ingest service.",
        _any(r"^(?:the |final |our )*decision(?: is\b| ?[:,-]) ?(?=\S)"),
        0.75,
        cut=_any(r"^(?:the |final |our )*decision(?: is)?(?: that)? ?[:,-]? ?"),
    ),
    Phrase(
        "decision", "Let's switch to pnpm for the whole monorepo.",
        _any(
            _WE_WILL + r"(?:go with|stick with|stick to|stay with|stay on|standardi[sz]e on"
                       r"|settle on|adopt|(?:switch|migrate|move) (?:\S+ ){0,4}?to) "
                       r"(?!(?:option|that|it|this|the (?:first|second|third))\b|#?\d)",
        ),
        0.7,
    ),
    Phrase(
        "decision", "We'll store timestamps in UTC instead of local time.",
        _any(
            _WE_WILL + r"(?:use|keep|drop|store|build|put|model|replace|make|write|support) "
            + _THING,
        ),
        0.65,
        needs_reason=True,
    ),
    Phrase(
        "decision", "No, use date-fns for dates, moment is dead.",
        _any(
            r"^(?:use|go with|take) (?!(?:a|an|the|another|your|my) |\W?\d)" + _THING +
            r"[\w./@-]+ (?:for (?!(?:this|that|these|the|it|now|a|an|my|your|example)\b)"
            r"\w+, \w+ \w+|(?:instead of|rather than) [\w./@-]+)",
        ),
        0.6,
        is_intent=False,
        after_no=True,
    ),
    Phrase(
        "warning", "Careful: the staging database is shared with QA.",
        _any(_CAREFUL + r"\b"),
        0.75,
        cut=_any(_CAREFUL + r" ?[:,!;.\u2014\u2013-]+ ?"),
    ),
    Phrase(
        "warning", "Don't edit files under gen/ because they are overwritten.",
        _any(
            r"(?:^|[,;:] |\b(?:and|so|but|please|you|must|should) )"
            r"(?:never|don't|do not|not|mustn't) "
            r"(?!(?:a|an|the|only|just|even|all|every)\b)[a-z]+ (?!(?:this|that|it|them)\b).+"
            r"(?:\b(?:because|otherwise|or else|or (?:it|the|we|you))\b"
            r"|[,;:] (?:it|this|that|they|the \w+)(?:'ll| will|'s| is|'re| are| would)? \w+)",
        ),
        0.75,
    ),
    Phrase(
        "warning", "The user_id column must not be renamed.",
        _any(
            r"\b(?:must|may|can|should) (?:not|never) (?:ever )?(?:change|break|be (?:changed"
            r"|edited|renamed|deleted|touched|removed|logged|committed|exposed))\b",
        ),
        0.7,
    ),
    Phrase(
        "preference", "From now on, write the tests before the code.",
        _any(rf"\b(?:{_FROM_NOW}|whenever you|for all future)\b"),
        0.75,
        cut=_any(rf"^{_FROM_NOW}[,:]? "),
    ),
    Phrase(
        "preference", "I prefer small pull requests.",
        _any(
            r"\bi(?:'d| would)? (?:really |much |strongly |always |generally )?"
            r"(?:prefer|rather (?:you|have|we))\b"
            r"(?! (?:the (?:first|second|third|last|other|former|latter|\w+ one)"
            r"|that|this|it|option)\b)",
        ),
        0.7,
    ),
    Phrase(
        "preference", "I always want you to explain the root cause first.",
        _any(
            r"\bi (?:really )?(?:hate|dislike|don't like|do not like|don't want|can't stand)\b"
            r".*\b(?:always|never|please|ever)\b",
            r"\bi (?:really |always )*(?:want|need|like|expect) (?:you|us) to (?:always|never)\b",
            r"\bi always (?:want|need|like|expect) (?:you|us)\b",
        ),
        0.7,
    ),
    Phrase(
        "preference", "Always ask before you install a new dependency.",
        _any(r"^(?:please )?(?:always|never|don't ever|do not ever) " + _VERB),
        0.7,
    ),
    Phrase(
        "pattern", "In this repo all scripts are written in bash.",
        _any(rf"^(?:in {_HERE}|around here)\b[, ]"),
        0.65,
    ),
    Phrase(
        "pattern", "Migrations must be reversible in this repo.",
        _any(rf"\b(?:must|should|has to|have to) \w+.*\b(?:in {_HERE}|everywhere)[.!]?$"),
        0.65,
    ),
    Phrase(
        "pattern", "Use pnpm here, npm breaks the lockfile.",
        _any(
            rf"^(?:use|prefer|avoid|keep|put|write|name) {_THING}.+"
            rf"\b(?:(?:in|throughout|across) {_HERE}|everywhere|here)(?:[,;.!]|$)",
        ),
        0.65,
    ),
    Phrase(
        "pattern", "Our convention is one component per file.",
        _any(
            r"\b(?:our|the) (?:\w+ )?(?:convention|rule|policy|standard|practice)s?(?: here)?"
            r" (?:is|are)\b",
            r"\bby convention\b",
            r"\bas a (?:general )?rule\b",
        ),
        0.7,
    ),
    Phrase(
        "pattern", "We always squash merge feature branches.",
        _any(
            r"\bwe (?:also )?(?:always|never|only|generally|usually|normally|typically) (?:ever )?"
            rf"{_NOT_PAST}\w+",
        ),
        0.7,
    ),
    Phrase(
        "pattern", "We deploy on Tuesdays only.",
        _any(rf"^we {_NOT_PAST}\w+ (?:.+[ ,])?(?:always|only|never [\w ]{{2,40}})[.!]?$"),
        0.65,
    ),
    Phrase(
        "pattern", "We don't use default exports anywhere.",
        _any(
            r"\bwe (?:don't|do not) (?:use|write|allow|commit|mock|store|log|deploy|merge|import"
            r"|vendor|support) " + _THING,
            r"\bwe (?:don't|do not) "
            r"(?!(?:have|know|see|need|want|get|find|care|think|even|really)\b)"
            rf"\S+ {_THING}(?!to ).*\b(?:in {_HERE}|anywhere|around here)(?:[,;.!]|$)",
        ),
        0.65,
    ),
    Phrase(
        "pattern", "All our mocks are generated with moq.",
        _any(
            r"^(?:all|every one|each)(?: of)? our "
            r"(?!.*\b(?:wrong|fail\w*|broken|errors?|now|gone|slow|but|since|bug|which|my)\b)"
            r"[\w`/-]+(?: [\w`/-]+)?"
            r" (?:are|is|come|comes|go|goes|run|runs) "
            r"(?!(?:affected|blocked|broken|confused|failed|logged|stopped|lost|caused)\b)"
            r"(?:(?:\w+ed|built|kept|sent|written) )?(?:with|by|from|through|via|under|as) \S",
        ),
        0.6,
        is_intent=False,
    ),
    Phrase(
        "pattern", "Every migration has to be reversible.",
        _any(
            r"^(?:all|every|each|any)\b"
            r"(?!.*\b(?:fails?|failing|pass|passes|broken|now|bug|my machine)\b)"
            r".+\b(?:must|should|has to|have to|needs? to|lives?|goes?|go|belongs?"
            r"|(?:is|are) under)\b",
        ),
        0.65,
    ),
    Phrase(
        "pattern", "Handlers must never touch the database.",
        _any(r"\b(?:must|should) (?:always|never|only)\b"),
        0.65,
    ),
    Phrase(
        "preference", "Staging is the blue cluster, never deploy there on Fridays.",
        _any(r"^.{3,120}[,;:] (?:so )?(?:please )?(?:always|never|don't ever) " + _VERB),
        0.7,
    ),
    Phrase(
        "pattern", "Tests live in tests/ next to the package.",
        _any(
            r"^(?!it\b|this\b|that\b|they\b)[\w`./-]+(?: [\w`./-]+){0,4} "
            r"(?:goes?|lives?|belongs?|go|live|belong) (?:to|in|into|under) "
            r"(?:`|[\w-]*/|[\w-]+\.\w)",
        ),
        0.6,
    ),
    Phrase(
        "pattern", "We write commit messages in the imperative mood.",
        _any(
            r"^we (?:use|name|keep|store|put|write|prefix|pin|squash|deploy|release|version|tag"
            r"|run|document|format|generate|vendor|host|build) " + _THING,
        ),
        0.55,
        is_intent=False,
    ),
    Phrase(
        "discovery", "Turns out that the CDN strips the header.",
        _any(
            r"^(?:it )?turns? out\b",
            r"\b(?:i|we) (?:found out|figured out|learned|learnt|discovered|reali[sz]ed)\b",
            r"^til\b",
            r"\bthe (?:root |real |actual )?(?:cause|culprit)\b.* (?:is|was)\b",
            _FOUND_IT,
        ),
        0.6,
        is_intent=False,
        cut=_any(r"^(?:it )?turns? out(?: that)?,? ", r"^til:? ", _FOUND_IT),
    ),
)  # fmt: skip

ASKED = _any(
    r"^(?:please |pls |and |also )*"
    r"(?:remember|note|keep in mind|bear in mind|don't forget|do not forget|make a note"
    r"|for the record|for (?:future )?reference|memo|important|fyi)\b"
    r"(?: (?:for|to) (?:later|the future|yourself)\b)?"
    r"(?! (?:to|when|me|how|the time|this|it)\b) ?(?:that\b)?[:,!]? ?"
)
"""Asks outright to keep what follows; `remember to` is a task."""
PINNED = _any(r"^(?:please )?pin(?: (?:this|that)\b[:,]?|:) ?(?=\S)")
"""Asks to pin what follows; to pin the version of a package is a task."""
LEADS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("decision", _any(r"\bdecisions?\b", r"\bwe (?:have )?(?:decided|agreed)\b")),
    ("preference", _any(r"\bpreferences?\b", r"\bi prefer\b", rf"\b{_FROM_NOW}\b")),
    ("warning", _any(r"\b(?:warnings?|gotchas?|traps?|pitfalls?)\b")),
    (
        "pattern",
        _any(
            r"\b(?:conventions?|rules|guidelines|standards|house style|remember|keep in mind)\b",
        ),
    ),
)
"""Lines that lead a list: what they make of its items, unless an item says more itself."""
