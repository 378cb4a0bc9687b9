"""Rehearsals: an installed hook is run as its host would run it, and what it says is read.

Only the very command that memtool writes is run: a repository may hold another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

from memtool.hosts.contracts import CONTRACTS, PROMPT, START
from memtool.hosts.handlers import Hook
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memtool.hosts.contracts import Contract
    from memtool.hosts.host import Host
    from memtool.hosts.site import Site

LIMIT_S = 10
COMPLAINT = "memtool: "
"""Begins what a hook tells a person."""
UNSEEN = {"MEMTOOL_NO_LEDGER": "1", "MEMTOOL_LOG": "off", "MEMTOOL_DEBUG": "1"}
"""So a hook leaves no trace, and tells on stderr why it says nothing."""
MEANINGS = (START, PROMPT)
"""The events that put something before the agent."""


class Rehearsed(Value):
    """What came of one event. `fault` is empty where the hook did as it should.

    `text` is what the agent would see.
    """

    event: str
    text: str
    fault: str
    took_ms: float


def rehearse(host: Host, site: Site, prompt: str, env: Mapping[str, str]) -> Iterator[Rehearsed]:
    """Run the hooks of a host that put something before the agent; `prompt` is what is asked."""
    commands = {part.event: part.command for part in host.parts(site) if isinstance(part, Hook)}
    for contract in CONTRACTS:
        if contract.host == host.name and contract.meaning in MEANINGS:
            own = f"{site.program} hook {host.name} {contract.event}"  # of a plugin
            yield _run(contract, commands.get(contract.name, own), site.project, prompt, env)


def _run(
    contract: Contract, command: str, project: str, prompt: str, env: Mapping[str, str]
) -> Rehearsed:
    event = {
        "session_id": "",  # nothing is noted of a session without a name
        "transcript_path": None,
        "cwd": project,
        "workspace_roots": [project],
        "hook_event_name": contract.name,
        "source": "startup",
        "prompt": prompt,
        "files": [],
    }
    began = time.monotonic()
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            input=json.dumps(event).encode(),
            cwd=project,
            env={**env, **UNSEEN},
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Rehearsed(contract.event, "", f"no answer within {LIMIT_S} s", LIMIT_S * 1000.0)
    except OSError as error:
        return Rehearsed(contract.event, "", os.strerror(error.errno or 0), 0.0)
    took_ms = round((time.monotonic() - began) * 1000, 1)
    said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
    if done.returncode:
        return Rehearsed(contract.event, "", f"exit {done.returncode}: {said}", took_ms)
    if said.startswith(COMPLAINT):
        return Rehearsed(contract.event, "", said.removeprefix(COMPLAINT), took_ms)
    try:
        text = _text(done.stdout.decode(), is_json=bool(contract.silence))
    except ValueError:
        return Rehearsed(contract.event, "", "the answer is not what the host reads", took_ms)
    return Rehearsed(contract.event, text, "", took_ms)


def _text(answer: str, *, is_json: bool) -> str:
    """Return what the model would get of an answer.

    Raises:
        ValueError: the host cannot read it.
    """
    if not is_json and not answer.lstrip().startswith("{"):
        return answer
    said = json.loads(answer)
    if not isinstance(said, dict):
        raise ValueError  # noqa: TRY004  # of the host, not ours
    specific = said.get("hookSpecificOutput")
    inner = specific.get("additionalContext") if isinstance(specific, dict) else None
    return str(inner or said.get("additional_context") or said.get("text") or "")
