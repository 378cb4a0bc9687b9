"""Semantic search: finds memories by meaning, even if they share no word with the question.

A model of static embeddings is a table with one vector for each token. The vector of a text is the
mean of its tokens' vectors, and the similarity of two texts is the cosine of theirs. Only this
module knows model2vec; it registers as a stage, whose matcher adds the cosines to the score by
words.

Only the user's own settings name a model, as `search.semantic`: a folder, or the name of a model
that Hugging Face's tools have stored on this disk. A repository cannot name one, models are never
looked for in a repository's folder, and nothing is ever downloaded. A model is numbers and a list
of tokens; nothing in it is run.

The vectors of the memories are cached for each worktree, by blob, with one byte per number: 10,000
memories with 256 numbers each take 2.5 MB. With another model, or if the cache is damaged, all of
them are computed again; otherwise only those of new memories.
"""

from __future__ import annotations

import json
import os
from threading import RLock

from memtool import installation
from memtool.errors import MemtoolError
from memtool.index.scoring import HEAD_FIELDS
from memtool.index.text import list_texts
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
"""Packages of the extra `semantic` that are imported here."""

KIND = "vectors 2"
"""The cache entry: the ids of the blobs in hexadecimal, sorted, a line feed, and a row for each."""

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


MEANING_GAIN = 0.5
"""Score that the memory nearest by meaning gains, relative to 1.0 for the best by words.

Other memories gain in proportion to their cosine. This is how a full sentence model was combined
when it was measured: recall@5 +.016 to +.028 over words alone. On all eight sets, a sum of scores
was better than a sum of ranks.
"""

MAX_NEAREST = 30
"""Nearest memories that are found even without a common word."""

MIN_COSINE = 0.3
"""Minimum for these; not measured, as it depends on the model."""


class SemanticMatcher(Value):
    """Finds memories near to a question by meaning: number to cosine, -1 to 1."""

    cosines: Mapping[int, float]

    def matches(self, allowed: Callable[[int], bool]) -> list[int]:
        """Return the allowed documents that are nearest by meaning, including ties."""
        nearest: list[int] = []
        for number in sorted(self.cosines, key=self.cosines.__getitem__, reverse=True):
            cosine = self.cosines[number]
            is_full = len(nearest) >= MAX_NEAREST and cosine < self.cosines[nearest[-1]]
            if cosine < MIN_COSINE or is_full:
                break
            if allowed(number):
                nearest.append(number)
        return nearest

    def add(self, scores: Mapping[int, float], matches: Sequence[int]) -> dict[int, float]:
        """Return scores plus a gain in proportion to the nearest cosine."""
        if not matches:
            return dict(scores)
        nearest = self.cosines[matches[0]]
        return {
            number: score + MEANING_GAIN * max(0.0, self.cosines[number]) / nearest
            for number, score in {**dict.fromkeys(matches, 0.0), **scores}.items()
        }

    def details(self, number: int) -> dict[str, float]:
        """Return the cosine of a document, if it has one."""
        return {"cosine": self.cosines[number]} if number in self.cosines else {}


class SemanticModel(Value):
    """A loaded model. `key` differs for any other model or version."""

    key: str
    static: Any


_models: dict[str, SemanticModel] = {}
"""The models that this process has loaded, by folder."""


def build_matcher_if_usable(
    context: Context, tree: Catalog, text: str, *, is_asked: bool
) -> SemanticMatcher | None:
    """Return a matcher by the meaning of a text, None if no model is set.

    Unless requested, an unusable model only adds a note, because words alone find most memories
    too.

    Raises:
        MemtoolError: it was requested, and the user has set no model, it is not on this disk or is
            not a model, or the packages are not installed.
    """
    if is_asked:
        import sys

        from memtool.store.progress import Progress

        with Progress(sys.stderr) as progress:  # the first search makes the vectors of all memories
            progress.begin("reading what the memories mean")
            return build_matcher(context, tree, text)
    name = _model_name(context)
    if not name:
        return None
    try:
        model = _load(name, context.caller.env)
    except MemtoolError as error:
        _add_note(context, f"only words were searched, not meanings: {error.message}")
        return None
    return _build_matcher(context, tree, text, model)


def build_matcher(context: Context, tree: Catalog, text: str) -> SemanticMatcher:
    """Return a matcher for memories of a tree by the meaning of a text.

    Raises:
        MemtoolError: the user has set no model, it is not on this disk or is not a model, or the
            packages are not installed.
    """
    name = _model_name(context)
    if not name:
        raise MemtoolError(
            f"cannot search by meaning: your settings do not name a model ({KEY})",
            hint=f"memtool --global config {KEY} FOLDER",
            code="model-absent",
        )
    return _build_matcher(context, tree, text, _load(name, context.caller.env))


def _model_name(context: Context) -> str:
    """Return the model that the user's own settings name; empty for none."""
    context.project.note_unused(KEY)
    return context.project.user_settings.text(KEY)


def _add_note(context: Context, note: str) -> None:
    if note not in context.notes:
        context.notes.append(note)


def _load(name: str, env: Mapping[str, str]) -> SemanticModel:
    """Load a model by the name in the settings, cached while its files are unchanged."""
    try:
        import huggingface_hub
        import model2vec
        import tqdm
        from safetensors import SafetensorError
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in PACKAGES:
            raise
        raise MemtoolError(
            "cannot search by meaning: the package model2vec is not installed",
            hint=installation.install("semantic"),
            code="no-semantic",
        ) from None
    tqdm.tqdm.set_lock(RLock())  # its own is a semaphore of the system (see `build`)
    home = env.get("HOME") or os.path.expanduser("~")
    folder = os.path.join(home, name[2:]) if name.startswith("~/") else name
    if not os.path.isabs(folder):
        # Never a folder of that name here: the author of the repository may have put it there.
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
                f"cannot search by meaning: the model {name!r} is not on this disk",
                hint=f"hf download {name}\na folder must start with / or ~/",
                code="model-absent",
            ) from None
    try:
        key = _compute_key(folder, model2vec.__version__)
        model = _models.get(folder)
        if model is None or model.key != key:
            static = model2vec.StaticModel.from_pretrained(folder)
            model = _models[folder] = SemanticModel(key=key, static=static)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise MemtoolError(
            f"cannot read a model from {folder}: {error}",
            hint=f"memtool --global config {KEY} FOLDER\n"
            "the folder has config.json, model.safetensors and tokenizer.json",
            code="model-absent",
        ) from None
    return model


def _compute_key(folder: str, version: str) -> str:
    """Return a key for a model's vectors: its files, by size and time.

    Raises:
        OSError: the files of a model are missing.
        ValueError: the token file is not one.
    """
    for layout in LAYOUTS:
        paths = [os.path.join(folder, name) for name in layout]
        if all(map(os.path.isfile, paths)):
            break
    else:
        raise FileNotFoundError(f"the folder lacks {', '.join(LAYOUTS[0])}")
    with open(paths[-1], encoding="utf-8") as file:
        tokens = json.load(file)
    listed = tokens.get("model") if isinstance(tokens, dict) else None
    if not (isinstance(listed, dict) and listed.get("vocab")):
        raise ValueError(f"{os.path.basename(paths[-1])} lists no tokens")
    stats = [(path, os.stat(path)) for path in paths]
    rows = [f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in stats]
    return cache.digest(version, *rows, size=16)


def _build_matcher(
    context: Context, tree: Catalog, text: str, model: SemanticModel
) -> SemanticMatcher:
    from memtool.index import build  # the owner of numpy

    query_vectors = _compute_vectors(model, [text])
    blobs = _find_blobs(tree.index)
    places, rows = _compute_rows(context, tree, blobs, model, len(query_vectors))
    cosines = build.compute_cosines(rows, query_vectors)
    return SemanticMatcher({number: cosines[places[blob]] for number, blob in blobs.items()})


def _compute_vectors(model: SemanticModel, texts: Sequence[str]) -> bytes:
    """Return the vectors of texts, one row each, with a byte per number of a vector."""
    from memtool.index import build

    return build.quantize(model.static.encode(texts, use_multiprocessing=False))


def _find_blobs(index: IndexReader) -> dict[int, bytes]:
    """Return the blob of each current memory, by its number."""
    return {number: blob.hex().encode() for number, _path, blob in index.read_stamps()}


def _compute_rows(
    context: Context,
    tree: Catalog,
    blobs: Mapping[int, bytes],
    model: SemanticModel,
    width: int,
) -> tuple[dict[bytes, int], bytes]:
    """Return the vectors of blobs as consecutive rows, and the row number of each blob.

    Missing vectors are computed, and those of the worktree are cached.
    """
    repository = context.repository
    basis, key = f"{model.key} {width}".encode(), os.fsencode(repository.git_dir)
    stored = kept.read(repository.cache_dir, KIND, basis, key) if context.is_cached else None
    places, old = _split_rows(stored or b"")
    absent = {blob: number for number, blob in blobs.items() if blob not in places}
    if not absent:
        return places, old
    texts = [_join_fields(_read_record(tree.index, number)) for number in absent.values()]
    fresh = _compute_vectors(model, texts)
    vectors = {
        blob: fresh[place * width : (place + 1) * width] for place, blob in enumerate(absent)
    } | {blob: old[place * width : (place + 1) * width] for blob, place in places.items()}
    wanted = sorted(set(blobs.values()))
    rows = b"".join(map(vectors.__getitem__, wanted))
    if context.is_cached and tree.location.kind == "worktree":
        kept.write(repository.cache_dir, KIND, basis, b" ".join(wanted) + b"\n" + rows, key)
    return {blob: place for place, blob in enumerate(wanted)}, rows


def _split_rows(data: bytes) -> tuple[dict[bytes, int], bytes]:
    """Split cached data into the row number of each blob, and the rows."""
    blobs, _line, rows = data.partition(b"\n")
    return {blob: place for place, blob in enumerate(blobs.split())}, rows


def _read_record(index: IndexReader, number: int) -> Record:
    """Read a memory once, without keeping it open."""
    part, local = index.find_part(number)
    return part.memories.record(local)


def _join_fields(record: Record) -> str:
    """Return the head fields of a memory, then its body."""
    values = list_texts(record)
    head = [text for key, text in values if key in HEAD_FIELDS]
    return "\n".join([*head, *(text for key, text in values if key == "body")])
