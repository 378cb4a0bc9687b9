"""The sentence encoder: a BERT model in numpy that turns a text into a vector of its meaning.

A text is split into word pieces, the pieces go through the layers of the model, and the mean of
what comes out, at length 1, is the vector of the text. The cosine of two vectors is the similarity
of their texts. The first 128 pieces are read, as the model was trained.

Only inference is here, of the models that Sentence Transformers publishes with the architecture
BERT, lower-cased words, mean pooling and the activation `gelu`: Devlin et al. 2019, "BERT", with
the WordPiece of its section 3. A text is encoded by itself, so its vector does not depend on other
texts.
"""

from __future__ import annotations

import math
import unicodedata

from memtool.index.arrays import np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from memtool.index.arrays import NDArray

    Vector = NDArray[np.float32]
    Pair = tuple[Vector, Vector]
    """A matrix, and what is added after it; or the scale and the shift of a normalization."""

MAX_PIECES = 128
"""Pieces of a text that are read, with the two that mark its beginning and end."""
MAX_PIECE_CHARACTERS = 100
"""A longer word is unknown, as in BERT."""
BEGIN, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
SCALE = ".scale"
"""Ends the name of the scales of a quantized weight."""
EPSILON = 1e-12
"""Added to a variance before it divides."""


class WordPieces:
    """Splits a text into pieces of a vocabulary and returns their numbers."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}

    def split(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, between those for begin and end."""
        numbers = [self._numbers[BEGIN]]
        for word in _split_words(text):
            numbers += self._split_word(word)
            if len(numbers) >= MAX_PIECES:
                break
        return [*numbers[: MAX_PIECES - 1], self._numbers[END]]

    def _split_word(self, word: str) -> list[int]:
        """Return the longest known pieces of a word, from its beginning; `[UNK]` if one is not."""
        if len(word) > MAX_PIECE_CHARACTERS:
            return [self._numbers[UNKNOWN]]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                number = self._numbers.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return [self._numbers[UNKNOWN]]
            pieces.append(number)
            start = end
        return pieces


def _split_words(text: str) -> Iterator[str]:
    """Yield the words of a text, lower-cased and without accents; a punctuation mark is a word."""
    spaced = "".join(
        f" {char} " if _is_ideograph(ord(char)) else " " if char.isspace() else char
        for char in text
        if char.isspace() or not _is_control(char)
    )
    for run in spaced.split():
        decomposed = unicodedata.normalize("NFD", run.lower())
        plain = "".join(char for char in decomposed if unicodedata.category(char) != "Mn")
        start = 0
        for at, char in enumerate(plain):
            if _is_punctuation(char):
                yield from filter(None, (plain[start:at], char))
                start = at + 1
        if start < len(plain):
            yield plain[start:]


def _is_control(char: str) -> bool:
    return char in "\0\ufffd" or unicodedata.category(char)[0] == "C"


def _is_punctuation(char: str) -> bool:
    """Return whether BERT takes a character for punctuation, as all ASCII symbols are."""
    if char.isascii():
        return char.isprintable() and not (char.isalnum() or char == " ")
    return unicodedata.category(char)[0] == "P"


_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""First and last code point of the blocks whose characters BERT takes for words."""


def _is_ideograph(code: int) -> bool:
    return code >= 0x3400 and any(first <= code <= last for first, last in _IDEOGRAPHS)


class Encoder:
    """A model that is ready to encode texts.

    `tensors` are its weights by their names in the file, `heads` the number of attention heads. A
    weight in signed bytes has the scales of its rows under its name with SCALE appended.
    """

    def __init__(
        self, tensors: Mapping[str, NDArray[Any]], vocabulary: Sequence[str], heads: int
    ) -> None:
        self._pieces = WordPieces(vocabulary)
        self._heads = heads
        self._tensors = tensors
        self._positions = self._weight("embeddings.position_embeddings.weight")[:MAX_PIECES]
        self._kind = self._weight("embeddings.token_type_embeddings.weight")[0]
        self._norm = self._read_pair("embeddings.LayerNorm")
        self._layers: list[tuple[Pair, ...]] = []
        while f"encoder.layer.{len(self._layers)}.output.dense.weight" in tensors:
            self._layers.append(self._read_layer(f"encoder.layer.{len(self._layers)}"))

    @property
    def width(self) -> int:
        """The number of components of a vector."""
        return len(self._kind)

    def encode(self, text: str) -> Vector:
        """Return the vector of a text, of length 1."""
        numbers = self._pieces.split(text)
        state = self._embed(numbers) + self._positions[: len(numbers)] + self._kind
        state = _normalize(state, self._norm)
        for attention, mixed, first_norm, inner, outer, second_norm in self._layers:
            state = _normalize(state + _apply(self._attend(state, attention), mixed), first_norm)
            state = _normalize(state + _apply(_gelu(_apply(state, inner)), outer), second_norm)
        mean = state.mean(axis=0)
        vector: Vector = mean / max(float(np.sqrt(mean @ mean)), EPSILON)
        return vector

    def _embed(self, numbers: Sequence[int]) -> Vector:
        """Return the vectors of pieces; only their rows of the table are expanded."""
        name = "embeddings.word_embeddings.weight"
        rows: Vector = self._tensors[name][numbers].astype(np.float32)
        scale = self._tensors.get(name + SCALE)
        return rows if scale is None else rows * scale[numbers]

    def _attend(self, state: Vector, projection: Pair) -> Vector:
        """Return what each piece takes from the others, head by head."""
        size = self.width // self._heads
        # Queries, keys and values come from one product: (3, heads, pieces, size).
        split = _apply(state, projection).reshape(len(state), 3, self._heads, size)
        queries, keys, values = split.transpose(1, 2, 0, 3)
        scores = queries @ keys.transpose(0, 2, 1) / np.float32(math.sqrt(size))
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        attended: Vector = (shares @ values).transpose(1, 0, 2).reshape(len(state), self.width)
        return attended

    def _read_layer(self, name: str) -> tuple[Pair, ...]:
        """Return the pairs of a layer, each a matrix and what is added, in order of their use."""
        own = [
            self._read_pair(f"{name}.attention.self.{part}") for part in ("query", "key", "value")
        ]
        projection = (
            np.concatenate([weight for weight, _bias in own]),
            np.concatenate([bias for _weight, bias in own]),
        )
        return (
            projection,
            self._read_pair(f"{name}.attention.output.dense"),
            self._read_pair(f"{name}.attention.output.LayerNorm"),
            self._read_pair(f"{name}.intermediate.dense"),
            self._read_pair(f"{name}.output.dense"),
            self._read_pair(f"{name}.output.LayerNorm"),
        )

    def _read_pair(self, name: str) -> Pair:
        return self._weight(f"{name}.weight"), self._weight(f"{name}.bias")

    def _weight(self, name: str) -> Vector:
        weight: Vector = self._tensors[name].astype(np.float32)
        scale = self._tensors.get(name + SCALE)
        return weight if scale is None else weight * scale


def _apply(state: Vector, pair: Pair) -> Vector:
    weight, bias = pair
    applied: Vector = state @ weight.T + bias
    return applied


def _normalize(state: Vector, pair: Pair) -> Vector:
    """Return each row with mean 0 and variance 1, then scaled and shifted."""
    weight, bias = pair
    centered = state - state.mean(axis=1, keepdims=True)
    variance = np.square(centered).mean(axis=1, keepdims=True)
    normalized: Vector = centered / np.sqrt(variance + np.float32(EPSILON)) * weight + bias
    return normalized


def _gelu(values: Vector) -> Vector:
    """Return x · Φ(x), with Φ of the normal distribution.

    numpy has no error function; it is that of Abramowitz and Stegun, 7.1.26, correct to 1.5e-7.
    """
    x = values / np.float32(math.sqrt(2.0))
    t = 1.0 / (1.0 + np.float32(0.3275911) * np.abs(x))
    series = np.zeros_like(t)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = (series + np.float32(factor)) * t
    erf = np.copysign(1.0 - series * np.exp(-np.square(x)), x)
    activated: Vector = 0.5 * values * (1.0 + erf)
    return activated
