"""The verbs: their table, and a module for each.

A module has a typed function that takes the context and returns a value, and a function `render`
that formats the value as text. Related verbs, such as `archive` and `restore` or `session start`
and `session end`, share a module, with a row and a function each.

A verb's parameters, types, defaults and help are in its signature and docstring, and nowhere else.
The command line, the Python API and the manual read them from there.
"""

from __future__ import annotations

from memtool.value import Value


class Verb(Value):
    """A row of the table of verbs. `module` is only set if it differs from the verb's name.

    `summary` is an imperative. The short overview lists only daily verbs.
    """

    name: str
    group: str
    summary: str
    module: str = ""
    is_daily: bool = False

    @property
    def function(self) -> str:
        """The name of the verb's function, and of its method in the Python API."""
        return "import_" if self.name == "import" else self.name.replace(" ", "_").replace("-", "_")


VERBS: tuple[Verb, ...] = (
    Verb("init", "setup", "create .memory/ in this repository", is_daily=True),
    Verb("install", "setup", "connect an agent, or git's hooks", is_daily=True),
    Verb("uninstall", "setup", "disconnect an agent, or remove git's hooks", "install"),
    Verb("package", "setup", "write a plugin of an agent, to publish in your team"),
    Verb(
        "import",
        "setup",
        "take over ADRs, AGENTS.md, JSON or another tool's memories",
        "import_",
        is_daily=True,
    ),
    Verb("import git", "setup", "offer what commit messages state as findings", "import_git"),
    Verb("config", "setup", "show or change settings"),
    Verb("auto", "setup", "switch capturing and promoting of sessions on or off", "config"),
    Verb("alias", "setup", "manage words that mean the same in a search"),
    Verb("demo", "setup", "build a sample repository to try things in"),
    Verb("completion", "setup", "print the script for completion with the TAB key"),
    Verb("schema", "setup", "print the JSON Schema of the keys of a memory"),
    Verb("new", "write", "record a decision, fact, failure or state of the work", is_daily=True),
    Verb("remember", "write", "keep what the user stated, in their words", "new", is_daily=True),
    Verb(
        "supersede",
        "write",
        "correct a memory with a new one that replaces it",
        "new",
        is_daily=True,
    ),
    Verb("confirm", "write", "vouch that a memory holds", "archive", is_daily=True),
    Verb("forget", "write", "delete a memory, with a reason; it can be restored", is_daily=True),
    Verb("undo", "write", "take back the last change of a memory", is_daily=True),
    Verb("restore", "write", "bring back an archived, deprecated or forgotten memory", "archive"),
    Verb("pin", "write", "pin a memory, so that every session begins with it", "archive"),
    Verb("unpin", "write", "unpin a memory; it stays confirmed", "archive"),
    Verb("deprecate", "write", "stop showing a memory to agents, but keep it findable", "archive"),
    Verb("archive", "write", "put a memory away; it is only found if asked for"),
    Verb("tag", "write", "add tags to memories, and remove tags from them"),
    Verb("search", "find", "find the memories that answer a question", is_daily=True),
    Verb("list", "find", "list memories by filter", is_daily=True),
    Verb("show", "find", "show one memory", is_daily=True),
    Verb("inject", "find", "print what an agent should know", is_daily=True),
    Verb("serve", "find", "browse the memories in a browser"),
    Verb("site", "find", "write the memories as a static web site"),
    Verb("export", "find", "write memories as JSON lines", "import_"),
    Verb("why", "prove", "trace where a memory comes from", is_daily=True),
    Verb("review", "prove", "show which decisions govern a change", is_daily=True),
    Verb("drift", "prove", "find memories that no longer fit the code", is_daily=True),
    Verb("verify", "prove", "check that the sources of memories still exist"),
    Verb("log", "prove", "show the history of a memory, or of all"),
    Verb("blame", "prove", "show who wrote each part of a memory"),
    Verb("diff", "prove", "compare the memories of two revisions"),
    Verb("sign", "prove", "sign memories with an ssh key"),
    Verb("conflicts", "guard", "list memories that contradict each other", is_daily=True),
    Verb("resolve", "guard", "settle a conflict, with a reason", is_daily=True),
    Verb("check", "guard", "check memories before they are committed", is_daily=True),
    Verb("redact", "guard", "remove secrets and personal data from files"),
    Verb("purge", "guard", "remove forgotten memories for good, or a leak from history"),
    Verb("promote", "learn", "turn what sessions taught into candidates", is_daily=True),
    Verb("capture", "learn", "read an agent's transcript into a session"),
    Verb("session list", "learn", "list the sessions of this clone", "session"),
    Verb("session start", "learn", "begin a session", "session"),
    Verb("session add", "learn", "append a message to a session", "session"),
    Verb("session checkpoint", "learn", "add a checkpoint to a session", "session"),
    Verb("session end", "learn", "end a session with a summary", "session"),
    Verb("session fork", "learn", "continue a session in a new one", "session"),
    Verb("session show", "learn", "show a session, or one of its messages", "session"),
    Verb("session diff", "learn", "compare two sessions", "session_data"),
    Verb("session export", "learn", "print everything stored of sessions", "session_data"),
    Verb("session prune", "learn", "remove the messages of the oldest sessions", "session_data"),
    Verb("session delete", "learn", "delete sessions for good", "session_data"),
    Verb("curate", "learn", "propose how candidates fit in with the other memories"),
    Verb("digest", "learn", "sum up the memories of a category on one page"),
    Verb("status", "upkeep", "show what needs attention", is_daily=True),
    Verb("maintain", "upkeep", "plan and do the upkeep of the memories", is_daily=True),
    Verb("doctor", "upkeep", "check that memtool, hooks and agents work"),
    Verb("stats", "upkeep", "show sizes, response times and the most used memories"),
    Verb("eval", "upkeep", "measure how well searches find what they should"),
    Verb("migrate", "upkeep", "bring the memories to the newest format", "import_"),
    Verb("fleet status", "fleet", "show the repositories that can be searched", "fleet"),
    Verb("fleet sync", "fleet", "fetch those repositories and index what changed", "fleet"),
    Verb("fleet init", "fleet", "create the index of a fleet on a server", "fleet"),
    Verb("fleet similar", "fleet", "compare decisions between repositories", "fleet_similar"),
    Verb("publish", "fleet", "send the trusted memories to a fleet's server"),
    Verb("hook", "run", "answer an event of an agent"),
    Verb("mcp", "run", "serve the memories to an agent over MCP"),
    Verb("merge-file", "run", "merge a memory that two branches changed", "merge_file"),
)
"""Every verb, in the order of the help page. Importing a module registers nothing."""

ACTIONS: dict[str, str] = {
    "session": "keep a private log of what happened in a session",
    "fleet": "use the memories of other repositories",
}
"""Verbs with actions. Without an action, the first row of the verb is meant."""

GROUPS = {
    "setup": "set up",
    "write": "write and correct",
    "find": "find and read",
    "prove": "prove where a memory comes from, and that it holds",
    "guard": "guard against conflicts and secrets",
    "learn": "learn from sessions",
    "upkeep": "look after",
    "fleet": "use other repositories",
    "run": "run by agents and git",
}
"""The tasks by which verbs are grouped, and their titles."""

BY_NAME: dict[str, Verb] = {verb.name: verb for verb in VERBS}


def names() -> dict[str, tuple[str, str]]:
    """Return the group and summary of each verb, by the first word of its name, in table order."""
    summaries: dict[str, tuple[str, str]] = {}
    for verb in VERBS:
        first = verb.name.partition(" ")[0]
        summaries.setdefault(first, (verb.group, ACTIONS.get(first, verb.summary)))
    return summaries
