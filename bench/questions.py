"""Plain questions to the decision records of public repositories.

    python bench/questions.py --mirror DIR [--misses] [--json] [--questions FILE]

DIR holds a clone of each repository, bare or not, as `owner+name`, `owner+name/repo` or
`owner/name`; questions about a missing repository or commit are left out, which is reported. The
records are taken at the commit that `questions.jsonl` names, written into a repository of their own
below the temporary directory and imported with `memtool import adr --redact`, since some hold mail
addresses. Nothing is written into DIR.

A row of `questions.jsonl` has the file names of the records that answer it; `kind` is one of

- `answer`: the store has the answer. `style` is how the question is worded: in the record's words,
  in other words or word forms, misspelt, about two topics, or with little but the title.
- `near miss`: about the project or its field, but the store has no answer
- `generic`: about no project

The questions were written from the records, before memtool was asked one of them.

Printed is what `memtool inject --prompt` shows. `right`: an expected record is shown; `wrong`: only
others are; `silent`: nothing is. `lost`: wrong or silent, though search without the answer gate has
an expected record among its first three, and `three` is how often it has one there at all. `shown`
is the mean number of memories for a question with an answer. `near` and `generic` are how many of
such prompts get something. The questions of each wording and kind are divided by their place: rules
may be tuned on the tuning half, the judged half shows whether they help. `--misses` explains each
miss of the tuning half.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

QUESTIONS = ROOT / "bench" / "questions.jsonl"
NOW = "2026-11-22T00:00:00Z"
COMMIT_DATE = "2026-11-21T00:00:00Z"
ANSWER, NEAR_MISS, GENERIC = "answer", "near miss", "generic"
RIGHT, WRONG, SILENT = "right", "wrong", "silent"
TUNING, JUDGED = "tuning", "judged"
HALVES = (TUNING, JUDGED)
MAX_SEARCH_HITS = 3
TITLES = ("records", "asked", RIGHT, WRONG, SILENT, "lost", "three", "shown", "near", GENERIC)
"""The columns; near and generic are `n/of`."""


@dataclass(frozen=True)
class Question:
    """A row of the file. `half` is given by its place among those of its wording or kind."""

    repository: str
    commit: str
    folder: str
    question: str
    expect: tuple[str, ...]
    kind: str
    style: str
    half: str

    @property
    def store(self) -> tuple[str, str, str]:
        """The records that it is put to."""
        return self.repository, self.commit, self.folder


@dataclass(frozen=True)
class Outcome:
    """The answers to a question: file names of the records that are shown and that search finds."""

    question: Question
    shown: tuple[str, ...]
    hits: tuple[str, ...]
    reason: str = ""
    """Why no expected record is shown, if one should be; for the tuning half only."""

    @property
    def verdict(self) -> str:
        """Right, wrong or silent."""
        if not self.shown:
            return SILENT
        return RIGHT if set(self.shown) & set(self.question.expect) else WRONG

    @property
    def is_found(self) -> bool:
        """Whether search has an expected record among its first three."""
        return bool(set(self.hits) & set(self.question.expect))


@dataclass(frozen=True)
class StoreResult:
    """The outcomes of the questions to a store, and its number of records."""

    repository: str
    records: int
    outcomes: tuple[Outcome, ...]


def read_questions(path: Path) -> list[Question]:
    """Read the questions, and divide those of each wording and kind into halves."""
    questions = []
    counts: Counter[str] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        row = {"style": "", **json.loads(line)}
        group = row["style"] or row["kind"]
        half = HALVES[(counts[group] + counts[group] // 2) % 2]
        counts[group] += 1
        questions.append(Question(**{**row, "expect": tuple(row["expect"])}, half=half))
    return questions


def find_clone(mirror: Path, repository: str) -> Path | None:
    """Return the git directory of a repository in the mirror, None if there is none."""
    for folder in (mirror / repository.replace("/", "+"), mirror / repository):
        for place in (folder, *sorted(folder.glob("*"))):
            for directory in (place, place / ".git"):
                if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
                    return directory
    return None


def run(command: Sequence[str | Path], place: Path, codes: tuple[int, ...] = (0,)) -> bytes:
    """Run a command without the user's settings. Raises SystemExit for another exit code."""
    done = subprocess.run(
        command, check=False, cwd=place, env=environment(place), capture_output=True
    )
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def environment(place: Path) -> dict[str, str]:
    """Return the environment of a store."""
    return os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ada"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ada@example.org"),
        **dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), COMMIT_DATE),
        "PYTHONPATH": str(ROOT),
        "MEMTOOL_GLOBAL": str(place / ".git" / "no-global"),
        "MEMTOOL_NOW": NOW,
        "MEMTOOL_NO_LEDGER": "1",
    }


def copy_records(clone: Path, commit: str, folder: str, place: Path) -> int:
    """Write the texts of a folder at a commit; return their number. 0 if the clone has none."""
    listing = ["git", "-C", clone, "ls-tree", "-r", "-z", "--name-only", f"{commit}:{folder}"]
    done = subprocess.run(listing, check=False, capture_output=True)
    paths = [path for path in done.stdout.decode().split("\0") if path.endswith(".md")]
    for path in paths:
        text = run(["git", "-C", clone, "cat-file", "blob", f"{commit}:{folder}/{path}"], clone)
        target = place / folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
    return len(paths)


def make_store(clone: Path, store: tuple[str, str, str], place: Path) -> bool:
    """Import the records into a new repository; return whether the clone has them."""
    _repository, commit, folder = store
    place.mkdir(parents=True)
    if not copy_records(clone, commit, folder, place):
        return False
    memtool = (sys.executable, "-m", "memtool")
    run(["git", "init", "-q", "-b", "main"], place)
    run(["git", "add", "-A"], place)
    run(["git", "commit", "-q", "-m", "Records"], place)
    run([*memtool, "init"], place)
    run([*memtool, "import", "adr", folder, "--redact", "--commit"], place, (0, 1))
    return True


class Store:
    """The imported records of a repository, asked again and again from one process."""

    def __init__(self, place: Path) -> None:
        from memtool.index import index
        from memtool.store.context import Context

        self.context = Context.at(str(place), environment(place))
        self.tree = index.open(self.context)
        records = (self.tree[id_] for id_ in self.tree.ids)
        self.names = {record.id: find_file(record.memory.items("source")) for record in records}

    def ask(self, question: Question) -> Outcome:
        """Put a question to `inject` and to search without the answer gate."""
        from memtool.commands.inject import inject

        injected = inject(self.context, prompt=question.question, no_global=True, explain=True)
        outcome = Outcome(
            question,
            tuple(self.names[item.id] for item in injected.items),
            tuple(self.search(question.question, MAX_SEARCH_HITS)),
        )
        is_miss = question.kind == ANSWER and outcome.verdict != RIGHT
        if not is_miss or question.half == JUDGED:
            return outcome
        verdicts = {verdict.id: verdict.reason for verdict in injected.explain or ()}
        return dataclasses.replace(outcome, reason=self.explain(question, verdicts))

    def search(self, text: str, limit: int) -> list[str]:
        """Return the file names of what search finds without the answer gate."""
        from memtool.search.prose import search_prose
        from memtool.search.scope import build_scope

        scope = build_scope(self.context, self.tree, self.context.clock.now)
        result = search_prose(scope, text, (), limit, is_gated=False)
        return [self.names[hit.record.id] for hit in result.hits]

    def explain(self, question: Question, verdicts: dict[str, str]) -> str:
        """Return for each expected record its title, rank without the gate, and why it is out."""
        ranked = self.search(question.question, len(self.names))
        lines = []
        for name in question.expect:
            ids = [id_ for id_, file in self.names.items() if file == name]
            if not ids:
                lines.append(f"{name}: not imported")
                continue
            title = self.tree[ids[0]].memory.title
            rank = f"rank {ranked.index(name) + 1}" if name in ranked else "not found"
            lines.append(f"{title} ({rank}): {verdicts.get(ids[0], 'not a candidate')}")
        return "; ".join(lines)


def find_file(sources: Iterable[str]) -> str:
    """Return the name of the record that a memory was imported from."""
    from memtool.memory.memory import find_cited_path

    return next((PurePosixPath(find_cited_path(source)).name for source in sources), "")


def count(results: Sequence[StoreResult], half: str = "") -> dict[str, Any]:
    """Return the figures of some stores by column, of a half of the questions or of all."""
    outcomes = [
        outcome
        for result in results
        for outcome in result.outcomes
        if half in ("", outcome.question.half)
    ]
    answers = [outcome for outcome in outcomes if outcome.question.kind == ANSWER]
    verdicts = [outcome.verdict for outcome in answers]
    shown = sum(len(outcome.shown) for outcome in answers) / max(len(answers), 1)
    figures = {
        "records": sum(result.records for result in results),
        "asked": len(answers),
        **{verdict: verdicts.count(verdict) for verdict in (RIGHT, WRONG, SILENT)},
        "lost": sum(outcome.is_found and outcome.verdict != RIGHT for outcome in answers),
        "three": sum(outcome.is_found for outcome in answers),
        "shown": f"{shown:.2f}",
    }
    for title, kind in (("near", NEAR_MISS), (GENERIC, GENERIC)):
        got = [bool(outcome.shown) for outcome in outcomes if outcome.question.kind == kind]
        figures[title] = f"{sum(got)}/{len(got)}"
    return figures


def ask_all(questions: Sequence[Question], mirror: Path, temporary: Path) -> list[StoreResult]:
    """Put all questions to their stores, and report on stderr what is left out."""
    results = []
    for number, store in enumerate(dict.fromkeys(question.store for question in questions)):
        clone = find_clone(mirror, store[0])
        place = temporary / str(number)
        if clone is None or not make_store(clone, store, place):
            reason = "it is not in the mirror" if clone is None else f"it lacks {store[1]}"
            print(f"{store[0]} is left out: {reason}", file=sys.stderr)
            continue
        memories = Store(place)
        rows = (question for question in questions if question.store == store)
        outcomes = tuple(memories.ask(question) for question in rows)
        results.append(StoreResult(store[0], len(memories.names), outcomes))
    return results


def build_rows(results: Sequence[StoreResult]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows of the table: the stores, the halves, and all."""
    rows = [(result.repository, count([result])) for result in results]
    rows += [(f"{half} half", count(results, half)) for half in HALVES]
    return [*rows, (f"all {len(results)} stores", count(results))]


def print_table(rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Print figures with aligned columns."""
    print(f"{'':44}" + "".join(f"{title:>8}" for title in TITLES))
    for name, figures in rows:
        print(f"{name:44}" + "".join(f"{figures[title]!s:>8}" for title in TITLES))


def print_styles(outcomes: Iterable[Outcome]) -> None:
    """Print how many questions of each wording are right, in both halves."""
    rights: dict[str, dict[str, list[bool]]] = {}
    for outcome in outcomes:
        if outcome.question.kind == ANSWER:
            halves = rights.setdefault(outcome.question.style, {TUNING: [], JUDGED: []})
            halves[outcome.question.half].append(outcome.verdict == RIGHT)
    print(f"\n{'right, by wording':20}" + "".join(f"{half:>10}" for half in HALVES))
    for style, halves in sorted(rights.items()):
        cells = (f"{sum(right)}/{len(right)}" for right in halves.values())
        print(f"{style:20}" + "".join(f"{cell:>10}" for cell in cells))


def print_misses(outcomes: Iterable[Outcome]) -> None:
    """Print the misses and the noise of the tuning half."""
    print("\nmisses and noise of the tuning half")
    for outcome in outcomes:
        question = outcome.question
        if question.half != TUNING:
            continue
        if question.kind != ANSWER and outcome.shown:
            print(f"{question.kind} | {question.question} | shown: {', '.join(outcome.shown)}")
        if question.kind == ANSWER and outcome.verdict != RIGHT:
            print(f"{outcome.verdict} | {question.question} | {outcome.reason}")


def main() -> int:
    """Ask all questions and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mirror", type=Path, required=True, help="the folder of the clones")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="another file of them")
    parser.add_argument("--misses", action="store_true", help="explain those of the tuning half")
    parser.add_argument("--json", action="store_true", help="print every outcome as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memtool-questions-") as temporary:
        questions = read_questions(options.questions)
        results = ask_all(questions, options.mirror.resolve(), Path(temporary).resolve())
    if not results:
        print("no repository of the questions is in the mirror", file=sys.stderr)
        return 1
    rows = build_rows(results)
    everything = [outcome for result in results for outcome in result.outcomes]
    if options.json:
        answers = [dataclasses.asdict(row) | {"verdict": row.verdict} for row in everything]
        answer = {"figures": dict(rows), "outcomes": answers}
        print(json.dumps(answer, indent=1, ensure_ascii=False))
        return 0
    print_table(rows)
    print_styles(everything)
    if options.misses:
        print_misses(everything)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
