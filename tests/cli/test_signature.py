from __future__ import annotations

import pytest

from memtool.cli import arguments
from memtool.cli.arguments import interface
from memtool.commands import BY_NAME, GROUPS, VERBS, Verb


def parameter(verb: str, name: str) -> arguments.Parameter:
    return next(p for p in interface(BY_NAME[verb]).parameters if p.name == name)


def test_positional_parameters_are_arguments_and_keyword_only_ones_are_options():
    """The split between arguments and options is the one of the function's signature."""
    face = interface(BY_NAME["new"])
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
        arguments._shape("dict[str, int]")


def test_the_docstring_gives_summary_description_example_and_helps():
    """Everything that a help page says stands in the docstring."""
    face = interface(BY_NAME["new"])
    assert face.summary == "Write a memory from the template of its type, and print its path."
    assert face.description.startswith("The file goes to")
    assert face.example.startswith("memtool new decision")
    assert parameter("new", "source").help.endswith("may be repeated")
    assert "  " not in parameter("new", "source").help


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_explains_itself(verb: Verb):
    """Each verb has a summary, a group, an example that calls it, and help for each parameter."""
    face = interface(verb)
    assert verb.group in GROUPS
    assert face.summary.endswith(".")
    assert f"memtool {verb.name}" in face.example
    assert [p.name for p in face.parameters if not p.help] == []


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_no_option_of_a_verb_hides_a_common_flag(verb: Verb):
    """The flags that stand everywhere mean the same in every verb."""
    flags = [option.flag for option in interface(verb).options]
    assert not {"--json", "--help", "--version"} & set(flags)
    assert len(flags) == len(set(flags))
