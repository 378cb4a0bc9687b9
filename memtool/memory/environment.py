"""The environment of a failure: what a command needs to be run again, as `key: value` lines.

A trace keeps it in its section Environment. It was captured when the command failed, or written by
hand, and may have been edited since: every line is untrusted text until `read_environment` took it.
What is not known is said to be so, and never guessed.
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
"""What stands in the place of `argv`, and why the command cannot be run then."""
MARK = "[REDACTED"
"""Begins what stands in the place of a secret."""
KEYS = ("argv", "cwd", "exit", "commit", "diff", "untracked", "os", "arch", "failure")
"""Keys in their order; versions of interpreters and `lock FILE` stand before the last one."""
MOST_WORDS = 500
MOST_LINE = 8_000
_LINE = re.compile(r"^(?P<key>[a-z]{2,20}|lock \S.{0,200}?): +(?P<value>\S.*)$")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_DIGEST = re.compile(r"[0-9a-f]{16,64}")

_EXIT = re.compile(r"\s*(?:Error: )?(?:Process )?[Ee]xit(?:ed with)? (?:code|status):? (\d{1,3})\b")


class FailureEnvironment(Value):
    """What is known of a run that failed.

    `argv` is empty where `lack` says why: one of `LACKS`. `cwd` is relative to the top, `.` for the
    top itself. `diff` is `clean`, or a hash of the changes that were not committed. `failure` is
    the hash of the normalised failure. Texts are empty, and `exit` None, where it is unknown.
    `facts` are operating system, versions of interpreters, and hashes of lock files.
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
        """Why nothing can be run again, as one clause; empty where nothing is in the way."""
        if not self.argv:
            return LACKS[self.lack]
        if not self.commit:
            return "the commit at which it failed is not known"
        if not self.cwd:
            return "the directory in which it ran is not known"
        if not self.diff:
            return "whether the worktree was as committed is not known"
        if self.diff != CLEAN:
            return "the worktree had changes that no commit holds"
        return ""

    @property
    def reaches(self) -> tuple[str, ...]:
        """The words that name a place outside of the worktree, in which nothing is contained."""
        return tuple(word for word in self.argv if any(map(self._is_outside, _paths(word))))

    def _is_outside(self, path: str) -> bool:
        if path.startswith(("/", "~")):
            return True
        joined = posixpath.normpath(posixpath.join(self.cwd or ".", path))
        return joined == ".." or joined.startswith("../")


def _paths(word: str) -> tuple[str, ...]:
    """Return what of a word may be a path: all of it, what follows `=`, and the parts of a list."""
    value = word.partition("=")[2] if word.startswith("-") or "=" in word else ""
    return (word, *value.split(":"), *word.split(":")) if "://" not in word else (word,)


def write_environment(found: FailureEnvironment) -> str:
    """Return the lines of an environment; what decides over running it again is said if unknown."""
    facts = dict(found.facts)
    # What cannot be shown is escaped: whoever makes a space of it would change a word.
    is_shown = all(word.isprintable() for word in found.argv)
    words = json.dumps(found.argv, ensure_ascii=not is_shown)
    argv = words if found.argv else found.lack or UNKNOWN
    known = {
        "argv": argv,
        "cwd": found.cwd or UNKNOWN,
        "exit": "" if found.exit is None else str(found.exit),
        "commit": found.commit or UNKNOWN,
        "diff": found.diff or UNKNOWN,
        "failure": found.failure,
    }
    order = [*KEYS[:-1], *(key for key in facts if key not in KEYS), KEYS[-1]]
    rows = {key: known[key] if key in known else facts.get(key, "") for key in order}
    return "\n".join(f"{key}: {value}" for key, value in rows.items() if value)


def read_environment(text: str) -> FailureEnvironment:
    """Return what the lines of a section say; lines of another form are passed over.

    Raises:
        ValueError: a line cannot be what it says it is, or stands there twice.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line.rstrip())
        if match is None:
            continue
        key, value = match["key"], match["value"]
        if key in found:
            raise ValueError(f"{key} stands in its section Environment twice")
        found[key] = value
    argv, lack = _argv(found.pop("argv", ""))
    return FailureEnvironment(
        argv=argv,
        lack=lack,
        cwd=_cwd(found.pop("cwd", "")),
        exit=_exit(found.pop("exit", "")),
        commit=_matching("commit", found.pop("commit", ""), _COMMIT),
        diff=_diff(found.pop("diff", "")),
        failure=_matching("failure", found.pop("failure", ""), _DIGEST),
        facts=tuple(found.items()),
    )


def exit_code_of(printed: str) -> int | None:
    """Return the exit code that what a tool printed begins with, None where it names none."""
    found = _EXIT.match(printed)
    return int(found[1]) if found else None


def _argv(value: str) -> tuple[tuple[str, ...], str]:
    if value in LACKS:
        return (), value
    try:
        held = json.loads(value) if len(value) <= MOST_LINE else None
    except (ValueError, RecursionError):
        held = None
    words: list[str] = held if isinstance(held, list) else []
    if not (0 < len(words) <= MOST_WORDS and words[0] and all(map(_is_word, words))):
        raise ValueError('argv is no JSON list of words, such as ["pytest", "-q"]')
    if any(MARK in word for word in words):
        return (), REDACTED
    return tuple(words), ""


def _is_word(value: object) -> bool:
    """Tell whether a value can be an argument of a program."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _cwd(value: str) -> str:
    if value in ("", UNKNOWN):
        return ""
    if not is_inside(value) or "\0" in value or ".git" in value.lower().split("/"):
        raise ValueError("cwd is no directory inside of the repository, relative to its top")
    return posixpath.normpath(value)


def _exit(value: str) -> int | None:
    if value in ("", UNKNOWN):
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 3):
        raise ValueError("exit is no exit code")
    return int(value)


def _diff(value: str) -> str:
    return value if value == CLEAN else _matching("diff", value, _DIGEST)


def _matching(key: str, value: str, pattern: re.Pattern[str]) -> str:
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
"""What a command line is made of where a shell would only take it apart."""
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


def environment_of_line(line: str, top: str = "", directory: str = "") -> FailureEnvironment:
    """Return argv and directory of a command line, or why there are none.

    `cd DIRECTORY &&` at the beginning says where it ran, settings before the program become words
    of `env`, and `2>&1` at the end changes nothing. `top` and `directory` are absolute paths of the
    worktree and of where the line was run; without them the directory is unknown. Paths below the
    top are written relative, as they mean the files of a commit, not those of one worktree.
    """
    try:
        words = list(_words(line))
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
    return FailureEnvironment(tuple(_below(word, top, cwd) for word in argv), cwd=cwd)


def _below(word: str, top: str, cwd: str) -> str:
    """Return a word whose path below the top is relative to the directory of the run."""
    name, equals, value = word.partition("=") if "=/" in word else ("", "", word)
    if value != top and not value.startswith(f"{top}/"):
        return word
    return name + equals + posixpath.relpath(value, posixpath.join(top, cwd))


def _words(line: str) -> Iterator[str | None]:
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
            said = part[part.lastgroup or 0]
            word = (word or "") + (
                _ESCAPED.sub(r"\1", said) if part.lastgroup == "quoted" else said
            )
    if word is not None:
        yield word
