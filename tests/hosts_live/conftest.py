"""What all tests of real clients share: the model, the team's repository, and the versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Sandbox
from hosts_live import clients
from hosts_live.model_server import ModelServer
from hosts_live.team import make_team


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def bare(tmp_path: Path, request: pytest.FixtureRequest) -> Sandbox:
    """A repository with memories, and an environment that holds nothing else.

    In a run with the newest clients a test of one that is not newer is skipped.
    """
    clients.programs()
    call = getattr(request.node, "callspec", None)
    client = call.params.get("client") if call else None
    is_newest = clients.IS_NEWEST and isinstance(client, clients.Client)
    if is_newest and clients.version(client.name) == clients.find_pinned(client.name):
        pytest.skip(f"the newest {client.name} is the pinned one")
    return make_team(tmp_path)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which clients there are, in which versions."""
    names = [name for name in clients.PACKAGES if clients.is_installed(name)]
    if names:
        shown = (f"{name} {clients.version(name)}" for name in names)
        terminalreporter.write_line(f"clients: {', '.join(shown)}")
