"""Settings: one table and nothing else, and a refusal that names what is wrong."""

from __future__ import annotations

import pytest

from memtool.errors import MemtoolError
from memtool.store import config
from memtool.store.config import OPTIONS, Option, parse

PATH = ".memory/config.toml"


def refusal(text: str | bytes) -> MemtoolError:
    with pytest.raises(MemtoolError) as caught:
        parse(text.encode() if isinstance(text, str) else text, PATH)
    assert (caught.value.code, caught.value.exit_code) == ("config", 2)
    assert caught.value.hint
    return caught.value


def as_toml(option: Option, value: object) -> str:
    section, _dot, name = option.key.partition(".")
    shown = str(value).lower()
    if isinstance(value, str | tuple):
        shown = f'"{value}"' if isinstance(value, str) else str(list(value))
    return f"[{section}]\n{name} = {shown}\n"


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_setting_has_a_default_that_it_allows(option: Option) -> None:
    """Writing the default down gives the default, and the row explains itself."""
    read = parse(as_toml(option, option.default).encode(), PATH)
    assert read.setting(option.key) == option.default == config.DEFAULTS.setting(option.key)
    assert type(read.setting(option.key)) is type(option.default)
    assert option.doc
    assert option.key.count(".") == 1


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_every_setting_refuses_what_it_is_not(option: Option) -> None:
    """Other types, numbers out of range and unknown choices name the setting."""
    wrong: list[str] = ["[]", "{}", "2026-01-01"]
    if isinstance(option.default, tuple):
        wrong = ["{}", "1", "true", '"text"', "[1]", '[""]', '[" "]', '["a", 1]', "[[]]"]
    elif isinstance(option.default, dict):
        wrong = ["[]", "1", '"text"', f"{{{'0' * 16} = 1}}", f'{{{"0" * 16} = " "}}']
    elif isinstance(option.default, str):
        is_choice = option.choices and option.key not in config.RENAMED
        wrong += ["1", "true"] + (['"nonsense"'] if is_choice else [])
    elif isinstance(option.default, bool):
        wrong += ['"true"', "1", "0.5"]
    else:
        wrong += ['"1"', "true", "nan", "inf", str(option.minimum - 1), str(option.maximum + 1)]
        wrong += [] if isinstance(option.default, float) else ["1.5"]
    for value in wrong:
        section, _dot, name = option.key.partition(".")
        error = refusal(f"[{section}]\n{name} = {value}\n")
        assert error.message.startswith(f"{PATH}: {option.key} must be "), value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[serch]\nlimit = 1\n", "unknown setting 'serch.limit'"),
        ("[search]\nlimits = 1\n", "unknown setting 'search.limits'"),
        ("limit = 1\n", f"{PATH}: limit must be a table"),
        ("categories = 1\n", f"{PATH}: categories must be a table"),
        ("[categories]\nerror = 1\n", f"{PATH}: categories.error must be a table"),
        ("[categories.error]\nttl = 1\n", f"{PATH}: categories.error.ttl is not one of "),
        ("[categories.E]\n", f"{PATH}: categories.E must be a name"),
        ("[categories.error]\nweight = -1\n", f"{PATH}: categories.error.weight must be from 0"),
        ("[categories.error]\nweight = nan\n", f"{PATH}: categories.error.weight must be from 0"),
        ("[categories.error]\nttl_days = inf\n", f"{PATH}: categories.error.ttl_days must be from"),
        ("[categories.error]\nttl_days = true\n", f"{PATH}: categories.error.ttl_days must be"),
        ("[categories.error]\nttl_days = '9'\n", f"{PATH}: categories.error.ttl_days must be"),
        ("[categories.error]\ntemporal_class = 'x'\n", f"{PATH}: categories.error.temporal_class"),
        ("[categories.error]\ntemporal_class = []\n", f"{PATH}: categories.error.temporal_class"),
        ("[search\n", f"{PATH} is not TOML: "),
        ("a = 1\na = 2\n", f"{PATH} is not TOML: "),
        ("a = " + "[" * 5_000, f"{PATH} is not TOML: "),
        ("a = " + "9" * 5_000, f"{PATH} is not TOML: "),
        ("a = 2026-02-30\n", f"{PATH} is not TOML: "),
        (b"a = '\xff'\n", f"{PATH} is not TOML: "),
        (b"\0", f"{PATH} is not TOML: "),
        ("#" * 300_000, f"{PATH} has 300,000 bytes"),
    ],
)
def test_files_that_are_no_settings_are_refused(text: str | bytes, message: str) -> None:
    """Whatever is wrong is one sentence that names the file and the key."""
    assert refusal(text).message.startswith(message)


def test_categories_may_be_added_and_changed() -> None:
    """A row names what differs; the rest is the built-in row's, or a plain default."""
    text = b'[categories.error]\nttl_days = 7\n[categories.ritual]\nweight = 2\ndoc = "how"\n'
    read = parse(text, PATH)
    error, ritual = read.categories["error"], read.categories["ritual"]
    assert (error.ttl_days, error.weight) == (7, config.DEFAULTS.categories["error"].weight)
    assert (ritual.weight, ritual.ttl_days, ritual.doc) == (2.0, 0, "how")
    assert config.DEFAULTS.categories["error"].ttl_days == 90


def test_the_nearest_setting_is_in_the_hint() -> None:
    """An unknown key says what may have been meant."""
    assert "inject.budget_tokens" in refusal("[inject]\nbudget_token = 1\n").hint
    with pytest.raises(MemtoolError, match="unknown setting"):
        config.DEFAULTS.setting("no.such")


def test_a_retired_setting_is_passed_over_in_a_file_and_refused_by_name() -> None:
    """An older file stays readable with a note; who asks for it is told what replaced it."""
    for head in (b"", b"format = 2\n"):
        read = parse(head + b"[maintain]\noften = 5\nprune_days = 9\n", PATH)
        assert (read.values, read.old_keys) == ({"maintain.prune_days": 9}, ("maintain.often",))
    assert config.format_old_keys(PATH, ("inject.share", "maintain.often")) == (
        f"{PATH} names inject.share; it is called inject.min_coverage now; {PATH} sets "
        f"maintain.often, which no longer exists: {config.RETIRED['maintain.often']}"
    )
    for key in config.RETIRED:
        with pytest.raises(MemtoolError, match=f"the setting {key} no longer exists") as caught:
            config.find_option(key)
        assert caught.value.hint == config.RETIRED[key] != ""


def test_an_empty_file_gives_the_defaults() -> None:
    """Every setting has a value, in its own type."""
    read = parse(b"", PATH)
    assert read == config.DEFAULTS
    assert read.count("search.limit") == 10
    assert read.number("inject.threshold") == 0.6
    assert read.text("inject.trust") == "local"


def test_lists_and_tables_are_read_as_they_stand() -> None:
    """A list keeps its order; a table is read in one order however it is written."""
    text = b"""
[redaction]
allow_emails = ["b@acme.io", "a@acme.io"]
[redaction.allow]
ffffffffffffffff = "the key of the demo"
0000000000000000 = "an example of the docs"
"""
    read = parse(text, PATH)
    assert read.texts("redaction.allow_emails") == ("b@acme.io", "a@acme.io")
    assert read.texts("redaction.allow") == ("0" * 16, "f" * 16)


@pytest.mark.parametrize("name", ["0", "F" * 16, "g" * 16, "0" * 17])
def test_an_allowed_secret_is_named_by_its_fingerprint(name: str) -> None:
    """A secret itself, or a misspelled fingerprint, would allow nothing, so it is refused."""
    error = refusal(f'[redaction.allow]\n{name} = "because"\n')
    assert f"redaction.allow.{name} must be named by 16 of 0-9 a-f" in error.message


def test_one_entry_of_a_table_belongs_to_its_setting() -> None:
    """Entries of tables are named by dots, and nothing else may be."""
    assert config.find_option(f"redaction.allow.{'0' * 16}").key == "redaction.allow"
    for key in ("redaction.allow_emails.a", "inject.trust.local", "redaction.allow.a.b"):
        with pytest.raises(MemtoolError, match="unknown setting"):
            config.find_option(key)


def test_a_category_has_a_number_of_its_own() -> None:
    """The table of a setting holds the number of all others as its default."""
    read = parse(b"[inject.threshold]\ndefault = 0.5\ndecision = 0.2\n", PATH)
    assert read.number("inject.threshold") == read.number("inject.threshold", "error") == 0.5
    assert read.number("inject.threshold", "decision") == 0.2
    assert (
        parse(b"[inject.min_rare_words]\nerror = 2\n", PATH).number("inject.min_rare_words") == 1.0
    )
    own = b"[inject.min_rare_words]\nritual = 2\n[categories.ritual]\nweight = 1\n"
    assert parse(own, PATH).number("inject.min_rare_words", "ritual") == 2.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[inject.threshold]\ndecison = 0.2\n", "inject.threshold.decison is not a category"),
        ("[inject.threshold]\ndecision = 2\n", "inject.threshold.decision must be between 0 and 1"),
        ("[inject.trust]\ndecision = 'local'\n", "inject.trust must be text"),
    ],
)
def test_a_number_of_a_category_is_checked(text: str, message: str) -> None:
    """A misspelled category would change nothing, so it is refused."""
    assert refusal(text).message == f"{PATH}: {message}"


def test_an_old_name_is_read_as_the_new_one() -> None:
    """Each old name of a setting sets the new one, also the number for a category."""
    for old_key, key in config.RENAMED.items():
        section, name = old_key.split(".")
        value = '["claude"]' if isinstance(config.BY_KEY[key].default, tuple) else "0"
        value = "1" if config.BY_KEY[key].minimum >= 1 else value
        value = '["acme.io"]' if old_key in config.JOINED else value
        value = '"~/model"' if isinstance(config.BY_KEY[key].default, str) else value
        read = parse(f"[{section}]\n{name} = {value}\n".encode(), PATH)
        assert (list(read.values), read.old_keys) == ([key], (old_key,))
    read = parse(b"[inject.share]\ndefault = 0.5\ndecision = 0.3\n", PATH)
    assert read.values == {"inject.min_coverage": 0.5, "inject.min_coverage.decision": 0.3}
    both = b"[redaction]\nallow_emails = ['a@acme.io']\nallow_domains = ['acme.dev']\n"
    assert parse(both, PATH).texts("redaction.allow_emails") == ("a@acme.io", "acme.dev")


@pytest.mark.parametrize(
    ("first", "second"), [("share", "min_coverage"), ("min_coverage", "share")]
)
def test_the_new_name_wins_over_the_old_one(first: str, second: str) -> None:
    """Their order in the file does not count, nor does a newer format."""
    value = {"share": 0.9, "min_coverage": 0.2}
    text = f"[inject]\n{first} = {value[first]}\n{second} = {value[second]}\n"
    for head in ("", f"format = {config.FORMAT + 1}\n"):
        assert parse((head + text).encode(), PATH).values == {"inject.min_coverage": 0.2}


def test_a_setting_of_today_is_not_an_old_name() -> None:
    """No new name is renamed again, and each one is a setting; a switch took over one name."""
    assert config.RENAMED.keys() & config.BY_KEY.keys() == {"search.semantic"}
    assert parse(b'[search]\nsemantic = "off"\n', PATH).values == {"search.semantic": "off"}
    assert set(config.RENAMED.values()) <= config.BY_KEY.keys()
