"""The output of memtool, word for word: every verb, in one repository that has everything.

`MEMTOOL_GOLDEN=write pytest tests/test_golden.py` writes the files in `golden` again; read their
diff before you commit it.
"""

from __future__ import annotations

import difflib
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import scene as scenes
from conftest import Sandbox

from memtool.commands import VERBS, names

FILES = Path(__file__).parent / "golden"
EVENTS = Path(__file__).parent / "hosts/data"

CASES: dict[str, str] = {
    "list": """
        list
        list --limit 3 --sort oldest
        list --sort title type:decision
        list --sort importance importance:>0.6
        list tag:sessions is:superseded --sort id
        list status:archived OR status:deleted
        list is:expired
        list is:candidate
        list is:conflicted
        list is:local
        list is:drifted
        list is:trusted
        list file:src/pay.py
        list source:file since:60d until:2026-02-25
        list error:TimeoutError
        list category:warning confidence:high
        list @open
        list @
        list --at origin/main
        list --as-of 2025-12-15
        list redis -postgres
        --global list
    """,
    "show": """
        show dec-redis
        show dec-postgres
        show dec-queue
        show dec-queue-rq
        show dec-celery
        show sem-retry
        show sem-vpn
        show sem-soap
        show sem-cents
        show sta-release
        show sem-friday
        show sem-sale
        show epi-timeout
        show dec-loose
        show sem-staged
        show dec-redis --at origin/main
        show dec-postgres --as-of 2025-12-15
        show sem-port-
    """,
    "search": """
        search where do sessions live
        search where do sessions live --explain
        search sessions --sort oldest --limit 2
        search "\\"background jobs\\"" OR redis
        search "(celery OR rq) -thread type:decision"
        search idp
        search idempotence
        search sesions
        search export confidence:>=medium is:head
        search postgres is:superseded
        search port --at origin/main
        search sessions --as-of 2025-12-15 --explain
        search idempotency key --deep
        search @redis sessions
        search @
        search type:state
        search nothing-says-this
        search vpn --explain
        --global search commit messages
    """,
    "inject": """
        inject
        inject --prompt "where do sessions live?"
        inject --prompt "where do sessions live?" --for claude
        inject --prompt "where do sessions live?" --for codex
        inject --prompt "where do sessions live?" --for gemini
        inject --prompt "where do sessions live?" --for cursor
        inject --prompt "where do sessions live?" --for opencode
        inject --prompt "where do sessions live?" --for plain
        inject --prompt "where do sessions live?" --format markdown --no-global
        inject --prompt "where do sessions live?" --format json
        inject --prompt "which queue runs our background jobs, celery?" --explain
        inject --files src/pay.py --files src/auth.py
        inject --prompt "how do we pay?" --budget 200
        inject --prompt "how do we pay?" --remaining 3000
        inject --prompt "how do we pay?" --at origin/main
        inject --prompt "where do sessions live?" --as-of 2025-12-15
        inject --prompt "how do we pay?" --session s-1 --dry-run
        inject --prompt - <<< on which port does the server listen
        inject --primer
        inject --primer --budget 300 --for claude
        inject --into AGENTS.md --dry-run
        inject --into CLAUDE.md --dry-run
    """,
    "eval": """
        eval
        eval --verbose
        eval --gated --limit 3
        eval --floor recall@5=0.99
        eval --at origin/main
        eval --sessions
    """,
    "history": """
        drift --all
        drift sem-retry --json
        drift dec-nowhere
        drift --at v1
        verify --all
        verify sem-retry --json
        verify dec-nowhere
        log
        log --limit 5
        log dec-redis
        log dec-queue
        log sem-soap
        log --at origin/main
        log --injected
        log --audit
        log --audit --kind forget
        blame dec-redis
        blame sem-soap
        blame dec-loose
        blame dec-redis --at origin/main
        why dec-redis
        why sem-port-again
        why sem-cents
        why dec-loose
        why epi-timeout
        why sem-retry --at origin/main
        diff
        diff origin/main..HEAD
        diff HEAD~2
        review origin/main..HEAD
        review HEAD~1
    """,
    "check": """
        check
        check .memory/decision
        check --staged
        check --range origin/main..HEAD
        check --history
        check .memory/decision --format github
        check .memory/decision --format markdown
        review --format github
        review --format markdown
        redact --dry-run
        redact CLAUDE.md --dry-run
    """,
    "conflicts": """
        conflicts
        conflicts dec-celery
        conflicts --all
        conflicts --at origin/main
        conflicts --since origin/main
        resolve dec-celery dec-no-celery --keep newer --reason "measured" --dry-run
        resolve dec-queue-rq dec-queue-beat --keep dec-queue-rq --reason "simpler" --dry-run
        resolve dec-celery dec-no-celery --keep both --reason "two teams" --dry-run
        resolve dec-celery dec-no-celery --merge "Use RQ" --body "RQ." --reason "both" --dry-run
        resolve --all --keep newer --reason "newer wins" --dry-run
    """,
    "status": """
        status
        status --at origin/main
        status --as-of 2025-12-15
        stats
        stats --at origin/main --limit 2
        doctor
        --global status
    """,
    "settings": """
        config
        config inject.budget_tokens
        config search.limit 20 --dry-run
        config inject.budget_tokens --unset --dry-run
        config redaction.allow_emails example.org,example.net --dry-run
        alias
        alias list idp
        alias add jobs queue worker --dry-run
        alias remove idp --dry-run
        auto
        auto off --dry-run
        init --dry-run
        install --all --dry-run
        install claude --dry-run
        install codex --dry-run
        install gemini --dry-run
        install opencode --dry-run
        install cursor --dry-run
        install git --dry-run
        uninstall claude --dry-run
        package claude dist --dry-run
    """,
    "drafts": """
        new decision "Cache pages in Varnish" --body "Pages are cached." --tag cache --dry-run
        new semantic "With tax" --body "So." --set domain=billing --file src/pay.py --dry-run
        new decision "Prices hold no taxes" --dry-run
        new semantic "Money in cents" --body "Money is kept in cents, as integers." --dry-run
        new state "Taxes" --body - --valid-through 2026-04-01 --dry-run <<< Taxes come next.
        remember "Deploys run on Tuesdays only, never before a holiday." --tag deploy --dry-run
        remember "The port of the server is 8080, on all hosts." --dry-run
        supersede dec-redis "Keep sessions in Valkey" --body "Sessions live in Valkey." --dry-run
        supersede dec-queue-rq "Use Huey" --body "So." --supersedes dec-queue-beat --dry-run
        confirm sem-cents --dry-run
        pin dec-redis --dry-run
        unpin sem-retry --dry-run
        deprecate sem-port --dry-run
        archive sta-release --reason "released" --dry-run
        tag sem-cents --add tax --remove money --dry-run
        tag sem-cents
        forget sem-port --reason "it moved" --dry-run
        forget tag:jobs --all --reason "no jobs" --dry-run
        restore sem-vpn --dry-run
        restore dec-postgres --dry-run
        undo dec-postgres --dry-run
        undo sem-vpn --dry-run
        undo dec-queue --dry-run
        purge
        purge sem-vpn --apply --cascade --dry-run
        purge --history
        import adr docs/adr --dry-run
        import claude CLAUDE.md --dry-run
    """,
    "upkeep": """
        curate
        digest decision --dry-run
        digest --all --dry-run
        maintain
        maintain --nightly
        maintain --weekly --apply --dry-run
        maintain --monthly
    """,
    "sessions": """
        session
        session list --status ended --limit 1
        session show 5f0c
        session show 5f0c#1
        session show 0199 --limit 2
        session start --agent claude --dry-run
        session add 5f0c --role user "Never on Fridays." --reopen --dry-run
        session prune --dry-run
        session export 0199
        session diff 5f0c 0199
        session delete 0199 --dry-run
        promote --list
        promote --dry-run
        promote 0199 --list --preset aggressive
        capture DATA/gemini.jsonl --dry-run
        capture DATA/plain.md --dry-run
    """,
    "export": """
        export
        export type:decision is:pinned
        export --at origin/main tag:sessions
    """,
    "errors": """
        nonsense
        lst
        show
        show dec-unknown
        show sem
        show sem-broken
        list --limit many
        list --sort colour
        list type:nothing
        list nokey:x
        list @missing
        list --at no-such-branch
        list --as-of yesterday-ish
        search "(open"
        search "\\"open"
        search confidence:>=huge
        inject --budget -1
        inject --for emacs
        config no.such.key
        config search.limit many --dry-run
        new poem "Roses" --dry-run
        new decision "" --dry-run
        new decision "Keep" --set nonsense=1 --dry-run
        supersede dec-postgres "Again" --dry-run
        forget sem-port --dry-run
        forget tag:jobs --reason "no jobs" --dry-run
        restore sem-port --dry-run
        resolve dec-redis sem-port --keep newer --reason "no" --dry-run
        diff a..b
        review nothing..HEAD
        why dec-unknown
        blame sem-loose
        eval missing.jsonl
        session show nothing
        capture missing.jsonl --dry-run
        import adr missing --dry-run
        log --since 3d
        --global show dec-redis
        -C missing list
    """,
}
"""Command lines by golden file; each is run twice, with and without `--json`."""

STORY = """
    remember "Deploys run on Tuesdays only, never before a holiday." --commit
    new decision "Cache pages in Varnish" --body "Varnish has them." --id dec-new --commit
    new semantic "Money is kept in cents" --body "Money is kept in cents, as integers." --json
    confirm sem-cents --commit
    pin dec-redis --commit --json
    supersede dec-new "Cache pages in nginx" --body "Pages are cached in nginx." --commit
    resolve dec-celery dec-no-celery --keep newer --reason "measured" --commit
    archive sta-release --reason "released" --commit
    forget sem-port-again --reason "it moved" --commit --json
    restore sem-vpn --commit
    deprecate dec-loose
    purge --apply --commit
    config search.limit 20 --commit
    alias add jobs queue worker --commit
    import adr docs/adr --commit
    digest decision --commit
    promote --commit
    curate --apply
    log --limit 12
    diff origin/main
    status
    check
    list --limit 40
    export
"""
"""What happens one after the other, in a copy of the repository."""

PROCESSES = """
    list --sort title type:decision
    search where do sessions live --explain --json
    inject --prompt 'how do we pay?'
    show dec-unknown --json
    check --staged
    hook claude stop --input {}
    init --dry-run
    demo harbor --dry-run
    site public --dry-run
    package gemini dist --dry-run
    status
    stats
    config search.limit 20 --dry-run
    alias list idp
    auto off --dry-run
    new decision "Cache pages in Varnish" --body - --dry-run <<< Pages are cached.
    remember "Deploys run on Tuesdays only, never before a holiday." --dry-run
    supersede dec-redis "Keep sessions in Valkey" --dry-run
    confirm sem-cents --dry-run
    pin dec-redis --dry-run
    unpin sem-retry --dry-run
    deprecate sem-port --dry-run
    archive sta-release --dry-run
    tag sem-cents --add tax --dry-run
    forget sem-port --reason "it moved" --dry-run
    restore sem-vpn --dry-run
    undo dec-queue --dry-run
    sign sem-retry --dry-run
    purge
    redact --dry-run
    eval
    log dec-redis
    blame dec-redis
    drift --all
    verify
    why dec-redis
    diff origin/main..HEAD
    conflicts
    resolve dec-celery dec-no-celery --keep newer --reason "measured" --dry-run
    merge-file src/pay.py src/pay.py src/pay.py --dry-run
    install claude --dry-run
    uninstall claude --dry-run
    doctor
    review origin/main..HEAD
    session list
    capture DATA/plain.md --dry-run
    promote --list
    curate
    digest decision --dry-run
    maintain
    import adr docs/adr --dry-run
    migrate
    export
    publish --dry-run
    fleet status
schema
completion zsh
"""
"""Each verb once, as a process of its own; the server has its own tests."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """The repository, with caches that are warm."""
    return scenes.build(tmp_path_factory.mktemp("golden"))


def lines(table: str) -> list[str]:
    """Return the rows of a table of cases."""
    return [line.strip() for line in table.strip().splitlines()]


def answers(scene: Sandbox, rows: list[str]) -> Iterator[str]:
    """Run command lines one after the other."""
    for row in rows:
        args, stdin = scenes.words(row)
        yield scenes.shown(scene, row, scenes.run(scene, args, stdin))


def with_json(rows: list[str]) -> list[str]:
    """Return each command line, the first of each verb for programs as well."""
    commands: list[str] = []
    waiting = {verb.name for verb in VERBS}
    for row in rows:
        commands.append(row)
        plain = f"{row.removeprefix('--global ')} "
        verbs = [verb.name for verb in VERBS if plain.startswith(f"{verb.name} ")]
        verb = max(verbs, key=len, default="")
        if verb in waiting or not verbs:
            waiting.discard(verb)
            command, *stdin = row.split(" <<< ")
            commands.append(" <<< ".join([f"{command} --json", *stdin]))
    return commands


def compare(name: str, outputs: list[str]) -> None:
    """Compare answers with a golden file, or write it; a failure shows the first that differs.

    Scores have two digits there, so that a change in the last says nothing, and the interpreter of
    these tests is called PYTHON.
    """
    outputs = [
        re.sub(r"\b\d+\.\d{3,}\b", lambda match: f"{float(match[0]):.2f}", row) for row in outputs
    ]
    outputs = [row.replace(sys.executable, "PYTHON") for row in outputs]
    path = FILES / f"{name}.txt"
    if os.environ.get("MEMTOOL_GOLDEN") == "write":
        path.write_text("".join(outputs))
        return
    text = path.read_text()
    stored = ["$ memtool" + part for part in text.split("$ memtool")[1:]] if text else []
    for old, new in itertools.zip_longest(stored, outputs, fillvalue=""):
        if old != new:
            diff = difflib.unified_diff(
                old.splitlines(), new.splitlines(), path.name, "now", lineterm=""
            )
            pytest.fail("\n".join(diff), pytrace=False)


@pytest.mark.parametrize("name", CASES)
def test_answers_are_as_before(scene: Sandbox, name: str) -> None:
    """Text, JSON, notes and exit codes of every verb that writes nothing."""
    compare(name, list(answers(scene, with_json(lines(CASES[name])))))


def test_hooks_are_as_before(scene: Sandbox) -> None:
    """Every event of every host, as a host sends it."""
    outputs = []
    for path in sorted(EVENTS.glob("*.json")):
        host, _dash, event = path.stem.partition("-")
        sent = path.read_text().replace("/code/ada/project", str(scene.path))
        sent = sent.replace("src/auth/a.py", "src/auth.py")
        row = f"hook {host} {event} --dry-run"
        outputs.append(
            scenes.shown(scene, row, scenes.run(scene, (*row.split(), "--input", "-"), sent))
        )
    compare("hooks", outputs)


def test_a_story_ends_as_before(scene: Sandbox, tmp_path: Path) -> None:
    """The writes of verbs are committed, and seen by those that follow."""
    shutil.copytree(scene.path.parent, tmp_path / "copy", symlinks=True)
    moved = str(tmp_path / "copy")
    env = {k: v.replace(str(scene.path.parent), moved) for k, v in scene.env.items()}
    copy = Sandbox(tmp_path / "copy/shop", env)
    outputs = list(answers(copy, lines(STORY)))
    history = copy.git("log", "--stat=200", "--format=%n%H %s%n%b", "v1..")
    compare("story", [*outputs, scenes.plain(copy, f"$ memtool: what git has\n{history}")])


@pytest.mark.parametrize("row", lines(PROCESSES))
def test_a_process_answers_the_same(scene: Sandbox, row: str) -> None:
    """Nothing depends on what this process did before."""
    args, stdin = scenes.words(row)
    done = scene.process(*args, stdin=stdin)
    result = (done.returncode, done.stdout, done.stderr)
    assert scenes.shown(scene, row, result) == scenes.shown(
        scene, row, scenes.run(scene, args, stdin)
    )


def test_every_verb_is_started_as_a_process() -> None:
    """A new verb needs a row."""
    assert {row.split()[0] for row in lines(PROCESSES)} == {*names()} - {"mcp", "serve"}
