"""Import of memories: decision records, agent files, JSON lines, stores of other tools."""

from __future__ import annotations

from memtool.value import Value


class Source(Value):
    """A format that can be imported.

    `drafts` names a function of a module here, from a path and an `originals.ImportRequest` to
    records and problems. Of a store, whose entries a tool wrote, those that repeat another are left
    out. `--map` is for those that `takes_map`. `default_status` is the one of `base.Target`. Lines
    that memtool may have exported keep relations to memories elsewhere (`keeps_unknown`).
    """

    name: str
    drafts: str
    description: str
    is_store: bool = False
    takes_map: bool = False
    keeps_unknown: bool = False
    needs_path: bool = True
    default_status: str = ""


_ROWS = (
    Source(
        "adr",
        "decision_records.adr_drafts",
        "files or folders of decision records, RFCs and proposals",
        default_status="by-age",
    ),
    Source(
        "pep",
        "peps.pep_drafts",
        "a directory of files that begin with PEP:, Title: and Status:",
        default_status="by-age",
    ),
    Source(
        "claude",
        "agents.drafts",
        "a CLAUDE.md, AGENTS.md or GEMINI.md with sections, or a directory that has one",
    ),
    Source(
        "rules",
        "rules.drafts",
        "a directory with .cursor/rules, .github/instructions, .clinerules or similar, or a file "
        "such as .cursorrules or copilot-instructions.md",
    ),
    Source(
        "jsonl",
        "jsonl.drafts",
        "a file with one JSON object a line, plain or .gz, or - for stdin",
        takes_map=True,
        keeps_unknown=True,
    ),
    Source(
        "json",
        "json_stores.drafts",
        "a JSON document with a list of entries, or a directory of them",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "mcp-memory",
        "json_stores.graph_drafts",
        "the memory.json of the MCP memory server, with entities and relations",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "mem0",
        "json_stores.mem0_drafts",
        "a JSON document with the memories of mem0",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "beads",
        "beads.drafts",
        "the issues.jsonl of beads, or a directory that has it",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "claude-mem",
        "claude_mem.drafts",
        "the claude-mem.db of claude-mem, its directory, or a JSON export",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "markdown",
        "notes.drafts",
        "a directory of markdown files with a front matter",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "basic-memory",
        "notes.basic_memory_drafts",
        "a directory of notes of basic-memory",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "memory-bank",
        "notes.memory_bank_drafts",
        "a directory memory-bank with files such as activeContext.md",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "obsidian",
        "notes.obsidian_drafts",
        "the directory of a vault of Obsidian",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "serena",
        "notes.serena_drafts",
        "a directory .serena/memories with markdown files",
        is_store=True,
        takes_map=True,
    ),
    Source(
        "hosts",
        "host_memories.drafts",
        "the home directory in which agent hosts keep memories of their own, by default yours",
        is_store=True,
        needs_path=False,
    ),
)
SOURCES: dict[str, Source] = {source.name: source for source in _ROWS}
"""All formats that can be imported, in the order of the help page."""
