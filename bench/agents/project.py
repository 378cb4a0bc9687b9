"""A repository in a temporary directory, and the real memtool in it, as an agent host calls it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import memtool
from memtool.memory import document

ROOT = Path(memtool.__file__).parents[1]
MEMTOOL = [sys.executable, "-P", "-c", "from memtool.cli.main import command; command()"]
FILES = {
    "app/billing/charge.py": "def charge(card, amount):\n    return gateway.charge(card, amount)\n",
    "app/auth/login.py": "def login(name, password):\n    return token(name)\n",
    "app/settings.py": "POOL_SIZE = 5\n",
    "app/other.py": "x = 1\n",
}
COMMITS = 30
"""After these only `app/other.py` changed lately, so a primer brings nothing about the rest."""


class Project:
    """A repository of an application with an empty memory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "MEMTOOL_"))}
        self.env |= {
            f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()
        }
        self.env |= {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "MEMTOOL_PERSONAL": "off",
            "PYTHONPATH": str(ROOT),
        }
        self.events = 0

    @classmethod
    def make(cls, path: Path) -> Project:
        """Make the repository that every task begins with."""
        path.mkdir(parents=True)
        made = cls(path)
        made.git("init", "--quiet", "--initial-branch=main")
        for name, text in FILES.items():
            made.write(name, text)
        made.commit("app: begin")
        for number in range(COMMITS):
            made.write("app/other.py", f"x = {number}\n")
            made.git("commit", "--quiet", "--all", "--message", f"app: {number}")
        made.memtool("init", "--commit")
        return made

    def copy(self, path: Path) -> Project:
        """Return a copy of the repository."""
        shutil.copytree(self.path, path, symlinks=True)
        return Project(path)

    def git(self, *args: str) -> str:
        return self._run(["git", *args])

    def memtool(self, *args: str, stdin: str = "") -> str:
        """Run memtool and return what it printed."""
        return self._run([*MEMTOOL, *args], stdin)

    def _run(self, call: list[str], stdin: str = "") -> str:
        done = subprocess.run(
            call,
            cwd=self.path,
            env=self.env,
            input=stdin,
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(call[-4:])}: {done.stderr}")
        return done.stdout

    def write(self, name: str, text: str) -> None:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def commit(self, message: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def import_memories(self, rows: Iterable[tuple[str, str]]) -> None:
        """Write many memories: titles and texts."""
        lines = [
            json.dumps({"id": f"sem-{number}", "type": "semantic", "title": title, "text": text})
            for number, (title, text) in enumerate(rows)
        ]
        source = self.path.parent / f"{self.path.name}.jsonl"
        source.write_text("".join(f"{line}\n" for line in lines))
        maps = ("--map", "type=type", "--map", "title=title")
        self.memtool("import", "jsonl", str(source), *maps, "--commit")

    def transcript(self, *rows: tuple[Any, ...]) -> str:
        """Write a transcript of Claude Code: prompts, commands and edits; return its path."""
        messages: list[tuple[str, Any]] = []
        for number, (kind, *row) in enumerate(rows):
            if kind == "user":
                messages.append(("user", row[0]))
                continue
            id_ = f"toolu_{number}"
            if kind == "run":
                name, arguments = "Bash", {"command": row[0]}
                result, is_error = row[1], not row[2]
            else:
                name = "Edit"
                arguments = {
                    "file_path": str(self.path / row[0]),
                    "old_string": row[1],
                    "new_string": row[2],
                }
                result, is_error = "The file has been updated.", False
            call = {"type": "tool_use", "id": id_, "name": name, "input": arguments}
            answer = {
                "type": "tool_result",
                "tool_use_id": id_,
                "content": result,
                "is_error": is_error,
            }
            messages += [("assistant", [call]), ("user", [answer])]
        path = self.path.parent / f"{self.path.name}-session.jsonl"
        with path.open("w") as file:
            for number, (role, content) in enumerate(messages):
                line = {
                    "type": role,
                    "sessionId": "11111111-1111-4111-8111-111111111111",
                    "uuid": f"00000000-0000-4000-8000-{number:012}",
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": str(self.path),
                    "version": "2.1.197",
                    "timestamp": f"2026-01-05T10:{number:02}:00Z",
                    "message": {"role": role, "content": content},
                }
                file.write(json.dumps(line) + "\n")
        return str(path)

    def hook(self, event: str, session: str, **fields: Any) -> str:
        """Let memtool answer an event as Claude Code sends it; return what the model is given."""
        self.events += 1
        sent = {
            "session_id": session,
            "cwd": str(self.path),
            "prompt_id": str(self.events),
            **fields,
        }
        answer = self.memtool("hook", "claude", event, stdin=json.dumps(sent))
        if not answer:
            return ""
        text: str = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
        return text

    def notes(self) -> str:
        """Return what a well-kept file of notes holds: each confirmed text that still stands."""
        read = [document.read(path.read_bytes()) for path in sorted(self._files())]
        replaced = {id_ for memory in read for id_ in memory.fields.get("supersedes", ())}
        return "\n\n".join(
            memory.body.strip()
            for memory in read
            if memory.fields.get("status") != "candidate" and memory.fields["id"] not in replaced
        )

    def _files(self) -> Iterable[Path]:
        paths = (self.path / ".memory").rglob("*.md")
        return (path for path in paths if not path.name.startswith("_"))
