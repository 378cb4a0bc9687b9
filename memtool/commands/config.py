"""`memtool config`: show or change a setting; `memtool auto`, the switch of automatic capture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from memtool.authoring import write
from memtool.errors import MemtoolError
from memtool.sessions import consent
from memtool.store import config as config_file
from memtool.store.config import Option, Scalar, Setting
from memtool.store.context import Context
from memtool.value import Value

AUTO_KEY = "capture.auto"
REPOSITORIES = "fleet.repositories"
RULES_KEY = "trust.rules"


class SettingRow(Value):
    """One setting with its value; `is_default` says that no file sets it.

    `is_personal` says that the user's own file sets it, for all projects. `unused` is the reason
    why what the project's file says is not used: the value is then the user's own, or the default.
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
    """One trust rule: which memories it is about, and how they must be proven, and by whom."""

    match: str
    require: str
    owners: tuple[str, ...]


class SettingsReport(Value):
    """The settings that were asked for, and the commit if one was changed and committed.

    `rules` are the trust rules that hold, those of the trusted ref, where all settings or these
    were asked for.
    """

    path: str
    settings: tuple[SettingRow, ...]
    changed: bool = False
    commit: str | None = None
    dry_run: bool = False
    rules: tuple[RuleRow, ...] = ()


class Auto(Value):
    """Whether sessions are captured and promoted unasked; `off_by` names each who says no.

    `changed` says that the settings file is another one now.
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
    unset: bool = False,
    commit: bool = False,
    dry_run: bool = False,
) -> SettingsReport:
    """Show the settings, or change one in the config.toml of the memory directory.

    Without a value the setting is shown. Comments and order of the file are kept. The category
    table is changed in the file itself, under [categories.NAME]. inject.share, inject.most,
    inject.floor and inject.threshold may have another number for one category.

    With --global it is the user's own file, beside their global memories. Where a project says
    nothing, it decides about search.limit, the presets, inject.global, ledger.enabled, capture.auto
    and what bounds a block; most else is the project's alone. What bounds a block (inject.trust,
    budgets, numbers of places) is the strictest of what the user, the trusted ref and the worktree
    say.

    memtool config trust.rules shows the trust rules: how well memories of a kind must be proven,
    and by whose keys. They are written in the file, each under [[trust.rules]], and hold as the
    trusted ref has them.

    Example:
        memtool config inject.budget_tokens 1200
        memtool config inject.threshold.decision 0.4
        memtool config redaction.allow_domains example.org,example.net
        memtool config redaction.allow.4f5a2b8c90d1e673 "the key of the public demo"

    Args:
        key: the setting, such as inject.budget_tokens; all of them without it
        value: the new value; the texts of a list with commas between them, "" for an empty one
        unset: remove the setting, so that the default holds again
        commit: commit just the settings file
        dry_run: check the value, write nothing
    """
    if not key and unset:
        raise MemtoolError("--unset needs the setting", hint="memtool config KEY --unset")
    if value is None and not unset:
        for name in config_file.USER_ONLY:
            if key in ("", name):
                context.project.note_unused(name)
    if key in ("", RULES_KEY) and value is None and not unset:
        rows = tuple(
            _row(context, option, name, context.settings)
            for option in config_file.OPTIONS
            for name in (option.key, *_of_categories(option, context.settings))
            if not key
        )
        return SettingsReport(_shown_path(context), rows, rules=_rules(context))
    option = _option(context, key)
    if value is None and not unset:
        _note_stricter(context, key, context.settings)
        return SettingsReport(_shown_path(context), (_row(context, option, key, context.settings),))
    if value is not None and unset:
        raise MemtoolError("a value and --unset contradict each other", hint="give one of them")
    if value is not None and option.key in config_file.USER_ONLY and not context.is_global:
        raise MemtoolError(
            f"{option.key} of a project is {config_file.USER_ONLY[option.key]}",
            hint=f"memtool --global config {option.key} VALUE",
            code="config",
        )
    new = None if value is None else _typed(option, key, value)
    done = write.set_option(context, key, new, commit=commit, dry_run=dry_run)
    after = config_file.parse(done.data, context.project.config_path)
    after = after.replace(personal=context.settings.personal)
    if (
        value is not None
        and context.is_global
        and not option.is_personal
        and option.key not in config_file.USER_ONLY
    ):
        context.notes.append(
            f"{key} is set for the global memories alone: each project has that setting for itself,"
            f" memtool config {key} VALUE sets it there"
        )
    _note_stricter(context, key, after)
    row = _row(context, option, key, after)
    return SettingsReport(_shown_path(context), (row,), done.changed, done.commit, dry_run)


def _shown_path(context: Context) -> str:
    """Return the settings file: from the top of a project, of the user's own the whole path."""
    path = context.project.config_path
    return os.path.join(context.repository.top, path) if context.is_global else path


def _option(context: Context, key: str) -> Option:
    """Return the row of a key. Raises MemtoolError where there is none that can be set."""
    if key.startswith(RULES_KEY):
        raise MemtoolError(
            f"{RULES_KEY} is a list of tables, which no command changes",
            hint=f"edit {_shown_path(context)}: [[{RULES_KEY}]] begins a rule",
            code="config",
        )
    return config_file.option(key)


def _rules(context: Context) -> tuple[RuleRow, ...]:
    """Return the trust rules that hold; a note says where the worktree has others."""
    held = context.project.trust_rules
    if context.project.has_trusted_ref and context.settings.rules != held:
        context.notes.append(
            f"{RULES_KEY} are those of the trusted ref; what {context.project.config_path} says "
            "here holds once it is there"
        )
    return tuple(RuleRow(one.match, one.require, one.owners) for one in held)


def _note_stricter(context: Context, key: str, own: config_file.Config) -> None:
    """Note where a setting asks for less than holds: the strictest of all that say something."""
    if key not in config_file.STRICT or context.is_global:
        return
    held = own.bounded(context.project.agreed_settings).setting(key)
    if held != own.setting(key):
        who = "your own settings or those of the trusted ref are stricter"
        context.notes.append(f"{key} = {_shown(held)} holds: {who}")


def auto(
    context: Context,
    switch: Literal["", "on", "off"] = "",
    *,
    commit: bool = False,
    dry_run: bool = False,
) -> Auto:
    """Say whether sessions are captured and promoted unasked, or switch that on or off.

    It is the setting capture.auto. Off stops all capture and promotion that nobody asked for, at
    once; what is there stays, and memtool capture, promote and remember work as before. The
    variable MEMTOOL_OFF does the same for one process, and silences inject and the hooks as well.

    With --global it holds in all projects: what the user has switched off, no project switches on.

    Example:
        memtool auto off
        memtool auto --global off

    Args:
        switch: on or off; without it nothing is changed
        commit: commit just the settings file
        dry_run: say what would change, write nothing
    """
    if not switch:
        return Auto(consent.is_capturing(context), _off_by(context), _shown_path(context))
    is_on = switch == "on"
    is_said = context.settings.given.get(AUTO_KEY) is True
    value = (True if is_said else None) if is_on else False  # on is the default: it leaves no line
    done = write.set_option(context, AUTO_KEY, value, commit=commit, dry_run=dry_run)
    off_by = tuple(who for who in _off_by(context) if who != context.project.config_path)
    off_by = off_by if is_on else (context.project.config_path, *off_by)
    return Auto(not off_by, off_by, _shown_path(context), done.changed, done.commit, dry_run)


def render(shown: SettingsReport | Auto) -> str:
    """Return one line per setting or for the switch, and whether the file was changed."""
    if isinstance(shown, Auto):
        off = f"off, by {' and '.join(shown.off_by)}"
        rows = [f"automatic capture is {'on' if shown.on else off}"]
    else:
        rows = list(map(_setting_text, shown.settings))
        for number, rule in enumerate(shown.rules, 1):
            by = f" by {' or '.join(rule.owners)}" if rule.owners else ""
            rows.append(f"{RULES_KEY} {number} = {rule.match}: {rule.require}{by}")
    if shown.changed:
        rows.append(("would change " if shown.dry_run else "changed ") + shown.path)
    return "\n".join(rows)


def _setting_text(row: SettingRow) -> str:
    """Return `key = value`, where it is set, the default, and what it means."""
    where = "for all your projects" if row.is_personal else "set"
    origin = "default" if row.is_default else f"{where}; default {_shown(row.default)}"
    return f"{row.key} = {_shown(row.value)}  ({origin}) {row.doc}"


def _of_categories(option: Option, config: config_file.Config) -> list[str]:
    """Return the keys under which categories have a number of their own, sorted."""
    is_of = option.is_by_category
    return sorted(key for key in config.given if is_of and key.startswith(f"{option.key}."))


def _row(context: Context, option: Option, key: str, config: config_file.Config) -> SettingRow:
    """Return the row of an option, or of the number that it has for one category."""
    key = key if option.is_by_category else option.key
    unused = ""
    if key in config_file.USER_ONLY and not context.is_global:
        unused = context.project.unused(key)
        config = config.replace(given={})
    is_personal = key in config.personal and key not in config.given
    default = option.default if key == option.key else config.setting(option.key)
    return SettingRow(
        key=key,
        value=config.setting(key) if key in config.given else config.setting(option.key),
        default=default,
        is_default=key not in config.given and not is_personal,
        doc=option.doc,
        is_personal=is_personal,
        unused=unused,
    )


def _shown(value: Setting) -> str:
    """Return a value as TOML has it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_shown(text)}' for name, text in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else f"{value}"


_SWITCHES = {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}
"""What a person may write for a switch; the file has TOML's words."""


def _typed(option: Option, key: str, text: str) -> Scalar | tuple[str, ...]:
    """Read a value from the command line as the option's type. Raises MemtoolError."""
    wanted = type(option.default)
    if wanted is dict:
        return _reason(option, key, text)
    if wanted is tuple:
        texts = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
        config_file.checked(option, texts, "")
        if option.key == REPOSITORIES:
            _refuse_unreachable(texts)
        return texts
    value: Scalar = text
    try:
        if wanted is bool:
            value = _SWITCHES[text.lower()]
        elif wanted in (int, float):
            value = wanted(text)
    except (ValueError, KeyError):
        pass  # the check below says what it must be
    config_file.checked(option, value, "")
    return float(value) if wanted is float else value


def _refuse_unreachable(entries: Sequence[str]) -> None:
    """Refuse what `fleet sync` would refuse wherever it runs: a relative path, another protocol."""
    from memtool.fleet import repositories  # hardly any setting is a list of repositories

    for source in repositories.sources(entries, "/"):
        if source.problem not in ("", repositories.NOTHING_THERE):
            raise MemtoolError(
                f"{REPOSITORIES}: {source.text}: {source.problem}",
                hint=f"memtool --global config {REPOSITORIES} '~/src/*'",
                code="config",
            )


def _reason(option: Option, key: str, text: str) -> str:
    """Read the value of one entry of a table. Raises MemtoolError where none is named."""
    name = key.removeprefix(option.key).removeprefix(".")
    if not name:
        raise MemtoolError(
            f"{option.key} is a table, so name one entry of it",
            hint=f'memtool config {option.key}.FINGERPRINT "the reason"',
            code="config",
        )
    config_file.checked(option, {name: text}, "")
    return text


def _off_by(context: Context) -> tuple[str, ...]:
    switches = (
        (context.project.config_path, context.settings.given.get(AUTO_KEY, True)),
        ("your global settings", context.settings.personal.get(AUTO_KEY, True)),
        ("MEMTOOL_OFF", not context.caller.is_off),
    )
    return tuple(who for who, is_on in switches if not is_on)
