"""Packages: what `install` writes for a host, in the form that the host's own installer takes.

A package is built from the same parts as an installation, so neither can be older than the other. A
row says where the host's kind of package has them. An MCP package has no host: it describes the
server to the registry, and to clients that take a bundle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from memtool import templates
from memtool.errors import MemtoolError
from memtool.hosts.edits import Site
from memtool.hosts.install import FileStep, load_host
from memtool.installation import DISTRIBUTION, Project
from memtool.store.files import read_or_none
from memtool.value import Value, first_few
from memtool.version import __version__

NAME = "memtool"
SERVER = {NAME: {"command": NAME, "args": ["mcp"]}}
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
BUNDLE_FORMAT = "0.3"
_ROOT = "/package"
_EVALS, _SCRIPT = "hosts/evals", "scaffold.sh"

Manifest = Callable[[Project], Mapping[str, Any]]


class Package(Value):
    """How a host's package differs from its installation in a project.

    `folder` is where the parts are in the package, `hooks` the file of the hooks in there, and
    `manifests` are further JSON files by path in the package. `host` is empty for a package without
    parts. `install` are the commands by which a user of the host installs it from DIR. `has_evals`:
    the host can measure what the package changes, with a suite of cases.
    """

    host: str
    install: str
    manifests: Mapping[str, Manifest]
    hooks: str = "hooks/hooks.json"
    folder: str = ""
    has_evals: bool = False


def _describe(project: Project) -> dict[str, Any]:
    """Return the keys that all manifests of plugins share."""
    return {
        "name": NAME,
        "version": __version__,
        "description": project.summary,
        "author": {"name": project.author},
        "homepage": project.repository,
        "repository": project.repository,
        "license": project.license,
    }


def _describe_server(_project: Project) -> dict[str, Any]:
    return {"mcpServers": SERVER}


def _describe_marketplace(project: Project) -> dict[str, Any]:
    plugin = {"name": NAME, "source": "./", "description": project.summary}
    return {
        "name": NAME,
        "owner": {"name": project.author},
        "metadata": {"description": project.summary, "version": __version__},
        "plugins": [plugin],
    }


def _describe_codex_plugin(project: Project) -> dict[str, Any]:
    places = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    return {**_describe(project), **places}


def _describe_codex_marketplace(_project: Project) -> dict[str, Any]:
    plugin = {
        "name": NAME,
        "source": {"source": "local", "path": f"./plugins/{NAME}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return {"name": NAME, "plugins": [plugin]}


def _describe_copilot_plugin(project: Project) -> dict[str, Any]:
    places = {"skills": "skills/", "hooks": "hooks.json", "mcpServers": ".mcp.json"}
    return {**_describe(project), **places}


def _describe_gemini(project: Project) -> dict[str, Any]:
    keys = {"name": NAME, "version": __version__, "description": project.summary}
    return {**keys, "mcpServers": SERVER}


def _describe_for_registry(project: Project) -> dict[str, Any]:
    """Return the entry of the MCP registry, whose descriptions have at most 100 characters."""
    package = {
        "registryType": "pypi",
        "identifier": DISTRIBUTION,
        "version": __version__,
        "runtimeHint": "uvx",
        "packageArguments": [{"type": "positional", "value": "mcp"}],
        "transport": {"type": "stdio"},
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": project.registry_name,
        "description": project.summary[:100],
        "repository": {"url": project.repository, "source": "github"},
        "version": __version__,
        "packages": [package],
    }


def _describe_bundle(project: Project) -> dict[str, Any]:
    """Return the manifest of a bundle, for clients that start in no repository."""
    start = {"command": NAME, "args": ["-C", "${user_config.repository}", "mcp"]}
    return {
        "manifest_version": BUNDLE_FORMAT,
        "name": NAME,
        "version": __version__,
        "description": project.summary,
        "author": {"name": project.author},
        "repository": {"type": "git", "url": project.repository},
        "license": project.license,
        "server": {"type": "binary", "entry_point": NAME, "mcp_config": start},
        "user_config": {
            "repository": {
                "type": "directory",
                "title": "Repository",
                "description": "The repository whose memory is used",
                "required": True,
            }
        },
        "compatibility": {"platforms": ["darwin", "linux"]},
    }


PACKAGES: Mapping[str, Package] = MappingProxyType(
    {
        "claude": Package(
            "claude",
            "claude plugin marketplace add DIR\nclaude plugin install memtool@memtool",
            {
                ".claude-plugin/marketplace.json": _describe_marketplace,
                ".claude-plugin/plugin.json": _describe,
                ".mcp.json": _describe_server,
            },
            has_evals=True,
        ),
        "codex": Package(
            "codex",
            "codex plugin marketplace add DIR\ncodex plugin add memtool@memtool",
            {
                ".agents/plugins/marketplace.json": _describe_codex_marketplace,
                f"plugins/{NAME}/.codex-plugin/plugin.json": _describe_codex_plugin,
                f"plugins/{NAME}/.mcp.json": _describe_server,
            },
            folder=f"plugins/{NAME}",
        ),
        "copilot": Package(
            "copilot",
            "copilot plugin marketplace add DIR\ncopilot plugin install memtool@memtool",
            {
                ".github/plugin/marketplace.json": _describe_marketplace,
                ".mcp.json": _describe_server,
                "plugin.json": _describe_copilot_plugin,
            },
            hooks="hooks.json",
        ),
        "gemini": Package(
            "gemini",
            "gemini extensions install DIR",
            {"gemini-extension.json": _describe_gemini},
        ),
        "mcp": Package(
            "",
            "mcp-publisher publish\nmcpb pack DIR",
            {"manifest.json": _describe_bundle, "server.json": _describe_for_registry},
        ),
    }
)
PACKAGE_NAMES = tuple(PACKAGES)


def build_files(name: str, project: Project) -> dict[str, bytes]:
    """Build a package: the content of each file by its path in the package."""
    package = PACKAGES[name]
    contents: dict[str, bytes] = {}
    site = Site(
        folder=_ROOT,
        other_folder="",
        top=_ROOT,
        home="",
        project=_ROOT,
        program=NAME,
        is_user=False,
    )
    for part in load_host(package.host).parts(site) if package.host else ():
        place = package.hooks if part.is_hook else os.path.relpath(part.path, _ROOT)
        path = os.path.join(package.folder, place)
        contents[path] = part.add(contents.get(path))
    if package.host:
        text = templates.read("hosts/package.md").replace("@VERSION@", __version__)
        contents[os.path.join(package.folder, "README.md")] = text.encode()
    if package.has_evals:
        contents.update(_build_evals())
    for path, build in package.manifests.items():
        text = json.dumps(build(project), indent=2, ensure_ascii=False)
        contents[path] = f"{text}\n".encode()
    return dict(sorted(contents.items()))


def _build_evals() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the cases; each has a copy of the script that makes its repository."""
    script = templates.read(f"{_EVALS}/{_SCRIPT}").encode()
    for name in templates.list_names(_EVALS):
        case, dot, kind = name.partition(".")
        if dot + kind == ".yaml":
            yield f"evals/{case}/case.yaml", templates.read(f"{_EVALS}/{name}").encode()
            yield f"evals/{case}/{_SCRIPT}", script


def plan_package(contents: Mapping[str, bytes], directory: str) -> tuple[FileStep, ...]:
    """Plan to write a package into a directory that is absent, empty or an earlier package.

    Raises:
        MemtoolError: the directory has files of others.
    """
    foreign = sorted(_list_files(directory) - contents.keys())
    if foreign:
        raise MemtoolError(
            f"{directory} is not a package of memtool: it has {first_few(foreign, 2)}",
            hint="name a directory that is empty or does not exist",
            code="exists",
        )
    places = {os.path.join(directory, path): data for path, data in contents.items()}
    before = {place: read_or_none(place) for place in places}
    return tuple(
        FileStep("own", place, data=data, before=before[place])
        for place, data in places.items()
        if before[place] != data
    )


def _list_files(directory: str) -> set[str]:
    """Return the paths of all files below a directory, relative to it."""
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise MemtoolError(
            f"{directory} is not a directory", hint="name another one", code="exists"
        )
    return {
        os.path.relpath(os.path.join(folder, name), directory)
        for folder, _folders, names in os.walk(directory)
        for name in names
    }
