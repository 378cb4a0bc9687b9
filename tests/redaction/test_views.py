"""The views that leave lines out find what views of the whole text find, in linear time."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from effort import count_calls
from redaction import carriers, corpus, judged

from memtool.redaction import candidates, joins
from memtool.redaction.find import find

DOCS = Path(__file__).parents[2] / "docs"
STEP = 11
"""Of the made-up notes each so many-th is looked at in the fast test."""


def notes() -> Iterator[str]:
    """Yield every note of both corpora."""
    for split in ("tuned", "held", "fresh"):
        for draw in (corpus.secret_notes, corpus.personal_notes, corpus.benign_notes):
            yield from (note.text for note in draw(split, 1))
    for part in carriers.PARTS:
        for sample in (carriers.secret_samples, carriers.personal_samples, carriers.decoy_samples):
            yield from (note.text for note in sample(part, 1))


def unseen_notes() -> Iterator[str]:
    """Yield every note of the corpus that judges; only whether both ways agree is looked at."""
    for draw in (judged.secret_notes, judged.personal_notes, judged.harmless_notes):
        yield from (note.text for note in draw(1))


def documents() -> Iterator[str]:
    """Yield long texts in which notes of all kinds follow one another, and real ones."""
    all_notes, draw = list(notes()), random.Random(3)
    for glue in ("\n\n", "\n", "\r\n", " "):
        yield from (glue.join(draw.sample(all_notes, 12)) for _document in range(12))
    yield from (path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))


@pytest.mark.parametrize(
    "texts",
    [
        lambda: islice(notes(), 0, None, STEP),
        lambda: islice(documents(), 0, None, STEP),
        pytest.param(notes, marks=pytest.mark.slow),
        pytest.param(documents, marks=pytest.mark.slow),
    ],
    ids=["notes", "documents", "all notes", "all documents"],
)
def test_lines_that_are_left_out_hold_nothing(
    texts: Callable[[], Iterator[str]], monkeypatch: pytest.MonkeyPatch
):
    """The same is found where each round and each view reads the whole text."""
    by_windows = [(text, find(text)) for text in texts()]
    monkeypatch.setattr(joins, "make_windows", lambda text, *_spans: joins.JoinedText(text, []))
    monkeypatch.setattr(
        joins, "_view_around", lambda text, cuts: joins.JoinedText(text, cuts) if cuts else None
    )
    assert [text for text, findings in by_windows if find(text) != findings] == []


@pytest.mark.parametrize(
    "texts",
    [
        lambda: islice(notes(), 0, None, STEP),
        lambda: islice(unseen_notes(), 0, None, STEP),
        lambda: islice(documents(), 0, None, STEP),
        pytest.param(notes, marks=pytest.mark.slow),
        pytest.param(unseen_notes, marks=pytest.mark.slow),
        pytest.param(documents, marks=pytest.mark.slow),
    ],
    ids=["notes", "unseen notes", "documents", "all notes", "all unseen notes", "all documents"],
)
def test_what_no_trigger_is_near_holds_nothing(
    texts: Callable[[], Iterator[str]], monkeypatch: pytest.MonkeyPatch
):
    """The same is found in texts of any length with the cheap look and without."""
    monkeypatch.setattr(candidates, "MIN_LENGTH", 10**9)
    whole = [(text, find(text)) for text in texts()]
    monkeypatch.setattr(candidates, "MIN_LENGTH", 0)
    assert [text for text, findings in whole if find(text) != findings] == []


def test_a_heading_announces_the_last_row_of_a_long_table():
    rows = "\n".join(f"| user{number} | off |" for number in range(150))
    text = f"{'prose. ' * 900}\n\n| name | password |\n|---|---|\n{rows}\n| ann | Wm4xTq9ZbR2c |\n"
    (finding,) = find(text)
    assert text[finding.start : finding.end] == "Wm4xTq9ZbR2c"


def test_nothing_is_found_across_what_is_left_out():
    """A word that announces a secret at the end of a window takes no value of the next window."""
    lines = [f"line {number} of a text" for number in range(40)]
    text = "\n".join(["a `pass`word:", *lines, "cor_rect_Horse9x is a name", *lines])
    assert all(finding.end - finding.start < 100 for finding in find(text))


ROWS: dict[str, Callable[[random.Random], str]] = {
    "ssn": lambda r: f"ssn {r.randint(100, 665)}-{r.randint(10, 99)}-{r.randint(1000, 9999)}",
    "email": lambda r: f"mail jo{r.randint(1000, 9999)}@corp{r.randint(100, 999)}.org",
    "phone": lambda r: f"call +1 415 {r.randint(200, 999)} {r.randint(1000, 9999)}",
    "password": lambda r: f"password=Zk{r.randint(1000, 9999)}!Qx{r.randint(100, 999)}Lm",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("glue", ["\n", "; "])
def test_a_flood_of_findings_takes_no_longer_than_its_size(kind: str, glue: str):
    """Four times the text takes some four times the work: no finding looks at all the others."""
    draw = random.Random(7)
    rows = [ROWS[kind](draw) for _row in range(2_000)]
    find(glue.join(rows[:100]))  # patterns are compiled
    quarter = count_calls(find, glue.join(rows[:500]))
    assert count_calls(find, glue.join(rows)) < 5 * quarter
