"""How well memtool finds, on real questions, beside plain bm25s: the whole way, from files.

    python bench/quality.py              the sets of ../shared/data/retrieval
    python bench/quality.py --parts      and what each part of the ranking adds
    python bench/quality.py --own        only the questions on our own memories
    python bench/quality.py --model      any of these with the sentence model, as servers ask

Each set is imported by memtool itself into a repository below the temporary directory, once, and
is then asked through `prose.search_prose`, as `memtool eval` and `memtool inject` ask. Printed
are recall@5, nDCG@10 and MRR@10: of plain bm25s (its own tokenizer and English stop words, the
Snowball stemmer), of the ranking, and of what the gatekeeper of `inject` lets pass. `as of` asks
from the day of each question, among what was written by then; `as of, files` has the files open
that the commit touched. Questions that cite a PEP which was replaced: how often the current one
(current@5) or a replaced one (stale@5) is among the best five.

With `--model` the vectors of all memories are made first, which takes a tenth of a second each.

MEMTOOL_BENCH_CONVERSATIONS names a folder with two more sets of the same form, `turns` and
`observations` of conversations, which are not part of anything here; `meta.session` of a record
says which session it is of, and `split` of a question which half it belongs to. Without the
variable they are left out, and the table says so.

The questions are those that the ranking was tuned on; expect a little less from others.

Our own memories are asked in a clone of HEAD, as of its last commit, and those of `memtool demo` in
a new demo. `golden.jsonl` is the set of `memtool eval`. `paraphrase.jsonl` was written before
anything was tuned on it, from the memories alone and without a look at any answer: each question
says in other words what its memory is about. A script checked that it has at most one stem in
common with title, tags and body, stop words aside; most have none. Every other question of a store,
by place, is held out. Columns: recall@5 as ranked and of what `inject` may show, of all questions,
and of those that share no such stem with a memory they expect.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import retrieval
from retrieval import DATA, ROOT

NOW = "2026-11-22T00:00:00Z"
MODEL_OPTION = "--model"
FOLDER = Path(tempfile.gettempdir()) / "memtool-quality"
PLAIN = ("type=meta.type", "timestamp=meta.date", "tags=meta.tags")
IMPORTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "peps": ("peps", ()),
    "adrs": ("adrs", ()),
    "beads": ("beads", ()),
    "beads-dated": ("beads", ("status=meta.status", "files=meta.files")),
    "chain": (
        "peps",
        ("status=meta.status", "supersedes=meta.supersedes", "superseded_by=meta.superseded_by"),
    ),
}
"""Repositories: the set, and what is mapped beside the plain fields."""

CONVERSATIONS = "MEMTOOL_BENCH_CONVERSATIONS"
TALKS = ("turns", "observations")

PARAPHRASES = Path(__file__).with_name("paraphrase.jsonl")
HALVES = ("tuning", "held out")
PLAIN_GIT = os.environ | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Ada"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "ada@example.org"),
    "PYTHONPATH": str(ROOT),
    "TZ": "UTC",
}

Rows = list[tuple[dict[str, Any], dict[str, int]]]


def folder(name: str) -> Path:
    """Return the directory of a set."""
    return Path(os.environ[CONVERSATIONS] if name in TALKS else DATA) / name


def made(name: str) -> Path:
    """Import a set into a repository of its own, unless that was done before."""
    place = FOLDER / name
    if (place / ".git" / "done").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)  # an import that was interrupted
    (place / ".memory").mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", "-b", "main", str(place)], check=True, env=PLAIN_GIT)
    source, extra_maps = IMPORTS.get(name, (name, ("session=meta.session",)))
    maps = [word for pair in (*PLAIN, *extra_maps) for word in ("--map", pair)]
    verb = ["import", "jsonl", str(folder(source) / "corpus.jsonl.gz"), *maps, "--commit"]
    done = subprocess.run(
        [sys.executable, "-m", "memtool", *verb],
        check=False,
        cwd=place,
        env=PLAIN_GIT,
        capture_output=True,
        text=True,
    )
    if done.returncode > 1:  # 1: a line of the set is no record
        raise SystemExit(done.stderr)
    (place / ".git" / "done").touch()
    return place


def questions(name: str) -> Rows:
    """Read the questions of a set that have an answer, with the grades of their documents."""
    grades: dict[str, dict[str, int]] = {}
    for line in (folder(name) / "qrels.tsv").read_text().splitlines():
        qid, document, grade = line.split("\t")
        grades.setdefault(qid, {})[document] = int(grade)
    rows = map(json.loads, (folder(name) / "queries.jsonl").read_text().splitlines())
    return [(row, grades[row["qid"]]) for row in rows if row["qid"] in grades]


def scores(ranked: Sequence[str], grades: dict[str, int]) -> tuple[float, float, float]:
    """Return recall@5, nDCG@10 and the reciprocal rank among 10."""
    recall, gain = retrieval.scores(list(ranked), grades)
    rank = next((1 / (n + 1) for n, id_ in enumerate(ranked[:10]) if id_ in grades), 0.0)
    return recall, gain, rank


class Store:
    """One repository, asked again and again from one process."""

    def __init__(self, place: Path, **env: str) -> None:
        from memtool.store.context import Context

        self.ws = Context.at(str(place), os.environ | {"MEMTOOL_NOW": NOW} | env)

    def ask(self, text: str, **how: Any) -> list[str]:
        """Return the ids that a text finds, best first."""
        from memtool.search.prose import search_prose

        return [hit.record.id for hit in search_prose(self.scope(text), text, (), 10, **how).hits]

    def scope(self, text: str) -> Any:
        """Return the scope for a text, with its meaning if there is a model to be used."""
        from memtool.search.scope import build_scope
        from memtool.search.stages import with_matchers

        scope = build_scope(self.ws, self._all, self.ws.clock.now)
        return with_matchers(self.ws, scope, text) if self._model is not None else scope

    @property
    def _model(self) -> Any:
        """The sentence model, once all vectors are made; None without `--model`."""
        if MODEL_OPTION not in sys.argv:
            return None
        if not hasattr(self, "_ready"):
            from memtool.search.model import find_model
            from memtool.search.semantic import make_vectors

            self._ready = find_model(self.ws)
            if self._ready is None:
                raise SystemExit("there is no sentence model: see docs/measuring.md")
            make_vectors(self.ws, self._all.index, self._ready)
        return self._ready

    def read_current(self, ids: Iterable[str]) -> list[str]:
        """Return title, tags and body of those of the memories that are in force."""
        from memtool.search.scope import build_scope

        facts = build_scope(self.ws, self._all, self.ws.clock.now).facts()
        records = [record for record in map(self._all.get, ids) if record is not None]
        memories = [record.memory for record in records if facts.is_current(record)]
        return [
            "\n".join([memory.title, *memory.items("tags"), memory.body]) for memory in memories
        ]

    @property
    def _all(self) -> Any:
        if not hasattr(self, "_tree"):
            from memtool.index import index

            self._tree = index.open(self.ws)
        return self._tree

    def as_of(self, row: dict[str, Any], files: Sequence[str] = ()) -> list[str]:
        """Ask from the end of the day, or the moment, of a question.

        A tree for each moment would have an index of its own; what came later is left out by what
        counts as current, which changes only how rare words are taken to be.
        """
        from memtool.memory import timestamps
        from memtool.search.features import Facts
        from memtool.search.prose import search_prose
        from memtool.search.scope import build_scope

        day = row["asof"]
        second = timestamps.parse(day) if "T" in day else timestamps.end(day)
        whole = Facts.is_current
        scope = build_scope(self.ws, self._all, second)
        try:
            Facts.is_current = lambda facts, record: (  # type: ignore[method-assign]
                record.memory.timestamp <= second and whole(facts, record)
            )
            result = search_prose(scope, row["text"], tuple(files), 10, is_gated=False)
        finally:
            Facts.is_current = whole  # type: ignore[method-assign]
        return [hit.record.id for hit in result.hits]


def print_row(name: str, how: str, ranked: Sequence[Sequence[str]], rows: Rows) -> None:
    """Print one line of the table."""
    each = [scores(answer, grades) for answer, (_row, grades) in zip(ranked, rows, strict=True)]
    means = [statistics.fmean(column) for column in zip(*each, strict=True)]
    print(f"{name:7} {how:26} {len(rows):9} " + " ".join(f"{mean:9.3f}" for mean in means))


def sets() -> None:
    """Print recall@5, nDCG@10 and MRR@10 of each set."""
    print(f"{'set':7} {'':26} questions  recall@5   nDCG@10    MRR@10")
    for name in ("peps", "adrs", "beads"):
        rows, store = questions(name), Store(made(name))
        texts = [row["text"] for row, _grades in rows]
        print_row(
            name, "bm25s stem+stop", retrieval.plain_bm25s(retrieval.corpus(name), texts), rows
        )
        print_row(name, "memtool", [store.ask(text, is_gated=False) for text in texts], rows)
        print_row(name, "memtool inject", [store.ask(text) for text in texts], rows)
        dated = [row for row in rows if row[0].get("asof")]
        if name == "beads":
            store = Store(made("beads-dated"))
        print_row(name, "memtool as of", [store.as_of(row) for row, _grades in dated], dated)
        if name == "beads":
            open_files = [store.as_of(row, row.get("files", ())) for row, _grades in dated]
            print_row(name, "memtool as of, files", open_files, dated)


def conversations() -> None:
    """Print how well turns and observations of conversations are found, each half by itself."""
    if not os.environ.get(CONVERSATIONS):
        print(f"\nconversations: {CONVERSATIONS} names no folder with {' and '.join(TALKS)}")
        return
    print()
    for name in TALKS:
        store, rows = Store(made(name)), questions(name)
        for split in sorted({row["split"] for row, _grades in rows}):
            half = [(row, grades) for row, grades in rows if row["split"] == split]
            answers = [store.ask(row["text"], is_gated=False) for row, _grades in half]
            print_row(name[:7], f"memtool, {split}", answers, half)


def supersession() -> None:
    """Print how often the current and the replaced records are among the best five."""
    labels: dict[str, dict[str, set[str]]] = {}
    table = DATA / "peps-supersession" / "supersession.tsv"
    for line in table.read_text().splitlines():
        qid, document, kind = line.split("\t")
        labels.setdefault(qid, {}).setdefault(kind, set()).add(document)
    lines = (DATA / "peps-supersession" / "queries.jsonl").read_text().splitlines()
    rows = list(map(json.loads, lines))
    plain = retrieval.plain_bm25s(retrieval.corpus("peps"), [row["text"] for row in rows])
    store = Store(made("chain"))
    ours = [store.ask(row["text"], is_gated=False) for row in rows]
    print(f"\n{'supersession':32} questions current@5   stale@5")
    for how, answers in (("bm25s stem+stop", plain), ("memtool", ours)):
        pairs = [
            (set(answer[:5]), labels[row["qid"]]) for answer, row in zip(answers, rows, strict=True)
        ]
        current = statistics.fmean(bool(ids & expected["current"]) for ids, expected in pairs)
        stale = statistics.fmean(
            bool(ids & expected.get("stale", set())) for ids, expected in pairs
        )
        print(f"{how:32} {len(rows):9} {current:9.3f} {stale:9.3f}")


def last_commit(place: Path) -> str:
    """Return the moment of the last commit of a repository."""
    show = ["git", "log", "-1", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%cd"]
    return subprocess.run(
        show, check=True, cwd=place, env=PLAIN_GIT, capture_output=True, text=True
    ).stdout.strip()


def own_store(name: str) -> Store:
    """Make a clone of our own repository, or the demo, in place of an earlier one."""
    place = FOLDER / name
    shutil.rmtree(place, ignore_errors=True)
    make = {
        "own": ["git", "clone", "-q", str(ROOT), str(place)],
        "demo": [sys.executable, "-m", "memtool", "demo", str(place)],
    }
    subprocess.run(make[name], check=True, env=PLAIN_GIT, stdout=subprocess.DEVNULL)
    return Store(place, MEMTOOL_NOW=last_commit(place))


class Answer(NamedTuple):
    """How one question was answered: recall@5 as ranked and gated, and whether it shares a stem."""

    ranked: float
    gated: float
    shares_stem: bool


def own_memories() -> None:
    """Print how well the golden questions and the paraphrases find our memories and the demo's."""
    if not (ROOT / ".git").exists():
        print(f"\nour own memories: {ROOT} is not a git repository")
        return
    groups: dict[str, list[Answer]] = {}
    paraphrases = list(map(json.loads, PARAPHRASES.read_text(encoding="utf-8").splitlines()))
    for name in ("own", "demo"):
        store = own_store(name)
        if name == "own":
            golden = (ROOT / ".memory" / "golden.jsonl").read_text(encoding="utf-8").splitlines()
            groups["golden"] = answer_all(store, map(json.loads, golden))
        rows = [row for row in paraphrases if row["store"] == name]
        for place, half in enumerate(HALVES):
            groups[f"paraphrase {name}, {half}"] = answer_all(store, rows[place::2])
    for half in HALVES:
        parts = [groups[f"paraphrase {name}, {half}"] for name in ("own", "demo")]
        groups[f"paraphrase, {half}"] = [answer for part in parts for answer in part]
    print(f"\n{'':27}{'all: recall@5   gated':>31}{'no shared stem: recall@5   gated':>42}")
    for title, answers in groups.items():
        print(f"{title:27}{_recalls(answers):>31}{_recalls(_sharing_none(answers)):>42}")


def answer_all(store: Store, rows: Iterable[dict[str, Any]]) -> list[Answer]:
    """Ask the questions whose memories are in force, and name the others."""
    answers = []
    for row in rows:
        expected = row["expect"]
        memories = store.read_current(expected)
        if len(memories) < len(expected):
            print(f"{row['qid']}: left out, since a memory it expects is no longer in force")
            continue
        recalls = [
            len({*expected} & {*store.ask(row["query"], is_gated=is_gated)[:5]}) / len(expected)
            for is_gated in (False, True)
        ]
        stems = telling_stems(row["query"])
        shares_stem = any(stems & telling_stems(text, is_indexed=True) for text in memories)
        answers.append(Answer(*recalls, shares_stem))
    return answers


def telling_stems(text: str, *, is_indexed: bool = False) -> set[str]:
    """Return the stems of a text that are not stop words."""
    from memtool.index.analyzer import is_stop, terms

    return {term for term in terms(text, is_indexed=is_indexed) if not is_stop(term)}


def _sharing_none(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if not answer.shares_stem]


def _recalls(answers: Sequence[Answer]) -> str:
    if not answers:
        return "0"
    ranked = statistics.fmean(answer.ranked for answer in answers)
    gated = statistics.fmean(answer.gated for answer in answers)
    return f"{len(answers):4} {ranked:10.3f} {gated:7.3f}"


def _parts() -> list[tuple[str, Callable[[], None]]]:
    from memtool.index import scoring
    from memtool.search import ranking

    def put(module: Any, name: str, value: Any) -> Callable[[], None]:
        return lambda: setattr(module, name, value)

    return [
        ("all", lambda: None),
        ("no pairs", put(scoring, "PAIRS_WEIGHT", 0.0)),
        ("no titles and tags", put(scoring, "HEAD_WEIGHT", 0.0)),
        ("no grams", put(scoring, "GRAMS_WEIGHT", 0.0)),
        ("no recency", put(ranking, "RECENCY", 0.0)),
        ("no files", put(ranking, "GOVERNED", 0.0)),
    ]


def parts() -> None:
    """Print what is lost without each part of the ranking."""
    from memtool.index import scoring
    from memtool.search import ranking

    owners = (scoring, ranking)
    originals = [(owner, dict(vars(owner))) for owner in owners]
    stores = {name: Store(made(name)) for name in ("peps", "adrs", "beads", "beads-dated")}
    names = ("peps", "adrs", "beads", "peps as of", "beads as of, files")
    print(f"\n{'recall@5 / nDCG@10':24}" + "".join(f" {name:11}" for name in names))
    for name, change in _parts():
        change()
        line = f"{name:24}"
        for set_ in ("peps", "adrs", "beads"):
            rows = questions(set_)
            measures = [scores(stores[set_].ask(row["text"], is_gated=False), g) for row, g in rows]
            line += _pair(measures)
        dated = [row for row in questions("peps") if row[0].get("asof")]
        line += _pair([scores(stores["peps"].as_of(row), g) for row, g in dated])
        rows = questions("beads")
        line += _pair(
            [scores(stores["beads-dated"].as_of(row, row.get("files", ())), g) for row, g in rows]
        )
        print(line, flush=True)
        for owner, names in originals:
            vars(owner).update(names)


def _pair(measures: list[tuple[float, float, float]]) -> str:
    recall, gain, _rank = (statistics.fmean(column) for column in zip(*measures, strict=True))
    return f" {recall:.3f}/{gain:.3f}"


def main() -> int:
    """Run what the arguments name."""
    options = [option for option in sys.argv[1:] if option != MODEL_OPTION]
    if options not in ([], ["--parts"], ["--own"]):
        print(__doc__)
        return 2
    if options == ["--own"]:
        own_memories()
        return 0
    if not DATA.is_dir():
        print(f"the retrieval sets are not there: {DATA}", file=sys.stderr)
        return 1
    sets()
    conversations()
    supersession()
    own_memories()
    if options:
        parts()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
