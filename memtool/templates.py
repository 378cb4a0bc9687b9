"""Templates: the files of the top-level `templates/`, in a checkout and in an installed wheel."""

from __future__ import annotations

import os


def read(name: str) -> str:
    """Return the text of a template such as `memory/decision.md`."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, "templates")
    root = inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "templates")
    with open(os.path.join(root, *name.split("/")), encoding="utf-8") as file:
        return file.read()
