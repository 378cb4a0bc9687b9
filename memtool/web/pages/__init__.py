"""The pages: a table of them, and a module for each group of pages.

To add a page:

1. In a module here, a function `NAME(context, query)` that calls verbs and returns a dict with the
   values of the template, including `title`. It reads `query.text("id")`,
   `query.number("limit", 50)` and so on, and raises `MemtoolError` for an invalid request, which
   the page then shows.
2. `templates/web/NAME.html`, which begins `{% extends "layout.html" %}` and fills the block `main`.
   Every address is written `{{ to("/m/" ~ id) }}`, a body `{{ markdown(body)|safe }}`; nothing else
   is marked safe. Inline styles and scripts do not run. A row that `j` and `k` step through has the
   class `row`; Enter opens its first link. A form is made by `forms.form` of `form_parts.html`,
   with the fields of its verb and a name of its own, and its fields by `forms.line`, `forms.area`
   and `forms.reason`: then it is shown again, as it was typed, if it is refused. `next` is the
   path to go to. `step="show"` begins with a preview, an empty one redirects at once.
3. A row in `PAGES`. The menu has it if `menu` is set.
4. A test in `tests/web`: `web.get("/PATH")` of the fixture `web` asks the application in process.
"""

from __future__ import annotations

from memtool.web.page import Page
from memtool.web.pages.conflicts import conflicts
from memtool.web.pages.deliveries import deliveries
from memtool.web.pages.fleet import fleet
from memtool.web.pages.forms import new, supersede
from memtool.web.pages.health import health
from memtool.web.pages.history import changes, memory_diff, timeline
from memtool.web.pages.lineage import graph
from memtool.web.pages.memories import memories
from memtool.web.pages.memory import memory
from memtool.web.pages.memory_map import memory_map
from memtool.web.pages.premises import premises
from memtool.web.pages.reports import digests
from memtool.web.pages.review import review
from memtool.web.pages.search import search
from memtool.web.pages.sessions import findings, session, sessions
from memtool.web.pages.status import status

PAGES: tuple[Page, ...] = (
    Page("/", "status.html", status, menu="Status", is_private=True, is_slow=True),
    Page("/list", "memories.html", memories, menu="Memories", is_private=True, is_slow=True),
    Page("/map", "map.html", memory_map, menu="Map", is_private=True, is_slow=True),
    Page("/timeline", "timeline.html", timeline, menu="Timeline", is_private=True, is_slow=True),
    Page("/conflicts", "conflicts.html", conflicts, menu="Conflicts", is_slow=True),
    Page("/findings", "findings.html", findings, menu="Lessons", is_private=True, is_slow=True),
    Page("/search", "search.html", search, menu="Search"),
    Page("/review", "review.html", review, menu="Review", is_slow=True),
    Page("/changes", "changes.html", changes, menu="Changes", is_slow=True),
    Page("/digests", "digests.html", digests, menu="Digests"),
    Page("/digests/{category}", "digests.html", digests),
    Page("/sessions", "sessions.html", sessions, menu="Sessions", is_private=True, is_slow=True),
    Page("/sessions/{id}", "session.html", session, is_private=True, is_slow=True),
    Page("/given", "deliveries.html", deliveries, menu="Given", is_private=True, is_slow=True),
    Page("/report", "health.html", health, menu="Health", is_private=True, is_slow=True),
    Page(
        "/fleet", "fleet.html", fleet, menu="Fleet", is_private=True, is_slow=True, feature="fleet"
    ),
    Page("/new", "form.html", new, is_private=True),
    Page("/m/{id}", "memory.html", memory, is_private=True, is_slow=True),
    Page("/m/{id}/diff", "diff.html", memory_diff, is_slow=True),
    Page("/m/{id}/graph", "graph.html", graph, is_slow=True),
    Page("/m/{id}/premises", "graph.html", premises, is_slow=True),
    Page("/m/{id}/supersede", "form.html", supersede, is_private=True),
)
"""Every page. The menu has those with `menu` in this order, `render.MENU_ROW` of them in its row,
the others under "More"."""
