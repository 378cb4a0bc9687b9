"""Completion: the possible words at the end of a command line, for the TAB key of a shell.

Verbs and options are read from the same table and signatures as for calls. Nothing here fails: if
something cannot be read, such as a directory that is not a repository, there are no completions.
Shells insert completions without quotes, so words that would need some are left out.
"""

from __future__ import annotations

import shlex
from itertools import pairwise

from memtool import templates
from memtool.calls import output
from memtool.calls.signature import read_interface
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
"""Parameters that take ids; in `session` verbs they are ids of sessions."""
QUERIES = frozenset(("filters", "query", "wanted"))
"""Parameters that take filters and saved queries."""
MAX_TITLES = 200
"""Ids that are offered with their titles: each title is read from the index."""
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:=@/+,")
"""Characters without a special meaning in any shell."""


class Completion(Value):
    """A possible word with a short help text."""

    word: str
    help: str = ""


def serve(call: Call, env: Mapping[str, str]) -> int:
    """Print the script of a shell, or the completions of a line; return the exit code."""
    (shell,) = call.positional
    line = call.options["line"]
    if line is None:
        output.write(templates.read(f"completion/{shell}"))
        return 0
    for completion in find_completions(line, env, call.directory, is_whole=shell == "fish"):
        has_help = shell != "bash" and completion.help
        meaning = f"\t{completion.help}" if has_help else ""
        output.write(output.make_visible(completion.word + meaning) + "\n")
    return 0


def find_completions(
    line: str, env: Mapping[str, str], directory: str = ".", *, is_whole: bool = False
) -> list[Completion]:
    """Return the completions of a line, in the order of their table, ids sorted.

    They begin with the last word of the line; `is_whole` also offers ids that contain it, for a
    shell that matches words anywhere.
    """
    words = _split_line(line)
    if words is None:
        return []
    request = _CompletionRequest(words[:-1], words[-1], env, directory, is_whole=is_whole)
    try:
        completions = list(request.find())
    except MemtoolError:
        return []
    unique = {
        completion.word: completion
        for completion in reversed(completions)
        if SAFE.issuperset(completion.word)
    }
    return list(unique.values())[::-1]


def _split_line(line: str) -> list[str] | None:
    """Return the words after the program's name, the last may be incomplete; None in quotes."""
    try:
        words = shlex.split(line)
    except ValueError:  # inside quotes
        return None
    if not line or line[-1].isspace():
        words.append("")
    at = next((n for n, word in enumerate(words) if word.rpartition("/")[2] == PROGRAM), None)
    return None if at is None or at + 1 == len(words) else words[at + 1 :]


class _CompletionRequest:
    """The word to complete, and the words before it."""

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
        for option, value in pairwise(before):
            if option == "-C":
                self.directory = value
        ahead, _verb, _after = arguments.split_at_verb(before)
        self.verb_words = before[len(ahead) :]
        self.is_value = ahead[-1:] == ["-C"] and not self.verb_words

    def find(self) -> Iterable[Completion]:
        """Return the completions. Raises MemtoolError if they cannot be read."""
        if self.is_value:
            return ()
        if not self.verb_words or self.verb_words == ["help"]:
            if self.word.startswith("-"):
                flags = (*arguments.ANYWHERE, arguments.ALL if self.verb_words else "--version")
                return self._filter_by_word(map(Completion, flags))
            verbs = [Completion(name, summary) for name, (_group, summary) in names().items()]
            help_verb = Completion("help", "explain a verb or a topic")
            return self._filter_by_word(
                [*verbs, *(self._list_topics() if self.verb_words else [help_verb])]
            )
        name, *arguments_before = self.verb_words
        actions: list[Completion] = []
        if name in ACTIONS:
            rows = [verb for verb in VERBS if verb.name.startswith(f"{name} ")]
            if not arguments_before or f"{name} {arguments_before[0]}" not in BY_NAME:
                actions = [Completion(v.name.partition(" ")[2], v.summary) for v in rows]
                name = rows[0].name
            else:
                name, arguments_before = f"{name} {arguments_before[0]}", arguments_before[1:]
        elif arguments_before and f"{name} {arguments_before[0]}" in BY_NAME:
            name, arguments_before = f"{name} {arguments_before[0]}", arguments_before[1:]
        elif not arguments_before:
            rows = [verb for verb in VERBS if verb.name.startswith(f"{name} ")]
            actions = [Completion(verb.name.partition(" ")[2], verb.summary) for verb in rows]
        if name not in BY_NAME:
            return ()
        return [
            *self._filter_by_word(actions),
            *self._complete_verb(read_interface(BY_NAME[name]), arguments_before),
        ]

    def _list_topics(self) -> list[Completion]:
        from memtool.cli.topics import TOPICS

        return [Completion(topic.name, topic.summary) for topic in TOPICS.values()]

    def _with_word(self, word: str) -> _CompletionRequest:
        return _CompletionRequest(
            self.before, word, self.env, self.directory, is_whole=self.is_whole
        )

    def _complete_verb(self, face: Interface, words: list[str]) -> Iterable[Completion]:
        by_flag = {option.flag: option for option in face.options}
        present_flags, places, waiting = self._scan(by_flag, words)
        if waiting is not None:
            return self.complete_value(face, waiting)
        flag, equals, value = self.word.partition("=")
        if equals and flag in by_flag:
            offered = self._with_word(value).complete_value(face, by_flag[flag])
            return [
                Completion(f"{flag}={completion.word}", completion.help) for completion in offered
            ]
        if self.word.startswith("-"):
            unused_options = [
                Completion(option.flag, option.help)
                for option in face.options
                if option.is_many or option.flag not in present_flags
            ]
            return self._filter_by_word([*unused_options, *map(Completion, arguments.ANYWHERE)])
        if not face.positional or (
            places >= len(face.positional) and not face.positional[-1].is_many
        ):
            return ()
        return self.complete_value(face, face.positional[min(places, len(face.positional) - 1)])

    def _scan(
        self, by_flag: Mapping[str, Parameter], words: list[str]
    ) -> tuple[set[str], int, Parameter | None]:
        """Return the present options, the number of arguments, and an option without its value."""
        present_flags, places = set(), 0
        waiting: Parameter | None = None
        for word in words:
            if waiting is not None:
                waiting = None
            elif word.startswith("-"):
                flag = word.partition("=")[0]
                present_flags.add(flag)
                option = by_flag.get(word)
                waiting = option if option is not None and option.kind is not bool else None
            else:
                places += 1
        return present_flags, places, waiting

    def complete_value(self, face: Interface, parameter: Parameter) -> Iterable[Completion]:
        """Return the values of a parameter that begin with the word."""
        if parameter.choices:
            return self._filter_by_word(map(Completion, parameter.choices))
        if (face.name, parameter.name) == ("config", "key"):
            from memtool.store.config import OPTIONS

            return self._filter_by_word(Completion(option.key, option.doc) for option in OPTIONS)
        completions: list[Completion] = []
        if parameter.name in QUERIES:
            completions += self._filter_by_word(self._list_filters())
        if parameter.name in IDS:
            completions += self._list_ids(is_session=face.name.startswith("session "))
        return completions

    def _list_filters(self) -> Iterable[Completion]:
        from memtool.memory.fields import CONFIDENCES, DEFAULT_CATEGORIES, STATUSES, TYPES
        from memtool.search.filters import IS_VALUES
        from memtool.search.query import FILTER_VALUES
        from memtool.search.saved import SIGN, read_saved_queries

        if self.word.startswith(SIGN):
            saved = read_saved_queries(self._open_context()).values()
            return [Completion(SIGN + query.name, query.doc) for query in saved]
        values_by_filter = {
            "type": TYPES,
            "category": DEFAULT_CATEGORIES,
            "status": STATUSES,
            "confidence": CONFIDENCES,
            "is": IS_VALUES,
        }
        name, colon, _value = self.word.partition(":")
        if colon:
            return [Completion(f"{name}:{value}") for value in values_by_filter.get(name, ())]
        return [Completion(f"{name}:", takes) for name, takes in FILTER_VALUES.items()]

    def _list_ids(self, *, is_session: bool) -> list[Completion]:
        from memtool.memory import short_ids

        context = self._open_context()
        if is_session:
            from memtool.sessions import store

            return self._filter_by_word(map(Completion, store.open_sessions(context).ids()))
        from memtool.index import index

        tree = index.open(context)
        short = {tree.short_ids.shorten(id_): id_ for id_ in tree.ids}
        begun = {name: id_ for name, id_ in short.items() if name.startswith(self.word)}
        begun = begun or {id_: id_ for id_ in tree.ids if id_.startswith(self.word)}
        if not begun:
            meant = short_ids.find_by_words(self.word, tree.ids)
            meant.sort(key=lambda id_: not tree.is_in_use(id_))
            # A shell that matches words anywhere finds the word in the whole id alone.
            begun = {id_ if self.is_whole else tree.short_ids.shorten(id_): id_ for id_ in meant}
        has_titles = len(begun) <= MAX_TITLES
        return [
            Completion(name, tree[id_].memory.title if has_titles else "")
            for name, id_ in begun.items()
        ]

    def _open_context(self) -> Context:
        from memtool.store.context import Context

        if self.is_global:
            return Context.at_global(self.env)
        return Context.at(self.directory, self.env)

    def _filter_by_word(self, completions: Iterable[Completion]) -> list[Completion]:
        return [completion for completion in completions if completion.word.startswith(self.word)]
