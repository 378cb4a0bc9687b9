"""The shared index of a fleet at scale: a million memories on one OpenSearch node, and its answers.

    python bench/fleet_server.py                 1,000,000 memories of 1,000 repositories
    python bench/fleet_server.py 20000 100       20,000 memories of 100 repositories

The node is that of the tests (`tests/opensearch_cluster.py`), from Maven's cache. Memories are
passages of 25 to 54 words of the retrieval sets, analysed by memtool, under the titles of their
documents. Questions are those of the ADRs and PEPs. Printed are the rate and the bytes of the
index; then, by how many words a question sends, how many of the ten that all words would show are
among the hundred candidates, and how many of the candidates are passages of a document that
answers, beside all words; then milliseconds of a question from 1, 4 and 16 clients at once, beside
plain queries of OpenSearch for the same questions. Which words tell most is said by the statistics
of the client's own memories: 300 passages, or ten.
"""

from __future__ import annotations

import itertools
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from typing import Any

import retrieval
from retrieval import ROOT

sys.path.insert(0, str(ROOT / "tests"))

from opensearch_cluster import Cluster, why_not

from memtool.fleet import opensearch, rank
from memtool.fleet.backend import FleetCandidate, FleetQuery
from memtool.fleet.opensearch import TERMS_FIELD, OpenSearch, SearchServer
from memtool.fleet.publish import Partition, Publication
from memtool.index import analyzer, scoring
from memtool.index.scoring import Statistics

SETS = ("adrs", "peps", "beads")
ASKED = ("adrs", "peps")
SENDERS = 2
QUESTIONS = 100
COUNTS = (4, 8, 12, 16, 20)
CLIENTS = (1, 4, 16)
WITHIN_S = 60.0
HEAP = "2g"

Passage = tuple[str, str, list[str], str]
"""The document, its title as terms, the terms of the passage, and its words."""


@cache
def sources() -> list[tuple[str, str, list[tuple[str, list[str]]]]]:
    """Return id, analysed title, and words with their terms, of every document that is not tiny."""
    documents = []
    for name in SETS:
        for row in retrieval.corpus(name):
            words = [(word, analyzer.terms(word, is_indexed=True)) for word in row["text"].split()]
            title = " ".join(analyzer.terms(row["title"], is_indexed=True))
            if len(words) > 30:
                documents.append((f"{name}/{row['id']}", title, words))
    return documents


def passages(documents: Sequence[Any], seed: int) -> Iterator[Passage]:
    """Yield passages without end."""
    draw = random.Random(seed)
    while True:
        document, title, words = draw.choice(documents)
        begin = draw.randrange(max(1, len(words) - 30))
        window = words[begin : begin + draw.randint(25, 54)]
        yield (
            document,
            title,
            [term for _w, own in window for term in own],
            " ".join(word for word, _own in window),
        )


def text_of(passage: Passage) -> str:
    return f" {passage[1]} \n {' '.join(passage[2])} "


def send(url: str, first: int, repositories: int, each: int) -> float:
    """Publish some repositories; return the seconds that it took, without making the passages."""
    server = opensearch.parse_server(url, {})
    source = passages(sources(), seed=first)
    spent = 0.0
    for number in range(first, first + repositories):
        name = f"team{number % 12}/service-{number:05}"
        documents = {}
        for count, passage in enumerate(itertools.islice(source, each)):
            text = text_of(passage)
            id_ = f"sem-{count:05}"
            documents[id_] = {
                "repo": name,
                "id": id_,
                "gen": 1,
                "commit": "c" * 40,
                "type": "semantic",
                "path": f".memory/semantic/2026-10/{id_}.md",
                "tags": [passage[0]],
                "data": passage[3],
                "size": len(passage[3].encode()) + len(text.encode()),
                TERMS_FIELD: text,
            }
        begun = time.perf_counter()
        Partition(server, name).write(Publication(name, "c" * 40, "t" * 40, 1, documents, (), {}))
        spent += time.perf_counter() - begun
    return spent


def own_statistics(passages_: Sequence[Passage]) -> Callable[[scoring.Question], Statistics]:
    """Return what gives the statistics of a client that has these memories."""
    texts = [text_of(passage).encode() for passage in passages_]
    terms = [set(text.split()) for text in texts]
    heads = [set(scoring.split_head(text)) for text in texts]
    length, head_length = sum(len(text.split()) for text in texts), sum(map(len, heads))

    def of(question: scoring.Question) -> Statistics:
        df = {
            t: max(1, sum(t.encode() in passage_terms for passage_terms in terms))
            for t in question.weights
        }
        head_df = {
            t: max(1, sum(t.encode() in passage_heads for passage_heads in heads))
            for t in question.weights
        }
        return Statistics(len(texts), length, head_length, df, head_df)

    return of


def statistics_there(server: SearchServer) -> Callable[[scoring.Question], Statistics]:
    """Return what gives the statistics of the index: what a client could know at best."""

    def count(query: dict[str, Any]) -> int:
        answer = server.request(
            "POST", f"/{server.index}/_count", {"query": query}, timeout_s=WITHIN_S
        )
        return int(answer["count"])

    whole = count({"exists": {"field": "repo"}})

    def of(question: scoring.Question) -> Statistics:
        df = {t: max(1, count({"term": {TERMS_FIELD: t}})) for t in question.weights}
        return Statistics(whole, whole * 60, whole * 6, df, df)

    return of


def question_sets() -> list[tuple[str, frozenset[str]]]:
    """Return questions and the documents that answer each, the same for every run."""
    questions = [
        (text, frozenset(f"{name}/{id_}" for id_ in grades))
        for name in ASKED
        for text, grades in retrieval.questions(name)
    ]
    return random.Random(3).sample(questions, QUESTIONS)


def keys(hits: Sequence[FleetCandidate]) -> list[tuple[str, str]]:
    return [(hit.repository, hit.path) for hit in hits]


def documents_of(server: SearchServer, hits: Sequence[FleetCandidate]) -> list[str]:
    """Return which document each candidate is a passage of."""
    docs = [
        {"_id": f"{hit.repository}/{hit.path.rpartition('/')[2][:-3]}", "routing": hit.repository}
        for hit in hits
    ]
    path = f"/{server.index}/_mget?_source_includes=tags"
    rows = server.request("POST", path, {"docs": docs}, timeout_s=WITHIN_S)["docs"] if docs else []
    return [row["_source"]["tags"][0] for row in rows]


def by_words(server: SearchServer, documents: Sequence[Any]) -> None:
    """Print what fewer words cost, by the statistics that choose them."""
    own = list(itertools.islice(passages(documents, seed=99), 300))
    for called, statistics_of in (
        ("300 own memories", own_statistics(own)),
        ("10 own memories", own_statistics(own[:10])),
        ("the index itself", statistics_there(server)),
    ):
        same: dict[int, list[float]] = {count: [] for count in COUNTS}
        answering: dict[int, float] = dict.fromkeys((*COUNTS, 0), 0.0)
        sent = []
        for text, good in question_sets():
            question = scoring.parse_question(text)
            counted = statistics_of(question)
            wanted = rank.build_query(question, counted)
            sent.append(len(wanted.weights))
            whole = candidates(server, wanted, rank.MAX_TERMS)
            best = {
                (hit.candidate.repository, hit.candidate.path)
                for hit in rank.rank_candidates(question, whole, counted)[:10]
            }
            answering[0] += sum(document in good for document in documents_of(server, whole))
            for count in COUNTS:
                hits = candidates(server, wanted, count)
                same[count].append(len(best & set(keys(hits))) / max(1, len(best)))
                answering[count] += sum(document in good for document in documents_of(server, hits))
        print(f"\nwords by {called}; {statistics.mean(sent):.1f} telling words a question")
        print("words  of the ten, among the hundred   passages of what answers, beside all words")
        for count in COUNTS:
            share = answering[count] / max(1.0, answering[0])
            print(f"{count:5}  {statistics.mean(same[count]):27.3f}   {share:20.3f}")


def candidates(server: SearchServer, wanted: FleetQuery, words: int) -> list[FleetCandidate]:
    """Return candidates by the words that tell most, so many of them."""
    return OpenSearch(server).find_candidates(telling_most(wanted, words), WITHIN_S)


def telling_most(wanted: FleetQuery, words: int) -> FleetQuery:
    """Return a question with so many of its words, those that tell most."""
    return wanted.replace(weights=dict(itertools.islice(wanted.weights.items(), words)))


def at_once(clients: int, work: Callable[[int], object], count: int) -> str:
    """Return rate and percentiles of some work with several concurrent clients."""
    times_ms: list[float] = []

    def time_call(number: int) -> None:
        begun = time.perf_counter()
        work(number)
        times_ms.append((time.perf_counter() - begun) * 1000)

    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        list(threads.map(time_call, range(count)))
    rate = count / (time.perf_counter() - begun)
    p95 = statistics.quantiles(times_ms, n=20)[18]
    return f"{rate:6.0f}/s {statistics.median(times_ms):7.1f} {p95:7.1f}"


def latencies(server: SearchServer, documents: Sequence[Any]) -> None:
    """Print milliseconds of memtool's questions and of plain queries."""
    own = list(itertools.islice(passages(documents, seed=99), 300))
    statistics_of = own_statistics(own)
    texts = [text for text, _good in question_sets()]
    questions = list(map(scoring.parse_question, texts))
    wanted = [rank.build_query(question, statistics_of(question)) for question in questions]
    whole = [question.weights for question in questions]

    def plain(body: Callable[[int], dict[str, Any]]) -> Callable[[int], object]:
        path = f"/{server.index}/_search?request_cache=false"
        return lambda n: server.request("POST", path, body(n % len(texts)), timeout_s=WITHIN_S)

    def match(number: int, **extra: Any) -> dict[str, Any]:
        return {"query": {"match": {TERMS_FIELD: " ".join(whole[number])}}, **extra}

    ways: dict[str, Callable[[int], object]] = {
        "memtool, all telling words": lambda n: OpenSearch(server).find_candidates(
            wanted[n % len(texts)], WITHIN_S
        ),
        "memtool, 8 of them": lambda n: candidates(server, wanted[n % len(texts)], 8),
        "memtool, one repository": lambda n: OpenSearch(server).find_candidates(
            wanted[n % len(texts)].replace(repositories=("team1/service-00001",)), WITHIN_S
        ),
        "plain match, all words, 10 hits, counted": plain(
            lambda n: match(n, track_total_hits=True)
        ),
        "plain match, all words, 10 hits": plain(lambda n: match(n, track_total_hits=False)),
        "plain match, all words, 100 hits": plain(
            lambda n: match(n, track_total_hits=False, size=100)
        ),
    }
    print(f"\n{'':42}" + "".join(f"  {count:2} at once: rate, p50, p95 ms" for count in CLIENTS))
    for called, work in ways.items():
        for number in range(20):
            work(number)
        rows = [
            at_once(count, work, QUESTIONS if count == 1 else max(QUESTIONS, 10 * count))
            for count in CLIENTS
        ]
        print(f"{called:42}" + "  ".join(f"{row:>30}" for row in rows), flush=True)


def main() -> None:
    memories, repositories = map(int, sys.argv[1:3] or (1_000_000, 1_000))
    if reason := why_not():
        raise SystemExit(reason)
    each = memories // repositories
    with Cluster(heap=HEAP) as cluster:
        node = cluster.start_single()
        server = opensearch.parse_server(f"{node.url}/memories", {})
        opensearch.prepare(server, shards=2, replicas=0, timeout_s=WITHIN_S)
        documents = sources()
        begun = time.perf_counter()
        share = repositories // SENDERS
        with ProcessPoolExecutor(SENDERS) as processes:
            jobs = [
                processes.submit(send, server.name, n * share, share, each) for n in range(SENDERS)
            ]
            spent = max(job.result() for job in jobs)
        whole = time.perf_counter() - begun
        begun = time.perf_counter()
        server.request("POST", f"/{server.index}/_refresh", timeout_s=600)
        refreshed = time.perf_counter() - begun
        server.request("POST", f"/{server.index}/_flush", timeout_s=600)
        stats = server.request(
            "GET", f"/{server.index}/_stats/docs,store,segments", timeout_s=WITHIN_S
        )
        total = stats["_all"]["primaries"]
        count, size = total["docs"]["count"], total["store"]["size_in_bytes"]
        print(
            f"{count:,} documents of {repositories:,} repositories, {SENDERS} senders: "
            f"{whole:.0f} s with making them, {spent:.0f} s of sending, "
            f"{count / spent:,.0f}/s; refresh {refreshed:.1f} s"
        )
        print(
            f"{size / 1e6:,.0f} MB, {size / count:.0f} bytes a document, "
            f"{total['segments']['count']} segments",
            flush=True,
        )
        by_words(server, documents)
        latencies(server, documents)


if __name__ == "__main__":
    main()
