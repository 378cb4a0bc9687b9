"""The answer gate between silence and noise, at several strictnesses and thresholds.

    python bench/silence.py              the curve of both halves
    python bench/silence.py --sweep      more points of it, on the tuning half
    python bench/silence.py --default    the default alone, of both halves

Asked are stores of all documents of the three sets of ../shared/data/retrieval (700 to 1,500), and
two stores of 60 of each, by `prose.search_prose` as `inject` asks; of what passes, what
scores at least the threshold is the block, at most five. Columns of questions with an answer in
the store: `hit`, those that have one in the block; `empty`, those that get nothing; `items` of a
block that is not empty. Columns of noise, each the share of prompts that get a block:

    talk     small talk
    coding   generic coding prompts, about no project
    other    questions of the other two sets, as from another project
    near     questions of the same set without an answer in the store: in a large one their
             documents were left out, in a small one they are not among the sixty

A number written `a/b` is that of the large stores and of the small ones. Questions of the last two
kinds are a sample by hash. Everything is split in two halves by place: the defaults were chosen on
the tuning half, before `other` and `near` were measured.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import quality
import retrieval

FOLDER = Path(tempfile.gettempdir()) / "memtool-silence"
SETS = ("peps", "adrs", "beads")
SMALL = 60
SEEDS = (1, 2)
MAX_REMOVED = 60
"""Answered documents that the large store for near misses lacks."""
MAX_SAMPLED = 60
"""Questions of one set that another store is asked, and near misses of a small store."""
MAX_ITEMS = 5
MAX_HITS = 15
HALVES = ("tuning", "held-out")

SMALL_TALK = """\
please continue
happy birthday!
thanks, that looks good
yes, go ahead
hello there
what do you think?
good morning, how are you today?
ok
that was great, thank you so much
let's take a break now
no, not like that
can you try again please
I am not sure about this
never mind
sounds good to me
what is your name?
tell me a joke
could you explain that a bit more?
I like it
where were we?
have a nice weekend
do you understand what I mean?
stop
keep going until it is done
sorry, I was away for lunch
you are very helpful
wait a moment
this is not what I asked for
see you tomorrow
who won the football game last night?
what's the weather like in Paris?
how long will it take?
write a poem about autumn
great work, now the next one
hmm, interesting
I will be back in ten minutes
is there anything else to do?
merry christmas to you and your family
recommend a good recipe for pancakes
do it
my cat is sleeping on the keyboard
can I ask you something?
undo that
thank you, we are finished for today
what should I cook for dinner tonight?
why not?
I don't agree with you
make it shorter
which movie should we watch?
perfect!
just do what you think is best
how old are you?
can you repeat the last answer?
next
I'm tired, let's stop here
translate hello to Spanish
go on
what time is it?
nice, I love it
please be more careful next time""".splitlines()

CODING = """\
fix the bug
write a unit test for this function
refactor this class to make it more readable
add a docstring to every function in this file
why does this loop never end?
rename the variable to something better
reverse a linked list in python
how do I sort a dictionary by value?
run the tests and fix what fails
explain what this code does
convert this script to typescript
add type hints everywhere
write a regular expression that matches email addresses
implement binary search
clean up the imports
how do I exit vim?
make the button blue and center it
write a function that computes fibonacci numbers
what is the difference between a list and a tuple?
commit the changes with a good message
create a new file called notes
handle the exception properly instead of ignoring it
remove the dead code
optimize this query, it is slow
add a loading spinner to the page
generate some random test data
the build is broken, please have a look
split this function into smaller ones
how do I merge two branches?
write a shell script that counts lines
add logging to this module
what does this error message mean?
format the code
parse a csv file and print the third column
replace the for loop with a comprehension
add a new column to the table
write a README for this project
use async and await here
review my pull request
fix the typo in the comment
how do I undo the last commit?
update the dependencies to the latest versions
write a small web scraper
add input validation to the form
move this helper to another module
the test fails on my machine but passes on yours
make this function faster
check whether a string is a palindrome
turn this into a class
add a dark mode toggle to the settings page
why is this variable undefined?
install the package and try again
read a json file and pretty print it
write a decorator that measures time
simplify the if statement
draw a bar chart of the results
deduplicate the items of an array in javascript
add a retry with a delay
print hello world in rust
show me the diff""".splitlines()

Point = tuple[float, float, float, float]
"""Share, most, floor and threshold."""

DEFAULT: Point = (0.4, 2.4, 1.0, 0.6)
POINTS: tuple[Point, ...] = (
    (0.5, 3.0, 0.0, 0.5),
    (0.35, 2.2, 1.0, 0.6),
    (0.4, 2.4, 1.0, 0.5),
    DEFAULT,
    (0.4, 2.4, 1.0, 0.7),
    (0.5, 3.0, 1.5, 0.6),
    (0.6, 3.5, 1.0, 0.8),
)
"""The first is what it was; the others are what it may be."""

SWEEP: tuple[Point, ...] = tuple(
    (share, sufficient, floor, 0.6)
    for share, sufficient in ((0.3, 2.0), (0.35, 2.2), (0.4, 2.4), (0.5, 3.0), (0.6, 3.5))
    for floor in (0.8, 1.0, 1.2, 1.5)
)

Row = tuple[str, set[str]]
"""A prompt and the ids that answer it: none of noise."""

QUESTIONS = "questions"
COLUMNS = ("hit", "empty", "talk", "coding", "other", "near", "items")


class Store(quality.Store):
    """A store that remembers what it answered."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.scored: dict[tuple[Any, ...], list[Any]] = {}

    def block(self, text: str, point: Point) -> list[str]:
        """Return the ids that a prompt is answered with at a point of the curve."""
        from memtool.search.answer_gate import find_best_score
        from memtool.search.prose import search_prose

        *strictness, threshold = point
        key = (text, *strictness)
        if key not in self.scored:
            scope = self.scope(text)
            names = ("inject.min_coverage", "inject.sufficient_rare_words", "inject.min_rare_words")
            values = dict(zip(names, strictness, strict=True))
            scope = scope.replace(config=scope.config.replace(values=values))
            self.scored[key] = list(search_prose(scope, text, (), MAX_HITS).hits)
        hits = self.scored[key]
        scores = [(hit.topic, hit.score) for hit in hits]
        passing = [
            hit.record.id
            for hit in hits
            if hit.score >= threshold * find_best_score(hit.topic, scores)
        ]
        return passing[:MAX_ITEMS]


class Trial(NamedTuple):
    """Prompts of one kind, QUESTIONS or a column of noise, for one store."""

    name: str
    is_small: bool
    kind: str
    store: Store
    rows: Sequence[Row]


def trials() -> Iterator[Trial]:
    """Yield what each store is asked; the stores are imported once."""
    rows = {
        name: [(row["text"], set(grades)) for row, grades in quality.questions(name)]
        for name in SETS
    }
    samples = {name: sample_by_hash([text for text, _ids in rows[name]]) for name in SETS}
    for name in SETS:
        foreign = [text for other in SETS if other != name for text in samples[other]]
        noise = {"talk": SMALL_TALK, "coding": CODING, "other": foreign}
        documents = {row["id"]: row for row in retrieval.corpus(name)}
        answers = sorted({id_ for _text, ids in rows[name] for id_ in ids if id_ in documents})

        removed = {*sample_by_hash(answers, MAX_REMOVED)}
        near = [text for text, ids in rows[name] if ids <= removed]
        large = Store(quality.made(name))
        lacking = import_store(f"{name}-without-{MAX_REMOVED}", documents, {*documents} - removed)
        yield Trial(name, False, QUESTIONS, large, rows[name])
        yield Trial(name, False, "near", lacking, without_answer(near))
        for kind, prompts in noise.items():
            yield Trial(name, False, kind, large, without_answer(prompts))

        for seed in SEEDS:
            label = f"{name}-{SMALL}-{seed}"
            drawn = draw(f"{name} {seed}", documents, answers)
            answered = [(text, ids & drawn) for text, ids in rows[name] if ids & drawn]
            near = [text for text, ids in rows[name] if not ids & drawn]
            small = import_store(label, documents, drawn)
            yield Trial(label, True, QUESTIONS, small, answered)
            yield Trial(label, True, "near", small, without_answer(sample_by_hash(near)))
            for kind, prompts in noise.items():
                yield Trial(label, True, kind, small, without_answer(prompts))


def draw(seed: str, ids: Collection[str], answers: Sequence[str]) -> set[str]:
    """Draw the documents of a small store; half of them answer a question."""
    generator = random.Random(seed)
    drawn = generator.sample(answers, SMALL // 2)
    drawn += generator.sample(sorted(set(ids) - set(drawn)), SMALL - len(drawn))
    return set(drawn)


def sample_by_hash(texts: Sequence[str], size: int = MAX_SAMPLED) -> list[str]:
    """Return at most `size` of the texts, chosen by their hashes."""
    return sorted(texts, key=lambda text: hashlib.blake2b(text.encode()).digest())[:size]


def without_answer(prompts: Sequence[str]) -> list[Row]:
    """Return rows of prompts that no document answers."""
    return [(text, set()) for text in prompts]


def import_store(label: str, documents: Mapping[str, Any], ids: Collection[str]) -> Store:
    """Import some documents into a repository of their own, unless that was done before."""
    folder = FOLDER / label
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(documents[id_]) + "\n" for id_ in sorted(ids))
    quality.IMPORTS[label] = (str(folder), ())
    return Store(quality.made(label))


def measure(plan: Sequence[Trial], point: Point, half: slice) -> dict[str, float]:
    """Return each column of a point of the curve: the mean over the stores."""
    shares: dict[str, list[float]] = {column: [] for column in COLUMNS}
    sizes: list[int] = []
    for trial in plan:
        blocks = [(trial.store.block(text, point), ids) for text, ids in trial.rows[half]]
        empty = statistics.fmean(not block for block, _ids in blocks)
        if trial.kind != QUESTIONS:
            shares[trial.kind].append(1 - empty)
            continue
        shares["empty"].append(empty)
        shares["hit"].append(statistics.fmean(bool(ids & {*block}) for block, ids in blocks))
        sizes += [len(block) for block, _ids in blocks if block]
    means = {column: statistics.fmean(each) for column, each in shares.items() if each}
    return means | {"items": statistics.fmean(sizes)}


def print_curve(plan: Sequence[Trial], points: Sequence[Point], place: int) -> None:
    """Print the columns of each point in one half, for large and small stores."""
    print(f"\n{HALVES[place]} half\nshare most floor threshold  " + _cells(COLUMNS))
    for point in points:
        large, small = (
            measure([t for t in plan if t.is_small == is_small], point, slice(place, None, 2))
            for is_small in (False, True)
        )
        share, sufficient, floor, threshold = point
        cells = _cells([f"{large[column]:.3f}/{small[column]:.3f}" for column in COLUMNS])
        print(f"{share:5} {sufficient:4} {floor:5} {threshold:9}  {cells}", flush=True)


def print_stores(plan: Sequence[Trial], point: Point) -> None:
    """Print what a point of the curve means in each store, both halves together."""
    print(f"\neach store at {' '.join(map(str, point))}\n{'':12} {_cells(COLUMNS)}")
    for name in dict.fromkeys(trial.name for trial in plan):
        means = measure([trial for trial in plan if trial.name == name], point, slice(None))
        print(f"{name:12} {_cells([f'{means[column]:.3f}' for column in COLUMNS])}", flush=True)


def _cells(texts: Sequence[str]) -> str:
    return "  ".join(f"{text:>11}" for text in texts)


def main() -> int:
    """Run what the arguments name."""
    options = [option for option in sys.argv[1:] if option != quality.MODEL_OPTION]
    if options not in ([], ["--sweep"], ["--default"]):
        print(__doc__)
        return 2
    if not retrieval.DATA.is_dir():
        print(f"the retrieval sets are not there: {retrieval.DATA}", file=sys.stderr)
        return 1
    plan = list(trials())
    if options == ["--sweep"]:
        print_curve(plan, SWEEP, 0)
        return 0
    for place in range(len(HALVES)):
        print_curve(plan, (DEFAULT,) if options else POINTS, place)
    print_stores(plan, DEFAULT)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
