"""The environment: the variables that memtool reads itself, as the manual lists them.

They are read where they are needed; a test holds that none is missing here. Git reads its own.
"""

from __future__ import annotations

ENVIRONMENT: dict[str, str] = {
    "MEMTOOL_OFF": "any text; inject and the hooks of agents answer nothing, nothing is captured",
    "MEMTOOL_GLOBAL": "the directory of the global repository, an absolute path",
    "XDG_DATA_HOME, HOME": "without MEMTOOL_GLOBAL it is memtool in the user's data directory",
    "MEMTOOL_BUDGET": "most tokens of an injected block, in place of inject.budget_tokens",
    "MEMTOOL_LOG": "what the log of the hooks holds: off, error (what failed; the default) or all",
    "MEMTOOL_NOW": "the moment or day that counts as now, for tests and scripts",
    "MEMTOOL_SEED": "any text; the random part of new ids is then the same in every run",
    "MEMTOOL_NO_LEDGER": "any text; nothing is noted for statistics: ledger.enabled = false",
    "MEMTOOL_NO_CACHE": "any text; nothing derived is read or kept: the same answers, slower",
    "MEMTOOL_DEBUG": "any text; a bug prints its traceback beside writing it to a log file, and a "
    "hook of an agent says what went wrong",
    "MEMTOOL_PURGES": "ids that a purge names to the hook of its own commit; set by memtool alone",
    "VISUAL, EDITOR": "the editor that --edit opens, the first of them that is set, else vi",
    "USER": "who wrote a memory, where git knows no user.name",
    "PATH": "where git is, and which agent hosts there are",
    "CLAUDE_CONFIG_DIR, CODEX_HOME, GEMINI_CLI_HOME, XDG_CONFIG_HOME": "where agent hosts keep "
    "what holds for all projects",
}
"""What each variable, or each of several, is for."""
