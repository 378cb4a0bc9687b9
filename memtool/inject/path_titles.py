"""Path titles: at an edit, the title of the decision that the file's path finds.

It is shown if nothing governs the file, neither a memory that says so nor a tie (`file_ties`). One
title costs a dozen tokens; a session is told each once, and none of a memory that it has seen. Only
imported decisions are found, so other repositories pay nothing.
"""

from __future__ import annotations

from memtool.inject.file_ties import MAX_FILES
from memtool.inject.further_titles import Title, format_title
from memtool.memory.mentions import is_code
from memtool.search.features import Facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from memtool.inject.gather import RepositoryCandidates

LEAD = (
    "{files}: by the words of the path, this decision may be about it. Title only; "
    "`memtool show ID` prints it:"
)


def find_title(own: RepositoryCandidates, files: Iterable[str]) -> tuple[Title, str] | None:
    """Return the title for the first of some files that has one, with its line."""
    grounds = own.grounds
    paths = [path for path in files if is_code(path)][:MAX_FILES]
    if own.rules or not paths or not grounds.tree.imported_ids:
        return None
    from memtool.search.path_words import find_by_path  # most repositories have imported nothing

    seen_ids = {id_ for id_, _version in own.seen.seen}
    facts = Facts(grounds.tree, grounds.now, dict, grounds.standing.lineage)
    for path in paths:
        record = find_by_path(facts, path, grounds.find_refusal)
        if record is not None and record.id not in seen_ids:
            origin = own.view.witness.origins([record])[record.path]
            title = Title(id=record.id, title=record.memory.title)
            return title, format_title(own, record, origin)
    return None
