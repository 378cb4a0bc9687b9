"""`bench/replay` on a made-up history: which commits are events, and what is scored."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent.parent / "bench" / "replay"
NAME = "acme/harbor"
RECORD = "# {title}\n\n## Status\n\nAccepted\n\n## Decision\n\n{text}\n"
COMMITS: tuple[tuple[str, str, dict[str, str]], ...] = (
    (
        "first",
        "Begin",
        {
            "docs/adr/0001-log-as-json.md": RECORD.format(
                title="1. Log as JSON", text="Each line of the log is one JSON object."
            ),
            "docs/adr/0002-keep-sessions-in-redis.md": RECORD.format(
                title="2. Keep sessions in Redis", text="Sessions are kept in Redis, not on disk."
            ),
            "docs/adr/0003-charge-cards-once.md": RECORD.format(
                title="3. Charge cards once", text="A card is charged once per booking."
            ),
            "src/app.py": "x = 1\n",
        },
    ),
    (
        "event",
        "Keep sessions in Redis, as ADR-2 says (#12)\n\nSigned-off-by: Ada <ada@example.org>\n",
        {"src/sessions.py": "store = 'redis'\n"},
    ),
    ("cosmetic", "Fix a typo named by ADR 0001", {"src/app.py": "x = 2\n"}),
    ("documentation", "Explain what ADR-1 asks of us", {"docs/log.md": "JSON.\n"}),
    (
        "not yet there",
        "Write pages as ADR-4 asks",
        {"docs/adr/0004-write-pages.md": RECORD.format(title="4. Write pages", text="Pages.")}
        | {"src/writer.py": "pages = 1\n"},
    ),
    (
        "an edited path",
        "Reword docs/adr/0003-charge-cards-once.md for all readers",
        {"docs/adr/0003-charge-cards-once.md": "# 3. Charge cards once\n", "src/app.py": "x = 3\n"},
    ),
    ("neutral", "Serve pictures from memory", {"src/pictures.py": "cache = {}\n"}),
    ("touched", "Shorten the time of sessions", {"src/sessions.py": "store = 'redis'  # 1 h\n"}),
    ("many records", "Follow ADR-1, ADR-2, ADR-3 and ADR-4", {"src/all.py": "y = 1\n"}),
)


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a mirror with one history, whose commits are tagged by what they are."""
    folder = tmp_path_factory.mktemp("mirror")
    clone = folder / NAME.replace("/", "+")
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")

    def git(*args: str, **dates: str) -> None:
        subprocess.run(["git", *who, *args], check=True, env=env | dates, cwd=folder)

    git("init", "--quiet", "--initial-branch=main", str(clone))
    for number, (tag, message, texts) in enumerate(COMMITS):
        for path, text in texts.items():
            place = clone / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        date = f"2026-01-{number + 1:02}T12:00:00Z"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        git("-C", str(clone), "add", "--all")
        git("-C", str(clone), "commit", "--quiet", "--message", message, **dates)
        git("-C", str(clone), "tag", tag.replace(" ", "-"))
    return folder


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table of two repositories, one of which is not in the mirror."""
    rows = (BENCH / "repos.toml").read_text().partition("[[repository]]")[0]
    for name in (NAME, "acme/absent"):
        rows += f'[[repository]]\nname = "{name}"\ngroup = "judged"\n'
        rows += 'word = "ADR"\nfolders = ["docs/adr"]\n'
    path = tmp_path / "repos.toml"
    path.write_text(rows)
    return path


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """Import the modules of the benchmark, which have short names, and forget them again."""
    monkeypatch.syspath_prepend(str(BENCH))
    names = ("history", "events", "replay", "score")
    before = {name: sys.modules.pop(name, None) for name in names}
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        sys.modules.pop(name, None)
    sys.modules |= {name: module for name, module in before.items() if module}


def call(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCH), *map(str, args)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def find_commit(mirror: Path, tag: str) -> str:
    command = ["git", "-C", str(mirror / NAME.replace("/", "+")), "rev-parse", tag]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_events_name_records_and_change_code(mirror: Path, table: Path) -> None:
    """Other commits are neutral, whatever they touch, unless they are about documentation."""
    done = call("events", "--mirror", mirror, "--repos", table, "--titles")
    assert done.returncode == 0, done.stderr
    event = find_commit(mirror, "event")
    head, *rows = [row.split("\t") for row in done.stdout.splitlines()]
    assert head == ["repository", "commit", "parent", "ids"]
    assert rows[0] == [NAME, event, find_commit(mirror, "first"), "2"]
    parents = {"an-edited-path": "not-yet-there", "neutral": "an-edited-path", "touched": "neutral"}
    assert sorted(rows[1:]) == sorted(
        [NAME, find_commit(mirror, tag), find_commit(mirror, parent), ""]
        for tag, parent in parents.items()
    )
    assert f"  {event[:10]} 2 Keep sessions in Redis, as says\n" in done.stderr
    assert "skipped: acme/absent is not in" in done.stderr


def test_a_prompt_names_no_record(modules: dict[str, ModuleType]) -> None:
    """Ids, links, trailers and pull requests would give the answer away, or are no words."""
    source = modules["history"].Source("acme/harbor", "judged", "ADR", ("docs/adr",))
    naming = modules["events"].Naming(source)
    assert naming.title("[ADR-0012] Seat holds (see ADRs 4) (#7)") == "Seat holds (see )"
    assert naming.title("feat(adr-3): charge once") == "feat : charge once"
    whole = (
        "Hold seats\n\nFrom docs/adr/0012-hold.md, [the plan](https://example.org/a).\n\n"
        "Closes #3\nCo-authored-by: Eve <eve@example.org>\n\n## PR checklist\n\n- [x] tested\n"
    )
    assert naming.prompt(whole) == "Hold seats\n\nFrom , the plan."
    assert len(naming.prompt("hold\n" + "seat " * 900)) <= modules["events"].MAX_PROMPT_CHARS


@pytest.fixture
def finished(mirror: Path, table: Path, tmp_path: Path) -> tuple[Path, str]:
    """Replay both commits, a second time as well; return the file of the rows and the warnings."""
    pins, out = tmp_path / "pins.tsv", tmp_path / "run.jsonl"
    places = ("--mirror", mirror, "--repos", table)
    assert call("events", *places, "--out", pins).returncode == 0
    first = call("run", *places, "--pins", pins, "--out", out)
    assert first.returncode == 0, first.stderr
    with out.open("a") as file:
        file.write('{"repository": "cut off')
    again = call("run", *places, "--pins", pins, "--out", out)
    assert again.returncode == 0, again.stderr
    return out, first.stderr


def test_the_hooks_show_the_decision_before_the_edit(finished: tuple[Path, str]) -> None:
    """A run that goes on repeats no event and keeps no half of a line."""
    path, warnings = finished
    event, *neutral = map(json.loads, path.read_text().splitlines())
    decision = "adr-0002-keep-sessions-in-redis"
    assert event["governing"] == [decision]
    assert (event["memories"], event["missing"]) == (3, 0)
    for answer in event["answers"].values():
        assert decision in answer["parts"]["prompt"]["ids"]
        assert decision in answer["parts"]["alone"]["ids"]
        assert answer["ranked"][0] == decision
        assert answer["parts"]["primer"]["tokens"] > 0
        assert answer["parts"]["primer"]["ids"] == []
        assert len(answer["parts"]["list"]["ids"]) == event["memories"]
    assert [(row["governing"], row["missing"]) for row in neutral] == [([], 0)] * 3
    assert "skipped: acme/absent is not in" in warnings
    done = call("score", path, "--against", path, "--misses")
    assert done.returncode == 0, done.stderr
    assert "1 events of 1 repositories, 3 neutral commits" in done.stdout
    assert "| title | block alone | 1.000 | 1.00 to 1.00 | 1.00 |" in done.stdout


def make_row(modules: dict[str, ModuleType], commit: str, repository: str, **changes: Any) -> Any:
    """Return an event about memory `a`, of which the primer shows `b` and the block nothing."""
    replay = modules["replay"]
    ids = {"primer": ["b"], "prompt": [], "edit": [], "alone": []} | changes.pop("ids", {})
    parts = {part: replay.Text(names, 10) for part, names in ids.items()}
    answer = replay.Answer(parts, ["b", "c", "d", "e", "f", "a"])
    fields = {"governing": ["a"], "missing": 0, "memories": 10, "index_tokens": 100} | changes
    return replay.Row(
        repository=repository,
        group="judged",
        commit=commit,
        seconds=1.0,
        answers=dict.fromkeys(replay.PROMPTS, answer),
        **fields,
    )


def test_arms_are_scored_by_what_they_show(modules: dict[str, ModuleType]) -> None:
    """Titles below the gate come after what is shown, and cost a line of the index each."""
    score = modules["score"]
    row = make_row(modules, "1", "r")
    hits = {arm: score.is_hit(row, "title", arm) for arm in score.ARMS}
    assert hits == {
        score.SESSION: False,
        score.UNLISTED: False,
        score.BLOCK_ALONE: False,
        score.BELOW: True,
        score.FIVE: False,
        score.TEN: True,
        score.INDEX: True,
    }
    assert score.show(row, "title", score.BELOW).tokens == 30 + 5 * 10
    assert score.count_others(row, "title", score.BELOW) == 5
    assert score.count_others(row, "title", score.INDEX) == 9
    assert score.find_part(row, "title") == ""
    at_edit = make_row(modules, "2", "r", ids={"edit": ["a"], "prompt": ["a"]})
    assert score.find_part(at_edit, "title") == "prompt"


def test_what_is_shown_may_be_no_sentence(modules: dict[str, ModuleType]) -> None:
    """A table of contents or a label under a title says nothing about the decision."""
    replay, score = modules["replay"], modules["score"]
    lines = {
        "Sessions are kept in Redis, not on disk.": True,
        "- [Summary](#summary) - [Goals](#goals) - [Why](#why) - [How](#how)": False,
        "**Bead:** bead-0832 **Related:** the other record about egress": False,
        "- 2022-03-03: Initial commit of the whole record": False,
        "The following decisions have been made by us:": False,
        "TODO": False,
    }
    assert {line: replay.is_prose(line) for line in lines} == lines
    titles = {"adr-1-a": "A", "adr-2-b": "B", "adr-3-c": "C is listed with no text at all"}
    store = replay.Store({id_: id_[:5] for id_ in titles}, titles, {})
    text = (
        '<memory id="adr-1@abc" kind="decision">\n| A\n| **Author:** Ada\n</memory>\n'
        '<memory id="adr-2">\nCANDIDATE\n| B\n| It is so for as long as we live.\n</memory>\n'
        "- adr-3 C is listed with no text at all\n"
    )
    assert store.find_ids(text) == ["adr-1-a", "adr-2-b", "adr-3-c"]
    assert store.find_without_prose(text) == ["adr-1-a", "adr-3-c"]
    row = make_row(modules, "1", "r", ids={"prompt": ["a"], "alone": ["a"]})
    assert not score.is_bare(row, "title", score.SESSION)
    row.answers["title"].parts["prompt"].without_prose.append("a")
    assert score.is_bare(row, "title", score.SESSION)
    assert not score.is_bare(row, "title", score.BLOCK_ALONE)


def test_a_refused_record_is_a_miss_and_no_neutral_commit(modules: dict[str, ModuleType]) -> None:
    score = modules["score"]
    refused = make_row(modules, "1", "r", governing=[], missing=1)
    neutral = make_row(modules, "2", "r", governing=[], missing=0)
    assert [score.is_neutral(row) for row in (refused, neutral)] == [False, True]
    assert not score.is_hit(refused, "title", score.INDEX)


def test_intervals_are_over_repositories(modules: dict[str, ModuleType]) -> None:
    """Many alike events of one repository do not make a figure certain."""
    score = modules["score"]
    assert score.bootstrap([[1.0] * 50, [1.0]]) == (1.0, 1.0)
    low, high = score.bootstrap([[1.0] * 50, [0.0] * 50])
    assert (low, high) == (0.0, 1.0)


def test_wins_and_losses_are_of_the_same_events(modules: dict[str, ModuleType]) -> None:
    score = modules["score"]
    shown = {"ids": {"prompt": ["a"]}}
    before = [make_row(modules, "1", "r"), make_row(modules, "2", "r", **shown)]
    after = [
        make_row(modules, "1", "r", ids={"prompt": ["a"]}),
        make_row(modules, "2", "r", ids={"prompt": ["a"]}),
        make_row(modules, "3", "r", ids={"prompt": ["a"]}),
    ]
    rows = score.format_comparison(after, before).splitlines()
    assert rows[2].startswith(f"| title | {score.SESSION} | 2 | 1 | 0 | +0 |")


def test_the_pins_are_of_the_table(modules: dict[str, ModuleType]) -> None:
    """Every pinned commit is of a known repository, and each group has events."""
    sources = {source.name: source for source in modules["history"].read_sources()}
    pins = modules["events"].read_pins()
    assert {pin.repository for pin in pins} == set(sources)
    assert {sources[pin.repository].group for pin in pins if pin.numbers} == {"tuning", "judged"}
    assert len({(pin.repository, pin.commit) for pin in pins}) == len(pins)


def test_the_list_of_titles_is_counted_by_itself(modules: dict[str, ModuleType]) -> None:
    """With it a session shows every decision; the other figures are those without it."""
    score = modules["score"]
    row = make_row(modules, "1", "r", ids={"list": ["a", "c"]})
    assert score.is_hit(row, "title", score.SESSION)
    assert not score.is_hit(row, "title", score.UNLISTED)
    tokens = [score.show(row, "title", arm).tokens for arm in (score.SESSION, score.UNLISTED)]
    assert tokens == [40, 30]
    assert score.find_part(row, "title") == "list"
    assert not score.is_warned(row, "title")
    assert score.is_warned(make_row(modules, "2", "r", ids={"edit": ["c"]}), "title")
    table = score.format_sizes([row])
    assert "| 1 to 19 | 1 | 1.00 | 1.00 | 1.00 | 40 | 40 | 100 |" in table
