"""Forms: text and id come out of a form as they went in."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from web.conftest import Reply, Web

from memtool import templates

if TYPE_CHECKING:
    from conftest import Sandbox

TEXT = "First line, with  two blanks.\n\n## Rationale\n\n\tA tab.\n\n    code\n\nA\xa0fixed blank."
LINES = TEXT.replace("\n", "\r\n")
"""The text as a browser sends it (HTML, "constructing the entry list")."""


class Fields(HTMLParser):
    """The fields of the forms of a page that have a value, as a browser reads them."""

    def __init__(self, page: Reply) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._area = ""
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        name = attributes.get("name") or ""
        if tag == "input" and attributes.get("value"):
            self.values[name] = attributes["value"] or ""
        self._area = name if tag == "textarea" else ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area] = data.removeprefix("\n")
            self._area = ""


def sent(web: Web, page: Reply, verb: str, **changes: str) -> Reply:
    """Send the form of a page as a browser does, with some fields filled in."""
    fields = {k: v.replace("\n", "\r\n") for k, v in Fields(page).values.items()}
    return web.form(f"/do/{verb}", fields | {"nonce": web.nonce} | changes)


def written(sandbox: Sandbox, id_: str) -> str:
    """Return the body of a memory as its file holds it."""
    text = next((sandbox.path / ".memory").rglob(f"{id_}.md")).read_bytes().decode()
    return text.split("\n---\n", 1)[1]


def id_on(page: Reply) -> str:
    """Return the id of the memory that a page shows."""
    return re.findall(r"(?:sem|dec)-2026-[a-z0-9-]+", page.text)[0]


def test_every_value_of_a_form_is_carried():
    """Templates carry values unchanged; only displayed values are made visible."""
    pattern = r'value="\{\{(.*?)\}\}"|<textarea[^>]*>\n?\{\{(.*?)\}\}'
    values = [
        value
        for name in templates.list_names("web")
        for value in re.findall(pattern, templates.read(f"web/{name}"))
    ]
    assert len(values) > 20
    assert [value for value in values if not "".join(value).endswith("|carried ")] == []


def test_a_text_goes_through_new_and_correct_unchanged(sandbox: Sandbox, writer: Web):
    """Several lines, blanks, tabs and code are written as they were typed, and so again."""
    page = writer.get("/new?type=semantic")
    shown = sent(writer, page, "new", type="semantic", title="A text", body=LINES)
    assert "This is what it would do" in shown.text
    done = sent(writer, shown, "new", step="do")
    assert done.status == 200
    first = id_on(done)
    assert written(sandbox, first) == TEXT + "\n"
    page = writer.get(f"/m/{first}/supersede")
    body = Fields(page).values["body"]
    assert body == TEXT + "\n"
    changed = body.replace("First", "Second")
    shown = sent(writer, page, "supersede", title="Again", body=changed.replace("\n", "\r\n"))
    second = id_on(sent(writer, shown, "supersede", step="do"))
    assert written(sandbox, second) == changed


def test_a_settlement_keeps_the_lines_of_its_text(sandbox: Sandbox, writer: Web):
    """A conflict that is settled through its form keeps the text of the side that holds."""
    sandbox.memory("sem-a", "The timeout is 30 s.\n\nIt was 20 s.\n", type="semantic")
    sandbox.memory("sem-b", "The timeout is 60 s.\n\nIt was 20 s.\n", type="semantic")
    sandbox.commit()
    fields = {"nonce": writer.nonce, "keep": "sem-a", "reason": "measured", "step": "show"}
    body = [*fields.items(), ("ids", "sem-a"), ("ids", "sem-b"), ("commit", "true")]
    shown = writer.form("/do/resolve", body)
    assert "This is what it would do" in shown.text
    again = [pair if pair[0] != "step" else ("step", "do") for pair in body]
    done = writer.form("/do/resolve", again)
    stored = written(sandbox, id_on(done))
    assert stored.startswith("The timeout is 30 s.\n\nIt was 20 s.\n")
    assert id_on(shown) == id_on(done)


@pytest.mark.parametrize("verb", ["new", "supersede"])
def test_a_preview_names_the_file_that_is_written(sandbox: Sandbox, verb: str):
    """The id of the page that shows, of a dry run and of the writing is one, whoever draws it."""
    del sandbox.env["MEMTOOL_SEED"]
    writer = Web(sandbox, is_writing=True)
    sandbox.memory("sem-a", "Seats are held for 20 minutes.\n", type="semantic")
    sandbox.commit()
    words = ("sem-a", "Seats wait") if verb == "supersede" else ("semantic", "Seats wait")
    planned = sandbox.json(verb, *words, "--body", "A seat waits.", "--dry-run")["id"]
    names = ("old" if verb == "supersede" else "type", "title")
    fields = dict(zip(names, words, strict=True)) | {"body": "A seat waits.", "step": "show"}
    shown = writer.form(f"/do/{verb}", fields | {"nonce": writer.nonce})
    done = sent(writer, shown, verb, step="do")
    assert re.findall(rf"{planned}\.md", shown.text)
    assert re.findall(rf"{planned}\.md", done.text)
    assert written(sandbox, planned) == "A seat waits.\n"


def test_undo_is_offered_where_something_changed(sandbox: Sandbox, writer: Web):
    """A memory that is pinned already is pinned again without a form that takes it back."""
    sandbox.memory("sem-a", type="semantic")
    sandbox.commit()
    fields = {"nonce": writer.nonce, "id": "sem-a", "step": "do", "commit": "true"}
    assert "/do/undo" in writer.form("/do/pin", fields).text
    assert "/do/undo" not in writer.form("/do/pin", fields).text


def test_a_site_is_not_headed_twice(sandbox: Sandbox):
    """A site without a title of its own is called Memories, once."""
    sandbox.memory("sem-a", type="semantic")
    sandbox.commit()
    assert sandbox.run("site", "made").returncode == 0
    page = (sandbox.path / "made/index.html").read_text()
    assert "<h1>Memories</h1>" in page


def test_suggested_files_are_accepted_by_a_button(sandbox: Sandbox, writer: Web):
    """The page of an imported decision names the files, and its button writes them."""
    sandbox.write("src/hold.py", "\n")
    source = ("file:docs/adr/1.md",)
    sandbox.memory("adr-0001-holds", "Holds are in src/hold.py.\n", source=source)
    sandbox.memory("dec-b", "Seats are numbered.\n")
    sandbox.commit()
    assert "Probably governs" not in writer.get("/m/dec-b").text
    page = writer.get("/m/adr-0001-holds")
    assert "Probably governs" in page.text
    assert "Confirm it with these files" in page.text
    fields = {"id": "adr-0001-holds", "accept_files": "true", "commit": "true", "step": "show"}
    shown = writer.form("/do/confirm", fields | {"nonce": writer.nonce})
    assert "src/hold.py" in shown.text
    assert sent(writer, shown, "confirm", step="do").status == 200
    assert sandbox.json("show", "adr-0001-holds")["files"] == ["src/hold.py"]
    assert "Probably governs" not in writer.get("/m/adr-0001-holds").text
