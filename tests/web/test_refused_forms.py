"""A form that is refused comes again with all that was typed, and says what to do on its page."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from web.conftest import Reply, Web

if TYPE_CHECKING:
    from conftest import Sandbox

HOLD = "Hold a seat for 20 minutes"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SHELL = re.compile(r"\bmemtool [a-z]|(?<![\w-])--[a-z]|`[a-z_]+`|POST /api")
"""Matches what nobody can type into a page."""


class Form(HTMLParser):
    """One form of a page: its fields as a browser would send them."""

    def __init__(self, page: Reply, name: str) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []
        self.wrong: dict[str, str] = {}
        self._field = ""
        (self.text,) = (
            form
            for form in re.findall(r"(?s)<form.*?</form>", page.text)
            if f'name="form" value="{name}"' in form
        )
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = {key: value or "" for key, value in attrs}
        name = fields.get("name", "")
        if "aria-invalid" in fields:
            self.wrong = {"name": name, "described": fields["aria-describedby"], "id": fields["id"]}
        is_box = fields.get("type") in ("radio", "checkbox")
        if tag == "input" and (not is_box or "checked" in fields):
            self.pairs.append((name, fields.get("value", "")))
        if tag == "option" and "selected" in fields:
            self.pairs.append((self._select, fields["value"]))
        self._select = name if tag == "select" else getattr(self, "_select", "")
        self._field = name if tag == "textarea" else ""

    def handle_data(self, data: str) -> None:
        if self._field:
            self.pairs.append((self._field, data.removeprefix("\n")))
            self._field = ""

    @property
    def values(self) -> dict[str, str]:
        return dict(self.pairs)


def fill(web: Web, page: str, name: str, **typed: str) -> list[tuple[str, str]]:
    """Return the fields of a form of a page with some filled in."""
    pairs = Form(web.get(page), name).pairs
    return [(key, typed.get(key, value)) for key, value in pairs] + [
        pair for pair in typed.items() if pair[0] not in dict(pairs)
    ]


def summary(page: Reply) -> str:
    """Return the text of the box that says what is wrong."""
    (box,) = re.findall(r'(?s)<div class="tone bad refused".*?</div>', page.text)
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", box).split()))


@pytest.fixture
def team(sandbox: Sandbox) -> Web:
    """A committed store with one memory in each state that a form is about, and a lesson."""
    sandbox.write("app/hold.py", "def hold():\n    pass\n")
    sandbox.memory("dec-a", "Seats are held for 20 minutes.\n", title=HOLD)
    sandbox.memory("sem-b", "The timeout is 30 s.\n", type="semantic", title="Timeout is 30 s")
    sandbox.memory("sem-c", "The timeout is 60 s.\n", type="semantic", title="Timeout is 60 s")
    sandbox.memory("dec-drift", "`hold` keeps a seat.\n", title="It holds", files=("app/hold.py",))
    sandbox.commit()
    (sandbox.path / "app/hold.py").unlink()
    sandbox.commit("gone")
    session = sandbox.run("session", "start", "--title", "x").stdout.strip()
    statement = "From now on always sell the seats at the window first."
    sandbox.run("session", "add", session, "--role", "user", statement)
    sandbox.run("promote", "--list")
    return Web(sandbox, is_writing=True)


BODY = "First line, with  two blanks.\n\n\tA tab & <b>markup</b>.\n\nA\xa0fixed blank."


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        (
            {"title": "Hold a seat for 20 minutes", "type": "decision"},
            "title",
            "has the same title",
        ),
        ({"body": f"{BODY}\n\n{TOKEN}"}, "body", "The text contains a github token"),
        ({"title": ""}, "title", "Give it a title"),
        ({"body": ""}, "body", "needs a text"),
        ({"source": "nobody"}, "source", "is not a source"),
        ({"file": "../../etc"}, "file", "is not in the repository"),
        ({"tag": TOKEN}, "tag", "Tags: there is a github token"),
        ({"category": "poem"}, "", "Category: 'poem' is not one of"),
        ({"body": "x" * 100_000}, "body", "Put the long text into a file"),
        ({"title": "x" * 501}, "title", "over 500 characters"),
        ({"body": "a\u202eb"}, "body", "invisible character"),
    ],
)
def test_a_new_memory_that_is_refused_keeps_its_text(
    team: Web, changes: dict[str, str], field: str, says: str
):
    """Every field is as it was typed; the wrong one says why, and the box on top leads to it."""
    typed = {"type": "semantic", "title": "A <title>", "body": BODY, "tag": "one"} | changes
    sent = fill(team, "/new?type=semantic", "new", **typed)
    page = team.form("/do/new", [(key, value.replace("\n", "\r\n")) for key, value in sent])
    assert page.status == 422
    assert page.headers["cache-control"] == "no-store"
    again = Form(page, "new")
    control = ("nonce", "page", "category")
    expected = [pair for pair in sent if pair[0] not in control]
    assert [pair for pair in again.pairs if pair[0] not in control] == expected
    assert says in summary(page)
    assert not SHELL.search(summary(page))
    assert TOKEN not in re.sub(r"(?s)<textarea.*?</textarea>|<input[^>]*>", "", page.text)
    if field:
        assert again.wrong == {"name": field, "described": "why-wrong", "id": "wrong"}
        assert 'href="#wrong"' in page.text
        assert 'id="why-wrong"' in again.text
    changed = fill_again(again, title="Another title", body="Another text.", tag="two", source="")
    changed = [pair for pair in changed if pair[0] not in ("category", "file")]
    assert "This is what it would do" in team.form("/do/new", changed).text


def fill_again(form: Form, **typed: str) -> list[tuple[str, str]]:
    return [(key, typed.get(key, value)) for key, value in form.pairs]


@pytest.mark.parametrize(
    ("page", "name", "verb", "typed", "says"),
    [
        ("/m/dec-a", "forget dec-a", "forget", {"reason": f"it is {TOKEN}"}, "github token"),
        ("/m/dec-a", "forget dec-a", "forget", {"reason": " "}, "Say why"),
        ("/m/dec-a", "archive dec-a", "archive", {"reason": "x" * 501}, "500 characters"),
        ("/m/dec-a", "deprecate dec-a", "deprecate", {"reason": f"a {TOKEN}"}, "github token"),
        ("/m/dec-a/supersede", "supersede", "supersede", {"title": ""}, "Give it a title"),
        ("/conflicts", "keep sem-b sem-c", "resolve", {"reason": "mine"}, "Choose what holds"),
        ("/conflicts", "keep sem-b sem-c", "resolve", {"keep": "newer"}, "Say why"),
        ("/conflicts", "merge sem-b sem-c", "resolve", {"merge": "T", "body": ""}, "Say why"),
        (
            "/conflicts",
            "merge sem-b sem-c",
            "resolve",
            {"merge": "T", "reason": "so"},
            "Write the text",
        ),
        ("/list", "several", "tag", {"id": "dec-a"}, "Type a tag"),
        ("/list", "several", "archive", {"archive.reason": "over"}, "Choose at least one"),
    ],
)
def test_every_form_that_is_refused_comes_again(
    team: Web, page: str, name: str, verb: str, typed: dict[str, str], says: str
):
    """With what was typed and chosen, and the problem in words of the page beside its field."""
    sent = fill(team, page, name, **typed)
    refused = team.form(f"/do/{verb}", sent)
    assert refused.status == 422
    again = Form(refused, name)
    for key, value in typed.items():
        assert (key, value) in again.pairs
    assert again.wrong["id"] == "wrong"
    assert says in summary(refused)
    assert not SHELL.search(summary(refused))


def test_a_lesson_is_dismissed_with_a_reason_only(team: Web):
    """Without one its form comes again, and with one it is dismissed."""
    (name,) = re.findall(r'name="form" value="(dismiss [^"]+)"', team.get("/findings").text)
    refused = team.form("/do/promote", fill(team, "/findings", name))
    assert (refused.status, Form(refused, name).wrong["name"]) == (422, "reason")
    sent = fill_again(Form(refused, name), reason="it held for a day")
    assert team.form("/do/promote", sent).status == 303
    assert "1 lesson dismissed" in team.get("/findings").text


def test_a_drifted_memory_is_confirmed_by_its_own_button(team: Web):
    """The page offers to confirm that it still holds; the plain verb says so."""
    page = team.get("/m/dec-drift")
    assert "Confirm that it still holds" in page.text
    assert "Confirm that it holds" not in page.text
    sent = fill(team, "/m/dec-drift", "still-holds dec-drift")
    plain = [pair for pair in sent if pair[0] != "still_holds"]
    refused = team.form("/do/confirm", plain)
    assert "Confirm that it still holds" in summary(refused)
    assert not SHELL.search(summary(refused))
    shown = team.form("/do/confirm", sent)
    assert team.form("/do/confirm", Form(shown, "still-holds dec-drift").pairs).status == 200
    assert "Confirm that it holds" in team.get("/m/dec-drift").text


def test_the_way_back_from_a_preview_keeps_the_text(team: Web):
    """Whoever sees a slip in the preview goes back to the form as it was typed."""
    sent = fill(team, "/new", "new", title="A slip", body=BODY, tag="one")
    shown = Form(team.form("/do/new", sent), "new").pairs
    page = team.form("/do/new", [*shown, ("step", "back")])
    assert page.status == 200
    assert "refused" not in page.text
    assert Form(page, "new").values["body"] == BODY
    assert Form(page, "new").values["title"] == "A slip"


def test_a_form_of_an_older_session_keeps_its_text(team: Web):
    """It comes again with the nonce of this session, and is then accepted."""
    sent = fill(team, "/new", "new", title="A title", body=BODY, nonce="old")
    refused = team.form("/do/new", sent)
    assert refused.status == 403
    again = Form(refused, "new")
    assert again.values["body"] == BODY
    assert again.values["nonce"] == team.nonce
    assert "This is what it would do" in team.form("/do/new", again.pairs).text


def test_a_server_that_was_started_again_gives_the_text_back(team: Web, sandbox: Sandbox):
    """The page of the form has another name now, so its text is there to be copied."""
    sent = fill(team, "/new", "new", title="A title", body=f"{BODY} </textarea><script>")
    later = Web(sandbox, is_writing=True)
    names = {"host": team.guard.site, "origin": f"http://{team.guard.site}"}
    for headers in (names, {"cookie": "memtool=old"}):
        refused = later.form("/do/new", sent, **headers)
        assert refused.status in (401, 421)
        assert refused.headers["cache-control"] == "no-store"
        assert "&lt;b&gt;markup&lt;/b&gt;" in refused.text
        assert "<script>" not in refused.text
        assert later.nonce not in refused.text
        assert later.guard.site not in refused.text
    foreign = later.form("/do/new", sent, host=team.guard.site, origin="http://evil.test")
    assert "A title" not in foreign.text


def test_the_page_may_be_gone(team: Web, sandbox: Sandbox):
    """A memory that somebody removed meanwhile takes no text with it."""
    sent = fill(team, "/m/dec-a/supersede", "supersede", title="A title", body=BODY)
    next(sandbox.path.rglob("dec-a.md")).unlink()
    refused = team.form("/do/supersede", sent)
    assert refused.status == 422
    assert "&lt;b&gt;markup&lt;/b&gt;" in refused.text


def test_what_changes_after_the_preview_is_not_confirmed(team: Web, sandbox: Sandbox):
    """Nobody vouches for a text that the preview did not show."""
    shown = team.form("/do/confirm", fill(team, "/m/dec-a", "confirm dec-a"))
    path = next(sandbox.path.rglob("dec-a.md"))
    path.write_text(path.read_text().replace("20 minutes", "90 minutes"))
    refused = team.form("/do/confirm", Form(shown, "confirm dec-a").pairs)
    assert refused.status == 422
    assert "has changed since you saw the preview" in summary(refused)
    assert "checked" not in path.read_text()


def test_nothing_of_a_refused_form_is_kept(team: Web, sandbox: Sandbox):
    """Neither a log, nor a file of memtool, nor a later page has a word of it."""
    team.form("/do/new", fill(team, "/new", "new", title="Zwetschge", body=TOKEN))
    team.form("/do/forget", fill(team, "/m/dec-a", "forget dec-a", reason=f"Zwetschge {TOKEN}"))
    assert "Zwetschge" not in team.get("/new").text + team.get("/m/dec-a").text
    for path in sandbox.path.rglob("*"):
        if path.is_file():
            assert b"Zwetschge" not in path.read_bytes(), path
            assert TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("verb", "pairs", "status"),
    [
        ("pin", {"page": "//evil.test", "next": "//evil.test", "id": "dec-none"}, 422),
        ("pin", {"page": "/m/" + "x" * 5000, "form": "pin x", "id": "dec-none"}, 422),
        ("pin", {"page": "/m/%00", "form": "<script>", "id": "dec-none"}, 422),
        ("pin", {"page": "/do/pin", "form": "pin dec-a", "id": "dec-none"}, 422),
        ("pin", {"page": "/new", "id": "dec-a", "reason": "of another verb"}, 422),
        ("pin", {"page": "/new", "id": "dec-a", "archive.reason": "dropped", "step": "show"}, 200),
        ("forget", {"id": "dec-a", "reason": "<script>alert(1)</script>", "step": "show"}, 200),
        ("tag", {"id": "dec-a", "tag.add": "<img src=x>", "step": "show"}, 200),
        ("confirm", {"id": "*", "step": "show"}, 422),
        ("nothing", {"id": "dec-a"}, 404),
    ],
)
def test_odd_fields_are_refused_or_shown_as_text(
    team: Web, verb: str, pairs: dict[str, str], status: int
):
    """No address leads elsewhere, no markup is one, and no bug answers."""
    page = team.form(f"/do/{verb}", {"nonce": team.nonce, **pairs})
    assert page.status == status
    assert "evil.test" not in page.text
    assert page.text.count("<script") <= 1
    assert "<img" not in page.text
    assert "a bug" not in page.text


def test_many_ids_at_once_are_answered_in_time(team: Web):
    """Ten thousand ids, of which one is known and named twice, change nothing by themselves."""
    ids = ["dec-a", "dec-a", *(f"dec-{number}" for number in range(10_000))]
    body = [("nonce", team.nonce), ("page", "/list"), ("form", "several"), ("step", "show")]
    refused = team.form("/do/confirm", [*body, *(("id", id_) for id_ in ids)])
    assert refused.status == 422
    assert len(refused.body) < 2_000_000
    twice = team.form("/do/pin", [*body, ("id", "dec-a"), ("id", "dec-a")])
    assert "This is what it would do" in twice.text


def test_a_body_that_is_no_form_is_refused(team: Web):
    """Bytes that are no text, and a form of half a megabyte, are no bug."""
    headers = {"origin": f"http://{team.guard.site}", "content-type": "text/plain"}
    assert team.ask("POST", "/do/pin", b"\xff\xfe&=&&%", **headers).status == 403
    huge = urlencode({"nonce": team.nonce, "id": "x" * 500_000}).encode()
    assert team.ask("POST", "/do/pin", huge, **headers).status == 422
