"""The memories that agent hosts keep by themselves, below the user's home directory.

A model wrote them and nobody reviewed them, so all become candidates with the host as their agent.
Those about the user are for all projects: in a project they are only counted. Their formats are
internal to the hosts; what is not understood is skipped.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from memtool.importing import originals, sections
from memtool.importing.json_values import parse_json
from memtool.importing.originals import ForeignRecord, ImportRequest, Original
from memtool.memory import ids, schema, timestamps
from memtool.memory.memory import Fields
from memtool.memory.schema import Problem
from memtool.value import Value, format_count

INDEX = "MEMORY.md"
"""The name of an index: it lists the memories beside it, the most important first."""
STATE_DAYS = 30
"""Days after which the state of a project is out of date, from the last change of its file."""
MAX_IMPORTANCE, MIN_IMPORTANCE = 0.9, 0.4
_INDEX_LINK = re.compile(r"\]\(([^)#]+\.md)\)")
_WIKI_LINK = re.compile(r"\[\[([^\]|#]+)(?:#[^\]|]*)?(?:\|([^\]]*))?\]\]")
_TASK_REFERENCE = re.compile(r"(?:\s*\[(?:Task \d+|ad-hoc note)\])+\s*$")
_TYPES: Mapping[str, tuple[str, str]] = {
    "user": ("semantic", "preference"),
    "feedback": ("semantic", "preference"),
    "project": ("state", "task_progress"),
    "reference": ("semantic", "discovery"),
}
"""Type and category for the kinds of memories of Claude Code and Qwen Code."""


class HostMemory(Value):
    """A memory of a host. `kind` is a word of `_TYPES` or empty; `order` counts from 1 in an index.

    `name` identifies it among those of its host.
    """

    name: str
    title: str
    text: str
    source: Original
    lines: tuple[int, int]
    kind: str = ""
    category: str = ""
    is_users: bool = False
    order: tuple[int, int] = (0, 0)


class HostReader(Value):
    """A host: `read` yields its memories from the user's home, environment and project."""

    agent: str
    read: Callable[[str, Mapping[str, str], Sequence[str]], Iterator[HostMemory | Problem]]


def drafts(path: str, request: ImportRequest) -> Iterator[ForeignRecord | Problem]:
    """Yield the memories of all hosts that are for this project, or with `is_global` the user's.

    `path` is the home directory, the repository itself for that of the environment; variables such
    as CODEX_HOME go before it.
    """
    is_default = os.path.realpath(path) == os.path.realpath(request.top)
    home = originals.locate(request.env.get("HOME", path) if is_default else path)
    projects = _find_projects(request.top)
    other_count = 0
    for host in HOSTS:
        for memory in host.read(home, request.env, projects):
            if isinstance(memory, Problem):
                yield memory
            elif memory.is_users != request.is_global:
                other_count += memory.is_users
            else:
                yield _build_record(host.agent, memory)
    if other_count:
        what = format_count(other_count, "memory about the user is", "memories about the user are")
        yield Problem(
            originals.tail(home),
            0,
            "left-out",
            f"{what} for all projects, and not imported into this one",
            "memtool --global import hosts",
            severity="warning",
        )


def _find_projects(top: str) -> list[str]:
    """Return the real path of the repository, then of the main worktree if it is a linked one."""
    places = [os.path.realpath(top)] if top else []
    try:
        with open(os.path.join(top, ".git"), encoding="utf-8") as file:
            pointer = file.read(4096).strip().removeprefix("gitdir:").strip()
    except (OSError, UnicodeDecodeError):
        return places
    main = pointer.partition(f"{os.sep}.git{os.sep}worktrees{os.sep}")
    return [*places, os.path.realpath(main[0])] if main[1] else places


def _build_record(agent: str, memory: HostMemory) -> ForeignRecord:
    type_, category = _TYPES.get(memory.kind, ("semantic", "pattern"))
    links = [match[1].strip() for match in _WIKI_LINK.finditer(memory.text)]
    fields: Fields = {
        "type": type_,
        "title": originals.to_line(memory.title, originals.MAX_TITLE_CHARS),
        "category": memory.category or category,
        "status": "candidate",
        "confidence": "low",
        "agent": agent,
        "source": (f"tool:{agent} memory {originals.to_line(memory.name, 200)}",),
    }
    if links:
        fields["related_to"] = tuple(dict.fromkeys(links))[: schema.MAX_ITEMS]
    number, count = memory.order
    if number:
        share = (number - 1) / max(count - 1, 1)
        fields["importance"] = f"{MAX_IMPORTANCE - share * (MAX_IMPORTANCE - MIN_IMPORTANCE):.2f}"
    if type_ == "state":
        fields["valid_through"] = _find_due_day(memory.source.path)
    slug = ids.make_slug(memory.name, 80)
    return ForeignRecord(
        key=f"{agent} {memory.name}",
        id=originals.to_id(f"{agent}-{slug}", "sem"),
        fields=fields,
        body=_WIKI_LINK.sub(lambda match: (match[2] or match[1]).strip(), memory.text),
        original=memory.source,
        lines=memory.lines,
        names=(memory.name, slug),
        part=memory.name,
    )


def _find_due_day(path: str) -> str:
    try:
        second = int(os.stat(path).st_mtime)
    except OSError:
        return ""
    return timestamps.format_date(second + STATE_DAYS * 86_400)


def _read_claude(
    home: str, env: Mapping[str, str], projects: Sequence[str]
) -> Iterator[HostMemory | Problem]:
    """Yield the auto memory of Claude Code: one file each, with name, description and type."""
    base = env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    for project in projects:
        folder = os.path.join(base, "projects", _make_folder_name(project), "memory")
        yield from _read_typed_notes(folder)


def _read_qwen(
    home: str, env: Mapping[str, str], projects: Sequence[str]
) -> Iterator[HostMemory | Problem]:
    """Yield the private tiers of Qwen Code: those of the project, and those of the user."""
    base = (
        env.get("QWEN_CODE_MEMORY_BASE_DIR")
        or env.get("QWEN_RUNTIME_DIR")
        or os.path.join(home, ".qwen")
    )
    for project in projects[:1]:  # a linked worktree has memories of its own
        yield from _read_typed_notes(
            os.path.join(base, "projects", _make_folder_name(project), "memory")
        )
    yield from _read_typed_notes(os.path.join(base, "memories"), is_users=True)


def _read_codex(
    home: str, env: Mapping[str, str], projects: Sequence[str]
) -> Iterator[HostMemory | Problem]:
    """Yield what Codex learned: blocks of tasks, each for the directories that it names."""
    folder = os.path.join(env.get("CODEX_HOME") or os.path.join(home, ".codex"), "memories")
    for source, text in _read_files(folder, (INDEX,)):
        is_here = False
        for part in sections.split_file(text, INDEX):
            if part.level == 1:
                is_here = _names_project(part.text, projects)
            heading = sections.clean_heading(part.headings[-1]) if part.headings else ""
            category = _CODEX_SECTIONS.get(heading.lower(), "")
            if is_here and category:
                yield from _read_items(source, part, category)
    for source, text in _read_files(folder, ("memory_summary.md",)):
        for part in sections.split_file(text, "memory_summary.md"):
            heading = sections.clean_heading(part.headings[-1]) if part.headings else ""
            if heading.lower() in ("user preferences", "general tips"):
                yield from _read_items(source, part, "preference", is_users=True)


_CODEX_SECTIONS = {
    "user preferences": "preference",
    "reusable knowledge": "discovery",
    "failures and how to do differently": "warning",
}
"""Headings of a block of tasks with memories, and the category that they mean."""


def _names_project(text: str, projects: Sequence[str]) -> bool:
    """Return whether the line `applies_to: cwd=…` of a block names the project."""
    match = re.search(r"^applies_to:.*?\bcwd=([^;\n]+)", text, re.MULTILINE)
    named = match[1] if match else ""
    return any(
        re.search(rf"{re.escape(project)}(?![\w.-])", named) is not None for project in projects
    )


def _read_gemini(
    home: str, env: Mapping[str, str], projects: Sequence[str]
) -> Iterator[HostMemory | Problem]:
    """Yield the added memories of Gemini CLI, its notes of the project, and its inbox."""
    base = os.path.join(env.get("GEMINI_CLI_HOME") or home, ".gemini")
    for source, text in _read_files(base, ("GEMINI.md",)):
        for part in sections.split_file(text, "GEMINI.md"):
            if part.headings and part.headings[-1].lower() == "gemini added memories":
                yield from _read_items(source, part, "preference", is_users=True)
    names = _read_json(os.path.join(base, "projects.json")).get("projects")
    for project in projects:
        name = names.get(project) if isinstance(names, dict) else None
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]+", name):
            continue
        folder = os.path.join(base, "tmp", name, "memory")
        yield from _read_free_notes(folder, is_users=False)
        for tier in ("private", "global"):
            inbox = os.path.join(folder, ".inbox", tier)
            for source, text in _read_files(inbox, (), end=".patch"):
                yield from _read_patch(source, text, is_users=tier == "global")


def _read_copilot(
    home: str, env: Mapping[str, str], projects: Sequence[str]
) -> Iterator[HostMemory | Problem]:
    """Yield the notes of VS Code's Copilot: the user's, and those of workspaces of the project."""
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    mac = os.path.join(home, "Library", "Application Support")
    bases = [os.path.join(place, name) for place in (config, mac) for name in _EDITIONS]
    bases += [os.path.join(home, f".vscode-server{end}", "data") for end in ("", "-insiders")]
    for base in bases:
        user = os.path.join(base, "User")
        notes = os.path.join("memory-tool", "memories")
        yield from _read_free_notes(
            os.path.join(user, "globalStorage", "github.copilot-chat", notes), is_users=True
        )
        workspaces = os.path.join(user, "workspaceStorage")
        for name in _list_names(workspaces):
            address = _read_json(os.path.join(workspaces, name, "workspace.json")).get("folder")
            if _find_local_path(address) in projects:
                folder = os.path.join(workspaces, name, "GitHub.copilot-chat", notes, "repo")
                yield from _read_free_notes(folder, is_users=False)


_EDITIONS = ("Code", "Code - Insiders", "VSCodium")

HOSTS = (
    HostReader("claude", _read_claude),
    HostReader("codex", _read_codex),
    HostReader("gemini", _read_gemini),
    HostReader("qwen", _read_qwen),
    HostReader("copilot", _read_copilot),
)
"""The hosts with memories of their own."""


def _make_folder_name(project: str) -> str:
    """Return the name by which Claude Code and Qwen Code call a project."""
    return re.sub(r"[^a-zA-Z0-9]", "-", project)


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read_files(folder: str, names: Sequence[str], end: str = "") -> Iterator[tuple[Original, str]]:
    """Yield the readable files of a folder with one of the names, or that end so; no links."""
    for name in _list_names(folder):
        place = os.path.join(folder, name)
        if (name in names or (end and name.endswith(end))) and not os.path.islink(place):
            source = originals.build_original(place, folder).replace(
                name="", shown=originals.tail(place)
            )
            text = originals.read_text(source)
            if isinstance(text, str):
                yield source, text


def _read_json(path: str) -> dict[str, Any]:
    """Return a JSON table; empty if it is missing or something else."""
    for _source, text in _read_files(os.path.dirname(path), (os.path.basename(path),)):
        value = parse_json(text)
        return value if isinstance(value, dict) else {}
    return {}


def _find_local_path(address: Any) -> str:
    """Return the real path of a `file://` address; empty for any other."""
    try:
        parts = urlsplit(address) if isinstance(address, str) else None
    except ValueError:
        return ""
    is_local = parts is not None and parts.scheme == "file" and not parts.netloc
    return os.path.realpath(unquote(parts.path)) if parts and is_local else ""


def _read_notes(folder: str) -> Iterator[tuple[Original, str] | Problem]:
    """Yield the markdown files below a folder, its index too; nothing if it is not there."""
    if os.path.isdir(folder):
        for item in originals.read_texts(folder, folder, lambda name: name.endswith(".md")):
            if isinstance(item, Problem):
                yield item
            else:
                source, text = item
                shown = originals.tail(source.path)
                yield source.replace(name="", shown=shown), text


def _read_typed_notes(folder: str, *, is_users: bool = False) -> Iterator[HostMemory | Problem]:
    """Yield the memories of a folder of files with name, description and type, and an index."""
    items = list(_read_notes(folder))
    indexes = [item for item in items if not isinstance(item, Problem) and _is_index(item[0])]
    order = list(dict.fromkeys(_INDEX_LINK.findall(indexes[0][1]))) if indexes else []
    if len(indexes) == len(items) and not order:  # an older version kept everything in one file
        yield from _read_free_notes(folder, is_users=is_users)
        return
    for item in items:
        if isinstance(item, Problem):
            yield item
            continue
        source, text = item
        if _is_index(source):
            continue
        lines = text.split("\n")
        front, first = originals.front_matter(lines)
        body = "\n".join(lines[first:]).strip("\n")
        name = os.path.relpath(source.path, os.path.realpath(folder)).removesuffix(".md")
        meta = front.get("metadata")
        kind = str(front.get("type") or (meta.get("type") if isinstance(meta, dict) else ""))
        about = originals.to_line(str(front.get("description") or ""), 200).rstrip(".")
        link = f"{name}.md"
        if not (body.strip() or about):
            continue
        yield HostMemory(
            str(front.get("name") or name),
            about or _find_title(body, name),
            body or about,
            source,
            (1, len(lines) - (not lines[-1])),
            kind=kind,
            is_users=is_users or kind == "user",
            order=(order.index(link) + 1, len(order)) if link in order else (0, 0),
        )


def _is_index(source: Original) -> bool:
    return os.path.basename(source.path) == INDEX


def _find_title(body: str, name: str) -> str:
    """Return the first heading or sentence of a text, else its name."""
    first = next((line for line in body.split("\n") if line.strip()), "")
    if first.startswith("#"):
        return sections.clean_heading(first) or name
    return sections.find_sentence(first.lstrip("-* ")) or name


def _read_free_notes(folder: str, *, is_users: bool) -> Iterator[HostMemory | Problem]:
    """Yield the passages of notes without a form; of an index only what is no pointer."""
    for item in _read_notes(folder):
        if isinstance(item, Problem):
            yield item
            continue
        source, text = item
        stem = os.path.basename(source.path).removesuffix(".md")
        fact = parse_json(text)
        if isinstance(fact, dict) and isinstance(fact.get("fact"), str):
            yield _build_fact(source, stem, fact, is_users=is_users)
            continue
        for part in sections.split_file(text, f"{stem}.md"):
            items = list(_read_items(source, part, "", is_users=is_users))
            if len(items) > 1 or (items and stem == INDEX.removesuffix(".md")):
                yield from items
            elif not sections.says_nothing(part.text):
                title = sections.build_titles(part.headings, [stem.replace("-", " ")])
                yield HostMemory(
                    " ".join([stem, *part.headings]),
                    title[0] if part.headings else _find_title(part.text, stem),
                    part.text,
                    source,
                    (part.first_line, part.last_line),
                    is_users=is_users,
                )


def _build_fact(
    source: Original, stem: str, fact: Mapping[str, Any], *, is_users: bool
) -> HostMemory:
    """Build the memory of an entry with a fact, its reason and what it cites."""
    rows = [fact["fact"], fact.get("reason"), fact.get("citations")]
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows if row]
    title = sections.find_sentence(str(fact["fact"]))
    text = "\n\n".join(texts)
    return HostMemory(stem, title, text, source, (1, 1), is_users=is_users)


def _read_items(
    source: Original, part: sections.HeadedSection, category: str, *, is_users: bool = False
) -> Iterator[HostMemory]:
    """Yield a memory for each item of the lists of a section."""
    for first, last, text in sections.read_items(part):
        plain = _TASK_REFERENCE.sub("", text)
        title = sections.find_sentence(plain.partition("\n")[0])
        if title and not sections.says_nothing(plain):
            yield HostMemory(
                title, title, plain, source, (first, last), category=category, is_users=is_users
            )


def _read_patch(source: Original, text: str, *, is_users: bool) -> Iterator[HostMemory]:
    """Yield what a unified diff adds: a new file as one memory, in others each added item."""
    added: list[str] = []
    is_new = False
    start = 1
    for number, line in enumerate([*text.split("\n"), "--- end"], 1):
        if line.startswith("--- "):
            yield from _build_added(source, added, start, is_new=is_new, is_users=is_users)
            added, is_new, start = [], line.startswith("--- /dev/null"), number
        elif line.startswith("+") and not line.startswith("+++ "):
            added.append(line[1:])


def _build_added(
    source: Original, lines: Sequence[str], start: int, *, is_new: bool, is_users: bool
) -> Iterator[HostMemory]:
    text = "\n".join(lines).strip("\n")
    span = (start, start + len(lines))
    if is_new:
        body = text.partition("\n")[2].strip("\n") if text.startswith("#") else text
        if body.strip() and not sections.says_nothing(body):
            title = _find_title(text, os.path.basename(source.path))
            yield HostMemory(title, title, body, source, span, is_users=is_users)
        return
    for part in sections.split_file(text, INDEX):
        for memory in _read_items(source, part, "", is_users=is_users):
            yield memory.replace(lines=span)
