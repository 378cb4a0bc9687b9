"""`memtool config`: show or change a setting; `memtool auto`, the switch of automatic capture."""

from __future__ import annotations

import os
from typing import Literal

from memtool.authoring import write
from memtool.commands import _features
from memtool.commands._layout import Layout
from memtool.errors import MemtoolError
from memtool.sessions import consent
from memtool.store import config as config_file
from memtool.store.config import Option, Scalar, Setting
from memtool.store.context import Context
from memtool.value import Value, format_count

AUTO_KEY = "capture.auto"
RULES_KEY = "trust.rules"


class SettingRow(Value):
    """One setting with its value; `is_default` if no file sets it.

    `is_personal` if the user's own file sets it, for all projects. `unused` is the reason why the
    project's value is ignored; the value is then the user's own, or the default.
    """

    json_optional = "unused"

    key: str
    value: Setting
    default: Setting
    is_default: bool
    doc: str
    is_personal: bool = False
    unused: str = ""


class RuleRow(Value):
    """One trust rule: the memories that it matches, the proof that they need, and its owners."""

    match: str
    require: str
    owners: tuple[str, ...]


class SettingsReport(Value):
    """The requested settings, and the commit if one was changed and committed.

    `rules` are the trust rules of the trusted ref, if all settings or the rules were requested.
    """

    json_fields = "path settings changed commit dry_run rules"

    path: str
    settings: tuple[SettingRow, ...]
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False
    rules: tuple[RuleRow, ...] = ()
    hides_defaults: bool = False
    """Whether the text only counts the settings that have their defaults."""


class AutoReport(Value):
    """Whether sessions are captured and promoted automatically.

    `off_by` names each file or variable that switches it off; `changed` if the file was changed.
    """

    on: bool
    off_by: tuple[str, ...]
    path: str
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False


def config(
    context: Context,
    key: str = "",
    value: str | None = None,
    *,
    all: bool = False,
    unset: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> SettingsReport:
    """Show the settings, or change one.

    Settings are in config.toml of the memory directory; comments in it stay. memtool help settings
    lists all of them.

        --global      your own settings. They apply if a project sets nothing, and cannot loosen
                      what a project limits, such as inject.trust
        trust.rules   who must sign what: tables [[trust.rules]] in the file
        categories    weights and times: tables [categories.NAME] in the file

    Example:
        memtool config inject.budget_tokens
        memtool config inject.budget_tokens 1200
        memtool config inject.threshold.decision 0.4

    Args:
        key: a setting; without it, all settings
        value: the new value; commas between the texts of a list, "" for an empty one
        all: also show the settings that have their defaults
        unset: remove the setting, so that its default applies
        commit: commit the settings file only
        dry_run: check the value, write nothing
    """
    key = _find_current_key(context, key)
    if not key and unset:
        raise MemtoolError("--unset needs a setting", hint="memtool config KEY --unset")
    if value is None and not unset:
        for name in config_file.USER_ONLY:
            if key in ("", name):
                context.project.note_unused(name)
    if key in ("", RULES_KEY) and value is None and not unset:
        rows = tuple(
            _build_row(context, option, name, context.settings)
            for option in config_file.OPTIONS
            for name in (option.key, *_find_category_keys(option, context.settings))
            if not key
        )
        return SettingsReport(
            _settings_path(context), rows, rules=_load_rules(context), hides_defaults=not all
        )
    option = _find_option(context, key)
    if value is None and not unset:
        _note_stricter(context, key, context.settings)
        return SettingsReport(
            _settings_path(context), (_build_row(context, option, key, context.settings),)
        )
    if value is not None and unset:
        raise MemtoolError("a value and --unset exclude each other", hint="leave out one of them")
    if value is not None and option.key in config_file.USER_ONLY and not context.is_global:
        raise MemtoolError(
            f"{option.key} of a project is {config_file.USER_ONLY[option.key]}",
            hint=f"memtool --global config {option.key} VALUE",
            code="config",
        )
    new = None if value is None else _parse_value(option, key, value)
    edit = write.set_option(context, key, new, commit=commit, dry_run=dry_run)
    after = config_file.parse(edit.data, context.project.config_path)
    after = after.replace(personal=context.settings.personal)
    if (
        value is not None
        and context.is_global
        and not option.is_personal
        and option.key not in config_file.USER_ONLY
    ):
        context.notes.append(
            f"{key} is only set for the global memories; for a project: memtool config {key} VALUE"
        )
    _note_stricter(context, key, after)
    row = _build_row(context, option, key, after)
    return SettingsReport(_settings_path(context), (row,), edit.changed, edit.commit, dry_run)


def _find_current_key(context: Context, key: str) -> str:
    """Return the current name of a setting, and note it unless the note on the file does."""
    current = config_file.current_key(key)
    if current == key:
        return key
    _ = context.settings  # notes the old names that files have
    option_key = config_file.find_option(current).key
    if not any(option_key in note for note in context.notes):
        context.notes.append(f"{key} is now called {current}")
    return current


def _settings_path(context: Context) -> str:
    """Return the path of the settings file: relative in a project, absolute for the user's own."""
    path = context.project.config_path
    return os.path.join(context.repository.top, path) if context.is_global else path


def _find_option(context: Context, key: str) -> Option:
    """Return the option of a key. Raises MemtoolError if the key cannot be set."""
    if key.startswith(RULES_KEY):
        raise MemtoolError(
            f"cannot set {RULES_KEY}: it is a list of tables",
            hint=f"edit {_settings_path(context)}: [[{RULES_KEY}]] starts a rule",
            code="config",
        )
    return config_file.find_option(key)


def _load_rules(context: Context) -> tuple[RuleRow, ...]:
    """Return the trust rules of the trusted ref, and note if the worktree has others."""
    rules = context.project.trust_rules
    if context.project.has_trusted_ref and context.settings.rules != rules:
        context.notes.append(
            f"{RULES_KEY} are those of the trusted ref; what {context.project.config_path} says "
            "here holds once it is there"
        )
    return tuple(RuleRow(rule.match, rule.require, rule.owners) for rule in rules)


def _note_stricter(context: Context, key: str, own: config_file.Config) -> None:
    """Note that a stricter value holds, from the user or the trusted ref."""
    if key not in config_file.STRICT or context.is_global:
        return
    effective = own.with_strictest(context.project.agreed_settings).setting(key)
    if effective != own.setting(key):
        who = "your own settings or those of the trusted ref are stricter"
        context.notes.append(f"{key} = {_format_value(effective)} holds: {who}")


def auto(
    context: Context,
    switch: Literal["", "on", "off"] = "",
    *,
    commit: bool = False,
    dry_run: bool = False,
) -> AutoReport:
    """Switch the automatic capture and promotion of sessions on or off.

        off             nothing is captured or promoted unless you run the command yourself
        --global off    the same in all of your projects; no project can switch it on
        MEMTOOL_OFF=1   for one process; hooks and inject print nothing either

    Example:
        memtool auto
        memtool auto off

    Args:
        switch: on or off; without it, show the current state
        commit: commit the settings file only
        dry_run: show what would change, write nothing
    """
    if not switch:
        return AutoReport(
            consent.is_capturing(context), _find_off_switches(context), _settings_path(context)
        )
    is_on = switch == "on"
    is_set = context.settings.values.get(AUTO_KEY) is True
    value = (True if is_set else None) if is_on else False  # on is the default: it leaves no line
    edit = write.set_option(context, AUTO_KEY, value, commit=commit, dry_run=dry_run)
    off_by = tuple(who for who in _find_off_switches(context) if who != context.project.config_path)
    off_by = off_by if is_on else (context.project.config_path, *off_by)
    return AutoReport(
        not off_by, off_by, _settings_path(context), edit.changed, edit.commit, dry_run
    )


def render(report: SettingsReport | AutoReport, layout: Layout) -> str:
    """Return a paragraph for each setting, or a line for the switch, and report a change."""
    if report.changed:
        would = "Would change" if report.dry_run else "Changed"
        layout.report(f"{would} {report.path}")
    if isinstance(report, AutoReport):
        off = f"off, by {' and '.join(report.off_by)}"
        return f"automatic capture is {'on' if report.on else off}"
    shown = [row for row in report.settings if not (report.hides_defaults and row.is_default)]
    rows = [line for row in shown for line in _format_setting(row, layout)]
    for number, rule in enumerate(report.rules, 1):
        by = f" by {' or '.join(rule.owners)}" if rule.owners else ""
        rows.append(f"{RULES_KEY} {number} = {rule.match}: {rule.require}{by}")
    hidden = len(report.settings) - len(shown)
    if hidden:
        defaults = format_count(hidden, "default")
        rows.append(f"{'and ' if rows else ''}{defaults} (memtool config --all)")
    return "\n".join(rows)


def _format_setting(row: SettingRow, layout: Layout) -> list[str]:
    """Return `key = value` with its origin, and below it the meaning."""
    where = "set for all your projects" if row.is_personal else "set here"
    origin = "default" if row.is_default else f"{where}; default {_format_value(row.default)}"
    return [
        f"{row.key} = {_format_value(row.value)}  ({origin})",
        *layout.wrap(row.doc, "  "),
    ]


def _find_category_keys(option: Option, config: config_file.Config) -> list[str]:
    """Return the keys with a value for one category, sorted."""
    is_of = option.is_by_category
    return sorted(key for key in config.values if is_of and key.startswith(f"{option.key}."))


def _build_row(
    context: Context, option: Option, key: str, config: config_file.Config
) -> SettingRow:
    """Return the row of an option, or of its value for one category."""
    key = key if option.is_by_category else option.key
    unused = ""
    if key in config_file.USER_ONLY and not context.is_global:
        unused = context.project.explain_unused(key)
        config = config.replace(values={})
    is_personal = key in config.personal and key not in config.values
    default = option.default if key == option.key else config.setting(option.key)
    return SettingRow(
        key=key,
        value=config.setting(key) if key in config.values else config.setting(option.key),
        default=default,
        is_default=key not in config.values and not is_personal,
        doc=option.doc,
        is_personal=is_personal,
        unused=unused,
    )


def _format_value(value: Setting) -> str:
    """Format a value as TOML."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_format_value(text)}' for name, text in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_format_value, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
"""Words that the command line accepts for a switch; the file has those of TOML."""


def _parse_value(option: Option, key: str, text: str) -> Scalar | tuple[str, ...]:
    """Parse a value of the command line as the option's type. Raises MemtoolError if invalid."""
    option_type = type(option.default)
    if option_type is dict:
        return _parse_table_entry(option, key, text)
    if option_type is tuple:
        texts = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
        config_file.check_value(option, texts, "")
        _features.check_setting(option.key, texts)
        return texts
    value: Scalar = text
    try:
        if option_type is bool:
            value = _SWITCHES[text.lower()]
        elif option_type in (int, float):
            value = option_type(text)
    except (ValueError, KeyError):
        pass  # the check below reports what it must be
    config_file.check_value(option, value, "")
    return float(value) if option_type is float else value


def _parse_table_entry(option: Option, key: str, text: str) -> str:
    """Parse the value of one entry of a table. Raises MemtoolError if the key does not name one."""
    name = key.removeprefix(option.key).removeprefix(".")
    if not name:
        raise MemtoolError(
            f"{option.key} is a table: name an entry of it",
            hint=f'memtool config {option.key}.FINGERPRINT "REASON"',
            code="config",
        )
    config_file.check_value(option, {name: text}, "")
    return text


def _find_off_switches(context: Context) -> tuple[str, ...]:
    switches = (
        (context.project.config_path, context.settings.values.get(AUTO_KEY, True)),
        ("your global settings", context.settings.personal.get(AUTO_KEY, True)),
        ("MEMTOOL_OFF", not context.caller.is_off),
    )
    return tuple(who for who, is_on in switches if not is_on)
