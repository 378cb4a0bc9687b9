"""Help pages and topics: what they hold, and that they can be read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from conftest import Sandbox

import memtool
from memtool.calls.bind import Call
from memtool.calls.signature import read_interface
from memtool.cli import arguments, manual
from memtool.cli.arguments import HelpPage
from memtool.cli.topics import FILES, MARKS, TOPICS
from memtool.commands import ACTIONS, BY_NAME, GROUPS, VERBS, Verb, names
from memtool.errors import EXIT_CODES
from memtool.memory.fields import CATEGORIES, FIELDS
from memtool.search.filters import FILTERS, IS_VALUES
from memtool.search.query import STATES
from memtool.store.config import OPTIONS
from memtool.store.repository import ENVIRONMENT

COLUMNS = 80
MAX_PARAGRAPH_LINES = 4
PAGES = {
    "overview": HelpPage("help"),
    "all verbs": HelpPage("help", is_all=True),
    **{verb.name: HelpPage("help", verb) for verb in VERBS},
    **{name: HelpPage("help", actions=name) for name in ACTIONS},
    **{name: HelpPage("help", topic=name) for name in TOPICS},
}
each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
each_verb = pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)


def section(text: str, title: str) -> list[str]:
    """Return the lines of a page below a title, up to the next blank line."""
    _before, _title, after = f"\n{text}".partition(f"\n{title}:\n")
    return after.partition("\n\n")[0].splitlines()


@each_page
def test_a_page_fits_a_terminal_of_80_columns(page: HelpPage) -> None:
    """Only a command that can be copied is longer."""
    text = manual.render_page(page)
    examples = {*section(text, "example"), *section(text, "examples")}
    assert [row for row in text.splitlines() if len(row) > COLUMNS and row not in examples] == []


@each_page
def test_no_paragraph_is_longer_than_four_lines(page: HelpPage) -> None:
    """Longer explanations are tables."""
    for block in manual.render_page(page).split("\n\n"):
        rows = block.splitlines()
        is_prose = not any(row.startswith("  ") for row in rows)
        assert not is_prose or len(rows) <= MAX_PARAGRAPH_LINES, block


@each_verb
def test_the_page_of_a_verb_is_a_sentence_usage_and_examples(verb: Verb) -> None:
    """`memtool help VERB` and `memtool VERB --help` are one page."""
    page = arguments.parse(["help", *verb.name.split()])
    assert page == arguments.parse([*verb.name.split(), "--help"])
    assert isinstance(page, HelpPage)
    sentence, usage, *_blocks = manual.render_page(page).split("\n\n")
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert f"{usage} ".startswith(f"usage: memtool {verb.name} ")


@each_verb
def test_each_option_takes_one_line(verb: Verb) -> None:
    """The list of options can be scanned."""
    options = section(manual.render_verb(read_interface(verb)), "options")
    flags = [row.split()[0] for row in options]
    assert flags == [option.flag for option in read_interface(verb).options]


@each_verb
def test_each_example_is_a_call(verb: Verb) -> None:
    """Every example parses as a command line, and the first ones call the verb itself."""
    commands = [
        command
        for row in read_interface(verb).example.splitlines()
        for command in re.split(r" [|<>] ", row)
        if command.startswith("memtool ")
    ]
    calls = [arguments.parse(shlex.split(command)[1:]) for command in commands]
    assert all(isinstance(call, Call) for call in calls)
    assert verb.name in {call.face.name for call in calls if isinstance(call, Call)}


def test_the_overview_lists_the_daily_verbs() -> None:
    """About twenty of them, by task, and no others."""
    daily = [verb.name for verb in VERBS if verb.is_daily]
    rows = re.findall(r"^  ([a-z-]+)  +\S", manual.render_overview(), flags=re.MULTILINE)
    assert sorted(rows) == sorted(daily)
    assert 15 <= len(daily) <= 25


@pytest.mark.parametrize(
    "args", [["help", "--all"], ["--help", "--all"], ["-h", "--all"], ["--all", "--help"]]
)
def test_all_verbs_and_topics_are_listed_on_request(args: list[str]) -> None:
    """`--all` after `help` or `--help` is the whole table, group by group."""
    page = arguments.parse(args)
    assert page == HelpPage("help", is_all=True)
    text = manual.render_page(page)
    rows = re.findall(r"^  ([a-z-]+)  +\S", text, flags=re.MULTILINE)
    assert sorted(rows) == sorted([*names(), *TOPICS])
    assert [title for title in GROUPS.values() if f"\n{title.capitalize()}:\n" not in text] == []


def test_the_overview_leads_to_topics_and_all_verbs(sandbox: Sandbox) -> None:
    """`memtool help` names each topic, and how to see the other verbs."""
    text = sandbox.run("help").stdout
    topics = text.partition("Topics (memtool help TOPIC): ")[2].partition("\n\n")[0]
    assert re.split(r",\s+", topics) == [*TOPICS]
    assert f"All {len(names())} verbs: memtool help --all" in text


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_a_page(name: str) -> None:
    """`memtool help TOPIC` is its page; no verb has the same name."""
    assert arguments.parse(["help", name]) == HelpPage("help", topic=name)
    assert name not in names()


@pytest.mark.parametrize(
    ("topic", "terms"),
    [
        ("filters", [f"{name}:" for name in FILTERS]),
        ("states", list(IS_VALUES)),
        ("settings", [option.key for option in OPTIONS]),
        ("exit-codes", [str(code) for code in EXIT_CODES]),
        ("environment", list(ENVIRONMENT)),
        ("fields", [field.name for field in FIELDS]),
        ("categories", [category.name for category in CATEGORIES]),
        ("options", ["--json", "-C", "--global", "-h, --help"]),
    ],
)
def test_a_topic_lists_every_row_of_its_table(topic: str, terms: list[str]) -> None:
    """No filter, state, setting, code, variable, key or category is left out."""
    rows = manual.render_topic(TOPICS[topic]).splitlines()
    assert [
        term for term in terms if not any(f"{row} ".startswith(f"  {term} ") for row in rows)
    ] == []


def test_every_state_has_a_meaning() -> None:
    """The table of meanings is that of the filter, in its order."""
    assert [*STATES] == [*IS_VALUES]


def test_the_marks_are_those_that_memories_are_shown_with() -> None:
    """Each mark in the code has a row, and each row is a mark of the code."""
    package = Path(memtool.__file__).parent
    texts = [
        path.read_text(encoding="utf-8")
        for layer in ("inject", "memory", "search", "fleet")
        for path in sorted((package / layer).rglob("*.py"))
    ]
    text = "".join(texts)
    form = r'"(?:\[([A-Z]{3,})\] |([A-Z]{3,})(?: [A-Z]{3,})?(?:: |, not settled))'
    marks = set(re.findall(form, text))
    marks = {bracketed or plain for bracketed, plain in marks}
    assert marks == {mark for mark, _meaning in MARKS}


def test_the_files_of_a_new_repository_are_explained(sandbox: Sandbox) -> None:
    """Each file that `memtool init` writes has a row."""
    explained = {path for path, _meaning in FILES}
    written = sandbox.json("init", "--dry-run")["written"]
    assert written
    for path in written:
        general = re.sub(r"_(decision|semantic|episodic|state)\.md", "_TYPE.md", path)
        assert general in explained


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("filtres", "did you mean filters"),
        ("exitcodes", "did you mean exit-codes?"),
        ("serach", "did you mean search?"),
        ("edit", "did you mean supersede?"),
        ("qqqqq", "the topics are filters, states,"),
    ],
)
def test_an_unknown_topic_is_refused_with_a_way_on(sandbox: Sandbox, name: str, hint: str) -> None:
    """Near names first, else all topics."""
    done = sandbox.run("help", name)
    assert (done.returncode, done.stdout) == (2, "")
    message, hinted = done.stderr.splitlines()
    assert message == f"memtool: unknown verb or topic {name!r}"
    assert hinted.startswith(f"hint: {hint}")


def test_the_summary_of_a_verb_is_an_imperative_phrase() -> None:
    """In a list it is one clause or two, without a capital or a full stop."""
    for verb in BY_NAME.values():
        assert verb.summary[0].islower(), verb.name
        assert not verb.summary.endswith("."), verb.name
        assert len(verb.summary) <= COLUMNS - 15, verb.name


@each_page
def test_every_setting_that_a_page_names_exists(page: HelpPage) -> None:
    """A renamed setting is renamed in the help, too."""
    keys = {option.key for option in OPTIONS} | {"trust.rules"}
    sections = "|".join({key.partition(".")[0] for key in keys})
    text = manual.render_page(page)
    assert set(re.findall(rf"(?<![\w./])(?:{sections})\.[a-z_]+", text)) - keys == set()
