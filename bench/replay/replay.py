"""One event, replayed: a clone at the parent, the records imported, and the hooks of a session.

The verbs and hooks run in this process, by their command lines. The time limit of hooks is lifted,
nothing runs in the background, and no event counts as delivered twice. Two prompts are asked, the
title and the whole message, each in a session of its own that begins with the same primer.
"""

from __future__ import annotations

import io
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from events import Naming, Pin, find_records
from history import Commit, History, Source

from memtool.cli import hooks, main
from memtool.hosts import contracts
from memtool.index import index
from memtool.inject import title_list
from memtool.inject.budget import estimate_tokens
from memtool.search import prose
from memtool.search.scope import build_scope
from memtool.sessions import background
from memtool.store.context import Context
from memtool.store.state import close_shared

TITLE, WHOLE = PROMPTS = ("title", "whole")
PRIMER, LIST, BLOCK, EDITS = PARTS = ("primer", "list", "prompt", "edit")
"""The list of all titles is part of the text at the start, and counted by itself."""
ALONE = "alone"
"""The block for a prompt in no session, so without a primer before it."""
MAX_EDITS = 6
MAX_RANK = 10
AMPLE_S = 600.0
SESSION = "replay"
MIN_WORDS = 6
"""The words of the shortest line that counts as a sentence."""
_NO_PROSE = re.compile(
    r"^\W*\d{4}-\d\d-\d\d|^\s*(#|<!--|\||TODO)|\]\(#|:\W*$|https?://\S+\W*$|"
    r"^\W*(authors?|beads?|date|deciders?|issues?|owners?|related|reviewers?|status|version)\W*:",
    re.IGNORECASE,
)
_UNREADABLE = re.compile(r"unable to read sha1 file of (.+) \([0-9a-f]+\)$", re.MULTILINE)


class ReplayError(Exception):
    """An event that cannot be replayed, with the reason."""


@dataclass
class Text:
    """What an agent was given at one moment: the memories that it names, and its tokens.

    `without_prose` are those of which no sentence is shown beyond the title.
    """

    ids: list[str] = field(default_factory=list)
    tokens: int = 0
    without_prose: list[str] = field(default_factory=list)


@dataclass
class Answer:
    """The texts of one session by part, and the ranks of its prompt in an ungated search."""

    parts: dict[str, Text]
    ranked: list[str]


@dataclass
class Row:
    """What became of one event. `governing` are the memories made of the records that it names.

    `missing` counts the records that the import refused, `index_tokens` is the size of a list of
    all ids and titles. `answers` are by prompt; both are the same if the message is its title.
    """

    repository: str
    group: str
    commit: str
    governing: list[str]
    missing: int
    memories: int
    index_tokens: int
    seconds: float
    answers: dict[str, Answer]
    code: str = ""
    """A hash of the code that was run."""

    @classmethod
    def parse(cls, line: str) -> Row:
        """Return the row of a line of JSON."""
        plain = json.loads(line)
        plain["answers"] = {
            name: Answer({part: Text(**text) for part, text in row["parts"].items()}, row["ranked"])
            for name, row in plain["answers"].items()
        }
        return cls(**plain)

    def line(self) -> str:
        """Return the row as a line of JSON."""
        return json.dumps(asdict(self)) + "\n"


class Clone:
    """A clone of a history whose only branch ends at the parent of an event."""

    def __init__(self, folder: Path, history: History) -> None:
        self.path = folder / "clone"
        self.storage = folder / "storage"
        self.saved = folder / "saved"
        self.outside = folder / "records"
        who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
        inherited = ("GIT_", "MEMTOOL_", "XDG_", "CLAUDE_")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(inherited)}
        self.env |= {
            f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()
        }
        self.env |= {
            "HOME": str(folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "MEMTOOL_PERSONAL": "off",
            "MEMTOOL_SEED": "replay",
            "MEMTOOL_STORAGE": str(self.storage),
        }
        self.path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        (self.path / ".git/objects/info/alternates").write_text(f"{history.objects}\n")
        self._sparse = self.path / ".git/info/sparse-checkout"

    def git(self, *args: str) -> str:
        """Run git here and return what it prints. Raises ReplayError if it fails."""
        done = subprocess.run(
            ["git", *args], cwd=self.path, env=self.env, check=False, capture_output=True, text=True
        )
        if done.returncode:
            raise ReplayError(f"git {args[0]}: {done.stderr.strip()}")
        return done.stdout

    def reset(self, parent: str, moment: int) -> None:
        """Go to a commit, at a moment, and forget all that memtool ever derived here."""
        date = f"{moment} +0000"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
        self.env |= {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "MEMTOOL_NOW": now}
        self._check_out(parent)
        self.git("clean", "--quiet", "-ffdx")
        for folder in (self.storage, self.saved, self.outside):
            shutil.rmtree(folder, ignore_errors=True)

    def _check_out(self, parent: str) -> None:
        """Check out a commit; remove the files that the mirror lacks, such as very large ones."""
        check_out = ("checkout", "--quiet", "--force", "-B", "main", parent)
        absent: list[str] = []
        while True:
            try:
                self.git("-c", f"core.sparseCheckout={bool(absent)}", *check_out)
                break
            except ReplayError as error:
                unreadable = _UNREADABLE.findall(str(error))
                if not unreadable:
                    raise
                absent += unreadable
                patterns = ["/*", *(f"!/{path}" for path in absent)]
                self._sparse.write_text("\n".join([*patterns, ""]))
        if absent:
            self.git("rm", "--quiet", "--cached", "--sparse", "--", *absent)
            self.git("commit", "--quiet", "--message", "Remove files that the mirror lacks")
            self._sparse.unlink()  # memtool reads a sparse checkout without an index

    def memtool(self, *args: str, stdin: str = "") -> str:
        """Run a command line of memtool in this process. Raises ReplayError if it fails."""
        streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8", "backslashreplace")
                   for data in (stdin.encode(), b"", b"")]  # fmt: skip
        with _replaced(self.env, self.path, streams):
            status = main.main(args)
        close_shared()
        out, err = (stream.buffer.getvalue().decode() for stream in streams[1:])  # type: ignore[attr-defined]
        if status > 1:
            raise ReplayError(f"memtool {args[0]}: {err.strip()[-300:]}")
        return out

    def hook(self, event: str, session: str, **fields: Any) -> str:
        """Return the text that the hook of an event gives an agent."""
        sent = {"cwd": str(self.path), **({"session_id": session} if session else {}), **fields}
        printed = self.memtool("hook", "claude", event, stdin=json.dumps(sent))
        answer = json.loads(printed) if printed.strip() else {}
        return answer.get("hookSpecificOutput", {}).get("additionalContext", "")

    def save(self) -> None:
        """Save what memtool derived and noted, to be restored before another session."""
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.storage, self.saved)

    def restore(self) -> None:
        """Restore what was saved, and the files of the worktree."""
        shutil.rmtree(self.storage)
        shutil.copytree(self.saved, self.storage)
        self.git("checkout", "--quiet", "--force", "main")
        self.git("clean", "--quiet", "-ffdx")


@contextmanager
def _replaced(env: Mapping[str, str], folder: Path, streams: Sequence[io.TextIOWrapper]) -> Any:
    """Give this process another environment, directory and streams, and hooks ample time."""
    environment, place = dict(os.environ), os.getcwd()
    names = ("stdin", "stdout", "stderr")
    old = [getattr(sys, name) for name in names]
    switches = [(hooks, "LIMIT_S", AMPLE_S), (contracts, "DUPLICATE_WINDOW_S", 0),
                (background, "start", lambda *_args, **_options: 0)]  # fmt: skip
    values = [getattr(module, name) for module, name, _value in switches]
    try:
        os.environ.clear()
        os.environ.update(env)
        os.chdir(folder)
        for name, stream in zip(names, streams, strict=True):
            setattr(sys, name, stream)
        for module, name, value in switches:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _value), value in zip(switches, values, strict=True):
            setattr(module, name, value)
        for name, stream in zip(names, old, strict=True):
            setattr(sys, name, stream)
        os.chdir(place)
        os.environ.clear()
        os.environ.update(environment)


@dataclass(frozen=True)
class Store:
    """The memories of a clone: their short ids, titles and the files that they were made of."""

    short_ids: dict[str, str]
    titles: dict[str, str]
    files: dict[str, str]
    """The name of the file of a record to the id of its memory."""

    @classmethod
    def read(cls, context: Context) -> Store:
        """Read the memories of a context."""
        tree = index.open(context)
        short_ids, titles, files = {}, {}, {}
        for record in tree.records:
            short_ids[record.id] = tree.short_ids.shorten(record.id)
            titles[record.id] = record.memory.title
            for source in record.memory.items("source"):
                match = re.match(r"[a-z]+:(.*?\.md)(?:[#@].*)?$", source)
                if match:
                    files[posixpath.basename(match[1])] = record.id
        return cls(short_ids, titles, files)

    def find_ids(self, text: str) -> list[str]:
        """Return the memories that a text names, by their whole or short ids."""
        words = set(re.findall(r"[\w.-]*\w", text))
        return sorted(id_ for id_, short in self.short_ids.items() if {id_, short} & words)

    def find_without_prose(self, text: str) -> list[str]:
        """Return the memories that a text names without a sentence of theirs, as in a list."""
        ids = {short: id_ for id_, short in self.short_ids.items()}
        readable = set()
        for part in text.split('<memory id="')[1:]:
            id_ = ids.get(re.split('[@"]', part, maxsplit=1)[0], "")
            lines = [line[2:] for line in part.split("\n") if line.startswith("| ")]
            if id_ and any(line != self.titles[id_] and is_prose(line) for line in lines):
                readable.add(id_)
        return [id_ for id_ in self.find_ids(text) if id_ not in readable]

    @property
    def index_text(self) -> str:
        """The list of all ids and titles, as a file such as AGENTS.md would have it."""
        rows = sorted((self.short_ids[id_], title) for id_, title in self.titles.items())
        return "".join(f"- {id_} {title}\n" for id_, title in rows)


def is_prose(line: str) -> bool:
    """Return whether a line can be a sentence: no heading, link, label, date, template or code."""
    return len(re.findall(r"[^\W\d_]{2,}", line)) >= MIN_WORDS and not _NO_PROSE.search(line)


def import_records(
    clone: Clone, naming: Naming, history: History, records: History, commit: Commit
) -> dict[int, str]:
    """Import the records that exist before a commit; return the file of each by its number."""
    source, parent = naming.source, commit.parents[0]
    is_own = records is history
    folders = [folder for folder in source.folders if (clone.path / folder).is_dir()]
    if source.nested or not is_own:
        revision = parent if is_own else records.find_before(commit.moment)
        _export(naming, records, revision, clone.outside)
        folders = [str(clone.outside)]
    for folder in folders:
        clone.memtool("import", "adr", folder, "--commit")
    index_ = find_records(naming, history, records, parent, commit.moment)
    return {number: _file_name(naming, path) for number, path in index_.items()}


def _file_name(naming: Naming, path: str) -> str:
    """Return the name of the file that a record is imported from."""
    folder, name = posixpath.split(path)
    return f"{posixpath.basename(folder)}.md" if naming.source.nested else name


def _export(naming: Naming, records: History, revision: str, target: Path) -> None:
    """Write the records of a revision into a folder, each as one file."""
    target.mkdir()
    for path in records.list_files(revision, naming.source.folders):
        if naming.find_number(path) >= 0:
            data = records.output("show", f"{revision}:{path}")
            (target / _file_name(naming, path)).write_bytes(data)


def replay(pin: Pin, source: Source, history: History, records: History, clone: Clone) -> Row:
    """Replay one event. Raises ReplayError if git or memtool fails."""
    began = time.process_time() + _children_s()
    naming, commit = Naming(source), history.read_commit(pin.commit)
    clone.reset(pin.parent, commit.moment)
    clone.memtool("init", "--commit")
    by_number = import_records(clone, naming, history, records, commit)
    primer = clone.hook("session-start", SESSION, source="startup")
    context = Context.at(str(clone.path), clone.env)
    store = Store.read(context)
    clone.save()
    files = {number: store.files.get(by_number.get(number, ""), "") for number in pin.numbers}
    answers: dict[str, Answer] = {}
    texts = {TITLE: naming.title(commit.message), WHOLE: naming.prompt(commit.message)}
    edited = [path for path in naming.code_files(commit) if path not in commit.removed][:MAX_EDITS]
    for name, text in texts.items():
        if name == WHOLE and text == texts[TITLE]:
            answers[WHOLE] = answers[TITLE]
            continue
        before, titles = _split_list(primer)
        shown = {PRIMER: [before], LIST: [titles]}
        shown[BLOCK] = [clone.hook("user-prompt-submit", SESSION, prompt=text)]
        shown[EDITS] = [_edit(clone, history, pin.commit, path) for path in edited]
        clone.restore()
        shown[ALONE] = [clone.hook("user-prompt-submit", "", prompt=text)]
        clone.restore()
        parts = {part: _measure(rows, store) for part, rows in shown.items()}
        answers[name] = Answer(parts, _rank(context, text))
    close_shared()
    return Row(
        repository=source.name,
        group=source.group,
        commit=pin.commit,
        governing=sorted(filter(None, files.values())),
        missing=sum(not id_ for id_ in files.values()),
        memories=len(store.titles),
        index_tokens=estimate_tokens(store.index_text),
        seconds=round(time.process_time() + _children_s() - began, 1),
        answers=answers,
    )


def _edit(clone: Clone, history: History, commit: str, path: str) -> str:
    """Write a file as the commit has it, and return what the hook after the edit gives."""
    place = clone.path / path
    if place.is_symlink() or place.is_dir():
        return ""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(history.output("show", f"{commit}:{path}"))
    except (OSError, subprocess.CalledProcessError):  # a submodule, or a file in place of a folder
        return ""
    tool = {"tool_name": "Edit", "tool_input": {"file_path": str(place)}}
    return clone.hook("post-tool-use", SESSION, **tool)


def _split_list(primer: str) -> tuple[str, str]:
    """Return the text at the start without its list of all titles, and the list."""
    before, head, after = primer.partition(f'<section title="{title_list.ALL}">')
    listed, end, below = after.partition("</section>\n")
    return before + below, head + listed + end


def _measure(texts: Iterable[str], store: Store) -> Text:
    texts = list(texts)
    whole = "\n".join(texts)
    tokens = sum(map(estimate_tokens, texts))
    return Text(store.find_ids(whole), tokens, store.find_without_prose(whole))


def _rank(context: Context, text: str) -> list[str]:
    """Return the best memories for a prompt, as a search without a gate ranks them."""
    scope = build_scope(context, index.open(context), context.clock.now).replace(is_replay=True)
    result = prose.search_prose(scope, text, (), MAX_RANK, is_gated=False)
    return [hit.record.id for hit in result.hits[:MAX_RANK]]


def _children_s() -> float:
    """Return the CPU seconds of git and other processes that were waited for."""
    usage = os.times()
    return usage.children_user + usage.children_system
