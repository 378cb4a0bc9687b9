"""Hosts: one value for each agent host, and what installing into its files comes to."""

from __future__ import annotations

import errno
import os
import shlex
import stat

from memtool.errors import MemtoolError
from memtool.hosts.contracts import CONTRACTS, END, START
from memtool.hosts.handlers import Hook
from memtool.hosts.parts import Part, Whole
from memtool.hosts.plan import Plan, Step
from memtool.hosts.site import Site, home_of, program_of
from memtool.store.reading import read_regular
from memtool.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

LIMITS_S = {START: 10, END: 3}
"""Seconds that a host waits for the hook of an event. Codex gives the last one no more than 3."""
LIMIT_S = 5


class Host(Value):
    """An agent host.

    `folder` is its directory in a project, `home` returns that for all projects. `parts` returns
    everything but the server. `trust` says what the user has to do before the host runs a hook.
    """

    name: str
    title: str
    program: str
    folder: str
    home: Callable[[Mapping[str, str]], str]
    parts: Callable[[Site], list[Part]]
    server: Callable[[Site], Part]
    trust: str = ""

    def site(
        self, project: str, env: Mapping[str, str], verbs: Iterable[str], *, is_user: bool
    ) -> Site:
        """Return where its files are, for a project or for all projects of the user."""
        inside, everywhere, home = os.path.join(project, self.folder), self.home(env), home_of(env)
        return Site(
            folder=everywhere if is_user else inside,
            other=inside if is_user else everywhere,
            top=project if not is_user else _above(everywhere, home),
            home=home,
            project=project,
            program=program_of(env) if is_user else "memtool",
            verbs=frozenset(verbs),
            is_user=is_user,
        )

    def is_used(self, project: str, env: Mapping[str, str]) -> bool:
        """Tell whether the project or the user has files of it, or its program is on the path."""
        import shutil

        places = (os.path.join(project, self.folder), self.home(env))
        return any(map(os.path.isdir, places)) or bool(
            shutil.which(self.program, path=env.get("PATH"))
        )

    def install(self, site: Site, *, with_server: bool = False) -> Plan:
        """Plan what is missing or older; a server that is there counts, too.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        server = self.server(site)
        is_served = with_server or _is_there(server, site)
        parts = self.parts(site) + ([server] if is_served else [])
        wanted: list[Part] = []
        present: dict[str, list[str]] = {}
        for part in parts:
            place = _found_elsewhere(part)
            if place:
                level = site.other if place.startswith(f"{site.other}/") else place
                present.setdefault(site.shown(level), []).append(_named(part))
            else:
                wanted.append(part)
        notes = [f"{level} has it already: {', '.join(who)}" for level, who in present.items()]
        steps = []
        is_hooked = False
        for path, group in _by_path(wanted).items():
            before = after = read(path, site)
            for part in group:
                last, after = after, part.put(after)
                is_hooked |= isinstance(part, Hook) and after != last
            if after != before and after is not None:
                steps.append(Step("edit", real(path, site), data=after, before=before))
            missing = [part for part in group if not part.has(after or b"")]
            if missing:
                notes.append(f"{site.shown(path)} is somebody else's, and stays as it is")
        if is_hooked and self.trust:
            notes.append(self.trust)
        return Plan(tuple(steps), tuple(dict.fromkeys(notes)))

    def uninstall(self, site: Site) -> Plan:
        """Plan to take everything of memtool out again.

        Raises:
            MemtoolError: a file of the host is broken or cannot be read.
        """
        steps = []
        for path, group in _by_path([*self.parts(site), self.server(site)]).items():
            before = read(path, site)
            ours = [part for part in group if before is not None and part.has(before)]
            if before is None or not ours:
                continue
            after = _without(before, ours)
            if after is None:
                steps.append(Step("drop", real(path, site), target=site.top, before=before))
            elif after != before:
                steps.append(Step("edit", real(path, site), data=after, before=before))
        return Plan(tuple(steps))


def hooks(
    host: str,
    site: Site,
    file: str,
    *,
    levels: tuple[str, ...] = (),
    matchers: Mapping[str, str] | None = None,
    start: Mapping[str, Any] | None = None,
    grouped: bool = True,
    comments: bool = False,
    unit: int = 1,
) -> list[Part]:
    """Return the hooks of a host that has them in one file of settings.

    `levels` are more files that may have them, `matchers` stand by what an event means, `unit` is
    what the host counts for a second.
    """
    path, elsewhere = site.at(file)
    return [
        Hook(
            path=path,
            elsewhere=(*elsewhere, *levels),
            name=site.shown(path),
            start=dict(start or {}),
            comments=comments,
            event=row.name,
            command=f"{shlex.quote(site.program)} hook {host} {row.event}",
            more={"timeout": LIMITS_S.get(row.meaning, LIMIT_S) * unit},
            matcher=(matchers or {}).get(row.meaning, ""),
            grouped=grouped,
        )
        for row in CONTRACTS
        if row.host == host
    ]


def real(path: str, site: Site) -> str:
    """Return where a file really is.

    Raises:
        MemtoolError: a link leads out of the project.
    """
    place = os.path.realpath(path)
    if not site.is_user and not place.startswith(f"{os.path.realpath(site.project)}/"):
        raise MemtoolError(
            f"{site.shown(path)} is a link that leads out of the repository",
            hint="remove the link, or use --user",
            code="symlink",
        )
    return place


def read(path: str, site: Site) -> bytes | None:
    """Return the bytes of a file of a host, None for no file.

    Raises:
        MemtoolError: it cannot be read.
    """
    place = real(path, site)
    try:
        if not stat.S_ISREG(os.stat(place).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        return read_regular(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MemtoolError(
            f"{site.shown(path)} cannot be read: {error.strerror}; nothing was changed",
            hint="make it a file that you may read, or remove it",
            code="broken-settings",
        ) from None


def _is_there(part: Part, site: Site) -> bool:
    """Tell whether a part is in its file, as far as that can be read."""
    try:
        data = read(part.path, site)
    except MemtoolError:
        return False
    return data is not None and part.has(data)


def _without(before: bytes, ours: list[Part]) -> bytes | None:
    """Return a file without our parts; None where nothing else was ever in it."""
    made: bytes | None = None
    for part in ours:
        made = part.put(made)
    if before == made:
        return None
    after: bytes | None = before
    for part in reversed(ours):
        after = after if after is None else part.take(after)
    return after


def _found_elsewhere(part: Part) -> str:
    """Return the file of another level that has a part already."""
    for path in part.elsewhere:
        try:
            if path != part.path and part.has(read_regular(os.path.realpath(path))):
                return path
        except OSError:
            continue
    return ""


def _by_path(parts: Iterable[Part]) -> dict[str, list[Part]]:
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(part.path, []).append(part)
    return groups


def _above(folder: str, home: str) -> str:
    """Return the directory that stays when a host's own one is empty."""
    return home if folder.startswith(f"{home}/") else os.path.dirname(folder)


def _named(part: Part) -> str:
    """Return what a part is called in a note: an event, a server, or a command."""
    if isinstance(part, Hook):
        return part.event
    if not isinstance(part, Whole):
        return "MCP server"
    folder, name = os.path.split(part.path)
    stem = name.partition(".")[0]
    return os.path.basename(folder) if stem == "SKILL" else stem
