"""What the user and the project allow memtool to do with sessions unasked."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context


def is_capturing(context: Context) -> bool:
    """Tell whether sessions are captured and promoted: nobody has switched it off.

    A project may not switch on what its user has switched off.
    """
    personal = context.settings.personal.get("capture.auto", True)
    return not context.caller.is_off and bool(personal and context.settings.setting("capture.auto"))


def is_extracting(context: Context) -> bool:
    """Tell whether sessions are read for findings: neither project nor user has objected."""
    personal = context.settings.personal.get("extraction.enabled", True)
    return bool(personal and context.settings.setting("extraction.enabled"))


def is_promoting(context: Context) -> bool:
    """Tell whether the user wants candidates of each session that ends."""
    wanted = bool(context.project.own_settings.setting("capture.promote"))
    return is_capturing(context) and wanted and not context.settings.is_newer


def is_managing(context: Context) -> bool:
    """Tell whether the user wants a plan for candidates after each session that is captured.

    Raises VariableError where MEMTOOL_MANAGER is neither on nor off.
    """
    wanted = bool(context.project.own_settings.setting("manager.enabled"))
    wanted = context.caller.is_on("MEMTOOL_MANAGER", default=wanted)
    return is_capturing(context) and wanted and not context.settings.is_newer
