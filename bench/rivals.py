"""Other engines over the same memories, each asked in a fresh process.

    python bench/rivals.py bm25s|fts5 INDEX "a question"
    python bench/rivals.py libraries REPOSITORY ""

`bm25s` maps its saved index and retrieves ten; `fts5` asks SQLite for the ten best that hold any
of the words. Neither checks whether a file has changed. `libraries` builds what memtool builds, the
usual way: python-frontmatter, markdown-it-py and bm25s over every file.
"""

from __future__ import annotations

import sys
from pathlib import Path

ENGINES = ("bm25s", "fts5")


def texts(folder: Path) -> tuple[list[str], list[str]]:
    """Return the paths of the memories and what each file holds."""
    paths = sorted((folder / ".memory").rglob("*.md"))
    return [str(path) for path in paths], [path.read_text(encoding="utf-8") for path in paths]


def build(engine: str, folder: Path, place: Path) -> None:
    """Build the index of an engine."""
    place.parent.mkdir(parents=True, exist_ok=True)
    paths, documents = texts(folder)
    if engine == "bm25s":
        import bm25s

        made = bm25s.BM25()
        made.index(bm25s.tokenize(documents, show_progress=False), show_progress=False)
        made.save(str(place))
        return
    import sqlite3

    with sqlite3.connect(place) as base:
        base.execute("CREATE VIRTUAL TABLE m USING fts5(path UNINDEXED, text, content='')")
        base.executemany(
            "INSERT INTO m (rowid, path, text) VALUES (?, ?, ?)",
            zip(range(len(paths)), paths, documents, strict=True),
        )
        base.execute("INSERT INTO m (m) VALUES ('optimize')")


def ask(engine: str, place: str, question: str) -> None:
    """Ask an engine for the ten best."""
    if engine == "bm25s":
        import bm25s

        made = bm25s.BM25.load(place, mmap=True)
        tokens = bm25s.tokenize([question], show_progress=False)
        print(made.retrieve(tokens, k=10, show_progress=False))
        return
    import sqlite3

    words = " OR ".join(f'"{word}"' for word in question.split())
    with sqlite3.connect(place) as base:
        print(
            base.execute(
                "SELECT rowid, rank FROM m WHERE m MATCH ? ORDER BY rank LIMIT 10", (words,)
            ).fetchall()
        )


def libraries(folder: Path) -> None:
    """Read, parse and index every file with the usual libraries."""
    import bm25s
    import frontmatter
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    corpus = []
    for path in sorted((folder / ".memory").rglob("*.md")):
        post = frontmatter.load(str(path))
        parser.parse(post.content)
        corpus.append(f"{post.metadata['title']}\n{post.content}")
    made = bm25s.BM25()
    made.index(bm25s.tokenize(corpus, show_progress=False), show_progress=False)


if __name__ == "__main__":
    name, target, text = sys.argv[1:]
    if name == "libraries":
        libraries(Path(target))
    else:
        ask(name, target, text)
