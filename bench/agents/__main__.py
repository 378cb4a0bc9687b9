"""What an agent could know at each step, with memtool and without.

    python bench/agents                             every task, a stub in place of a model
    python bench/agents "trap at an edit" --json    some tasks; every step as JSON
    python bench/agents --model-command "ollama run qwen3"

Each task is played three times: without any memory; with memtool, whose hooks are called as
Claude Code calls them; and with a file of notes, all confirmed texts that still stand, at the start
of each session. Where a step asks for a choice, the model is given all that the session has seen so
far and names one option.

The stub acts upon a fact if and only if its words are in what it was given, and else does the usual
thing. It heeds the marks of memtool, and falls for every misleading text that has none. So the
table says what could be known, not what a model makes of it. A program given by --model-command
reads the prompt on stdin and answers on stdout; the option that it names last counts.

Columns: choices, and how many are right without memory, with memtool and with notes; facts, how
many of those that the choices need were there with memtool, marks counted; misled, how often words
that speak for a wrong option were; again, how often a fact was given once more to a session that
had it; tokens that memtool and the notes add in all sessions of a task (a quarter of the bytes).
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from project import Project
from tasks import EDIT, PROMPT, START, TASKS, Choice, Step, Task

from memtool.inject.budget import estimate_tokens

WITHOUT, MEMTOOL, NOTES = ARMS = ("without", "memtool", "notes")
MODEL_S = 300
Model = Callable[[str, Choice], str]
Source = Callable[[str, Step], str]
"""What gives the text that memory adds to a step of a session."""


@dataclass(frozen=True)
class Outcome:
    """One step in one arm: what memory added, and what was chosen, if there was a choice."""

    session: int
    step: str
    tokens: int
    again: int
    chosen: str = ""
    is_right: bool = False
    needed: int = 0
    present: int = 0
    misled: int = 0


@dataclass(frozen=True)
class Sum:
    """The steps of a task in one arm, added up."""

    choices: int
    right: int
    needed: int
    present: int
    misled: int
    again: int
    tokens: int

    @classmethod
    def of(cls, steps: Sequence[Outcome]) -> Sum:
        return cls(
            choices=sum(bool(step.chosen) for step in steps),
            right=sum(step.is_right for step in steps),
            **{
                name: sum(getattr(step, name) for step in steps)
                for name in ("needed", "present", "misled", "again", "tokens")
            },
        )


def stub(seen: str, choice: Choice) -> str:
    """Choose by the first cue that was given; the usual option without any."""
    return next((option for words, option in choice.cues if words in seen), choice.usual)


def program(command: str) -> Model:
    """Return a model that is a program: the prompt on stdin, the answer on stdout."""
    try:
        call = shlex.split(command)
    except ValueError:
        call = []
    if not call:
        raise SystemExit(f"--model-command cannot be read: {command!r}")
    if shutil.which(call[0]) is None:
        raise SystemExit(f"the model command failed: there is no program {call[0]!r}")

    def ask(seen: str, choice: Choice) -> str:
        prompt = (
            f"You are a coding agent. This is your session so far:\n\n{seen}\n\n{choice.question} "
            f"Answer with one of these words and nothing else: {', '.join(choice.options)}\n"
        )
        try:
            done = subprocess.run(
                call,
                input=prompt,
                check=False,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=MODEL_S,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SystemExit(f"the model command failed: {error}") from None
        if done.returncode:
            raise SystemExit(
                f"the model command ended with {done.returncode}: {done.stderr[-500:]}"
            )
        words = "|".join(map(re.escape, choice.options))
        named = re.findall(rf"\b(?:{words})\b", done.stdout, re.IGNORECASE)
        return named[-1].lower() if named else "nothing"

    return ask


def play(task: Task, source: Source, model: Model) -> list[Outcome]:
    """Play the sessions of a task, with what a source adds to each step."""
    facts = {
        words
        for session in task.sessions
        for step in session
        if step.choice
        for words, _option in step.choice.cues
    }
    outcomes: list[Outcome] = []
    for number, session in enumerate(task.sessions, start=1):
        seen: list[str] = []
        remembered: set[str] = set()
        for step in session:
            added = source(f"session-{number}", step)
            shown_facts = {words for words in facts if words in added}
            again = len(shown_facts & remembered)
            remembered |= shown_facts
            seen += [text for text in (_happened(step), added) if text]
            here = Outcome(
                number, f"{step.kind} {step.text}".strip(), estimate_tokens(added), again
            )
            outcomes.append(_chosen(here, step.choice, "\n\n".join(seen), model))
    return outcomes


def _happened(step: Step) -> str:
    """Return what the session holds of a step without any memory."""
    if step.kind == START:
        return ""
    return {PROMPT: "User: {}", EDIT: "You edited {}."}.get(step.kind, "{}").format(step.text)


def _chosen(outcome: Outcome, choice: Choice | None, seen: str, model: Model) -> Outcome:
    if choice is None:
        return outcome
    chosen = model(seen, choice)
    return Outcome(
        outcome.session,
        outcome.step,
        outcome.tokens,
        outcome.again,
        chosen,
        chosen == choice.right,
        needed=len(choice.needed),
        present=sum(words in seen for words in choice.needed),
        misled=sum(words in seen for words in choice.misleading),
    )


def hooks(project: Project) -> Source:
    """Return what memtool adds, by the hook that Claude Code calls for a step."""

    def added(session: str, step: Step) -> str:
        if step.kind == START:
            return project.hook("session-start", session, source="startup")
        if step.kind == PROMPT:
            return project.hook("user-prompt-submit", session, prompt=step.text)
        if step.kind == EDIT:
            edited = {"file_path": str(project.path / step.text)}
            return project.hook("post-tool-use", session, tool_name="Edit", tool_input=edited)
        return ""  # no hook: what a command prints is in the session by itself

    return added


def measure(task: Task, begun: Project, folder: Path, model: Model) -> dict[str, list[Outcome]]:
    """Play a task in all arms."""
    project = begun.copy(folder / re.sub(r"\W+", "-", task.name))
    task.prepare(project)
    notes = project.notes()
    sources: dict[str, Source] = {
        WITHOUT: lambda _session, _step: "",
        MEMTOOL: hooks(project),
        NOTES: lambda _session, step: notes if step.kind == START else "",
    }
    return {arm: play(task, sources[arm], model) for arm in ARMS}


HEAD = ("task", "choices", *ARMS, "facts", "misled", "again", "tokens", "of notes")


def cells(name: str, sums: dict[str, Sum]) -> tuple[str, ...]:
    """Return a row of the table."""
    ours = sums[MEMTOOL]
    return (
        name,
        str(ours.choices),
        *(str(sums[arm].right) for arm in ARMS),
        f"{ours.present}/{ours.needed}",
        str(ours.misled),
        str(ours.again),
        f"{ours.tokens:,}",
        f"{sums[NOTES].tokens:,}",
    )


def table(rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(HEAD) + "|", *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python bench/agents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="its name; all without one")
    parser.add_argument("--model-command", metavar="COMMAND", help="asked in place of the stub")
    parser.add_argument("--json", action="store_true", help="every step, as JSON")
    args = parser.parse_args()
    names = [task.name for task in TASKS]
    unknown = [name for name in args.tasks if name not in names]
    if unknown:
        parser.error(f"there is no task {unknown[0]!r}; one of: {', '.join(names)}")
    model = stub if args.model_command is None else program(args.model_command)
    steps: dict[str, dict[str, list[Outcome]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        begun = Project.make(Path(folder) / "begun")
        for task in TASKS:
            if not args.tasks or task.name in args.tasks:
                steps[task.name] = measure(task, begun, Path(folder), model)
    sums = {
        name: {arm: Sum.of(outcomes) for arm, outcomes in arms.items()}
        for name, arms in steps.items()
    }
    together = {
        arm: Sum.of([outcome for arms in steps.values() for outcome in arms[arm]]) for arm in ARMS
    }
    if args.json:
        about = {task.name: task.about for task in TASKS}
        print(
            json.dumps(
                {
                    "model": args.model_command or "stub",
                    "tasks": [
                        {
                            "name": name,
                            "about": about[name],
                            "arms": {
                                arm: {
                                    **asdict(sums[name][arm]),
                                    "steps": [asdict(outcome) for outcome in outcomes],
                                }
                                for arm, outcomes in arms.items()
                            },
                        }
                        for name, arms in steps.items()
                    ],
                    "all": {arm: asdict(total) for arm, total in together.items()},
                },
                indent=2,
            )
        )
        return
    rows = [cells(name, by_arm) for name, by_arm in sums.items()]
    print(table([HEAD, *rows, cells("all", together)]))


if __name__ == "__main__":
    sys.exit(main())
