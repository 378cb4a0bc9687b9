from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import memtool
from memtool.calls.signature import read_interface
from memtool.cli.manual import COMMAND, render_reference
from memtool.commands import VERBS
from memtool.memory.fields import CATEGORIES, FIELDS
from memtool.memory.lifecycle import PRESETS
from memtool.memory.schema import CODES
from memtool.search.filters import FILTERS
from memtool.search.ranking import FACTORS
from memtool.store.config import OPTIONS
from memtool.store.repository import ENVIRONMENT

ROOT = Path(memtool.__file__).parents[1]


def test_the_reference_in_the_docs_is_the_one_of_the_code():
    """The manual cannot rot: every verb, option, field and setting in it is the real one."""
    written = (ROOT / "docs" / "reference.md").read_bytes()
    assert written == render_reference().encode(), f"renew it with: {COMMAND}"


def test_the_reference_holds_every_row_of_every_table():
    """No table of the code is left out of the manual."""
    text = render_reference()
    names = [f"`{f.name}`" for f in FIELDS] + [f"`{c.name}`" for c in CATEGORIES]
    names += [f"`{o.key}`" for o in OPTIONS] + [f"`{code}`" for code in CODES]
    names += [f"| `{name}` | {row.doc} |" for name, row in PRESETS.items()]
    names += [f"| `{factor.name}` | {factor.minimum:g} |" for factor in FACTORS]
    names += [f"`{name}:`" for name in FILTERS]
    names += [f"`{name}`" for names in ENVIRONMENT for name in names.split(", ")]
    names += [f"\n### {verb.name}\n" for verb in VERBS]
    names += [f"`{o.flag}" for verb in VERBS for o in read_interface(verb).options]
    assert [name for name in names if name not in text] == []


def test_every_link_of_the_reference_leads_to_a_heading():
    """A reader who clicks arrives."""
    text = render_reference()
    headings = {
        row.lstrip("# ").lower().replace(" ", "-")
        for row in text.splitlines()
        if row.startswith("#")
    }
    targets = {part.partition(")")[0] for part in text.split("](#")[1:]}
    assert targets - headings == set()
    assert len(targets) > len(VERBS)


def test_every_row_of_a_table_has_the_cells_of_its_head():
    """No text of a cell breaks its table."""
    width = 0
    for row in render_reference().splitlines():
        cells = row.replace("\\|", "").count("|") if row.startswith("|") else 0
        assert cells in (0, width or cells), row
        width = cells


def test_the_command_that_renews_it_writes_the_same_bytes_in_any_locale():
    """The page does not depend on hash seeds or on the terminal."""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-m", "memtool.cli.manual"], env=env, capture_output=True, check=True
    )
    assert done.stdout == render_reference().encode()


def test_the_variables_of_the_environment_are_those_that_the_code_reads():
    """A variable that is read somewhere stands in the table, and none that is not; git's aside."""
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "memtool").rglob("*.py"))
    text = re.sub(r"ENVIRONMENT: dict.*?\n}", "", "\n".join(sources), flags=re.DOTALL)
    read = set(re.findall(r"""env(?:iron)?(?:\.get\(|\[)["']([A-Z_]+)["']""", text))
    read |= set(re.findall(r"""["'](MEMTOOL_[A-Z_]+)["']""", text))
    documented = {name for names in ENVIRONMENT for name in names.split(", ")}
    assert {name for name in read if not name.startswith("GIT_")} == documented
