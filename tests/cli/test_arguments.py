from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memtool.calls import signature
from memtool.calls.bind import OLD_OPTIONS, Call
from memtool.calls.signature import Parameter, read_interface
from memtool.cli import arguments
from memtool.cli.arguments import HelpPage, parse, wants_json
from memtool.commands import BY_NAME, GROUPS, VERBS, Verb
from memtool.errors import MemtoolError
from memtool.importing import SOURCES

WORDS = (
    "new",
    "pin",
    "decision",
    "T",
    "1",
    "",
    "-",
    "--",
    "-x",
    "-h",
    "-C",
    "=",
    "--=",
    "--tag",
    "--json",
    "--importance",
    "--body=",
)


def call(*args: str) -> Call:
    parsed = parse(list(args))
    assert isinstance(parsed, Call)
    return parsed


def refusal(*args: str) -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        parse(list(args))
    return caught.value


def test_words_become_arguments_and_options():
    """Arguments keep their order, options get their type, repeated ones are collected."""
    made = call("new", "decision", "Use Redis", "--tag", "a", "--tag=b", "--importance", "0.5")
    assert made.positional == ("decision", "Use Redis")
    assert made.options["tag"] == ("a", "b")
    assert made.options["importance"] == 0.5
    assert made.options["commit"] is False
    assert made.options["body"] == ""


def test_options_may_stand_anywhere():
    """The order of options and arguments does not matter."""
    first = call("new", "--commit", "decision", "--body", "b", "T")
    other = call("new", "decision", "T", "--body", "b", "--commit")
    assert first == other


@pytest.mark.parametrize(
    "args", [("--json", "pin", "x"), ("pin", "--json", "x"), ("pin", "x", "--json")]
)
def test_json_stands_before_or_after_the_verb(args: tuple[str, ...]):
    """`--json` means the same in every place."""
    assert call(*args).as_json


def test_the_directory_stands_before_or_after_the_verb_and_the_last_one_holds():
    """`-C DIR` means the same in every place."""
    assert call("-C", "a", "status").directory == "a"
    assert call("status", "-C", "b").directory == "b"
    assert call("-C", "a", "status", "-C", "b").directory == "b"
    assert call("status").directory == "."


@pytest.mark.parametrize("value", ["-x", "- item", "-1", "--not-an-option", "-", "", "a=b"])
def test_a_value_may_begin_with_a_dash(value: str):
    """The word after an option is its value unless it is an option itself."""
    assert call("new", "decision", "T", "--body", value).options["body"] == value
    assert call("new", "decision", "T", f"--body={value}").options["body"] == value


@pytest.mark.parametrize(
    "follower", [(), ("--",), ("--commit",), ("--json",), ("-C", "x"), ("--tag=a",)]
)
def test_a_forgotten_value_is_told(follower: tuple[str, ...]):
    """An option never swallows the option that follows it."""
    assert refusal("new", "decision", "T", "--body", *follower).message == "--body needs a value"


def test_after_two_dashes_every_word_is_an_argument():
    """`--` ends the options."""
    assert call("remember", "--", "--json", "-h").positional == ("--json", "-h")
    assert not call("remember", "--", "--json").as_json


def test_a_word_with_a_dash_is_an_argument_where_any_number_may_stand():
    """The `-word` of a query needs no quoting tricks."""
    assert call("remember", "not", "-redis").positional == ("not", "-redis")
    assert refusal("pin", "-redis").message == "memtool pin has no option -redis"


def test_a_sentence_is_an_argument_whatever_it_begins_with():
    """Text in quotes is text, even if it begins like an option."""
    assert call("remember", "--no-verify is forbidden").positional == ("--no-verify is forbidden",)
    assert call("new", "decision", "-x is off").positional == ("decision", "-x is off")


def test_a_negative_number_is_an_argument():
    """A setting may be given a number below zero, which the setting then judges."""
    assert call("config", "inject.threshold", "-1").positional == ("inject.threshold", "-1")


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("nwe",), "unknown verb 'nwe'", "did you mean new?"),
        (("qqqq",), "unknown verb 'qqqq'", "memtool help --all"),
        (("update",), "unknown verb 'update'", "did you mean supersede?"),
        (("rm", "dec-1"), "unknown verb 'rm'", "did you mean forget?"),
        (("add", "x"), "unknown verb 'add'", "did you mean new or remember?"),
        (("help", "nwe"), "unknown verb or topic 'nwe'", "did you mean new?"),
        (("-x", "list"), "unknown option -x before the verb", "memtool help --all"),
        (("-C",), "-C needs a directory", "memtool -C DIR status"),
        (("status", "-C"), "-C needs a value", "memtool status --help"),
        (
            ("new", "decison", "T"),
            "TYPE is one of decision, semantic, episodic, state, not 'decison'",
            "did you mean decision?",
        ),
        (
            ("new", "decision", "T", "--confidence", "sure"),
            "--confidence is one of low, medium, high, not 'sure'",
            "memtool new --help",
        ),
        (
            ("new", "decision", "Use", "Redis"),
            'new does not take the argument "Redis"',
            "put quotes around a text of several words\nmemtool new --help",
        ),
        (("new",), "TYPE is missing", "memtool new TYPE TITLE"),
        (("new", "decision"), "TITLE is missing", "memtool new TYPE TITLE"),
        (
            ("new", "decision", "T", "--catgory", "x"),
            "memtool new has no option --catgory",
            "did you mean --category?",
        ),
        (
            ("new", "decision", "T", "--importance", "much"),
            "--importance takes a number, not 'much'",
            "memtool new --help",
        ),
        (
            ("new", "decision", "T", "--importance", "nan"),
            "--importance takes a number, not 'nan'",
            "memtool new --help",
        ),
        (("pin", "x", "--commit=yes"), "--commit does not take a value", "memtool pin --help"),
        (("pin", "x", "--json=1"), "--json does not take a value", "memtool pin --help"),
    ],
)
def test_a_wrong_call_is_told_in_a_sentence_with_the_next_step(
    args: tuple[str, ...], message: str, hint: str
):
    """Every misuse has one clear sentence and a hint that leads on."""
    error = refusal(*args)
    assert (error.message, error.hint) == (message, hint)


def test_bytes_that_are_no_text_are_refused_but_in_a_path_of_a_directory():
    """An argument in another encoding never reaches a memory; directories may be named so."""
    assert refusal("remember", "caf\udce9").code == "not-utf8"
    assert refusal("new", "decision", "T", "--tag", "caf\udce9").code == "not-utf8"
    assert call("-C", "caf\udce9", "status").directory == "caf\udce9"


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_a_page_wherever_it_stands(flag: str):
    """A request for help wins over whatever else is right or wrong in the call."""
    assert parse([flag]) == HelpPage("help")
    assert parse([flag, "new"]) == HelpPage("help")
    page = parse(["new", "decision", flag])
    assert isinstance(page, HelpPage)
    assert page.verb is not None
    assert page.verb.name == "new"
    assert parse(["new", flag]) == parse(["help", "new"])


@pytest.mark.parametrize("args", [[], ["help"], ["--json"], ["-C", "x"]])
def test_a_call_without_a_verb_shows_the_overview(args: list[str]):
    """Somebody who says nothing gets an overview."""
    assert parse(args) == HelpPage("help")


@pytest.mark.parametrize("args", [["--version"], ["-V"], ["--json", "--version"]])
def test_the_version_is_a_page(args: list[str]):
    """The version needs no verb and no repository."""
    assert parse(args) == HelpPage("version")


def test_errors_are_json_only_where_json_was_asked_for():
    """A `--json` behind `--` is a word like any other."""
    assert wants_json(["list", "--json"])
    assert not wants_json(["remember", "--", "--json"])


@given(st.lists(st.sampled_from(WORDS)))
def test_any_words_are_a_call_or_a_refusal(words: list[str]):
    """No sequence of words makes the parser fail in a way of its own."""
    with suppress(MemtoolError):
        assert isinstance(parse(words), Call | HelpPage)


def parameter(verb: str, name: str) -> Parameter:
    return next(p for p in read_interface(BY_NAME[verb]).parameters if p.name == name)


def test_positional_parameters_are_arguments_and_keyword_only_ones_are_options():
    """The split between arguments and options is the one of the function's signature."""
    face = read_interface(BY_NAME["new"])
    assert [p.name for p in face.positional] == ["type", "title"]
    assert {p.name for p in face.options} >= {"body", "tag", "importance", "commit", "dry_run"}


def test_annotations_give_kind_choices_and_repetition():
    """Each annotation that verbs use is read as what it means."""
    assert parameter("new", "type").choices == ("decision", "semantic", "episodic", "state")
    assert parameter("new", "confidence").choices == ("low", "medium", "high")
    assert parameter("new", "confidence").default == ""
    assert parameter("new", "importance").kind is float
    assert parameter("new", "importance").default is None
    assert parameter("new", "tag").is_many
    assert parameter("new", "tag").default == ()
    assert parameter("new", "commit").kind is bool
    assert parameter("status", "at").kind is str


def test_a_star_parameter_takes_any_number_of_words():
    """`*text` is an argument that may be repeated and is never required."""
    text = parameter("remember", "text")
    assert (text.is_positional, text.is_many, text.is_required) == (True, True, False)


def test_only_parameters_without_a_default_are_required():
    """A default makes an argument optional."""
    assert parameter("new", "title").is_required
    assert not parameter("config", "key").is_required
    assert not parameter("new", "body").is_required


def test_an_unknown_annotation_is_a_loud_error():
    """A verb cannot get a parameter that no surface knows how to ask for."""
    with pytest.raises(TypeError, match="dict"):
        signature._shape("dict[str, int]", {})


def test_a_table_gives_the_choices_of_a_parameter():
    """The choices of import are the rows of the table of sources, in its order, or a guess."""
    assert parameter("import", "from_").choices == ("auto", *SOURCES)


def test_the_docstring_gives_summary_description_example_and_helps():
    """A help page is made from the docstring alone."""
    face = read_interface(BY_NAME["new"])
    assert face.summary == "Record a decision, a fact, a failure or the state of the work."
    assert face.description.startswith("Types:")
    assert face.example.startswith("memtool new decision")
    assert parameter("new", "source").help.endswith("may be repeated")
    assert "  " not in parameter("new", "source").help


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_explains_itself(verb: Verb):
    """Each verb has a summary, a group, an example that calls it, and help for each parameter."""
    face = read_interface(verb)
    assert verb.group in GROUPS
    assert face.summary.endswith(".")
    assert f"memtool {verb.name}" in face.example
    assert [p.name for p in face.parameters if not p.help] == []


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_no_option_of_a_verb_hides_a_common_flag(verb: Verb):
    """Common flags mean the same in every verb."""
    flags = [option.flag for option in read_interface(verb).options]
    assert not {"--json", "--help", "--version"} & set(flags)
    assert len(flags) == len(set(flags))


def test_the_verbs_of_other_tools_lead_to_verbs_of_ours() -> None:
    """No verb of ours is in the table of foreign ones, and every hint names verbs that exist."""
    assert not BY_NAME.keys() & arguments.FOREIGN_VERBS.keys()
    assert {
        verb for hint in arguments.FOREIGN_VERBS.values() for verb in hint.split(" or ")
    } <= set(BY_NAME)


@pytest.mark.parametrize("words", [("--why", "it moved"), ("--why=it moved",)])
def test_an_old_option_means_the_new_one_and_is_told(words: tuple[str, ...]):
    """For one version, wherever it appears; the new spelling makes no note."""
    made = call("forget", "dec-a", *words)
    assert made.options["reason"] == "it moved"
    assert made.notes == ("--why is called --reason now",)
    assert call(*("forget", *words, "dec-a")) == made
    today = call("forget", "dec-a", "--reason", "it moved")
    assert (today.options, today.notes) == (made.options, ())


def test_an_old_switch_means_a_value_of_today():
    """`--keep-both` means `--keep both`."""
    made = call("resolve", "dec-a", "--keep-both")
    assert (made.options["keep"], made.notes) == (
        "both",
        ("--keep-both is called --keep=both now",),
    )


def test_each_verb_has_old_options_of_its_own():
    """`--write` names a file in inject only; after `--` a word is an argument, not an option."""
    assert call("inject", "--write", "AGENTS.md").options["into"] == "AGENTS.md"
    assert call("serve", "--write").notes == ()
    assert call("forget", "--reason", "x", "--", "--why").positional == ("--why",)
    assert refusal("confirm", "dec-a", "--why", "x").message.endswith("has no option --why")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("forget", "dec-a", "--wyh", "x"), "did you mean --reason?"),
        (("resolve", "--keep-bot"), "did you mean --keep=both or --keep?"),
        (("search", "x", "--why"), "did you mean --why-not?"),
    ],
)
def test_an_option_that_is_like_an_old_one_is_told_by_its_new_name(
    words: tuple[str, ...], hint: str
):
    """No hint teaches a spelling that will go."""
    assert refusal(*words).hint == hint


def test_every_old_option_has_a_verb_and_a_new_name():
    """The table holds nothing that is in use, or that leads nowhere."""
    for verb, old_names in OLD_OPTIONS.items():
        names = {parameter.name for parameter in read_interface(BY_NAME[verb]).parameters}
        assert not names & old_names.keys()
        current_names = {current.partition("=")[0] for current in old_names.values() if current}
        assert current_names <= names
