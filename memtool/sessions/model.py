"""A language model as a program of the user's own choice: prompt on stdin, JSON on stdout.

It owns how the program is started, how long it may take and how much it may say, and what counts
as an answer. What it says is not believed: whoever asks checks every part of it.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
import time
from contextlib import suppress

from memtool.errors import MemtoolError
from memtool.sessions.claim import printable
from memtool.store.git import LOCATION_VARIABLES
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_ANSWER = 1_000_000
"""Bytes of an answer; a program that says more is stopped."""
MOST_TOLD = 200
_CHUNK = 65_536
_WRAPPERS = ("result", "response", "content", "text", "output")
"""Where programs that answer with JSON of their own put what the model said."""


class Unusable(MemtoolError):
    """The program gave no answer that can be used."""


class Model(Value):
    """The program, and its limits. `env` is the environment that it gets."""

    argv: tuple[str, ...]
    timeout_s: float
    retries: int
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        """What it is called in journals and messages."""
        return os.path.basename(self.argv[0])


def ask(model: Model, prompt: str, key: str) -> list[Any]:
    """Ask until an answer is JSON with a list under a key, and return the list.

    Raises:
        Unusable: no answer was, however often it was asked.
    """
    reason = ""
    for _try in range(1 + model.retries):
        try:
            return answer_of(_said(model, prompt), key)
        except Unusable as error:
            reason = error.message
            if error.code == "model-absent":
                break
    raise Unusable(f"{model.name} {reason}", hint="memtool config extractor.command shows it",
                   code="model")  # fmt: skip


def answer_of(text: str, key: str) -> list[Any]:
    """Return the list under a key of the JSON that a text holds, maybe in a fence or a wrapper.

    Raises:
        Unusable: it holds none.
    """
    for candidate in (text, _fenced(text), _braced(text)):
        found = _read(candidate)
        if isinstance(found, dict) and key not in found:
            inner = next((found[name] for name in _WRAPPERS if name in found), None)
            if isinstance(inner, str):
                found = _read(inner) or _read(_fenced(inner)) or _read(_braced(inner))
        if isinstance(found, dict) and isinstance(found.get(key), list):
            return list(found[key])
    raise Unusable(f'did not answer with JSON {{"{key}": […]}}')


def _read(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _fenced(text: str) -> str:
    _before, _fence, rest = text.partition("```")
    return rest.partition("\n")[2].partition("```")[0]


def _braced(text: str) -> str:
    return text[text.find("{") : text.rfind("}") + 1]


def _said(model: Model, prompt: str) -> str:
    """Run the program once and return what it said.

    It runs in an empty directory, so that it reads no settings of the repository, and with
    MEMTOOL_OFF, so that an agent neither hears nor tells anything of its own session.

    Raises:
        Unusable: it cannot be started, takes too long, says too much, or fails.
    """
    env = {name: value for name, value in model.env.items() if name not in LOCATION_VARIABLES}
    with (
        tempfile.TemporaryDirectory(prefix="memtool-") as folder,
        tempfile.TemporaryFile() as given,
    ):
        given.write(prompt.encode(errors="replace"))
        given.seek(0)
        try:
            process = subprocess.Popen(
                model.argv, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=folder, env=env | {"MEMTOOL_OFF": "1", "PWD": folder}, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise Unusable(f"cannot be started: {reason}", code="model-absent") from None
        with process:
            try:
                out, err = _heard(process, model.timeout_s)
                _wait(process, model.timeout_s)
            finally:
                _stop(process)
    if process.returncode:
        told = " ".join(err.decode(errors="replace").split())[-MOST_TOLD:]
        said = f": {printable(told)}" if told else ""
        raise Unusable(f"ended with status {process.returncode}{said}")
    return out.decode(errors="replace")


def _heard(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """Read both outputs to their ends. Raises Unusable where they take too long or are too long."""
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + timeout_s
    heard: dict[int, bytearray] = {}
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            selector.register(pipe, selectors.EVENT_READ)
            heard[pipe.fileno()] = bytearray()
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise Unusable(f"did not answer within {timeout_s:g} seconds")
            for key, _events in selector.select(left):
                data = os.read(key.fd, _CHUNK)
                heard[key.fd] += data
                if len(heard[key.fd]) > MOST_ANSWER:
                    raise Unusable(f"said more than {MOST_ANSWER:,} bytes")
                if not data:
                    selector.unregister(key.fileobj)
        return bytes(heard[process.stdout.fileno()]), bytes(heard[process.stderr.fileno()])


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    try:
        process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        raise Unusable(f"did not end within {timeout_s:g} seconds") from None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the program with all that it started and that did not leave its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
