"""The answer gate between silence and noise, at several strictnesses and thresholds.

    python bench/silence.py              the curve of both halves
    python bench/silence.py --sweep      more points of it, on the tuning half

Asked are stores of all documents of the three sets of ../shared/data/retrieval (700 to 1,500), and
two stores of 60 of each, by `prose.search_prose` as `inject` asks; of what passes, what
scores at least the threshold is the block, at most five. Columns: `hit`, questions with an answer
in the store that have one in the block; `empty`, those that get nothing; `talk`, small talk that
gets a block, and `coding`, generic coding prompts that do, about no project; `items` of a block
that is not empty. A number written `a/b` is that of the large stores and of the small ones.

Everything is split in two halves by place: the defaults were chosen on the tuning half.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import quality
import retrieval

FOLDER = Path(tempfile.gettempdir()) / "memtool-silence"
SMALL = 60
SEEDS = (1, 2)
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

POINTS: tuple[tuple[float, float, float, float], ...] = (
    (0.5, 3.0, 0.0, 0.5),
    (0.4, 2.4, 0.0, 0.5),
    (0.4, 2.4, 1.0, 0.3),
    (0.4, 2.4, 1.0, 0.5),
    (0.4, 2.4, 1.0, 0.6),
    (0.4, 2.4, 1.0, 0.7),
    (0.4, 2.4, 1.0, 0.8),
    (0.6, 3.5, 1.0, 0.8),
)
"""Share, most, floor and threshold: what it was, and what it may be."""

SWEEP: tuple[tuple[float, float, float, float], ...] = tuple(
    (share, sufficient, floor, 0.5)
    for share, sufficient in ((0.3, 2.0), (0.35, 2.4), (0.4, 2.4), (0.45, 2.4), (0.5, 3.0))
    for floor in (0.0, 0.8, 1.0, 1.2)
)

Row = tuple[str, set[str]]


class Store(quality.Store):
    """A store with the questions that it can answer."""

    def __init__(self, name: str, place: Path, rows: Sequence[Row]) -> None:
        from memtool.store.context import Context

        self.name, self.rows = name, rows
        self.ws = Context.at(str(place), os.environ | {"MEMTOOL_NOW": quality.NOW})
        self.scored: dict[tuple[Any, ...], list[tuple[str, float]]] = {}

    def block(self, text: str, point: tuple[float, float, float, float]) -> list[str]:
        """Return the ids that a prompt is answered with at a point of the curve."""
        from memtool.search.prose import search_prose
        from memtool.search.scope import build_scope

        *strictness, threshold = point
        key = (text, *strictness)
        if key not in self.scored:
            scope = build_scope(self.ws, self._all, self.ws.clock.now)
            names = ("inject.min_coverage", "inject.sufficient_rare_words", "inject.min_rare_words")
            values = dict(zip(names, strictness, strict=True))
            scope = scope.replace(config=scope.config.replace(values=values))
            hits = search_prose(scope, text, (), MAX_HITS).hits
            self.scored[key] = [(hit.record.id, hit.score) for hit in hits]
        scored = self.scored[key]
        least = threshold * max((score for _id, score in scored), default=0.0)
        return [id_ for id_, score in scored if score >= least][:MAX_ITEMS]


def stores() -> list[Store]:
    """Return the large stores and the small ones, made once."""
    corpora = []
    for name in ("peps", "adrs", "beads"):
        rows = [(row["text"], set(grades)) for row, grades in quality.questions(name)]
        corpora.append(Store(name, quality.made(name), rows))
        corpora += [sample(name, seed, rows) for seed in SEEDS]
    return corpora


def sample(name: str, seed: int, rows: Sequence[Row]) -> Store:
    """Return a store of some documents of a set, half of them such that a question is about."""
    draw = random.Random(f"{name} {seed}")
    documents = {row["id"]: row for row in retrieval.corpus(name)}
    expected_ids = sorted({id_ for _text, ids in rows for id_ in ids if id_ in documents})
    sampled = draw.sample(expected_ids, SMALL // 2)
    sampled += draw.sample(sorted(documents.keys() - set(sampled)), SMALL - len(sampled))
    label = f"{name}-{SMALL}-{seed}"
    folder = FOLDER / label
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(documents[id_]) + "\n" for id_ in sorted(sampled)]
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    quality.IMPORTS[label] = (str(folder), ())
    sampled_ids = set(sampled)
    own = [(text, ids & sampled_ids) for text, ids in rows if ids & sampled_ids]
    return Store(label, quality.made(label), own)


def halves(rows: Sequence[Any], half: int) -> list[Any]:
    """Return every other row."""
    return list(rows[half::2])


def line(all_of: Sequence[Store], half: int, point: tuple[float, float, float, float]) -> str:
    """Return the numbers of a point of the curve."""
    columns: dict[str, list[str]] = {}
    for is_small in (False, True):
        group = [store for store in all_of if ("-" in store.name) == is_small]
        means: dict[str, list[float]] = {}
        sizes: list[int] = []
        for store in group:
            blocks = [(store.block(text, point), ids) for text, ids in halves(store.rows, half)]
            sizes += [len(block) for block, _ids in blocks if block]
            means.setdefault("hit", []).append(
                statistics.fmean(bool(ids.intersection(block)) for block, ids in blocks)
            )
            means.setdefault("empty", []).append(statistics.fmean(not b for b, _ids in blocks))
            for kind, prompts in (("talk", SMALL_TALK), ("coding", CODING)):
                got = [store.block(text, point) for text in halves(prompts, half)]
                means.setdefault(kind, []).append(statistics.fmean(map(bool, got)))
        for kind, each in means.items():
            columns.setdefault(kind, []).append(f"{statistics.fmean(each):.3f}")
        columns.setdefault("items", []).append(f"{statistics.fmean(sizes):.2f}")
    share, sufficient, floor, threshold = point
    cells = "  ".join(f"{'/'.join(pair):>11}" for pair in columns.values())
    return f"{share:5} {sufficient:4} {floor:5} {threshold:9}  {cells}"


def per_corpus(all_of: Sequence[Store], point: tuple[float, float, float, float]) -> None:
    """Print what a point of the curve means in each store."""
    print(f"\n{'store':10} questions    hit  empty   talk coding  items")
    for store in all_of:
        blocks = [(store.block(text, point), ids) for text, ids in store.rows]
        numbers = [
            statistics.fmean(bool(ids.intersection(block)) for block, ids in blocks),
            statistics.fmean(not block for block, _ids in blocks),
            *(
                statistics.fmean(bool(store.block(text, point)) for text in prompts)
                for prompts in (SMALL_TALK, CODING)
            ),
            statistics.fmean([len(block) for block, _ids in blocks if block]),
        ]
        cells = " ".join(f"{number:6.3f}" for number in numbers)
        print(f"{store.name:10} {len(blocks):9} {cells}", flush=True)


def main() -> int:
    """Run what the arguments name."""
    if sys.argv[1:] not in ([], ["--sweep"]):
        print(__doc__)
        return 2
    if not retrieval.DATA.is_dir():
        print(f"the retrieval sets are not there: {retrieval.DATA}", file=sys.stderr)
        return 1
    all_of = stores()
    titles = "  ".join(f"{name:>11}" for name in ("hit", "empty", "talk", "coding", "items"))
    for half in (0,) if sys.argv[1:] else (0, 1):
        print(f"\n{HALVES[half]} half\nshare most floor threshold  {titles}")
        for point in SWEEP if sys.argv[1:] else POINTS:
            print(line(all_of, half, point), flush=True)
    if not sys.argv[1:]:
        for point in (POINTS[0], POINTS[4]):
            print(f"\nshare {point[0]}, most {point[1]}, floor {point[2]}, threshold {point[3]}")
            per_corpus(all_of, point)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
