"""Which automatic work on sessions the user and the project allow."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from memtool.store.context import Context


def is_capturing(context: Context) -> bool:
    """Return whether sessions are captured and promoted automatically.

    A project cannot switch this on if the user has switched it off.
    """
    personal = context.settings.personal.get("capture.auto", True)
    return not context.caller.is_off and bool(personal and context.settings.setting("capture.auto"))


def is_extracting(context: Context) -> bool:
    """Return whether findings are extracted: neither project nor user has switched it off."""
    personal = context.settings.personal.get("extraction.enabled", True)
    return bool(personal and context.settings.setting("extraction.enabled"))


def is_promoting(context: Context) -> bool:
    """Return whether the user wants candidates made from each session that ends."""
    wanted = bool(context.project.user_settings.setting("capture.promote"))
    return is_capturing(context) and wanted and not context.settings.is_newer


def is_managing(context: Context) -> bool:
    """Return whether the user wants a plan for candidates after each captured session.

    Raises VariableError if MEMTOOL_MANAGER is neither on nor off.
    """
    wanted = bool(context.project.user_settings.setting("manager.enabled"))
    wanted = context.caller.is_on("MEMTOOL_MANAGER", default=wanted)
    return is_capturing(context) and wanted and not context.settings.is_newer
