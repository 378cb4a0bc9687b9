from __future__ import annotations

import pytest

from memtool.memory.environment import (
    CLEAN,
    NEEDS_SHELL,
    REDACTED,
    FailureEnvironment,
    parse_command_line,
    parse_exit_code,
    read_environment,
    write_environment,
)

WHOLE = FailureEnvironment(
    argv=("pytest", "-q", 'tests/a "b".py', "ü"),
    cwd="packages/shop",
    exit=1,
    commit="a" * 40,
    diff=CLEAN,
    failure="0123456789abcdef",
    facts=(("os", "linux"), ("arch", "x86_64"), ("python", "3.11.7"), ("lock uv.lock", "b" * 64)),
)


@pytest.mark.parametrize(
    ("line", "argv", "cwd"),
    [
        ("pytest -q tests", ("pytest", "-q", "tests"), "."),
        ('cd sub && pytest \'a b\' "c\\"d" e\\ f 2>&1', ("pytest", "a b", 'c"d', "e f"), "sub"),
        ("A=1 B='x y' make all", ("env", "A=1", "B=x y", "make", "all"), "."),
        ("cd /r/a && cd b && go test ./...", ("go", "test", "./..."), "a/b"),
        ("cd a && x /r/b/t.py --root=/r", ("x", "../b/t.py", "--root=.."), "a"),
        ("git show HEAD~1 a{b}c x#y", ("git", "show", "HEAD~1", "a{b}c", "x#y"), "."),
        ("cd .. && make", ("make",), ""),
    ],
)
def test_the_words_of_a_plain_line(line: str, argv: tuple[str, ...], cwd: str) -> None:
    """Simple shell quoting is parsed without a shell; paths are the worktree's."""
    parsed = parse_command_line(line, "/r", "/r")
    assert (parsed.argv, parsed.cwd, parsed.lack) == (argv, cwd, "")


@pytest.mark.parametrize(
    "line",
    [
        "pytest | tail",
        "make; make test",
        "a && b",
        "a || b",
        "echo $HOME",
        "echo `id`",
        "ls *",
        "a > b",
        "a < b",
        "sleep 1 &",
        "for x in y",
        "time make",
        "source x",
        "[ -f a ]",
        "t[1]",
        "a {b,c}",
        "a {1..3}",
        "~/bin/x",
        "# no",
        "'open",
        '"open',
        "a\\",
        "a\nb",
        "",
        "A=1",
        '"$(id)"',
        "cat <<EOF",
        "! make",
        "cd x",
    ],
)
def test_a_line_with_a_meaning_of_its_own_needs_a_shell(line: str) -> None:
    """Pipes, lists, expansions, redirections and built-in words are not guessed at."""
    assert parse_command_line(line, "/r", "/r") == FailureEnvironment(lack=NEEDS_SHELL)


def test_without_a_state_only_the_words_are_known() -> None:
    """A line of a transcript does not record where it ran."""
    parsed = parse_command_line("cd a && make")
    assert (parsed.argv, parsed.cwd) == (("make",), "")
    assert parsed.obstacle == "the commit at which it failed is unknown"
    assert write_environment(parsed).splitlines() == [
        'argv: ["make"]',
        "cwd: unknown",
        "commit: unknown",
        "diff: unknown",
    ]


@pytest.mark.parametrize(
    "state",
    [
        WHOLE,
        FailureEnvironment(lack="unknown"),
        FailureEnvironment(lack=NEEDS_SHELL, exit=2, commit="b" * 64),
        FailureEnvironment(lack=REDACTED),
        WHOLE.replace(argv=("a\u202eb", "\x07", "\n")),
        WHOLE.replace(diff="c" * 64, facts=(("untracked", "3"), ("os", "linux"))),
    ],
)
def test_what_is_written_is_read_again(state: FailureEnvironment) -> None:
    """Also among other lines, and with line ends of another system."""
    text = (
        f"Seen in session s, on the branch main.\r\n\n{write_environment(state)}\nAnd so on: no.\n"
    )
    assert read_environment(text.replace("\n", "\r\n")) == state


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        ({}, ""),
        ({"argv": ()}, "its section Environment names no argv"),
        ({"argv": (), "lack": NEEDS_SHELL}, "the command needs a shell, and none is started"),
        ({"argv": (), "lack": REDACTED}, "a secret was taken out of the command"),
        ({"commit": ""}, "the commit at which it failed is unknown"),
        ({"cwd": ""}, "the directory in which it ran is unknown"),
        ({"diff": ""}, "whether the worktree was clean is unknown"),
        ({"diff": "c" * 64}, "the worktree had uncommitted changes"),
    ],
)
def test_what_is_in_the_way_is_said(change: dict[str, str], obstacle: str) -> None:
    """Nothing that is not known is guessed."""
    assert WHOLE.replace(**change).obstacle == obstacle


@pytest.mark.parametrize(
    "lines",
    [
        "argv: pytest -q",
        "argv: []",
        'argv: [""]',
        'argv: ["a", 1]',
        'argv: {"a": 1}',
        'argv: "pytest"',
        r'argv: ["a\u0000b"]',
        r'argv: ["\ud800"]',
        "argv: " + "[" * 100_000,
        "argv: [" + ", ".join(['"a"'] * 501) + "]",
        'argv: ["a"]\nargv: ["b"]',
        "cwd: /etc",
        "cwd: ../up",
        "cwd: a/../../b",
        "cwd: ~",
        "cwd: .git/hooks",
        "exit: -1",
        "exit: many",
        "exit: 1000",
        "commit: HEAD",
        "commit: --output=x",
        "commit: abc",
        "commit: AAAAAAAAAA",
        "diff: dirty",
        "failure: x",
    ],
)
def test_a_line_that_is_no_such_thing_is_refused(lines: str) -> None:
    """Somebody may have edited it: what is given twice hides one from the reader."""
    with pytest.raises(ValueError, match=r"argv|cwd|exit|commit|diff|failure"):
        read_environment(lines)


def test_a_mark_in_place_of_a_secret_is_never_run() -> None:
    """Whoever wrote the words that way."""
    parsed = read_environment('argv: ["deploy", "--token=[REDACTED:token]"]')
    assert (parsed.argv, parsed.lack) == ((), REDACTED)


@pytest.mark.parametrize(
    ("argv", "reaches"),
    [
        (("pytest", "tests/a.py::t", "-k", "a/b"), ()),
        (("rm", "-rf", "."), ()),
        (("rm", "-rf", "/home/ada"), ("/home/ada",)),
        (("cat", "../../etc/passwd"), ("../../etc/passwd",)),
        (("cat", "../b"), ()),
        (("/bin/sh", "-c", "x"), ("/bin/sh",)),
        (("x", "--out=/tmp/a", "A=~/b", "p:/q"), ("--out=/tmp/a", "A=~/b", "p:/q")),
        (("curl", "http://example.org/a"), ()),
    ],
)
def test_words_that_reach_out_of_the_worktree(
    argv: tuple[str, ...], reaches: tuple[str, ...]
) -> None:
    """A copy contains nothing that is done to an absolute path, or above its top."""
    assert WHOLE.replace(argv=argv, cwd="sub").reaches == reaches


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("Exit code 1\nTraceback", 1),
        ("Error: Exit code 127", 127),
        ("Process exited with code 2\nOutput:", 2),
        ("exit status: 3", 3),
        ("all is well, exit code 0 they say", None),
        ("", None),
    ],
)
def test_an_exit_code_stands_at_the_beginning(printed: str, code: int | None) -> None:
    """Elsewhere it may be part of the text."""
    assert parse_exit_code(printed) == code
