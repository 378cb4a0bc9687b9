"""How much work a call does, as a number that no busy machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec

P = ParamSpec("P")


def count_calls(act: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> int:
    """Return how many functions a call enters, those of C included.

    Work that is done for each pair of things shows in this number, whatever else the machine does
    meanwhile. It does not see time that is spent within one call, as in a slow pattern.
    """
    calls = 0

    def note(_frame: FrameType, event: str, _function: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act(*args, **kwargs)
    finally:
        sys.setprofile(before)
    return calls
