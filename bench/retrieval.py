"""The retrieval sets of `../shared/data/retrieval`, and plain bm25s on them.

`quality.py` and `silence.py` read them here. The sets lie beside the repository and are not part of
it. Plain bm25s is its own tokenizer with its English stop words and the Snowball stemmer.
"""

from __future__ import annotations

import gzip
import json
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data" / "retrieval"

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


def plain_bm25s(rows: list[dict], queries: list[str]) -> list[list[str]]:
    """Answer with bm25s alone; documents at score 0 are no answers, ties go by id."""
    import bm25s
    import Stemmer

    options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english"), "show_progress": False}
    retriever = bm25s.BM25()
    texts = [f"{row['title']}\n{row['text']}" for row in rows]
    retriever.index(bm25s.tokenize(texts, return_ids=False, **options), show_progress=False)
    answers = []
    for tokens in bm25s.tokenize(queries, return_ids=False, **options):
        doc_scores = retriever.get_scores(tokens) if tokens else [0.0] * len(rows)
        order = sorted(range(len(rows)), key=lambda n: (-doc_scores[n], rows[n]["id"]))
        answers.append([rows[n]["id"] for n in order[:10] if doc_scores[n] > 0])
    return answers
