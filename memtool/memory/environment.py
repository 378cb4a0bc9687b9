"""The environment of a failure, needed to run its command again, as `key: value` lines.

A trace stores it in its section Environment. It was captured when the command failed, or written by
hand, and may have been edited since: every line is untrusted until `read_environment` has parsed
it. An unknown value is written as unknown, and never guessed.
"""

from __future__ import annotations

import json
import posixpath
import re

from memtool.memory.schema import is_inside
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION = "Environment"
UNKNOWN, CLEAN = "unknown", "clean"
NEEDS_SHELL, REDACTED = "needs a shell", "redacted"
LACKS: dict[str, str] = {
    "": "its section Environment names no argv",
    UNKNOWN: "the words of the command are not known",
    NEEDS_SHELL: "the command needs a shell, and none is started",
    REDACTED: "a secret was taken out of the command",
}
"""Values in place of `argv`, with the reason why the command cannot be run."""
MARK = "[REDACTED"
"""Begins the mark in place of a secret."""
KEYS = ("argv", "cwd", "exit", "commit", "diff", "untracked", "os", "arch", "failure")
"""Keys in their order; versions of interpreters and `lock FILE` come before the last one."""
MAX_WORDS = 500
MAX_LINE = 8_000
_LINE = re.compile(r"^(?P<key>[a-z]{2,20}|lock \S.{0,200}?): +(?P<value>\S.*)$")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_DIGEST = re.compile(r"[0-9a-f]{16,64}")

_EXIT = re.compile(r"\s*(?:Error: )?(?:Process )?[Ee]xit(?:ed with)? (?:code|status):? (\d{1,3})\b")


class FailureEnvironment(Value):
    """The recorded environment of a failed run.

    `argv` is empty if `lack` gives the reason, one of `LACKS`. `cwd` is relative to the top, `.`
    for the top itself. `diff` is `clean`, or a hash of the uncommitted changes. `failure` is the
    hash of the normalised failure. Texts are empty and `exit` is None if unknown. `facts` are
    operating system, versions of interpreters, and hashes of lock files.
    """

    argv: tuple[str, ...] = ()
    lack: str = ""
    cwd: str = ""
    exit: int | None = None
    commit: str = ""
    diff: str = ""
    failure: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def obstacle(self) -> str:
        """Why the command cannot be run again, as one clause; empty if it can."""
        if not self.argv:
            return LACKS[self.lack]
        if not self.commit:
            return "the commit at which it failed is unknown"
        if not self.cwd:
            return "the directory in which it ran is unknown"
        if not self.diff:
            return "whether the worktree was clean is unknown"
        if self.diff != CLEAN:
            return "the worktree had uncommitted changes"
        return ""

    @property
    def reaches(self) -> tuple[str, ...]:
        """The words that name a place outside of the worktree, in which nothing is contained."""
        return tuple(word for word in self.argv if any(map(self._is_outside, _find_paths(word))))

    def _is_outside(self, path: str) -> bool:
        if path.startswith(("/", "~")):
            return True
        joined = posixpath.normpath(posixpath.join(self.cwd or ".", path))
        return joined == ".." or joined.startswith("../")


def _find_paths(word: str) -> tuple[str, ...]:
    """Return what of a word may be a path: all of it, what follows `=`, and the parts of a list."""
    value = word.partition("=")[2] if word.startswith("-") or "=" in word else ""
    return (word, *value.split(":"), *word.split(":")) if "://" not in word else (word,)


def write_environment(environment: FailureEnvironment) -> str:
    """Return the lines of an environment; what decides over running it again is said if unknown."""
    facts = dict(environment.facts)
    # What cannot be shown is escaped: whoever makes a space of it would change a word.
    is_shown = all(word.isprintable() for word in environment.argv)
    words = json.dumps(environment.argv, ensure_ascii=not is_shown)
    argv = words if environment.argv else environment.lack or UNKNOWN
    values = {
        "argv": argv,
        "cwd": environment.cwd or UNKNOWN,
        "exit": "" if environment.exit is None else str(environment.exit),
        "commit": environment.commit or UNKNOWN,
        "diff": environment.diff or UNKNOWN,
        "failure": environment.failure,
    }
    order = [*KEYS[:-1], *(key for key in facts if key not in KEYS), KEYS[-1]]
    rows = {key: values[key] if key in values else facts.get(key, "") for key in order}
    return "\n".join(f"{key}: {value}" for key, value in rows.items() if value)


def read_environment(text: str) -> FailureEnvironment:
    """Parse the lines of a section; lines of another form are skipped.

    Raises:
        ValueError: a line has an impossible value, or occurs twice.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line.rstrip())
        if match is None:
            continue
        key, value = match["key"], match["value"]
        if key in values:
            raise ValueError(f"{key} stands in its section Environment twice")
        values[key] = value
    argv, lack = _parse_argv(values.pop("argv", ""))
    return FailureEnvironment(
        argv=argv,
        lack=lack,
        cwd=_parse_cwd(values.pop("cwd", "")),
        exit=_parse_exit(values.pop("exit", "")),
        commit=_match_value("commit", values.pop("commit", ""), _COMMIT),
        diff=_diff(values.pop("diff", "")),
        failure=_match_value("failure", values.pop("failure", ""), _DIGEST),
        facts=tuple(values.items()),
    )


def parse_environment(body: str) -> FailureEnvironment:
    """Parse the section Environment of a body. Raises ValueError like `read_environment`."""
    from memtool.memory.memory import split_sections  # only traces have one

    parts = split_sections(body) if SECTION in body else []
    return read_environment(next((part.text for part in parts if part.title == SECTION), ""))


def parse_exit_code(printed: str) -> int | None:
    """Return the exit code at the beginning of a tool's output; None if there is none."""
    match = _EXIT.match(printed)
    return int(match[1]) if match else None


def _parse_argv(value: str) -> tuple[tuple[str, ...], str]:
    if value in LACKS:
        return (), value
    try:
        argv = json.loads(value) if len(value) <= MAX_LINE else None
    except (ValueError, RecursionError):
        argv = None
    words: list[str] = argv if isinstance(argv, list) else []
    if not (0 < len(words) <= MAX_WORDS and words[0] and all(map(_is_word, words))):
        raise ValueError('argv is no JSON list of words, such as ["pytest", "-q"]')
    if any(MARK in word for word in words):
        return (), REDACTED
    return tuple(words), ""


def _is_word(value: object) -> bool:
    """Return whether a value can be an argument of a program."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _parse_cwd(value: str) -> str:
    if value in ("", UNKNOWN):
        return ""
    if not is_inside(value) or "\0" in value or ".git" in value.lower().split("/"):
        raise ValueError("cwd is no directory inside of the repository, relative to its top")
    return posixpath.normpath(value)


def _parse_exit(value: str) -> int | None:
    if value in ("", UNKNOWN):
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 3):
        raise ValueError("exit is no exit code")
    return int(value)


def _diff(value: str) -> str:
    return value if value == CLEAN else _match_value("diff", value, _DIGEST)


def _match_value(key: str, value: str, pattern: re.Pattern[str]) -> str:
    if value in ("", UNKNOWN):
        return ""
    if not pattern.fullmatch(value):
        raise ValueError(f"{key} is none in hexadecimal")
    return value


_PART = re.compile(
    r"(?P<space>[ \t]+)|(?P<join>&&)|'(?P<exact>[^']*)'"
    r'|"(?P<quoted>(?:[^"\\$`]|\\.)*)"|\\(?P<escaped>[^\n])'
    r"|(?P<plain>[^\s'\"\\|&;<>()$`*?\[{~#]+|(?<=\S)[~#]|\{(?![^\s{}]*(?:,|\.\.)[^\s{}]*\}))"
)
"""Tokens of a command line that only a shell could interpret."""
_ESCAPED = re.compile(r'\\(["\\$`])')
_SHELL_WORDS = frozenset(
    (
        ".",
        "[",
        "alias",
        "case",
        "do",
        "eval",
        "exec",
        "export",
        "for",
        "function",
        "if",
        "set",
        "source",
        "time",
        "trap",
        "ulimit",
        "umask",
        "unset",
        "until",
        "wait",
        "while",
        "{",
        "!",
    )
)
"""First words that no program has for a name."""
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_MERGED = "2>&1"


class _NeedsShell(Exception):
    """A command line has a meaning that its words alone have not."""


def parse_command_line(line: str, top: str = "", directory: str = "") -> FailureEnvironment:
    """Return argv and directory of a command line, or the reason why there are none.

    `cd DIRECTORY &&` at the beginning gives the directory, variable settings before the program
    become words of `env`, and `2>&1` at the end has no effect. `top` and `directory` are absolute
    paths; the directory is unknown without them. Paths below the top are made relative, since they
    mean the files of a commit, not those of one worktree.
    """
    try:
        words = list(_split_words(line))
        while len(words) > 2 and words[0] == "cd" and words[2] is None:
            directory = posixpath.join(directory, words[1] or "") if top else ""
            del words[:3]
        if None in words:
            raise _NeedsShell
        argv = [word for word in words if word is not None]
        program = next((word for word in argv if not _SETTING.match(word)), "")
        if not program or program in _SHELL_WORDS or program == "cd":
            raise _NeedsShell
    except _NeedsShell:
        return FailureEnvironment(lack=NEEDS_SHELL)
    if argv[0] != program:
        argv.insert(0, "env")
    if not top:
        return FailureEnvironment(tuple(argv))
    cwd = posixpath.relpath(posixpath.normpath(directory), top)
    if cwd == ".." or cwd.startswith("../"):
        return FailureEnvironment(tuple(argv))
    return FailureEnvironment(tuple(_relative_below(word, top, cwd) for word in argv), cwd=cwd)


def _relative_below(word: str, top: str, cwd: str) -> str:
    """Return a word with a path below the top made relative to the directory of the run."""
    name, equals, value = word.partition("=") if "=/" in word else ("", "", word)
    if value != top and not value.startswith(f"{top}/"):
        return word
    return name + equals + posixpath.relpath(value, posixpath.join(top, cwd))


def _split_words(line: str) -> Iterator[str | None]:
    """Yield the words of a command line, None for `&&`. Raises _NeedsShell for all else."""
    text = line.strip()
    if text.endswith(f" {_MERGED}"):
        text = text[: -len(_MERGED)].rstrip()
    word: str | None = None
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise _NeedsShell
        at = part.end()
        if part.lastgroup in ("space", "join"):
            if word is not None:
                yield word
            word = None
            if part.lastgroup == "join":
                yield None
        else:
            token = part[part.lastgroup or 0]
            word = (word or "") + (
                _ESCAPED.sub(r"\1", token) if part.lastgroup == "quoted" else token
            )
    if word is not None:
        yield word
