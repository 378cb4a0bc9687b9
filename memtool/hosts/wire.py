r"""JSON as agent hosts send and read it, without importing `json`.

That module imports `re`, which would cost a hook as much as the rest of its answer. The scanner
and the writer of strings that `json` itself uses are one small module in C; where a Python has
none, `json` does the work.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPACE = " \t\n\r"
_MARK = b"\xef\xbb\xbf"
"""Some programs begin UTF-8 with it."""
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def read(data: bytes) -> Any:
    """Return what a JSON text in UTF-8 says, exactly as `json.loads` would.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    text = data.removeprefix(_MARK).decode(errors="surrogatepass")
    try:
        from _json import make_scanner
    except ImportError:
        return _read_plainly(text)
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        value, end = make_scanner(_Rules)(text, start)  # type: ignore[arg-type]
    except (StopIteration, SystemError, ValueError, RecursionError):
        # Without `json.decoder` loaded the scanner cannot say what is wrong.
        return _read_plainly(text)
    if text[end:].strip(_SPACE):
        raise ValueError("something follows the JSON")
    return value


def quoted(text: str) -> str:
    """Return a text as a JSON string, in ASCII."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text)
    written: str = encode_basestring_ascii(text)
    return written


class _Rules:
    """The settings of `json.loads`, by the names under which the scanner looks for them."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__


def _read_plainly(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
