"""What a session's first hook reads is ready after an import."""

from __future__ import annotations

import pytest
from conftest import Sandbox

from memtool.index import index


def count_indexed(sandbox: Sandbox) -> int:
    """Return the number of memories in the stored index, 0 without one."""
    context = sandbox.context()
    reader = index.open_last_reader(context.repository, context.directory, context.settings)
    return 0 if reader is None else len(list(reader.read_stamps()))


@pytest.mark.parametrize(("options", "count"), [(("--commit",), 3), ((), 3), (("--dry-run",), 0)])
def test_an_import_leaves_its_memories_indexed(
    sandbox: Sandbox, options: tuple[str, ...], count: int
) -> None:
    """A dry run leaves nothing."""
    for number in range(3):
        body = f"## Status\n\nAccepted\n\n## Decision\n\nBoats of kind {number}.\n"
        sandbox.write(f"docs/adr/000{number}-boats.md", f"# Use {number} boats\n\n{body}")
    sandbox.commit()
    sandbox.run("import", "adr", "docs/adr", *options)
    assert count_indexed(sandbox) == count
