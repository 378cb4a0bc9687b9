"""The pages: a table of them, and a module for each group of pages.

To add a page:

1. In a module here, a function `NAME(context, query)` that calls verbs and returns a dict of what
   the template shows, with a `title`. It asks `query.text("id")`, `query.number("limit", 50)` and
   so on, and raises `MemtoolError` for what cannot be shown: the page then says so.
2. `templates/web/NAME.html`, which begins `{% extends "layout.html" %}` and fills the block `main`.
   Every address is written `{{ to("/m/" ~ id) }}`, a body `{{ markdown(body)|safe }}`; nothing else
   is marked safe. Inline styles and scripts do not run. A row that `j` and `k` step through has the
   class `row`; its first link is opened by Enter. A form posts to `/do/VERB` with the fields of the
   verb, `nonce`, and `next`, the path to go to.
3. A row in `PAGES`. The menu has it where `menu` is given.
4. A test in `tests/web`: `web.get("/PATH")` of the fixture `web` asks the application in process.
"""

from __future__ import annotations

from memtool.web.page import Page
from memtool.web.pages.memory import memory
from memtool.web.pages.search import search
from memtool.web.pages.status import status

PAGES: tuple[Page, ...] = (
    Page("/", "status.html", status, menu="Status", is_private=True, is_slow=True),
    Page("/search", "search.html", search, menu="Search"),
    Page("/m/{id}", "memory.html", memory, is_private=True, is_slow=True),
)
"""Every page, in the order of the menu."""
