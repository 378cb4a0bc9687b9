"""Retrieval on real questions, beside plain bm25s; and what a cold search costs.

    python bench/retrieval.py            recall@5 and nDCG@10 on the three tuning sets
    python bench/retrieval.py cost       build time, size and cold CPU at 1,000 and 10,000 documents

The sets are read from `../shared/data/retrieval` beside the repository and are not part of it.
Plain bm25s is its own tokenizer with its English stop words and the Snowball stemmer.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "retrieval"
SETS = ("peps", "adrs", "beads")
ROUNDS = 15

sys.path.insert(0, str(ROOT))


def corpus(name: str) -> list[dict]:
    """Read a corpus; one line of the PEPs is not valid JSON and is passed over."""
    rows = []
    with gzip.open(DATA / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            try:
                rows.append(json.loads(line))
            except ValueError:
                print(f"{name}: a line is not JSON, passed over", file=sys.stderr)
    return rows


def questions(name: str) -> list[tuple[str, dict[str, int]]]:
    """Read the questions that have an answer, each with the grades of its documents."""
    grades: dict[str, dict[str, int]] = {}
    for line in (DATA / name / "qrels.tsv").read_text().splitlines():
        qid, document, grade = line.split("\t")
        grades.setdefault(qid, {})[document] = int(grade)
    rows = map(json.loads, (DATA / name / "queries.jsonl").read_text().splitlines())
    return [(row["text"], grades[row["qid"]]) for row in rows if row["qid"] in grades]


def scores(ranked: list[str], grades: dict[str, int]) -> tuple[float, float]:
    """Return recall@5 and nDCG@10 of one answer."""
    gain = sum(grades.get(id_, 0) / math.log2(n + 2) for n, id_ in enumerate(ranked[:10]))
    ideal = sum(g / math.log2(n + 2) for n, g in enumerate(sorted(grades.values())[:-11:-1]))
    return sum(id_ in grades for id_ in ranked[:5]) / len(grades), gain / ideal


def documents(rows: list[dict]) -> list:
    """Turn rows of a corpus into documents of the index."""
    from memtool.index.scoring import Document

    found = []
    for row in rows:
        meta = row["meta"]
        tags = " ".join([*meta.get("tags", []), meta.get("author") or ""])
        fields = (("title", row["title"]), ("tags", tags), ("body", row["text"]))
        found.append(Document(row["id"], fields))
    return found


def plain_bm25s(rows: list[dict], asked: list[str]) -> list[list[str]]:
    """Answer with bm25s alone; documents at score 0 are no answers, ties go by id."""
    import bm25s
    import Stemmer

    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    retriever = bm25s.BM25()
    texts = [f"{row['title']}\n{row['text']}" for row in rows]
    retriever.index(bm25s.tokenize(texts, return_ids=False, **options), show_progress=False)
    answers = []
    for tokens in bm25s.tokenize(asked, return_ids=False, **options):
        found = retriever.get_scores(tokens) if tokens else [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda n: (-found[n], rows[n]["id"]))
        answers.append([rows[n]["id"] for n in order[:10] if found[n] > 0])
    return answers


def quality() -> None:
    """Print recall@5 and nDCG@10 of each set."""
    from memtool.index import build
    from memtool.index.postings import Segment
    from memtool.index.scoring import question

    print("set    documents questions   bm25s stem+stop   words alone   memtool      ms/question")
    for name in SETS:
        rows, asked = corpus(name), questions(name)
        files = build.build(documents(rows))
        segment = Segment({file: memoryview(data) for file, data in files.items()})
        read = [question(text) for text, _grades in asked]
        words = [[segment.key(n) for n, _s in segment.best(q.weights, 10)] for q in read]
        start = time.process_time()
        ours = [[segment.key(n) for n, _score, _parts in segment.search(q, 10)] for q in read]
        each_ms = (time.process_time() - start) / len(asked) * 1000
        line = f"{name:6} {len(rows):9} {len(asked):9}  "
        for answers in (plain_bm25s(rows, [text for text, _grades in asked]), words, ours):
            pairs = [scores(answer, g) for answer, (_t, g) in zip(answers, asked, strict=True)]
            line += f"  {statistics.fmean(p[0] for p in pairs):.3f}/"
            line += f"{statistics.fmean(p[1] for p in pairs):.3f}  "
        print(f"{line} {each_ms:10.1f}")


COLD = """
import sys
from memtool.index.postings import Segment
from memtool.index.scoring import question
held = Segment.open(sys.argv[1])
hits = held.search(question(sys.argv[2]), 10)
print([held.key(number) for number, _score, _parts in hits])
"""
QUERIES = ("git tree object cache", "why does the import of modules fail on startup with an error?")


def cpu_s(*args: str) -> float:
    """Return the CPU time of one process of this interpreter."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *args], check=True, cwd=ROOT, env=env, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cost() -> None:
    """Print what building and one cold question cost, as multiples of `python -c pass`."""
    from memtool.index import build
    from memtool.index.scoring import Document

    passages = [
        Document(f"{name}-{row['id']}-{start:06}", (("title", row["title"]), ("body", piece)))
        for name in SETS
        for row in corpus(name)
        for start in range(0, len(row["text"]), 1500)
        if len(piece := row["text"][start : start + 1500]) > 500
    ]
    print(f"{len(passages)} passages of 500 to 1,500 characters")
    passages *= 1 + 10_000 // len(passages)
    passages = [Document(f"{n:06}-{p.key}", p.fields) for n, p in enumerate(passages)]
    for count in (1_000, 10_000):
        step = len(passages) // count
        start = time.process_time()
        files = build.build(passages[::step][:count])
        built_s = time.process_time() - start
        size = sum(map(len, files.values()))
        print(f"{count} documents: built in {built_s:.1f} s CPU, {size / 1e6:.1f} MB")
        with tempfile.TemporaryDirectory() as folder:
            for name, data in files.items():
                Path(folder, name).write_bytes(data)
            for query in QUERIES:
                cpu_s("-c", COLD, folder, query)
                pairs = [(cpu_s("-c", "pass"), cpu_s("-c", COLD, folder, query))
                         for _round in range(ROUNDS)]  # fmt: skip
                ratio = statistics.median(ours / base for base, ours in pairs)
                base_ms = statistics.median(base for base, _ours in pairs) * 1000
                print(f"  {ratio:.2f} x python -c pass ({base_ms:.0f} ms): {query}")


def main() -> int:
    """Run what the first argument names."""
    if not DATA.is_dir():
        print(f"the retrieval sets are not there: {DATA}", file=sys.stderr)
        return 1
    if sys.argv[1:] == ["cost"]:
        cost()
    elif sys.argv[1:]:
        print(__doc__)
        return 2
    else:
        quality()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
