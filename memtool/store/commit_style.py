"""The style of a team's commits: the template of the subject, further trailers, and what fits.

Programs that read memtool's commits use its own trailers (see `messages`), so that any subject is
allowed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from memtool.store.files import read_or_none
from memtool.store.messages import is_own_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from memtool.store.repository import Repository

SUBJECT_KEY, TRAILERS_KEY = "commit.subject", "commit.trailers"
SUMMARY = "{summary}"
"""What the commit does, within the template of a subject."""
AUTHOR = "{author}"
"""Name and address of the author, within a trailer."""
DEFAULT_SUBJECT = f"memory: {SUMMARY}"
CONVENTIONAL = f"docs(memory): {SUMMARY}"
SIGN_OFF = "Signed-off-by"
MAX_SUBJECT_CHARS = 72
MAX_FIXED_CHARS = 40
"""Characters of a template besides the summary, which needs the others."""
MAX_TRAILER_CHARS = 200


def format_subject(template: str, summary: str) -> str:
    """Return a subject of at most 72 characters; the summary is cut between words.

    It does not end in a full stop, which commitlint refuses.
    """
    before, _summary, after = template.partition(SUMMARY)
    text = " ".join(summary.split()).rstrip(".")
    room = MAX_SUBJECT_CHARS - len(before) - len(after)
    if len(text) > room:
        words = text[: room - 1].rpartition(" ")[0]
        text = (words if len(words) > room // 2 else text[: room - 2]) + " …"
    return f"{before}{text}{after}".strip()


def format_trailers(trailers: Iterable[str], author: str) -> dict[str, str]:
    """Return the trailers of a setting by key; one without a value names the author."""
    pairs = (trailer.partition(":")[::2] for trailer in trailers)
    return {key: (value.strip() or AUTHOR).replace(AUTHOR, author) for key, value in pairs}


def _find_subject_fault(template: str) -> str:
    if not template.isprintable():
        return "must be one line without control characters"
    if template.count(SUMMARY) != 1:
        return f'must contain {SUMMARY} once, such as "{CONVENTIONAL}"'
    if len(template) - len(SUMMARY) > MAX_FIXED_CHARS:
        return f"may have {MAX_FIXED_CHARS} characters besides {SUMMARY}"
    return ""


def _find_trailer_fault(trailer: str) -> str:
    key, colon, value = trailer.partition(":")
    if not trailer.isprintable() or len(trailer) > MAX_TRAILER_CHARS:
        return f"must be one line of at most {MAX_TRAILER_CHARS} characters"
    if not (key.isascii() and key.replace("-", "a").isalnum() and key[0].isalpha()):
        return f'must be lines such as "{SIGN_OFF}" or "Change-Type: docs"'
    if is_own_key(key):
        return f"must not contain {key}, which memtool writes itself"
    if not value.strip() and (colon or not key.lower().endswith("-by")):
        return f'must have a value for {key}: "{key}: TEXT"'
    return ""


FAULTS: Mapping[str, Callable[[str], str]] = {
    SUBJECT_KEY: _find_subject_fault,
    TRAILERS_KEY: _find_trailer_fault,
}
"""By setting, a function that returns why a text is not allowed, empty if it is."""


MAX_SUBJECTS = 200
MIN_SUBJECTS = 5
"""Fewer subjects show no habit."""
MIN_SHARE, MIN_SHARE_WITH_COMMITLINT = 0.6, 0.2
"""Share of conventional subjects from which on a history is conventional.

With commitlint fewer are enough: the file may be younger than most commits.
"""
TYPES = frozenset(
    ("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test")
)
"""The types of conventional commits, as in @commitlint/config-conventional."""
_NO_HABIT = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ", "Initial commit", "memory: ")
"""Beginnings of subjects that git, a forge or memtool wrote."""
COMMITLINT_FILES = ("commitlint.config.", ".commitlintrc")
"""Beginnings of the names of commitlint's files, which have many endings."""
PACKAGE_NAME = "package.json"
MAX_PACKAGE_BYTES = 1 << 20


def guess_subject(subjects: Sequence[str], has_commitlint: bool) -> str:  # noqa: FBT001  # a fact, no switch
    """Return the template that fits the subjects of a history; empty if they show no habit.

    `has_commitlint` means that the repository has a configuration of commitlint.
    """
    own = [subject for subject in subjects if subject and not subject.startswith(_NO_HABIT)]
    types = [*filter(None, map(find_type, own))]
    if has_commitlint:
        is_conventional = len(types) >= MIN_SHARE_WITH_COMMITLINT * len(own)
    else:
        is_conventional = len(own) >= MIN_SUBJECTS and len(types) >= MIN_SHARE * len(own)
    if not is_conventional:
        return ""
    type_ = "chore" if "chore" in types and "docs" not in types else "docs"
    return f"{type_}(memory): {SUMMARY}"


def find_type(subject: str) -> str:
    """Return the type of a conventional subject, such as `fix` of `fix(web)!: a typo`; else ""."""
    head, colon, text = subject.partition(": ")
    type_, bracket, scope = head.removesuffix("!").partition("(")
    is_scoped = not bracket or (len(scope) > 1 and scope.endswith(")"))
    return type_ if colon and text.strip() and is_scoped and type_ in TYPES else ""


def suggest_subject(repository: Repository) -> str:
    """Return the template that fits the last 200 subjects and commitlint's files; empty if none."""
    git = repository.git
    rows = (
        git.run("log", f"-{MAX_SUBJECTS}", "--no-merges", "--format=%s", "HEAD").splitlines()
        if git.head()
        else []
    )
    subjects = [row.decode(errors="replace") for row in rows]
    return guess_subject(subjects, any(_list_commitlint_files(repository.top)))


def _list_commitlint_files(top: str) -> Iterator[str]:
    """Yield the files at the top that configure commitlint."""
    import json  # needed once, when a repository is set up

    with suppress(OSError):
        yield from (name for name in sorted(os.listdir(top)) if name.startswith(COMMITLINT_FILES))
    data = read_or_none(os.path.join(top, PACKAGE_NAME), MAX_PACKAGE_BYTES)
    with suppress(ValueError, RecursionError):
        package = json.loads(data or b"{}")
        if isinstance(package, dict) and "commitlint" in package:
            yield PACKAGE_NAME
