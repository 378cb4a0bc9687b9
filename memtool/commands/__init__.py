"""The verbs: the table of them, and a module for each.

A module holds a typed function that takes the context and returns a value, and a function
`render` that writes the value as text. Verbs of one kind, such as `archive` and `restore` or the
actions `session start` and `session end`, have a row and a function each in one module.

A verb's parameters, types, defaults and help are in its signature and docstring, and nowhere else.
The command line, the Python API and the manual read them from there.
"""

from __future__ import annotations

from memtool.value import Value


class Verb(Value):
    """A row of the table of verbs; `module` is where the verb is, if not in one of its name."""

    name: str
    group: str
    summary: str
    module: str = ""

    @property
    def function(self) -> str:
        """The name of its function, which is also that of its method in the Python API."""
        return "import_" if self.name == "import" else self.name.replace(" ", "_").replace("-", "_")


VERBS: tuple[Verb, ...] = (
    Verb("init", "start", "make the memory directory of a repository"),
    Verb("demo", "start", "build the repository of a made-up team, to look around in"),
    Verb("status", "start", "how the memories stand, and what is wrong with them"),
    Verb("stats", "start", "sizes, latencies, and which memories are used"),
    Verb("config", "start", "show or change a setting"),
    Verb("completion", "start", "verbs, options and ids for the TAB key of a shell"),
    Verb("schema", "start", "the JSON Schema of a memory's frontmatter, for editors"),
    Verb("alias", "start", "words that mean the same in a search"),
    Verb(
        "auto", "start", "whether sessions are captured and promoted without being asked", "config"
    ),
    Verb("new", "write", "write a memory from the template of its type"),
    Verb("remember", "write", "write down what the user said, in one line", "new"),
    Verb("supersede", "write", "correct a memory: a new one takes its place", "new"),
    Verb("confirm", "write", "vouch for a memory as it stands", "archive"),
    Verb("pin", "write", "always inject a memory first", "archive"),
    Verb("unpin", "write", "take a memory out of the pinned tier", "archive"),
    Verb("deprecate", "write", "keep a memory, but no longer inject it", "archive"),
    Verb("archive", "write", "put a memory away; it is found only when asked for"),
    Verb("forget", "write", "delete a memory softly, with a reason"),
    Verb("restore", "write", "undo archive, deprecate or forget", "archive"),
    Verb("undo", "write", "take back what happened to a memory last"),
    Verb("purge", "write", "remove forgotten memories for good, or plan how a leak leaves history"),
    Verb("redact", "write", "take secrets and personal data out of files, and stage them again"),
    Verb("sign", "write", "vouch for what memories say, with an ssh key"),
    Verb("list", "read", "the memories that match filters"),
    Verb("show", "read", "one memory with everything derived from it"),
    Verb("search", "read", "the memories that answer a question, best first"),
    Verb("fleet status", "read", "the repositories that are asked beside this one", "fleet"),
    Verb("fleet sync", "read", "fetch them, and index what changed", "fleet"),
    Verb(
        "fleet init", "read", "make the index of a fleet on a server, and print its roles", "fleet"
    ),
    Verb(
        "fleet similar",
        "read",
        "what several of them decided alike, or to the contrary",
        "fleet_similar",
    ),
    Verb("serve", "read", "the memories in a browser, and the verbs over HTTP, on this machine"),
    Verb("site", "read", "the memories of a commit as a static site, to publish"),
    Verb("inject", "read", "the block of memories that an agent gets"),
    Verb("eval", "read", "how well a search finds what golden queries expect"),
    Verb("log", "prove", "the history of a memory and its lineage, or of all"),
    Verb("blame", "prove", "who wrote each field and section, in which commit"),
    Verb("why", "prove", "the chain of sources behind a memory"),
    Verb("drift", "prove", "which memories name files that are no longer what they were"),
    Verb("verify", "prove", "whether what a memory cites resolves, and shows what it showed"),
    Verb("diff", "prove", "what changed between two revisions, in memory terms"),
    Verb("check", "guard", "what must not be committed, before it is"),
    Verb("conflicts", "guard", "what contradicts what, side by side"),
    Verb("resolve", "guard", "settle a conflict, with a record of why"),
    Verb(
        "merge-file", "guard", "merge a memory that two branches changed; git runs it", "merge_file"
    ),
    Verb("install", "guard", "put memtool into an agent host, or into git's hooks"),
    Verb(
        "uninstall", "guard", "take memtool out of an agent host, or out of git's hooks", "install"
    ),
    Verb("doctor", "guard", "is everything there, current and working"),
    Verb("hook", "guard", "answer an event of an agent host; hosts call it, people do not"),
    Verb("mcp", "guard", "serve the verbs to an agent as tools, over stdio"),
    Verb("review", "prove", "which decisions govern the files of a change, and are they upheld"),
    Verb("session list", "learn", "the sessions of this clone, newest first", "session"),
    Verb("session start", "learn", "begin a session", "session"),
    Verb("session add", "learn", "append a message", "session"),
    Verb("session checkpoint", "learn", "make a checkpoint by hand", "session"),
    Verb("session end", "learn", "end a session with a summary", "session"),
    Verb("session fork", "learn", "go on in a new session with the findings of the old", "session"),
    Verb("session show", "learn", "a session with its messages, or one of them", "session"),
    Verb(
        "session diff", "learn", "what two sessions share, and what each has alone", "session_data"
    ),
    Verb("session export", "learn", "all that is stored of sessions", "session_data"),
    Verb("session prune", "learn", "remove the messages of those that ended first", "session_data"),
    Verb("session delete", "learn", "delete sessions for good", "session_data"),
    Verb("capture", "learn", "take a transcript of an agent into a session"),
    Verb("promote", "learn", "what sessions taught, as candidate memories"),
    Verb("curate", "learn", "how candidates fit in with the memories that stand"),
    Verb("digest", "learn", "the living memories of a category on one page"),
    Verb("maintain", "learn", "merge, archive and look after memories, as one commit"),
    Verb(
        "import",
        "move",
        "take over ADRs, PEPs, agent files, JSON or another tool's store",
        "import_",
    ),
    Verb(
        "migrate", "move", "lead the memories to the newest format, or take over a store", "import_"
    ),
    Verb("export", "move", "write the memories as JSON lines", "import_"),
    Verb("publish", "move", "send the trusted memories to the server of a fleet, from CI"),
)
"""Every verb in the order of the help page. Rows are explicit: importing registers nothing."""

ACTIONS: dict[str, str] = {
    "session": "the private log of what happened, from which memories may come",
    "fleet": "the memories of other repositories, asked beside those of this one",
}
"""Verbs that have actions; the first row of each is the action that is meant without one."""

GROUPS = {
    "start": "begin and look after",
    "write": "write and correct",
    "read": "read",
    "prove": "prove",
    "guard": "keep watch",
    "learn": "learn from sessions",
    "move": "move in and out",
}

BY_NAME: dict[str, Verb] = {verb.name: verb for verb in VERBS}


def names() -> dict[str, tuple[str, str]]:
    """Return group and summary of each verb by the first word of its name, in order."""
    found = {}
    for verb in VERBS:
        first = verb.name.partition(" ")[0]
        found[first] = verb.group, ACTIONS.get(first, verb.summary)
    return found
