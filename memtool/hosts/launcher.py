"""The launcher: the script `memtool` beside Python, as an installer wrote it or without `site`.

Before its first line Python runs `site`, which looks for the directories of packages and does what
their `.pth` files ask for. That takes a tenth of an interpreter start, and memtool needs to know
one of those directories. No installer keeps options of Python in the first line of a script, so
they are written afterwards. Only a script that is ours byte for byte is changed; an upgrade brings
back the installer's.

-S leaves out `site`; the verbs that nobody waits for run it first, the others when a module is not
found without it (`memtool.loading`). -P: the directory of the script holds no modules.
"""

from __future__ import annotations

import os
import sys

from memtool import loading, templates
from memtool.errors import MemtoolError

OPTIONS = "-SP"
_IMPORT = "from memtool"


def place() -> str:
    """Return where an installer puts the script of this Python."""
    return os.path.join(os.path.dirname(sys.executable or ""), "memtool")


def is_slow() -> bool:
    """Tell whether the script is the one that an installer wrote, and could be sooner."""
    return bool(_program() and _folder())


def quicken() -> bool:
    """Let the script start Python without `site`, if that works; return whether it was changed."""
    program, folder = _program(), _folder()
    if not program or not folder or not _is_enough(program, folder):
        return False
    from memtool.store import files

    root, name = os.path.split(place())
    text = without_site(program, folder)
    try:
        files.replace(root, name, text.encode(), expected=_script(program).encode())
    except MemtoolError:  # it is not ours to write, or was changed by somebody
        return False
    return True


def without_site(program: str, *folders: str) -> str:
    """Return the script that starts an interpreter without `site`, and looks into directories."""
    lines = "".join(f"sys.path.append({folder!r})\n" for folder in folders)
    text = _script(f"{program} {OPTIONS}")
    return text.replace(_IMPORT, f"import sys\n\n{lines}{_IMPORT}", 1)


def _script(program: str) -> str:
    """Return the script as an installer writes it for an interpreter."""
    return templates.read("launcher").replace("#!python\n", f"#!{program}\n", 1)


def _program() -> str:
    """Return the interpreter that the installer's script names; empty where it is another script.

    An environment is known by the directory alone: its Python is a link to that of all.
    """
    try:
        with open(place(), encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError):
        return ""
    program = text.partition("\n")[0].removeprefix("#!")
    is_ours = text == _script(program) and not any(map(str.isspace, program))
    return program if is_ours and os.path.dirname(program) == os.path.dirname(place()) else ""


def _folder() -> str:
    """Return the directory of memtool and of the library that its hot verbs load.

    Empty where they lie apart: a checkout is started as its developer has installed it.
    """
    from importlib.util import find_spec

    found = find_spec("Stemmer")
    folder = os.path.dirname(loading.HERE)
    is_one = found is not None and found.origin and os.path.dirname(found.origin) == folder
    return folder if is_one else ""


def _is_enough(program: str, folder: str) -> bool:
    """Tell whether Python finds both, and its own modules, without `site`."""
    from memtool.store import process

    script = (
        f"import sys; sys.path.append({folder!r}); import memtool.cli.main, Stemmer, zlib; "
        f"raise SystemExit(memtool.__file__ != {os.path.join(loading.HERE, '__init__.py')!r})"
    )
    try:
        return process.run([program, OPTIONS, "-c", script], os.environ).status == 0
    except OSError:
        return False
