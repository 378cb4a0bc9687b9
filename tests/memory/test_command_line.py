"""Command lines of a shell: what is split, what is the same, and what takes little work."""

from __future__ import annotations

import pytest
from effort import count_calls
from hypothesis import given
from hypothesis import strategies as st

from memtool.memory.command_line import (
    MAX_CHARS,
    MAX_COMMANDS,
    SimpleCommand,
    find_target,
    split_commands,
)

MAX_CALLS = 500_000
"""Functions that are entered for a line of any length."""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", []),
        ("# only a comment", []),
        ("ls -la", [(("ls", "-la"), (), "")]),
        ("a&&b||c;d&e|f", [((name,), (), "") for name in "abcdef"]),
        ("sed -i 's/a b/c/' \"x y.py\" z\\ w.py", [(("sed", "-i", "s/a b/c/", "x y.py", "z w.py"), (), "")]),  # noqa: E501
        ("cd app && sed -i x b.py; cd ../web; ls", [(("sed", "-i", "x", "b.py"), (), "app"), (("ls",), (), "web")]),  # noqa: E501
        ("(cd app && ls) && pwd", [(("ls",), (), "app"), (("pwd",), (), "")]),
        ("cd $HOME && cd ~/x && cd - && ls", [(("ls",), (), "")]),
        ("echo x >out.txt 2>&1", [(("echo", "x"), ("out.txt", "1"), "")]),
        ("> a.py", [((), ("a.py",), "")]),
        ("cat > a.py <<'EOF'\nimport b.py\nEOF\nls", [(("cat",), ("a.py",), ""), (("ls",), (), "")]),  # noqa: E501
        ("cat <<-A <<B\n1\n\tA\n2\nB\nls", [(("cat",), (), ""), (("ls",), (), "")]),
        ("cat <<EOF\nnever ended", [(("cat",), (), "")]),
        ("a#b #c\nd", [(("a#b",), (), ""), (("d",), (), "")]),
        ("cat 'never ended", [(("cat", "never ended"), (), "")]),
        ("if true; then rm a.py; fi", [(("true",), (), ""), (("rm", "a.py"), (), ""), (("fi",), (), "")]),  # noqa: E501
        ("bash -lc 'cd app; ls'", [(("bash", "-lc", "cd app; ls"), (), ""), (("ls",), (), "app")]),
        ("cat *.py $(ls b.py) `x`", [(("cat", "*.py", "$"), (), ""), (("ls", "b.py"), (), ""), (("`x`",), (), "")]),  # noqa: E501
    ],
)  # fmt: skip
def test_a_line_is_split_as_a_shell_does(
    line: str, expected: list[tuple[tuple[str, ...], tuple[str, ...], str]]
) -> None:
    """Quotes, separators, redirections, heredocs and directories count; nothing is expanded."""
    commands = split_commands(line)
    assert [(command.words, command.redirects, command.folder) for command in commands] == expected


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        ("pytest tests/a.py", ".venv/bin/pytest -q tests/a.py"),
        ("pytest tests/a.py", "python3.11 -m pytest tests/a.py -x"),
        ("pytest tests/a.py", "FOO=1 uv run --frozen pytest tests/a.py::test_b"),
        ("pytest tests/a.py", "cd tests && pytest a.py"),
        ("pytest tests/a.py", "pytest tests/b.py tests/a.py"),
        ("pytest tests", "pytest tests/a.py"),
        ("pytest", "python -m pytest -q"),
        ("npm run build", "npm build --silent"),
        ("make deploy", "sudo -E make -j4 deploy ENV=prod"),
        ("sh ./check.sh", "bash check.sh"),
        ("./check.sh", "sh check.sh --fast"),
        ("docker compose up", "timeout 60 docker compose -f dev.yml up -d"),
    ],
)
def test_a_command_is_the_same_in_any_spelling(recorded: str, line: str) -> None:
    """Options, wrappers, versions and directories do not matter; program and target do."""
    (own,) = map(find_target, split_commands(recorded))
    (other,) = map(find_target, split_commands(line))
    assert own is not None
    assert other is not None
    assert own.covers(other)


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("pytest tests/a.py", "pytest"),
        ("pytest", "pytest tests/b.py"),
        ("pytest tests/a.py", "ruff check tests/a.py"),
        ("npm run build", "npm run test"),
        ("make deploy", "make"),
        ("python manage.py migrate", "python manage.py runserver"),
        ("docker compose up", "docker compose down"),
    ],
)
def test_another_target_is_another_command(recorded: str, line: str) -> None:
    """A failure of one target says nothing about another one."""
    (own,) = map(find_target, split_commands(recorded))
    (other,) = map(find_target, split_commands(line))
    assert own is not None
    assert other is not None
    assert not own.covers(other)


@given(st.text(alphabet="ab/.'\"\\ \n\t|&;<>()$`#-=EOF1\0é", max_size=200))
def test_any_text_is_a_line(line: str) -> None:
    """Nothing is an error, and no character is made up."""
    for command in split_commands(line):
        assert all(set(word) <= set(line) for word in (*command.words, *command.redirects))
        find_target(command)


@pytest.mark.parametrize(
    "unit", ["x", '"', "'", "1", "a b ", "(", "\\", "<<a", "<<a\n", "&", "$(", "a/", "-", "\0\xff"]
)
def test_a_megabyte_is_cut(unit: str) -> None:
    """The work depends on no line, however long and however odd."""
    line = unit * (1_000_000 // len(unit))
    commands: list[SimpleCommand] = []

    def read() -> None:
        commands.extend(split_commands(line))
        for command in commands:
            find_target(command)

    assert count_calls(read) < MAX_CALLS
    assert len(commands) <= MAX_COMMANDS
    assert sum(len(word) for command in commands for word in command.words) <= MAX_CHARS
