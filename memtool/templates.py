"""Templates: the files of the top-level `templates/`, in a checkout and in an installed wheel."""

from __future__ import annotations

import os
import sys


def read(name: str) -> str:
    """Return the text of a template such as `memory/decision.md`."""
    with open(find_path(name), encoding="utf-8") as file:
        return file.read()


def list_names(folder: str) -> list[str]:
    """Return the names of the files in a folder of templates, sorted."""
    return sorted(os.listdir(find_path(folder)))


def find_path(name: str) -> str:
    """Return the path of a template, as `python -m memtool.templates ci/report.sh` prints it."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, "templates")
    root = inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "templates")
    return os.path.join(root, *name.split("/"))


if __name__ == "__main__":
    sys.stdout.write(find_path(sys.argv[1]) + "\n")
