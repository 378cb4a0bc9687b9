"""The Python API: a workspace whose methods are the verbs."""

from __future__ import annotations

from memtool.commands import new as _new
from memtool.commands import pin as _pin
from memtool.workspace import Workspace


class Project(Workspace):
    """A repository with every verb as a method; `memtool.open` makes one."""

    new = _new.new
    pin = _pin.pin
