"""How this copy of memtool was installed: the source of every hint that installs something.

On PyPI and in Debian `memtool` is the name of other programs, so no hint may guess one. PEP 610
records where a copy came from; a copy without that record came from an index, by the distribution's
name.
"""

from __future__ import annotations

import os
import sys

from memtool.errors import MemtoolError
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution

DISTRIBUTION = "git-memtool"
"""The name under which pyproject.toml publishes memtool."""
REPOSITORY_LABEL = "Repository"
"""The name of the repository's address in pyproject.toml."""
_TOOLS = {"pipx_metadata.json": "pipx", "uv-receipt.toml": "uv tool"}
"""Programs that give each tool an environment of its own, by the file that they leave in it."""


class Project(Value):
    """What manifests of other programs say of memtool. `repository` is its address."""

    summary: str
    author: str
    license: str
    repository: str

    @property
    def registry_name(self) -> str:
        """The name in the MCP registry: the owner at GitHub proves the right to it."""
        owner = self.repository.removeprefix("https://github.com/").partition("/")[0]
        return f"io.github.{owner}/{DISTRIBUTION}"


def install(extra: str = "") -> str:
    """Return the command that installs this memtool again here, with an extra."""
    tool = _find_tool()
    return _format_command(
        f"{tool} install --force" if tool else _find_pip_install(), _format_requirement(extra)
    )


def install_on_path() -> str:
    """Return the command that puts this memtool on the PATH of its user."""
    return _format_command(f"{_find_tool() or 'pipx'} install", _format_requirement())


def install_alone(requirement: str) -> str:
    """Return the command that adds a package to this environment, without what it requires."""
    import shlex

    words = f"--no-deps {shlex.quote(requirement)}"
    tool = _find_tool()
    if tool == "pipx":
        return f"pipx runpip {DISTRIBUTION} install {words}"
    if tool:
        return f"{_format_command('uv pip install --python', [sys.executable])} {words}"
    return f"{_find_pip_install()} {words}"


def upgrade_command() -> str:
    """Return the command that updates memtool from where this copy came from."""
    if tool := _find_tool():
        return f"{tool} upgrade {DISTRIBUTION}"
    words = _format_requirement()
    if not os.path.isabs(words[-1]):
        return _format_command(f"{_find_pip_install()} --upgrade", words)
    again = _format_command(_find_pip_install(), words)
    if os.path.exists(os.path.join(words[-1], ".git")):
        return f"{_format_command('git -C', words[-1:])} pull && {again}"
    return again


def read_project() -> Project:
    """Return what pyproject.toml says of memtool, as this copy's installer kept it.

    Raises:
        MemtoolError: this copy was not installed by any installer.
    """
    distribution = _find_distribution()
    if distribution is None:
        raise MemtoolError(
            f"this memtool is not installed, so nothing says what {DISTRIBUTION} is",
            hint=install(),
            code="not-installed",
        )
    keys = distribution.metadata
    addresses = dict(row.split(", ", 1) for row in keys.get_all("Project-URL") or ())
    return Project(
        summary=keys["Summary"],
        author=keys["Author"] or "",
        license=keys["License-Expression"] or "",
        repository=addresses.get(REPOSITORY_LABEL, ""),
    )


def _format_command(begin: str, words: list[str]) -> str:
    import shlex

    return f"{begin} {shlex.join(words)}"


def _find_tool() -> str:
    """Return the program that made an environment for memtool alone, if one did."""
    tools = (tool for file, tool in _TOOLS.items() if os.path.exists(f"{sys.prefix}/{file}"))
    return next(tools, "")


def _find_pip_install() -> str:
    """Return how packages are installed into this environment."""
    import shlex

    distribution = _find_distribution()
    installer = distribution and distribution.read_text("INSTALLER")
    if installer and installer.strip() == "uv":
        return _format_command("uv pip install --python", [sys.executable])
    return f"{shlex.quote(sys.executable)} -m pip install"


def _find_distribution() -> Distribution | None:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return None


def _format_requirement(extra: str = "") -> list[str]:
    """Return the words that an installer needs: a name, a folder or an address.

    A copy unknown to any installer runs from its source, and is installed from there.
    """
    import json

    extras = f"[{extra}]" if extra else ""
    distribution = _find_distribution()
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if distribution is None and os.path.exists(f"{source}/pyproject.toml"):
        return ["-e", source + extras]
    origin = json.loads((distribution and distribution.read_text("direct_url.json")) or "{}")
    if not origin:
        return [DISTRIBUTION + extras]
    if "dir_info" in origin:
        is_editable = origin["dir_info"].get("editable")
        return ["-e"] * bool(is_editable) + [_path_from_url(origin["url"]) + extras]
    address = _without_password(origin["url"])
    if vcs := origin.get("vcs_info"):
        revision = vcs.get("requested_revision")
        address = f"{vcs['vcs']}+{address}" + (f"@{revision}" if revision else "")
    return [f"{DISTRIBUTION}{extras} @ {address}"]


def _path_from_url(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path)


def _without_password(url: str) -> str:
    """Return an address without user and password; a lone user, which ssh needs, stays."""
    scheme, slashes, tail = url.partition("://")
    host, slash, path = tail.partition("/")
    user, _, place = host.rpartition("@")
    is_kept = scheme.endswith("ssh") and ":" not in user
    return f"{scheme}{slashes}{host if is_kept else place}{slash}{path}"
