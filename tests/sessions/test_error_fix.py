"""Errors and their fixes, as sessions of real projects have them."""

from __future__ import annotations

import time

import pytest

from memtool.sessions.extract import error_fix
from memtool.sessions.extract.commands import find_targets, is_same, list_written
from memtool.sessions.extract.failures import (
    compute_failure_key,
    find_failure,
    find_last_words,
    says,
)
from memtool.sessions.extract.scene import Scene
from memtool.sessions.model import Finding, Message

GRADLE = "FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
DEEP = """Execution failed for task ':app:x'.
> A failure occurred while executing a.b
   > SDK location not found.

* Try:
> Run with --stacktrace

BUILD FAILED in 3s"""
MAX_CPU_S = 2.0
"""CPU time of the odd outputs below, on a machine that others use, too."""


def run(*rows: tuple[str, str, bool | None]) -> list[Finding]:
    """Return the findings of calls with their output and outcome; `edit PATH` changes a file."""
    messages: list[Message] = []
    for call, text, is_ok in rows:
        verb, _space, path = call.partition(" ")
        name, line = ("Edit", path) if verb == "edit" else ("Bash", call)
        number = len(messages) + 1
        messages.append(Message(number, "tool", text, tool=name, call=line, is_ok=is_ok))
    return list(error_fix.find(Scene(messages, "ses-a")))


def fixes(*rows: tuple[str, str, bool | None]) -> list[str]:
    return [finding.field("fix") for finding in run(*rows)]


@pytest.mark.parametrize(
    ("failed", "other"),
    [
        ("npm test", "npm run test"),
        ("npm test", "cd x && npm test 2>&1 | tail -5"),
        ("npm test", "CI=1 npm test"),
        ("pytest tests/a.py", "pytest -x tests/a.py::test_b"),
        ("pytest tests/a.py", "pytest"),
        ("pytest tests/a.py", "cd /srv/app && uv run pytest tests/a.py -q"),
        ("vercel deploy", "npx vercel deploy --prod"),
        ("python a.py", "conda run -n x python3 a.py"),
        ("./gradlew test --tests a.B", "export JAVA_HOME=$(java_home -v 17) && ./gradlew test"),
        ("docker compose up", "powershell -Command \"& 'C:\\D\\docker.exe' compose up -d\""),
        ("docker compose up -d a b c d", "docker compose up -d a b c"),
        ("make x && echo done", "mkdir -p y; make x"),
    ],
)
def test_the_same_command_in_another_spelling(failed: str, other: str) -> None:
    """Program and target count; options, wrappers, directories and settings do not."""
    assert find_targets(failed)
    assert is_same(find_targets(failed), find_targets(other))


@pytest.mark.parametrize(
    ("failed", "other"),
    [
        ("npm test", "npm run build"),
        ("npm test", "yarn test"),
        ("pytest tests/a.py", "pytest tests/b.py"),
        ("make x", "make"),
        ("make x && make y", "make x"),
        ("git add a b", "git add a c"),
    ],
)
def test_another_command(failed: str, other: str) -> None:
    """Another target or program is another command."""
    assert not is_same(find_targets(failed), find_targets(other))


@pytest.mark.parametrize("line", ["cat a", "git status", "bash <<'E'; ls; E", "cd x", ""])
def test_a_line_that_is_no_command(line: str) -> None:
    """It only reads, or a shell reads it."""
    assert find_targets(line) == ()


def test_files_that_a_line_writes() -> None:
    """Redirections and edits in place; neither null devices nor what a script holds."""
    assert list_written("echo x >> .env 2>/dev/null") == (".env",)
    assert list_written("cat > a.py <<'E'; if b > c: pass; E") == ("a.py",)
    assert list_written("sed -i s/a/b/ c.toml && ls 2>&1") == ("c.toml",)


@pytest.mark.parametrize(
    "line",
    [
        "bash: line 1: vite: command not found",
        "(eval):1: command not found: vite",
        "zsh: command not found: vite",
        "'vite' is not recognized as an internal or external command,",
        "vite : The term 'vite' is not recognized as the name of a cmdlet, function, script file,",
        '"vite" no se reconoce como un comando interno o externo,',
        "bash: vite: orden no encontrada",
        "bash: Zeile 1: vite: Kommando nicht gefunden.",
        'Der Befehl "vite" ist entweder falsch geschrieben oder',
        "bash: vite: commande introuvable",
        "bash: vite: команда не найдена",
        "bash: vite: 未找到命令",
        "'vite' 不是内部或外部命令",
        "bash: 行 1: vite: コマンドが見つかりません",
        "'vite' は、内部コマンドまたは外部コマンド、",
        "'vite'은(는) 내부 또는 외부 명령, 실행할 수 있는 프로그램, 또는",
        '"vite" не является внутренней или внешней',
        "C:\\tools\\vite.exe : command not found",
        'exec: "vite": executable file not found in $PATH',
        "/usr/bin/python3: No module named vite",
        "which: no vite in (/usr/bin:/bin)",
    ],
)
def test_a_program_that_is_not_installed_in_any_shell(line: str) -> None:
    """The line is kept as it is, and all of them are one failure."""
    failure = find_failure(f"> build\n{line}\n")
    assert failure is not None
    assert failure.program == "vite"
    assert failure.what == line
    assert compute_failure_key(line) == compute_failure_key("sh: vite: command not found")
    assert says(f"> build\n{line}\n", failure.signature)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{GRADLE}{DEEP}", "SDK location not found."),
        (f"{GRADLE}Plugin x is missing:\n- y\n\n* Try:\n> Run it", "Plugin x is missing:"),
        ("FAILURE: Build failed with an exception.", "FAILURE: Build failed with an exception."),
        ("Failed to compile.\n\n./app/page.tsx\nUnexpected token", "Unexpected token"),
        (
            "./app/page.tsx:4:7\nType error: Property 'a' does not exist on type 'B'.",
            "Type error: Property 'a' does not exist on type 'B'.",
        ),
        ("e: file:///a/B.kt:3:5 Unresolved reference: c", "Unresolved reference: c"),
        (
            "A.cs(3,5): error CS0246: The type 'B' is unknown",
            "error CS0246: The type 'B' is unknown",
        ),
        ("rsync: unrecognized option `--x'\n usage: rsync", "rsync: unrecognized option `--x'"),
    ],
)
def test_failures_of_more_tools(text: str, what: str) -> None:
    """Gradle, Next.js, Kotlin, .NET, and options that a program does not know."""
    failure = find_failure(text)
    assert failure is not None
    assert failure.what == what


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Läuft …\nFEHLER: Datei fehlt\n\x1b[31m100%\x1b[0m\nDone in 3.1s", "FEHLER: Datei fehlt"),
        ("10%\r50%\r无法连接到数据库服务器\nnpm ERR! log", "无法连接到数据库服务器"),
        ("ошибка: порт занят другим\n\n---\nSee https://example.org", "ошибка: порт занят другим"),
    ],
)
def test_the_last_words_of_an_output_name_a_failure_in_any_language(text: str, what: str) -> None:
    """Without colours, progress, times and hints."""
    assert find_failure(text) is None
    words = find_last_words(text)
    assert words is not None
    assert words.what == what
    assert find_last_words("5 ok\n---\n100%\n\ufffd\ufffd: cannot be read") is None


def test_a_chain_of_failures_is_one_finding_each() -> None:
    """What changed between a failure and the next one has resolved it, once the command works."""
    chain = run(
        ("make", "Could not find the compiler", False),
        ("apt install gcc", "", True),
        ("make", "fatal error: ffi.h: No such file", False),
        ("export CPATH=/opt/ffi", "", True),
        ("cd src && make 2>&1 | tail -3", "ok", True),
    )
    assert [finding.field("fix") for finding in chain] == [
        "`apt install gcc`",
        "Setting `CPATH=/opt/ffi`",
    ]
    assert [finding.messages for finding in chain] == [(1, 5), (3, 5)]


def test_another_way_to_call_a_program_is_a_fix() -> None:
    """An option, a wrapper, the full path, the quotes, a directory; not what is printed."""
    broken = "rsync: unrecognized option '--x'"
    assert fixes(("rsync --x a b", broken, False), ("rsync a b", "", True)) == [
        "Running `rsync a b`"
    ]
    missing = "bash: adb: command not found"
    called = fixes(("adb devices", missing, False), ("~/sdk/adb shell ls", "x", True))
    assert called == ["Running `~/sdk/adb shell ls`"]
    steps = [("make", "", True), ("edit a.py", "", True), ("~/sdk/adb shell", "x", True)]
    assert fixes(("adb devices", missing, False), *steps) == ["Running `~/sdk/adb shell`"]
    quoted = fixes(("git add a[1]", "no matches found: a[1]", False), ("git add 'a[1]'", "", True))
    assert quoted == ["Running `git add 'a[1]'`"]
    flaky = [("pytest -q a.py", "OSError: x", False), ("pytest -v a.py | tail", "ok", True)]
    assert fixes(*flaky) == []


def test_the_exit_code_of_a_pipe_is_not_that_of_the_command() -> None:
    """There the output tells; what a host did not run to its end tells nothing."""
    broken = ("npm run db | head -5", "error: Environment variable not found: DB", True)
    worked = ("DB=x npm run db", "done", True)
    assert fixes(broken, worked) == ["Setting `DB=x`"]
    assert fixes(broken, ("DB=x npm run db || echo no", "no", True)) == []
    quoted = ("git commit -m 'a; b'", "bash: x: command not found", True)
    assert fixes(quoted, ("git stash", "", True), ("git commit -m 'a'", "", True)) == []
    refused = "The user doesn't want to proceed with this tool use."
    assert fixes(("npm run db", refused, False), worked) == []
    unknown = ("DB=x npm run db", "ready", None)
    assert fixes(broken, unknown) == ["Setting `DB=x`"]


def test_work_in_progress_is_no_finding() -> None:
    """Edits after edits, checks and commits in between; a file of settings is another matter."""
    own = [("edit a.py", "", True), ("pytest", "OSError: no", False)]
    again = [("edit b.py", "", True), ("ruff check", "", True), ("git commit -m x", "", True)]
    assert fixes(*own, *again, ("pytest", "ok", True)) == []
    assert fixes(*own, ("edit pyproject.toml", "", True), ("pytest", "ok", True)) == [
        "Changing pyproject.toml"
    ]
    typed = [("python -c 'a()'", "ValueError: no", False), ("ls", "", True)]
    assert fixes(*typed, ("edit c.toml", "", True), ("python -c 'b()'", "", True)) == []
    installed = fixes(*typed, ("pip install 'b<4'", "", True), ("python <<E; b(); E", "ok", True))
    assert installed == ["`pip install 'b<4'`"]
    called = fixes(*typed, ("conda run -n x python -c 'c()'", "", True))
    assert called == ["Running `conda run -n x python -c 'c()'`"]
    script = [("edit a.py", "", True), ("python a.py", "OSError: no", False)]
    assert fixes(*script, ("mkdir b", "", True), ("python a.py", "", True)) == []
    installed = fixes(*script, ("pip install b", "", True), ("python a.py", "", True))
    assert installed == ["`pip install b`"]
    assert fixes(("npm test", "Tests: 1 failed", False), *again[:1], ("npm test", "", True)) == []


@pytest.mark.parametrize(
    "text", ["a" * 16_000, "a: " * 5_000, "> " * 8_000, "\n" * 9_000, "a/" * 8_000]
)
def test_no_output_takes_long(text: str) -> None:
    """Patterns of the table are bounded, however odd an output is."""
    began = time.process_time()
    find_failure(text)
    find_last_words(text)
    compute_failure_key(text[:300])
    assert time.process_time() - began < MAX_CPU_S
