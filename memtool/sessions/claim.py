"""A claim: what one rule reads out of a session, before anybody asked whether it held."""

from __future__ import annotations

import re

from memtool.memory.signs import word_set
from memtool.value import Value

REASONED = re.compile(
    r"\b(?:because|since|so that|instead|rather than|due to|in order to|as (?:it|we|they))\b",
    re.IGNORECASE,
)
_PATH = re.compile(
    r"(?<![\w/@:.-])(?:\.?[A-Za-z_][\w-]*/)+(?:[\w.-]*\w)?"
    r"|\b[\w-]+\.(?:py|pyi|js|mjs|jsx|ts|tsx|go|rs|rb|java|kt|c|h|cc|cpp|cs|php|sh|sql|md|rst|toml"
    r"|yaml|yml|json|ini|cfg|css|scss|html|vue|svelte|tf|proto|graphql|lock)\b"
    r"|\b(?:Dockerfile|Makefile|Jenkinsfile|Cargo\.toml|go\.mod)\b"
)
_SUBJECTS = word_set(
    "ansible api auth aws azure bash cargo celery ci cmake cors css django docker eslint fastapi"
    " flask git github gitlab go graphql grpc html http java javascript jest jwt kafka kotlin"
    " kubernetes lint linter make migration mongodb mypy mysql nginx node npm oauth openssl php pip"
    " playwright pnpm poetry postgres postgresql pytest python rabbitmq rails react redis rest ruby"
    " ruff rust s3 sql sqlite ssh staging svelte terraform tests tox typescript uv vite vue webpack"
    " yarn"
)
MOST_FILES = 8
MOST_TAGS = 5


class Claim(Value):
    """One statement with its evidence: the messages, and the place in the last of them.

    `importance` is 0 to 1; `fields` as in `Finding`. `is_said` tells that a person said it.
    """

    category: str
    content: str
    confidence: str
    importance: float
    messages: tuple[int, ...]
    place: int = 0
    signals: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    is_said: bool = True


def paths_in(text: str) -> tuple[str, ...]:
    """Return the paths that a text names, in order; hosts of the net are none."""
    found = (match[0].strip("/") for match in _PATH.finditer(text))
    return tuple(dict.fromkeys(path for path in found if not path.startswith("..")))[:MOST_FILES]


def tags_of(text: str) -> tuple[str, ...]:
    """Return the tools and subjects that a text names, sorted."""
    named = {word.strip("`*_\"'()[],;:.!").lower() for word in text.split()}
    return tuple(sorted(named & _SUBJECTS))[:MOST_TAGS]


def printable(text: str) -> str:
    """Return a text with a space for each character that cannot be shown, such as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def sentence(text: str) -> str:
    """Return a text as one sentence: a capital first, a full stop at the end."""
    text = " ".join(text.split()).strip(" ,;:-")
    first, _space, _rest = text.partition(" ")
    if text[:1].islower() and first.isalpha():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "`.")) else f"{text}."
