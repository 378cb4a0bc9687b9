"""Completion: the words that may stand at the end of a command line, for the TAB key of a shell.

Verbs and options are read from the same table and signatures as calls are. Nothing here fails:
what cannot be read, such as a directory that is no repository, has no words to offer. Only words
that a shell takes as they are get out, since a shell inserts them without quotes.
"""

from __future__ import annotations

import shlex
from itertools import pairwise

from memtool import templates
from memtool.calls import output
from memtool.calls.signature import interface
from memtool.cli import arguments
from memtool.commands import ACTIONS, BY_NAME, VERBS, names
from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memtool.calls.bind import Call
    from memtool.calls.signature import Interface, Parameter
    from memtool.store.context import Context

PROGRAM = "memtool"
IDS = frozenset(("id", "ids", "old", "supersedes", "wanted", "why_not"))
"""Parameters that take ids; those of a session are the ids of sessions."""
QUERIES = frozenset(("filters", "query", "wanted"))
"""Parameters that take filters and saved queries."""
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:=@/+,")
"""Characters that no shell gives a meaning, in the words that are offered."""


class Completion(Value):
    """A word that may stand there, and in a few words what it means."""

    word: str
    help: str = ""


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Print the script of a shell, or what completes a line; return the exit code."""
    (shell,) = call.positional
    line = call.options["line"]
    if line is None:
        output.write(templates.read(f"completion/{shell}"))
        return 0
    for one in candidates(line, env, call.directory, is_whole=shell == "fish"):
        meaning = f"\t{one.help}" if shell == "fish" and one.help else ""
        output.write(output.visible(one.word + meaning) + "\n")
    return 0


def candidates(
    line: str, env: Mapping[str, str], directory: str = ".", *, is_whole: bool = False
) -> list[Completion]:
    """Return what may stand at the end of a line, in the order of its table, ids sorted.

    Offered is what begins as the last word does; `is_whole` also offers ids that hold it, for a
    shell that looks for a word anywhere.
    """
    words = _words(line)
    if words is None:
        return []
    asked = _Asked(words[:-1], words[-1], env, directory, is_whole=is_whole)
    try:
        found = list(asked.found())
    except MemtoolError:
        return []
    unique = {one.word: one for one in reversed(found) if SAFE.issuperset(one.word)}
    return list(unique.values())[::-1]


def _words(line: str) -> list[str] | None:
    """Return the words behind the program's name, the last one as far as it is written."""
    try:
        words = shlex.split(line)
    except ValueError:  # inside of quotes
        return None
    if not line or line[-1].isspace():
        words.append("")
    at = next((n for n, word in enumerate(words) if word.rpartition("/")[2] == PROGRAM), None)
    return None if at is None or at + 1 == len(words) else words[at + 1 :]


class _Asked:
    """What stands before a word that is to be completed, and the word."""

    def __init__(
        self,
        before: list[str],
        word: str,
        env: Mapping[str, str],
        directory: str,
        *,
        is_whole: bool,
    ) -> None:
        self.before = before
        self.word = word
        self.env = env
        self.is_whole = is_whole
        self.directory = directory
        self.is_global = "--global" in before
        for one, value in pairwise(before):
            if one == "-C":
                self.directory = value
        ahead, _verb, _after = arguments.split(before)
        self.rest = before[len(ahead) :]
        self.is_value = ahead[-1:] == ["-C"] and not self.rest

    def found(self) -> Iterable[Completion]:
        """Yield what may stand there. Raises MemtoolError where that cannot be read."""
        if self.is_value:
            return ()
        if not self.rest or self.rest == ["help"]:
            verbs = [Completion(name, summary) for name, (_group, summary) in names().items()]
            more = [Completion("help", "the page of a verb")] if not self.rest else []
            flags = map(Completion, (*arguments.ANYWHERE, "--version"))
            return self._fitting(flags if self.word.startswith("-") else [*verbs, *more])
        name, *rest = self.rest
        actions: list[Completion] = []
        if name in ACTIONS:
            rows = [verb for verb in VERBS if verb.name.startswith(f"{name} ")]
            if not rest or f"{name} {rest[0]}" not in BY_NAME:
                actions = [Completion(v.name.partition(" ")[2], v.summary) for v in rows]
                name = rows[0].name
            else:
                name, rest = f"{name} {rest[0]}", rest[1:]
        if name not in BY_NAME:
            return ()
        return [*self._fitting(actions), *self._of_verb(interface(BY_NAME[name]), rest)]

    def _with(self, word: str) -> _Asked:
        """Return the same place with another word."""
        return _Asked(self.before, word, self.env, self.directory, is_whole=self.is_whole)

    def _of_verb(self, face: Interface, rest: list[str]) -> Iterable[Completion]:
        by_flag = {option.flag: option for option in face.options}
        given, places, waiting = self._read(by_flag, rest)
        if waiting is not None:
            return self.values(face, waiting)
        flag, equals, value = self.word.partition("=")
        if equals and flag in by_flag:
            offered = self._with(value).values(face, by_flag[flag])
            return [Completion(f"{flag}={one.word}", one.help) for one in offered]
        if self.word.startswith("-"):
            known = [
                Completion(option.flag, option.help)
                for option in face.options
                if option.is_many or option.flag not in given
            ]
            return self._fitting([*known, *map(Completion, arguments.ANYWHERE)])
        if not face.positional or (
            places >= len(face.positional) and not face.positional[-1].is_many
        ):
            return ()
        return self.values(face, face.positional[min(places, len(face.positional) - 1)])

    def _read(
        self, by_flag: Mapping[str, Parameter], rest: list[str]
    ) -> tuple[set[str], int, Parameter | None]:
        """Return the options that are given, how many arguments, and an option without a value."""
        given, places = set(), 0
        waiting: Parameter | None = None
        for word in rest:
            if waiting is not None:
                waiting = None
            elif word.startswith("-"):
                flag = word.partition("=")[0]
                given.add(flag)
                option = by_flag.get(word)
                waiting = option if option is not None and option.kind is not bool else None
            else:
                places += 1
        return given, places, waiting

    def values(self, face: Interface, parameter: Parameter) -> Iterable[Completion]:
        """Return the values of a parameter that begin as the word does."""
        if parameter.choices:
            return self._fitting(map(Completion, parameter.choices))
        if (face.name, parameter.name) == ("config", "key"):
            from memtool.store.config import OPTIONS

            return self._fitting(Completion(option.key, option.doc) for option in OPTIONS)
        found: list[Completion] = []
        if parameter.name in QUERIES:
            found += self._fitting(self._filters())
        if parameter.name in IDS:
            found += self._ids(is_session=face.name.startswith("session "))
        return found

    def _filters(self) -> Iterable[Completion]:
        from memtool.memory.fields import CONFIDENCES, DEFAULT_CATEGORIES, STATUSES, TYPES
        from memtool.search.filters import IS
        from memtool.search.query import FILTER_VALUES
        from memtool.search.saved import SIGN, saved_queries

        if self.word.startswith(SIGN):
            saved = saved_queries(self._context()).values()
            return [Completion(SIGN + one.name, one.doc) for one in saved]
        known = {
            "type": TYPES,
            "category": DEFAULT_CATEGORIES,
            "status": STATUSES,
            "confidence": CONFIDENCES,
            "is": IS,
        }
        name, colon, _value = self.word.partition(":")
        if colon:
            return [Completion(f"{name}:{value}") for value in known.get(name, ())]
        return [Completion(f"{name}:", takes) for name, takes in FILTER_VALUES.items()]

    def _ids(self, *, is_session: bool) -> list[Completion]:
        from memtool.memory import ids

        context = self._context()
        if is_session:
            from memtool.sessions import store

            return self._fitting(map(Completion, store.opened(context).ids()))
        from memtool.index import index

        tree = index.open(context)
        begun = [id_ for id_ in tree.ids if id_.startswith(self.word)]
        if self.is_whole:
            begun = [id_ for id_ in tree.ids if self.word in id_]
        if not begun:
            meant = ids.meant(self.word, tree.ids)
            begun = meant if len(meant) == 1 else []
        return [Completion(id_) for id_ in begun]

    def _context(self) -> Context:
        from memtool.store.context import Context

        if self.is_global:
            return Context.at_global(self.env)
        return Context.at(self.directory, self.env)

    def _fitting(self, known: Iterable[Completion]) -> list[Completion]:
        return [one for one in known if one.word.startswith(self.word)]
