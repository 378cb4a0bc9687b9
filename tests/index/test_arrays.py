"""Vectors in signed bytes: what they keep, and what damaged or empty ones give."""

from __future__ import annotations

import numpy as np

from memtool.index.arrays import compute_cosines, quantize


def to_bytes(vectors: np.ndarray) -> bytes:
    return quantize(vectors)[0].tobytes()


def test_vectors_as_bytes_keep_their_cosines() -> None:
    """A byte for each number is enough: a cosine changes by less than a hundredth."""
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(200, 64)).astype(np.float32)
    query = vectors[:1] + 0.5 * rng.normal(size=(1, 64)).astype(np.float32)
    rows, question = to_bytes(vectors), to_bytes(query)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    exact = (vectors @ query[0]) / lengths
    cosines = compute_cosines(rows, question)
    assert np.abs(cosines - exact).max() < 0.01
    one_by_one = [compute_cosines(rows[n * 64 : (n + 1) * 64], question)[0] for n in range(200)]
    assert cosines.tolist() == one_by_one


def test_a_row_times_its_scale_is_what_it_was() -> None:
    """The largest component is exact, the others are right to half a step."""
    vectors = np.array([[1.0, -4.0, 0.5], [0.0, 0.0, 0.0]], np.float32)
    rows, scales = quantize(vectors)
    assert np.abs(rows * scales - vectors).max() <= 4.0 / 254
    assert (rows[0, 1], rows[1].tolist()) == (-127, [0, 0, 0])


def test_a_vector_without_direction_is_near_to_nothing() -> None:
    """Zeros and values that are not numbers do not cause a division by zero."""
    rows = to_bytes(np.array([[0.0, 0.0], [np.nan, 0.0], [0.0, -2.0]]))
    up, nothing = to_bytes(np.array([[0.0, 1.0]])), to_bytes(np.array([[0.0, 0.0]]))
    assert compute_cosines(rows, up).tolist() == [0.0, 0.0, -1.0]
    assert compute_cosines(rows, nothing).tolist() == [0.0, 0.0, 0.0]
    assert compute_cosines(b"", up).tolist() == []
