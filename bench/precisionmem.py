"""PrecisionMemBench (tenurehq, arXiv 2605.11325): does a prompt get its memories, and no other?

    python bench/precisionmem.py PATH    PATH: a checkout of github.com/tenurehq/precisionMemBench

Nothing of it is part of this repository: 35 beliefs of a coding agent's user and 77 prompts are
read from PATH/fixtures. The rules of its runner for other systems are kept, in our own code:

    belief           a memory: canonical_name is its title, content and why_it_matters its body,
                     aliases its aliases
    user and scope   a repository for each user and domain; user:universal is the user's global
                     memories, which any project shows as well
    superseded_by    supersedes, in the other belief
    resolved_at      archived
    pinned           pinned, open questions too
    participants     related_to
    case             the query is the prompt, in the repository of its scope; of two scopes the
                     answers are joined
    returned         what is in the block of `inject` and is not pinned; at most maxBeliefs less
                     the beliefs that are pinned there
    expected         shouldOnlyInclude, or mustInclude without what is pinned

Precision is 0 where something was expected and nothing is returned, and of no account where both
are empty; recall is of no account where nothing was expected. Both are means over the cases where
they count. `exact` are cases whose answer is what was expected, also where that is nothing. `best
5` are the five best of the ranking without the answer gate, in the project alone.

Then each case that the block gets wrong: `+` is returned and should not be, with the stems that it
shares with the prompt, `-` is missing, with the reason that `inject --explain` gives.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import quality

if TYPE_CHECKING:
    from memtool.inject.block import InjectedBlock

ADDRESS = "https://github.com/tenurehq/precisionMemBench"
UNIVERSAL = "user:universal"
MAIN_USER = "test-user"
BEST = 5
DEFAULT_MAX = 20
"""Beliefs that an answer may hold, the pinned ones included, where a case names no bound."""
PUBLISHED = (
    ("tenure, its author's", 1.00, 1.00),
    ("open-knowledge-format", 0.47, 0.91),
    ("supermemory", 0.22, 0.71),
    ("agentmemory", 0.17, 0.97),
    ("zep", 0.09, 0.95),
    ("vectors", 0.09, 1.00),
    ("mem0", 0.06, 0.99),
)
"""System, precision and recall, as the project published them."""
MAPS = ("aliases", "status", "supersedes", "related_to", "type")

Belief = dict[str, Any]


class Answer(NamedTuple):
    """The ids that a case expects and those that it got."""

    expected: set[str]
    returned: list[str]

    @property
    def precision(self) -> float | None:
        """The share of the returned ones that are expected."""
        if not self.returned:
            return 0.0 if self.expected else None
        return len(self.expected & {*self.returned}) / len(self.returned)

    @property
    def recall(self) -> float | None:
        """The share of the expected ones that are returned."""
        return len(self.expected & {*self.returned}) / len(self.expected) if self.expected else None

    @property
    def is_exact(self) -> bool:
        return self.expected == {*self.returned}


def to_record(belief: Belief, beliefs: Iterable[Belief]) -> dict[str, Any]:
    """Return a belief as a line to import."""
    status = "confirmed"
    if belief["resolved_at"]:
        status = "archived"
    elif belief["pinned"]:
        status = "pinned"
    replaced = [other["_id"] for other in beliefs if other["superseded_by"] == belief["_id"]]
    return {
        "id": belief["_id"],
        "title": belief["canonical_name"],
        "text": f"{belief['content']}\n\n{belief['why_it_matters']}",
        "type": "decision" if belief["type"] == "decision" else "semantic",
        "timestamp": belief["created_at"],
        "aliases": belief["aliases"],
        "status": status,
        "supersedes": replaced,
        "related_to": belief.get("participants") or [],
    }


class Users:
    """The repositories of all users, made anew from the beliefs."""

    def __init__(self, beliefs: Sequence[Belief], folder: Path) -> None:
        self.beliefs = {belief["_id"]: belief for belief in beliefs}
        self.folder = folder

    def open(self, user: str, scope: str) -> quality.Store:
        """Return the repository of a user's domain, empty if no belief is of that domain."""
        place, universal = (self._make(user, each) for each in (scope, UNIVERSAL))
        return quality.Store(place, MEMTOOL_GLOBAL=str(universal))

    def _make(self, user: str, scope: str) -> Path:
        """Import the beliefs of a domain into a new repository, unless that was done."""
        place = self.folder / user / scope.replace(":", "-")
        if place.exists():
            return place
        (place / ".memory").mkdir(parents=True)
        env = quality.PLAIN_GIT | {"MEMTOOL_NOW": quality.NOW, "MEMTOOL_GLOBAL": ""}
        subprocess.run(["git", "init", "-q", "-b", "main", str(place)], check=True, env=env)
        mine = [
            belief
            for belief in self.beliefs.values()
            if belief["user_id"] == user and scope in belief["scope"]
        ]
        lines = [json.dumps(to_record(belief, mine)) + "\n" for belief in mine]
        maps = [word for key in MAPS for word in ("--map", f"{key}={key}")]
        if mine:
            subprocess.run(
                [sys.executable, "-m", "memtool", "import", "jsonl", "-", *maps, "--commit"],
                check=True,
                cwd=place,
                env=env,
                input="".join(lines),
                stdout=subprocess.DEVNULL,
                text=True,
            )
        return place

    def select(self, ids: Iterable[str], user: str, case: dict[str, Any]) -> list[str]:
        """Return the ids that count as returned: what is not pinned, within the case's bound."""
        max_beliefs = case.get("budget", {}).get("maxBeliefs", DEFAULT_MAX)
        pinned = sum(
            belief["pinned"]
            and belief["user_id"] == user
            and belief["type"] != "open_question"
            and not (belief["superseded_by"] or belief["resolved_at"])
            and not {*case["scope"]}.isdisjoint(belief["scope"])
            for belief in self.beliefs.values()
        )
        return self.without_pinned(ids)[: max(0, max_beliefs - pinned)]

    def without_pinned(self, ids: Iterable[str]) -> list[str]:
        return [id_ for id_ in dict.fromkeys(ids) if not self.beliefs[id_]["pinned"]]

    def text(self, id_: str) -> str:
        belief = self.beliefs[id_]
        names = (belief["canonical_name"], *belief["aliases"])
        return "\n".join((*names, belief["content"], belief["why_it_matters"]))


def build_block(store: quality.Store, prompt: str) -> InjectedBlock:
    """Return the block of `inject` for a prompt, with the reasons."""
    from memtool.inject import answer, block
    from memtool.inject.budget import plan
    from memtool.inject.gather import GatherRequest

    shares = plan(store.ws.project.strict_settings, store.ws.caller.budget_tokens, None)
    request = GatherRequest(store.ws, prompt, explain=True)
    return answer.build_block(request, block.BY_NAME["markdown"], shares)


def run_case(users: Users, case: dict[str, Any]) -> tuple[Answer, Answer, list[str]]:
    """Return what a case gets in the block and by the ranking, and what is wrong in the block."""
    user, prompt = case.get("userId", MAIN_USER), case["query"]
    expectation = case["expect"].get("relevantBeliefs", {})
    expected = set(
        expectation["shouldOnlyInclude"]
        if "shouldOnlyInclude" in expectation
        else users.without_pinned(expectation.get("mustInclude", ()))
    )
    stores = [users.open(user, scope) for scope in case["scope"]]
    blocks = [build_block(store, prompt) for store in stores]
    shown = [item.id for block in blocks for item in block.items if item.tier != "pinned"]
    ranked = [
        id_
        for store in stores
        for id_ in users.without_pinned(store.ask(prompt, is_gated=False))[:BEST]
    ]
    answer = Answer(expected, users.select(shown, user, case))
    reasons = {
        verdict.id: verdict.reason
        for block in blocks
        for verdict in reversed(block.verdicts)
        if not verdict.is_taken
    }
    scores = {item.id: item.score for block in blocks for item in block.items}
    stems = quality.telling_stems(prompt)
    wrong = []
    for id_ in answer.returned:
        if id_ not in expected:
            shared = stems & quality.telling_stems(users.text(id_), is_indexed=True)
            score = scores[id_]
            wrong.append(
                f"+ {id_}{'' if score is None else f' {score:.2f}'}: {' '.join(sorted(shared))}"
            )
    wrong += [
        f"- {id_}: {reasons.get(id_, 'shares no telling word')}"
        for id_ in sorted(expected - {*answer.returned})
    ]
    return answer, Answer(expected, users.select(ranked, user, case)), wrong


def print_means(title: str, answers: Sequence[Answer]) -> None:
    """Print precision, recall and the number of exact answers."""
    precision = [answer.precision for answer in answers if answer.precision is not None]
    recall = [answer.recall for answer in answers if answer.recall is not None]
    exact = sum(answer.is_exact for answer in answers)
    means = f"{statistics.fmean(precision):9.3f} {statistics.fmean(recall):9.3f}"
    print(f"{title:26} {means} {exact:5} of {len(answers)}")


def main() -> int:
    """Run the cases of the checkout that the argument names."""
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    fixtures = Path(sys.argv[1]) / "fixtures"
    if not fixtures.is_dir():
        print(f"no fixtures in {sys.argv[1]}: clone {ADDRESS}", file=sys.stderr)
        return 1
    beliefs, cases = (
        json.loads((fixtures / name).read_text(encoding="utf-8"))
        for name in ("beliefs.seed.json", "retrieval.cases.json")
    )
    with tempfile.TemporaryDirectory(prefix="memtool-precisionmem-") as folder:
        users = Users(beliefs, Path(folder))
        results = [run_case(users, case) for case in cases]
    print(f"{'':26} precision    recall      exact")
    print_means("memtool inject", [answer for answer, _ranked, _wrong in results])
    print_means("memtool, best 5", [ranked for _answer, ranked, _wrong in results])
    for system, precision, recall in PUBLISHED:
        print(f"{system:26} {precision:9.2f} {recall:9.2f}")
    for case, (_answer, _ranked, wrong) in zip(cases, results, strict=True):
        if wrong:
            print(f"\n{case['caseId']}: {' '.join(case['query'].split())}")
            print("\n".join(f"    {line}" for line in wrong))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
