"""numpy, which is imported here and nowhere else, and vectors of one byte per number."""

from __future__ import annotations

from typing import Any

import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAX_COMPONENT", "NDArray", "compute_cosines", "np", "quantize"]

MAX_COMPONENT = 127
"""The largest component of a quantized vector."""


def quantize(vectors: NDArray[Any]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantize vectors, one per row, to signed bytes, and return them with the scale of each row.

    The largest component of a row becomes 127, and a component times the scale is about what it
    was. Cosines stay correct to about a thousandth. A row of zeros or NaN becomes zeros.
    """
    rows = np.nan_to_num(vectors.astype(np.float32))
    scales = np.abs(rows).max(axis=1, keepdims=True, initial=0.0) / np.float32(MAX_COMPONENT)
    scales[scales == 0.0] = 1.0
    return np.rint(rows / scales).astype(np.int8), scales


def compute_cosines(rows: bytes | memoryview, query: bytes) -> NDArray[np.float64]:
    """Return the cosine of each row with one vector, -1 to 1, all of bytes from `quantize`.

    A row or vector of zeros gives 0.
    """
    # The sums are of integers, exact for vectors of up to 1,040 components. So the order in which
    # the machine adds them does not matter.
    vector = np.frombuffer(query, np.int8).astype(np.float32)
    table = np.frombuffer(rows, np.int8).astype(np.float32).reshape(-1, len(vector))
    squares = np.einsum("ij,ij->i", table, table).astype(np.float64)
    sizes = np.sqrt(squares * float(vector @ vector))
    sizes[sizes == 0.0] = 1.0
    cosines: NDArray[np.float64] = (table @ vector) / sizes
    return cosines
