"""Semantic search: memories that mean what a question means, though they share no word with it.

A model of static embeddings is a table with one vector for each token. The vector of a text is the
mean of its tokens', and two texts are as near as the cosine of theirs. This is the one module that
knows model2vec; it registers as a stage, whose matcher adds the cosines to the score by words.

Only the user's own settings name a model, as `search.semantic`: a folder, or a name among the
models that Hugging Face's tools have put on this disk. A repository cannot name one, a folder is
never looked for in it, and nothing is ever downloaded. A model is numbers and a list of tokens;
nothing in it is run.

The vectors of the memories are kept for each worktree, by blob and as bytes: one for each number,
so that 10,000 memories with 256 numbers each take 2.5 MB. With another model, or where they are
damaged, all of them are made again; otherwise those of memories that are new.
"""

from __future__ import annotations

import json
import os
from threading import RLock

from memtool import installation
from memtool.errors import MemtoolError
from memtool.index.scoring import HEAD_FIELDS
from memtool.index.text import fields
from memtool.store import cache, kept
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from memtool.index.reader import Catalog, IndexReader
    from memtool.store.context import Context
    from memtool.store.tree import Record

KEY = "search.semantic"
PACKAGES = frozenset({"model2vec", "huggingface_hub", "safetensors", "tokenizers", "tqdm"})
"""What the extra `semantic` brings, as far as it is imported from here."""

KIND = "vectors 2"
"""What is kept: the ids of the blobs in hexadecimal, sorted, a line feed, and a row for each."""

LAYOUTS = (
    ("config.json", "model.safetensors", "tokenizer.json"),
    ("config_sentence_transformers.json", "model.safetensors", "tokenizer.json"),
    (
        "config_sentence_transformers.json",
        os.path.join("0_StaticEmbedding", "model.safetensors"),
        os.path.join("0_StaticEmbedding", "tokenizer.json"),
    ),
)
"""The files of a model that model2vec reads: settings, vectors, tokens."""


MEANING = 0.5
"""What the memory that is nearest to a question by its meaning gains, beside 1.0 for the one that
is best by its words; others gain by their share of its cosine. So a full sentence model was added
when it was measured: recall@5 +.016 to +.028 over words alone. A sum of such scores was better
there than one of ranks, on all eight sets."""

NEAREST = 30
"""So many of the nearest are found though they share no word with the question ..."""

LEAST_COSINE = 0.3
"""... if they are so near; not measured, as it depends on the model."""


class SemanticMatcher(Value):
    """Finds memories by how near they are to a question by meaning: number to cosine, -1 to 1."""

    cosines: Mapping[int, float]

    def matches(self, allowed: Callable[[int], bool]) -> list[int]:
        """Return the allowed documents that are nearest by meaning, with all that are as near."""
        nearest: list[int] = []
        for number in sorted(self.cosines, key=self.cosines.__getitem__, reverse=True):
            cosine = self.cosines[number]
            is_full = len(nearest) >= NEAREST and cosine < self.cosines[nearest[-1]]
            if cosine < LEAST_COSINE or is_full:
                break
            if allowed(number):
                nearest.append(number)
        return nearest

    def add(self, scores: Mapping[int, float], matches: Sequence[int]) -> dict[int, float]:
        """Return scores with the shares of the cosine of the nearest match."""
        if not matches:
            return dict(scores)
        nearest = self.cosines[matches[0]]
        return {
            number: score + MEANING * max(0.0, self.cosines[number]) / nearest
            for number, score in {**dict.fromkeys(matches, 0.0), **scores}.items()
        }

    def details(self, number: int) -> dict[str, float]:
        """Return the cosine of a document, if it has one."""
        return {"cosine": self.cosines[number]} if number in self.cosines else {}


class SemanticModel(Value):
    """A model in memory. `key` is another one for any other model, or another version of it."""

    key: str
    static: Any


_held: dict[str, SemanticModel] = {}
"""The models that this process has loaded, by folder."""


def matcher_if_usable(
    context: Context, tree: Catalog, text: str, *, is_asked: bool
) -> SemanticMatcher | None:
    """Return what finds memories of a tree by the meaning of a text, None if no model is set.

    Unless it was asked for, a model that cannot be used becomes a note: words alone find most of
    it, too.

    Raises:
        MemtoolError: it was asked for, and the user has set no model, it is not on this disk or is
            none, or the packages are not installed.
    """
    if is_asked:
        import sys

        from memtool.store.progress import Progress

        with Progress(sys.stderr) as progress:  # the first search makes the vectors of all memories
            progress.begin("reading what the memories mean")
            return matcher(context, tree, text)
    name = _named(context)
    if not name:
        return None
    try:
        model = _loaded(name, context.caller.env)
    except MemtoolError as error:
        _note(context, f"only words were searched, not meanings: {error.message}")
        return None
    return _matcher(context, tree, text, model)


def matcher(context: Context, tree: Catalog, text: str) -> SemanticMatcher:
    """Return what finds memories of a tree by the meaning of a text.

    Raises:
        MemtoolError: the user has set no model, it is not on this disk or is none, or the packages
            are not installed.
    """
    name = _named(context)
    if not name:
        raise MemtoolError(
            f"your own settings name no model for a semantic search ({KEY})",
            hint=f"memtool --global config {KEY} FOLDER",
            code="model-absent",
        )
    return _matcher(context, tree, text, _loaded(name, context.caller.env))


def _named(context: Context) -> str:
    """Return the model that the user's own settings name; empty for none."""
    context.project.note_unused(KEY)
    return context.project.own_settings.text(KEY)


def _note(context: Context, note: str) -> None:
    if note not in context.notes:
        context.notes.append(note)


def _loaded(name: str, env: Mapping[str, str]) -> SemanticModel:
    """Return a model by the name of its setting, the same one as long as its files are."""
    try:
        import huggingface_hub
        import model2vec
        import tqdm
        from safetensors import SafetensorError
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise MemtoolError(
            "a semantic search needs the package model2vec",
            hint=installation.install("semantic"),
            code="no-semantic",
        ) from None
    tqdm.tqdm.set_lock(RLock())  # its own is a semaphore of the system (see `build`)
    home = env.get("HOME") or os.path.expanduser("~")
    folder = os.path.join(home, name[2:]) if name.startswith("~/") else name
    if not os.path.isabs(folder):
        # Never a folder of that name here: whoever made the repository may have put it there.
        hub = env.get("HF_HUB_CACHE") or os.path.join(
            env.get("HF_HOME")
            or os.path.join(
                env.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "huggingface"
            ),
            "hub",
        )
        try:
            folder = huggingface_hub.snapshot_download(name, cache_dir=hub, local_files_only=True)
        except (OSError, ValueError):  # it is not there, or this is no name
            raise MemtoolError(
                f"the model {name!r} is not on this disk, and memtool downloads nothing",
                hint=f"hf download {name} brings it; a folder is written as /… or ~/…",
                code="model-absent",
            ) from None
    try:
        key = _key(folder, model2vec.__version__)
        held = _held.get(folder)
        if held is None or held.key != key:
            static = model2vec.StaticModel.from_pretrained(folder)
            held = _held[folder] = SemanticModel(key=key, static=static)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise MemtoolError(
            f"{folder} holds no model that can be read: {error}",
            hint=f"memtool --global config {KEY} names the folder that config.json, "
            "model.safetensors and tokenizer.json are in",
            code="model-absent",
        ) from None
    return held


def _key(folder: str, version: str) -> str:
    """Return what the vectors of a model depend on: its files, by size and time.

    Raises:
        OSError: the files of a model are not there.
        ValueError: that of the tokens is not one.
    """
    for layout in LAYOUTS:
        paths = [os.path.join(folder, name) for name in layout]
        if all(map(os.path.isfile, paths)):
            break
    else:
        raise FileNotFoundError(f"there is no {', '.join(LAYOUTS[0])}")
    with open(paths[-1], encoding="utf-8") as file:
        tokens = json.load(file)
    listed = tokens.get("model") if isinstance(tokens, dict) else None
    if not (isinstance(listed, dict) and listed.get("vocab")):
        raise ValueError(f"{os.path.basename(paths[-1])} lists no tokens")
    stats = [(path, os.stat(path)) for path in paths]
    rows = [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in stats]
    return cache.digest(version, *rows, size=16)


def _matcher(context: Context, tree: Catalog, text: str, model: SemanticModel) -> SemanticMatcher:
    from memtool.index import build  # the owner of numpy

    asked = _vectors(model, [text])
    blobs = _blobs(tree.index)
    places, rows = _rows(context, tree, blobs, model, len(asked))
    cosines = build.cosines(rows, asked)
    return SemanticMatcher({number: cosines[places[blob]] for number, blob in blobs.items()})


def _vectors(model: SemanticModel, texts: Sequence[str]) -> bytes:
    """Return the vectors of texts, a row of as many bytes as a vector has numbers for each."""
    from memtool.index import build

    return build.quantized(model.static.encode(texts, use_multiprocessing=False))


def _blobs(index: IndexReader) -> dict[int, bytes]:
    """Return the blob of each memory that counts, by its number."""
    return {number: blob.hex().encode() for number, _path, blob in index.stamps()}


def _rows(
    context: Context,
    tree: Catalog,
    blobs: Mapping[int, bytes],
    model: SemanticModel,
    width: int,
) -> tuple[dict[bytes, int], bytes]:
    """Return the vectors of blobs, one row behind the other, and the place of each blob's.

    What is not kept yet is made, and what the worktree holds is kept.
    """
    repository = context.repository
    basis, key = f"{model.key} {width}".encode(), os.fsencode(repository.git_dir)
    known = kept.read(repository.cache_dir, KIND, basis, key) if context.is_cached else None
    places, old = _parted(known or b"")
    absent = {blob: number for number, blob in blobs.items() if blob not in places}
    if not absent:
        return places, old
    texts = [_text(_record(tree.index, number)) for number in absent.values()]
    fresh = _vectors(model, texts)
    found = {
        blob: fresh[place * width : (place + 1) * width] for place, blob in enumerate(absent)
    } | {blob: old[place * width : (place + 1) * width] for blob, place in places.items()}
    wanted = sorted(set(blobs.values()))
    rows = b"".join(map(found.__getitem__, wanted))
    if context.is_cached and tree.location.kind == "worktree":
        kept.write(repository.cache_dir, KIND, basis, b" ".join(wanted) + b"\n" + rows, key)
    return {blob: place for place, blob in enumerate(wanted)}, rows


def _parted(known: bytes) -> tuple[dict[bytes, int], bytes]:
    """Return the place of each blob's row, and the rows."""
    blobs, _line, rows = known.partition(b"\n")
    return {blob: place for place, blob in enumerate(blobs.split())}, rows


def _record(index: IndexReader, number: int) -> Record:
    """Return a memory that is read once, and so need not be kept open."""
    part, local = index.part(number)
    return part.memories.record(local)


def _text(record: Record) -> str:
    """Return what a memory says about itself, and then its body."""
    found = fields(record)
    head = [text for key, text in found if key in HEAD_FIELDS]
    return "\n".join([*head, *(text for key, text in found if key == "body")])
