"""Command lines of a shell: the simple commands in them, and what each one runs on.

A line is split as a shell would split it, but nothing is run or expanded: variables, globs and
command substitutions stay as they are written. What a line gives to a program on standard input, a
heredoc, is not part of any command. A long line is cut, so that the time is bounded.
"""

from __future__ import annotations

import posixpath
import re
from itertools import pairwise

from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHARS = 20_000
"""Characters of a line that are read."""
MAX_COMMANDS = 50
MAX_DEPTH = 2
"""How deep a line may be inside of another one, as in `sh -c "..."`."""

_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n|(?<!\S)#[^\n]*)"
    r"|(?P<heredoc><<-?(?!<)[ \t]*(?P<mark>['\"]?)(?P<end>[\w.+-]+)(?P=mark))"
    r"|(?P<redirect>\d*(?:&>>?|>>|>\||>&|<<<|<&|<>|[<>]))"
    r"|(?P<separator>\n|&&?|\|[|&]?|;+|[()])"
    r"|'(?P<exact>[^']*)'?"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"?'
    r"|\\(?P<escaped>.)"
    r"|(?P<plain>[^\s'\"\\|&;<>()]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_PARTS = frozenset(("exact", "quoted", "escaped", "plain", "other"))
"""Tokens that are parts of a word."""
_ESCAPED = re.compile(r'\\(["\\$`])')
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VERSION = re.compile(r"(?<=[a-z])[\d.]+$")
_FILE_NAME = re.compile(r"[^/]\.\w{1,8}$")
_UNKNOWN = ("$", "`", "~", "-")
"""Begins a directory that only the shell itself knows."""
_KEYWORDS = frozenset(("!", "do", "elif", "else", "if", "then", "until", "while", "{"))
"""Words before a command that are not its program."""
_POSIX_SHELLS = frozenset(("bash", "dash", "sh", "zsh"))
_WINDOWS_SHELLS = frozenset(("cmd", "powershell", "pwsh"))
SHELLS = _POSIX_SHELLS | _WINDOWS_SHELLS
INTERPRETERS = frozenset(("node", "perl", "php", "python", "ruby"))
"""Programs that run a script, beside the shells."""
_WRAPPERS = frozenset(
    (
        "bunx",
        "command",
        "doas",
        "env",
        "exec",
        "nice",
        "nohup",
        "npx",
        "stdbuf",
        "sudo",
        "time",
        "timeout",
        "uvx",
    )
)
"""Programs that run the command that follows their options."""
_RUNNERS = frozenset(
    (
        ("bundle", "exec"),
        ("conda", "run"),
        ("hatch", "run"),
        ("npm", "exec"),
        ("pdm", "run"),
        ("pipenv", "run"),
        ("pnpm", "dlx"),
        ("pnpm", "exec"),
        ("poetry", "run"),
        ("uv", "run"),
        ("yarn", "dlx"),
    )
)
"""Programs with a subcommand that do the same."""
_ENVIRONMENT = frozenset(("--name", "--prefix", "-n", "-p"))
"""Options of a runner that have a value: the environment in which it runs."""
_SCRIPT_RUNNERS = frozenset(("bun", "npm", "pnpm", "yarn"))
"""Programs for which `run` before the name of a script may be left out."""


class SimpleCommand(Value):
    """One program with its arguments.

    `folder` is the directory in which it runs, relative to that of the line. `redirects` are the
    files that the shell opens for it.
    """

    words: tuple[str, ...]
    redirects: tuple[str, ...] = ()
    folder: str = ""


class CommandTarget(Value):
    """The program of a command and what it runs on, the same for every way to spell it.

    `targets` are the arguments that are no options: subcommands, and paths, which are relative to
    the same directory as the folder of the command. `unsure` are those that may be the values of an
    option before them.
    """

    program: str
    targets: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    def covers(self, other: CommandTarget) -> bool:
        """Return whether another command runs this program on this target, perhaps on more."""
        if self.program != other.program:
            return False
        targets, places = self.targets or self.unsure, other.targets | other.unsure
        if not targets:
            return not places
        return all(any(_overlap(target, place) for place in places) for target in targets)


def _overlap(path: str, other: str) -> bool:
    """Return whether two paths are the same, or one is inside of the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def split_commands(line: str) -> list[SimpleCommand]:
    """Return the simple commands of a line in order."""
    return list(_split_line(line[:MAX_CHARS], "", 0))[:MAX_COMMANDS]


def _split_line(line: str, folder: str, depth: int) -> Iterator[SimpleCommand]:
    folders = [folder]
    words: list[str] = []
    redirects: list[str] = []
    for separator, word, is_redirect in _read_words(line):
        if not separator:
            (redirects if is_redirect else words).append(word)
            continue
        while words and words[0] in _KEYWORDS:
            del words[0]
        if words and words[0] in ("cd", "pushd"):
            folders[-1] = _enter(folders[-1], words[1:])
        elif words or redirects:
            yield SimpleCommand(tuple(words), tuple(redirects), folders[-1])
            yield from _split_inner(words, folders[-1], depth)
        words, redirects = [], []
        if separator == "(":
            folders.append(folders[-1])
        elif separator == ")" and len(folders) > 1:
            folders.pop()


def _split_inner(words: Sequence[str], folder: str, depth: int) -> Iterator[SimpleCommand]:
    """Yield the commands of the line that a shell is started with."""
    name = _name_program(words[0]) if words else ""
    if depth >= MAX_DEPTH or name not in SHELLS:
        return
    for option, line in pairwise(words):
        is_short = option.startswith("-") and not option.startswith("--") and option.endswith("c")
        if is_short or (name in _WINDOWS_SHELLS and option.lower() in ("-command", "/c")):
            yield from _split_line(line, folder, depth + 1)
            return


def _enter(folder: str, words: Sequence[str]) -> str:
    """Return the directory after `cd`; the same one if only a shell knows the other."""
    places = [word for word in words if word != "--"]
    if not places or places[0].startswith(_UNKNOWN) or "$" in places[0]:
        return folder
    return posixpath.normpath(posixpath.join(folder, places[0]))


def _read_words(line: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the words of a line and the separators between commands.

    Each row has a separator or a word, and whether the word is the target of a redirection.
    """
    word: str | None = None
    is_redirect = False
    for kind, text in _read_tokens(line):
        if kind in _PARTS:
            part = _ESCAPED.sub(r"\1", text) if kind == "quoted" else text
            word = (word or "") + part
            continue
        if word is not None:
            yield "", word, is_redirect
            is_redirect = False
        word = None
        if kind == "redirect":
            is_redirect = True
        elif kind == "separator":
            yield text, "", False
            is_redirect = False


def _read_tokens(line: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each token of a line, without heredocs; a separator is the last."""
    endings: list[str] = []
    at = 0
    while token := _TOKEN.match(line, at):
        at = token.end()
        kind = token.lastgroup or ""
        yield kind, token[kind]
        if kind == "heredoc":
            endings.append(token["end"])
        elif token[0] == "\n" and endings:
            at = _skip_heredocs(line, at, endings)
            endings = []
    yield "separator", "\n"


def _skip_heredocs(line: str, at: int, endings: Sequence[str]) -> int:
    """Return the position behind the texts that end with these lines, in order."""
    for ending in endings:
        while at < len(line):
            end = line.find("\n", at)
            row = line[at : len(line) if end < 0 else end]
            at = len(line) if end < 0 else end + 1
            if row.strip("\t\r") == ending:
                break
    return at


def find_target(command: SimpleCommand) -> CommandTarget | None:
    """Return the program of a command and what it runs on; None if it has no program."""
    words = _without_wrappers(command.words)
    if not words:
        return None
    program = _name_program(words[0])
    arguments = words[1:]
    if program in _POSIX_SHELLS | INTERPRETERS:
        script = next((word for word in arguments if not word.startswith("-")), "")
        if script and arguments[0] == script and (program in _POSIX_SHELLS or _is_path(script)):
            program, arguments = posixpath.basename(script), arguments[1:]
    if program in _SCRIPT_RUNNERS and arguments[:1] == ["run"]:
        arguments = arguments[1:]
    targets: set[str] = set()
    unsure: set[str] = set()
    is_value = False
    for word in arguments:
        is_option = word.startswith("-")
        if _is_path(word) and not is_option:
            targets.add(_normalize_path(command.folder, word))
        elif not (is_option or "=" in word):
            (unsure if is_value else targets).add(word)
        is_value = is_option and "=" not in word and word != "--"
    return CommandTarget(program, frozenset(targets), frozenset(unsure))


def _without_wrappers(words: Sequence[str]) -> list[str]:
    """Return the words from the program on, which others may start."""
    remaining = [*words]
    while remaining:
        name = _name_program(remaining[0])
        if _SETTING.match(remaining[0]):
            del remaining[0]
        elif name in _WRAPPERS:
            del remaining[0]
            while remaining and (remaining[0].startswith("-") or remaining[0][:1].isdigit()):
                del remaining[0]
        elif tuple(remaining[:2]) in _RUNNERS:
            del remaining[:2]
            while remaining and remaining[0].startswith("-"):
                del remaining[: 2 if remaining[0] in _ENVIRONMENT else 1]
        elif name == "python" and remaining[1:2] == ["-m"]:
            del remaining[:2]
        else:
            break
    return remaining


def _name_program(word: str) -> str:
    """Return the name of a program without its directory and version."""
    name = posixpath.basename(word.replace("\\", "/")).removesuffix(".exe")
    plain = _VERSION.sub("", name)
    return plain if plain in _POSIX_SHELLS | INTERPRETERS else name


def _is_path(word: str) -> bool:
    return "/" in word or bool(_FILE_NAME.search(word.partition("::")[0]))


def _normalize_path(folder: str, word: str) -> str:
    path = word.partition("::")[0].removesuffix("/...")
    return posixpath.normpath(posixpath.join(folder, path))
