"""What hostile repositories do to the answers of a fleet, through the git backend.

    python bench/poison.py

The fleet is the decisions of one set of `retrieval.py` (adrs), each of twelve repositories having
some; the project that asks has those of another (peps). The questions of the set are asked as
`memtool search --fleet` and as a prompt, before and after each attack:

- stuffed: one repository with 50 memories of 40 words each out of half of the questions
- flood: one repository with 3,000 memories of such words, 80 % of all there is then
- floods: the same in ten repositories

Printed is how often, for all questions: the ten best honest answers are the same, in the same
order; the same ten; the first the same; a hostile memory is among the best ten, or the first; and
of what agents get, how often one is among the three, and how often an honest one that was there is
gone. `unseen` is the half of the questions whose words the attacker did not know. The last attack
is answered by `fleet.allow`.
"""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import quality
import retrieval
from fleet import commit, environment, memtool

FOLDER = Path(tempfile.gettempdir()) / "memtool-poison"
REPOSITORIES, BEST = 12, 10
STUFFED, WORDS, FLOOD, MANY = 50, 40, 3_000, 10
STEP = 5
"""So many questions, of which one is asked: each takes a search and a block after every attack."""

Answer = tuple[list[str], list[str]]
"""What a search gives and what a block holds, as org/name/id, the best first."""


def bare(place: Path, documents: list[tuple[str, str, str]], env: dict[str, str]) -> None:
    """Make a bare repository of memories, each an id, a title and a text."""
    place.mkdir(parents=True)
    git(["init", "-q", "--bare", "-b", "main", str(place)], env)
    commit(place, documents, env)


def git(args: list[str], env: dict[str, str]) -> None:
    """Run git and expect success."""
    subprocess.run(["git", *args], env=env, check=True)


def hostile(draw: random.Random, words: Sequence[str], count: int) -> list[tuple[str, str, str]]:
    """Return memories of words that the attacker has seen in questions."""
    return [
        (f"sem-evil-{n:05}", _write_words(draw, words, 4), _write_words(draw, words, WORDS))
        for n in range(count)
    ]


def _write_words(draw: random.Random, words: Sequence[str], count: int) -> str:
    return " ".join(draw.choices(words, k=count))


class Asker:
    """The project, asked in one process."""

    def __init__(self, env: dict[str, str]) -> None:
        from memtool.index import index
        from memtool.store.context import Context

        self.env = os.environ | env | {"MEMTOOL_NOW": quality.NOW}
        self.context = Context.at(str(quality.made("peps")), self.env)
        self.own = index.open(self.context).index

    def ask(self, text: str) -> Answer:
        """Return what a question gets: the ten best, and the three of a block."""
        from memtool.fleet import ask
        from memtool.fleet.inject_tier import build_fleet_tier
        from memtool.index import scoring
        from memtool.inject import block
        from memtool.inject.answer import build_block
        from memtool.inject.budget import plan
        from memtool.inject.gather import GatherRequest

        answer = ask.ask_fleet(
            self.context, scoring.parse_question(text), self.own, limit=3 * BEST, text=text
        )
        if not answer.is_reached:
            raise SystemExit(answer.note)
        request = GatherRequest(self.context, text)
        shares = plan(self.context.project.strict_settings, None, None)
        injected = build_block(request, block.BY_NAME["text"], shares, [build_fleet_tier])
        self.context.notes.clear()
        shown = [f"{item.repository}/{item.id}" for item in injected.items if item.repository]
        return [f"{hit.candidate.repository}/{hit.record.id}" for hit in answer.hits], shown


def line(name: str, before: Sequence[Answer], after: Sequence[Answer], unseen: set[int]) -> str:
    """Return what an attack changed."""

    def share(rows: Sequence[bool]) -> str:
        return f"{statistics.fmean(rows):8.3f}" if rows else "       -"

    honest = [[key for key in best if not key.startswith("evil")][:BEST] for best, _shown in after]
    was = [best[:BEST] for best, _shown in before]
    evil = [[key.startswith("evil") for key in best[:BEST]] for best, _shown in after]
    columns = [
        [mine == theirs for mine, theirs in zip(was, honest, strict=True)],
        [set(mine) == set(theirs) for mine, theirs in zip(was, honest, strict=True)],
        [mine[:1] == theirs[:1] for mine, theirs in zip(was, honest, strict=True)],
        [any(row) for row in evil],
        [any(row[:1]) for row in evil],
        [any(row[:1]) for at, row in enumerate(evil) if at in unseen],
        [any(key.startswith("evil") for key in shown) for _best, shown in after],
        [
            bool(set(mine) - set(theirs))
            for (_b, mine), (_a, theirs) in zip(before, after, strict=True)
            if mine
        ],
    ]
    return f"{name:14}{' '.join(map(share, columns))}"


def main() -> int:
    """Make the fleet, attack it, and print what changed."""
    if sys.argv[1:]:
        print(__doc__)
        return 2
    if not retrieval.DATA.is_dir():
        print(f"the retrieval sets are not there: {retrieval.DATA}", file=sys.stderr)
        return 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    (FOLDER / "home").mkdir(parents=True)
    env = environment(FOLDER / "home")
    draw = random.Random(17)
    parts: list[list[tuple[str, str, str]]] = [[] for _ in range(REPOSITORIES)]
    for number, row in enumerate(retrieval.corpus("adrs")):
        id_ = f"sem-{''.join(c if c.isalnum() else '-' for c in row['id'].lower())}-{number}"
        parts[number % REPOSITORIES].append((id_, row["title"], row["text"]))
    for number, part in enumerate(parts):
        bare(FOLDER / f"acme/team-{number}", part, env)
    questions = [row["text"] for row, _grades in quality.questions("adrs")][::STEP]
    seen = [word for text in questions[::2] for word in text.split() if len(word) > 3]
    unseen = set(range(1, len(questions), 2))
    project = quality.made("peps")

    def ask_all(entries: str, allow: str = "") -> list[Answer]:
        memtool(project, env, "--global", "config", "fleet.repositories", entries)
        if allow:
            memtool(project, env, "--global", "config", "fleet.allow", allow)
        memtool(project, env, "fleet", "sync")
        asker = Asker(env)
        return [asker.ask(text) for text in questions]

    memtool(project, env, "--global", "config", "inject.fleet", "true")
    memtool(project, env, "--global", "config", "fleet.timeout_ms", "60000")
    memtool(project, env, "--global", "config", "inject.global", "false")
    bare(FOLDER / "evil/stuffed", hostile(draw, seen, STUFFED), env)
    bare(FOLDER / "evil/flood", hostile(draw, seen, FLOOD), env)
    for number in range(MANY):
        bare(FOLDER / f"evils/evil-{number}", hostile(draw, seen, FLOOD // MANY), env)
    before = ask_all(f"{FOLDER}/acme/*")
    block_rate = statistics.fmean(bool(shown) for _best, shown in before)
    print(
        f"{len(questions)} questions of adrs, asked from peps; a block for {block_rate:.3f} of them"
    )
    print("attack           order      set    first    in 10       1st  1st unseen   block   lost")
    for name, entries, allow in (
        ("nothing", f"{FOLDER}/acme/*", ""),
        ("stuffed", f"{FOLDER}/acme/*,{FOLDER}/evil/stuffed", ""),
        ("flood", f"{FOLDER}/acme/*,{FOLDER}/evil/flood", ""),
        ("floods", f"{FOLDER}/acme/*,{FOLDER}/evils/*", ""),
        ("floods, allow", f"{FOLDER}/acme/*,{FOLDER}/evils/*", "acme/*"),
    ):
        print(line(name, before, ask_all(entries, allow), unseen), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
