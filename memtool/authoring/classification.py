"""The category of a statement, by its words: what `remember` writes, and what sessions teach.

A table of the usual ways to word a decision, a warning, a preference or a rule. Rows go from plain
words to faint hints, and the first one that matches decides. Exceptions are inside the patterns, as
`(?!…)`.
"""

from __future__ import annotations

import re

from memtool.authoring.introductions import strip_introduction
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class CategoryPhrase(Value):
    """One way to word a statement of a category."""

    category: str
    example: str
    sign: re.Pattern[str]


def compile_any(*signs: str) -> re.Pattern[str]:
    """Compile a case-insensitive pattern that matches any of the given ones."""
    return re.compile("|".join(signs), re.IGNORECASE)


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

PHRASES: tuple[CategoryPhrase, ...] = (
    CategoryPhrase(
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
    ),
    CategoryPhrase(
        "warning",
        "Careful: the staging database is shared with QA.",
        compile_any(_CAREFUL + r"\b"),
    ),
    CategoryPhrase(
        "warning",
        "Don't edit files under gen/ because they are overwritten.",
        compile_any(
            r"(?:^|[,;:] |\b(?:and|so|but|please|you|must|should) )(?:never|don't|do not|not) "
            r"(?!(?:a|an|the|only|just|even|all|every)\b)[a-z]+ (?!(?:this|that|it|them)\b).+"
            r"(?:\b(?:because|otherwise|or else|or (?:it|the|we|you))\b"
            r"|[,;:] (?:it|they|the \w+)(?:'ll| will|'s| is|'re| are)? \w+)",
            r"\b(?:must|may) not (?:ever )?(?:change|break|be \w+ed)\b",
        ),
    ),
    CategoryPhrase(
        "preference",
        "From now on, write the tests before the code.",
        compile_any(r"\b(?:f(?:ro|or)m now on|going forward|from here on|next time)\b"),
    ),
    CategoryPhrase(
        "preference",
        "I prefer small pull requests.",
        compile_any(
            r"\bi(?:'d| would)? (?:really |much |strongly |always |generally )?"
            r"(?:prefer|rather (?:you|have|we))\b",
            r"\bi always (?:want|need|like|expect) (?:you|us)\b",
        ),
    ),
    CategoryPhrase(
        "preference",
        "Always ask before you install a new dependency.",
        compile_any(
            r"^(?:please )?(?:always|never|don't ever|do not ever) " + _VERB,
            r"^.{3,120}[,;:] (?:so )?(?:please )?(?:always|never|don't ever) " + _VERB,
            r"^(?:please )?(?:don't|do not|never) [a-z]+ " + _NAMED + r".+ without \w+",
        ),
    ),
    CategoryPhrase(
        "pattern",
        "In this repo all scripts are written in bash.",
        compile_any(
            rf"^{_HERE}[, ](?!.*\b(?:broken|fail\w*)\b)",
            rf"^(?:use|prefer|avoid|keep|put|write|name|we use|{_WE_DO_NOT}) {_NAMED}.+"
            rf"\b{_HERE}(?:[,;.!]|$)(?!.*\b(?:broken|fail\w*|do we)\b)",
            r"\b(?:our|the) (?:\w+ )?(?:convention|rule|policy)s?(?: here)? (?:is|are)\b",
            r"^as a (?:general )?rule\b",
        ),
    ),
    CategoryPhrase(
        "pattern",
        "We always squash merge feature branches.",
        compile_any(
            r"\bwe (?:also )?(?:always|never|only) (?:ever )?" + _NOT_PAST + r"\w+",
            r"^we " + _NOT_PAST + r"\w+ (?:.+[ ,])?(?:always|only|never [\w ]{2,40})[.!]?$",
        ),
    ),
    CategoryPhrase(
        "pattern",
        "Handlers must never touch the database.",
        compile_any(
            r"\b(?:must|should) (?:always|never|only)\b",
            r"^(?:all|every|each)\b"
            r"(?!.*\b(?:fails?|failing|pass|passes|broken|now|bug|my machine)\b)"
            r".+\b(?:must|has to|have to|lives?|goes?|go|belongs?|(?:is|are) under)\b",
        ),
    ),
    CategoryPhrase(
        "pattern",
        "Tests live in tests/ next to the package.",
        compile_any(
            r"^(?!it\b|this\b|that\b|they\b)[\w`./-]+(?: [\w`./-]+){0,4} "
            r"(?:goes?|lives?|belongs?|go|live|belong) (?:to|in|into|under) "
            r"(?:`|[\w-]*/|[\w-]+\.\w)",
        ),
    ),
    CategoryPhrase(
        "discovery",
        "Turns out that the CDN strips the header.",
        compile_any(
            r"^(?:it )?turns? out\b",
            r"^til:? ",
            r"\b(?:i|we) (?:found out|figured out|discovered|reali[sz]ed)\b",
        ),
    ),
)

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
_OPENING = compile_any(
    r"^(?:(?:ok(?:ay)?|so|well|also|and|but|oh|ah|hmm+|um+|btw|by the way|please|hey|hi|right|good"
    r"|great|nice|cool|perfect|thanks|thank you|thx|makes sense|sounds good|yes|yep|yeah|no|nope"
    r"|actually|in general|before you start|one more thing|ah right"
    r"|good to know|general (?:remark|note|comment|rule)|reminder|ps)\b[,.!:;]*\s+)+"
)
"""Opening words that add nothing to a sentence."""
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]?\s+(?=\S)|\n+")
_PATH = re.compile(
    r"(?<![\w/@:.-])(?:\.?[A-Za-z_][\w-]*/)+(?:[\w.-]*\w)?"
    r"|\b[\w-]+\.(?:py|pyi|js|mjs|jsx|ts|tsx|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh|sql|md|rst|toml"
    r"|yaml|yml|json|ini|cfg|css|scss|html|vue|svelte|tf|proto|graphql|lock)\b"
    r"|\b(?:Dockerfile|Makefile|Jenkinsfile|Cargo\.toml|go\.mod)\b"
)
MAX_FILES = 8


def classify(text: str, files: Sequence[str] = ()) -> str:
    """Return the category of a text that a user asks to remember, by its first decisive sentence.

    A prohibition about files is a warning: it is shown to agents that edit them.
    """
    plain = [strip_introduction(strip_opening(line)) for line in _split_sentences(text)]
    if any(_FORBIDS.search(line) and (files or find_paths(line)) for line in plain):
        return "warning"
    decided = (phrase.category for line in plain for phrase in PHRASES if phrase.sign.search(line))
    return next(decided, "") or next(filter(None, map(_classify_fact, plain)), "preference")


def _split_sentences(text: str) -> list[str]:
    lines = (" ".join(line.split()) for line in _SENTENCE_END.split(text))
    return [line.replace("\u2019", "'") for line in lines if line] or [""]


def _classify_fact(text: str) -> str:
    """Return the category of a plain statement of fact, empty for any other text."""
    if _MADE_OF.search(text):
        return "architecture"
    return "discovery" if _IS_SO.search(text) else ""


def strip_opening(text: str) -> str:
    """Remove the opening words that add nothing to a sentence."""
    return _OPENING.sub("", text, count=1) or text


def find_paths(text: str) -> tuple[str, ...]:
    """Return the paths that a text names, in order; URLs do not count."""
    paths = (match[0].strip("/") for match in _PATH.finditer(text))
    return tuple(dict.fromkeys(path for path in paths if not path.startswith("..")))[:MAX_FILES]
