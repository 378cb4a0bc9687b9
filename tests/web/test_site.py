"""The static site: its contents, what it must not contain, and its folder."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from chromium import PAYLOADS, RULES, axe_source, chromium
from hypothesis import given
from hypothesis import strategies as st

from memtool import demo
from memtool.commands.blame import blame, build_blame
from memtool.commands.log import build_logs, log
from memtool.index.analyzer import AS_WRITTEN, terms
from memtool.store.blame import FileHistories
from memtool.store.context import Context
from memtool.store.history import History
from memtool.store.progress import Progress
from memtool.web import words
from memtool.web.folder import MANIFEST, SiteFolder
from memtool.web.site import build
from memtool.web.site_pages import EVENTS, StaticSite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Sandbox

PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
SECRET = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=http://evil.test/a onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](http://evil.test/t.png)",
    "</style><script>alert(1)</script>",
    "[[no-such-memory]]",
)


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository of the made-up team."""
    place = tmp_path_factory.mktemp("demo") / "harbor"
    demo.build(os.environ | PLAIN, str(place), dry_run=False)
    return place


@pytest.fixture(scope="module")
def site(harbor: Path) -> Path:
    """Its site."""
    place = harbor.parent / "site"
    made(harbor, place)
    return place


def made(repository: Path, place: Path, **options: str) -> Context:
    """Build a site, and return the context with its notes."""
    env = os.environ | PLAIN
    context = Context.at(str(repository), env)
    build(context, Progress(None), str(place), **options)
    return context


def files(place: Path) -> dict[str, bytes]:
    """Return every file of a folder with its bytes."""
    paths = sorted(path for path in place.rglob("*") if path.is_file())
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in paths}


def addresses(text: str) -> list[str]:
    """Return what a page leads to or loads, as it was written."""
    return [unescape(address) for address in re.findall(r'(?:href|src|action)="([^"]*)"', text)]


def test_every_address_is_a_file_of_the_site(site: Path):
    """Links are relative, none is dead, and every page but that of absent memories is reached."""
    todo, reached = ["index.html"], set()
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for address in addresses((site / name).read_text()):
            if address.startswith(("http://", "https://", "mailto:", "#")):
                continue
            path, folder = unquote(re.split("[?#]", address)[0]), (site / name).parent
            goal = os.path.relpath(os.path.normpath(folder / path), site)
            assert path, f"an empty address in {name}"
            assert (site / goal).is_file(), f"{address} in {name}"
            todo += [goal] if goal.endswith(".html") else []
    assert {name for name in files(site) if name.endswith(".html")} - reached <= {"absent.html"}
    kinds = {"m", "diff", "graph", "list", "timeline", "digests"}
    assert kinds <= {name.partition("/")[0] for name in reached}


def test_the_first_page_names_what_waits_by_its_title(site: Path):
    """An id is for programs."""
    page = (site / "index.html").read_text()
    waiting = page.partition("Needs attention")[2].partition("<h2")[0]
    assert ">The crew wants the list sorted by deck</a>" in waiting
    assert not re.search(r">(dec|sem|epi|sta)-[^<]*</a>", waiting)


def test_the_site_is_headed_by_its_title_as_it_was_given(harbor: Path, tmp_path: Path):
    """The workflow gives "Memories of NAME", which is not headed "Memories of Memories"."""
    made(harbor, tmp_path / "site", title="Memories of harbor")
    page = (tmp_path / "site/index.html").read_text()
    assert re.findall("<h1>(.*?)</h1>", page) == ["Memories of harbor"]


def test_a_commit_gives_the_same_bytes_in_every_clone(harbor: Path, site: Path, tmp_path: Path):
    """Neither the clone, its refs, its worktree, the clock, nor the user's settings has a say."""
    clone = tmp_path / "elsewhere"
    subprocess.run(
        ["git", "clone", "--quiet", "--single-branch", harbor, clone],
        env=os.environ | PLAIN,
        check=True,
    )
    (clone / ".memory/config.toml").write_text("not = [settings")
    env = os.environ | PLAIN | {"MEMTOOL_NOW": "2031-01-01", "TZ": "Asia/Tokyo"}
    context = Context.at(str(clone), env)
    build(context, Progress(None), str(tmp_path / "site"))
    assert files(tmp_path / "site") == files(site)
    assert any("uncommitted" in note for note in context.notes)


def test_the_proof_of_a_memory_is_that_of_the_verbs(harbor: Path):
    """Who wrote each part and what happened is what blame and log say, made from one walk."""
    context = Context.at(str(harbor), os.environ | PLAIN)
    commit = context.repository.git.resolve("HEAD")
    fixed = context.at_commit(commit)
    shown = StaticSite(fixed, commit, "", "")
    events = log(fixed, at=commit, limit=0).events
    with History(context.repository) as history:
        past = FileHistories(context.repository.git, history, commit, fixed.directory)
        steps = {record.id: past.trace(record).steps for record in shown.records}
        longest = sorted(shown.records, key=lambda record: (-len(steps[record.id]), record.id))[:6]
        logs = build_logs(shown.tree, events, [record.id for record in longest], EVENTS)
        for record, its_log in zip(longest, logs, strict=True):
            assert build_blame(record, *past.blame_lines(record), past) == blame(
                fixed, record.id, at=commit
            )
            assert its_log == log(fixed, record.id, at=commit, limit=EVENTS)
    assert max(map(len, steps.values())) > 1


def test_what_is_private_is_on_no_page(sandbox: Sandbox, tmp_path: Path):
    """Labelled and forgotten memories, sessions and global ones leave no word in any file."""
    sandbox.memory("dec-open", "Sessions live in Redis.\n", related_to=("dec-hidden",))
    sandbox.memory("dec-hidden", "The zanzibar plan.\n", title="Zanzibar", privacy=("Private",))
    why = {"at": "2026-02-20T00:00:00Z", "by": "Ada", "reason": "quagga"}
    sandbox.memory("dec-gone", "A quagga.\n", title="Quagga", status="deleted", deleted=why)
    sandbox.run("--global", "remember", "Every project of mine says xylophone.")
    sandbox.run("session", "add", "okapi", "We spoke of okapi.")
    sandbox.commit()
    done = sandbox.run("site", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    pages = files(tmp_path / "site")
    for word in (b"anzibar", b"uagga", b"xylophone", b"okapi"):
        assert [name for name, data in pages.items() if word in data] == []
    assert "m/dec-hidden.html" not in pages
    assert 'href="../absent.html"' in pages["m/dec-open.html"].decode()
    assert "2 left out" in done.stdout


def test_a_private_premise_is_not_missing_but_a_forgotten_one_is(sandbox: Sandbox, tmp_path: Path):
    """A site that leaves out a private memory does not say that what rests on it is in doubt."""
    why = {"at": "2026-02-20T00:00:00Z", "by": "Ada", "reason": "quagga"}
    sandbox.memory("dec-hidden", "The zanzibar plan.\n", title="Zanzibar", privacy=("Private",))
    sandbox.memory("dec-gone", "A quagga.\n", title="Quagga", status="deleted", deleted=why)
    sandbox.memory("dec-a", "Redis.\n", source=("memory:dec-hidden",))
    sandbox.memory("dec-b", "Sessions.\n", source=("memory:dec-gone",))
    sandbox.commit()
    assert sandbox.run("site", str(tmp_path / "site")).returncode == 0
    pages = {
        name: data.decode() for name, data in files(tmp_path / "site").items() if "/dec" in name
    }
    assert "<strong>Unsettled.</strong>" not in pages["m/dec-a.html"]
    assert "<strong>Unsettled.</strong>" in pages["m/dec-b.html"]
    assert "quagga" not in pages["m/dec-b.html"].lower()


def test_a_secret_stops_it(sandbox: Sandbox, tmp_path: Path):
    """The refusal names id and line and what to do, never the secret; nothing is written."""
    sandbox.memory("dec-a", f"Redis.\n\nIts token is {SECRET} today.\n")
    sandbox.commit()
    done = sandbox.run("site", str(tmp_path / "site"))
    assert done.returncode == 1
    assert re.search(r"dec-a, line \d+ \(", done.stderr)
    assert "memtool redact .memory/" in done.stderr
    assert SECRET not in done.stderr + done.stdout
    assert sorted(os.listdir(tmp_path)) == ["home", "project"]
    sandbox.memory("dec-a", "Redis.\n")
    sandbox.commit()
    assert sandbox.run("site", str(tmp_path / "site")).returncode == 0
    assert sandbox.run("site", str(tmp_path / "old"), "--at", "HEAD~1").returncode == 1


def test_hostile_memories_are_text(sandbox: Sandbox, tmp_path: Path):
    """No page has a script, an image or an address that is not ours; each states what it loads."""
    sandbox.memory(
        "dec-a",
        "\n\n".join(HOSTILE) + "\n",
        title=f"Redis {HOSTILE[0]}",
        tags=('"><img src=x>',),
        source=(f"human:{HOSTILE[1]}",),
        confidence="low",
    )
    sandbox.memory("dec-b", HOSTILE[0], title=HOSTILE[4], supersedes=("dec-a",))
    sandbox.commit()
    made(sandbox.path, tmp_path / "site", title="<b>us</b>")
    for name, data in files(tmp_path / "site").items():
        if name.endswith(".html"):
            text = data.decode()
            ours = 2 if name == "search.html" else 1
            assert (name, text.count("<script"), text.count("<img")) == (name, ours, 0)
            assert "default-src &#39;none&#39;; script-src &#39;self&#39;" in text
            assert not re.search(r"<[^>]*\s(on[a-z]+|style)=", re.sub(r'"[^"]*"', '""', text))
            assert "<b>us" not in text


@pytest.mark.parametrize(
    "place",
    [
        ".memory/site",
        ".memory",
        ".",
        "..",
        ".git/site",
        "notes",
        "notes/a.txt",
    ],
)
def test_a_place_that_is_no_place_is_refused(sandbox: Sandbox, place: str):
    """Among the memories, over the repository, over other files: nothing moves."""
    sandbox.memory("dec-a")
    sandbox.write("notes/a.txt", "mine")
    sandbox.commit()
    before = files(sandbox.path)
    done = sandbox.run("site", place)
    assert done.returncode == 2
    assert "hint: " in done.stderr
    background = (
        ".git/memtool/",
        ".git/objects/maintenance.lock",
    )  # git tidies up in the background
    before, after = (
        {name for name in listing if not name.startswith(background)}
        for listing in (before, files(sandbox.path))
    )
    assert after == before


def test_what_is_the_same_stays_and_the_rest_goes(sandbox: Sandbox, tmp_path: Path):
    """A second run writes nothing; a change writes what it touches; files of others stay."""
    place = tmp_path / "site"
    for number in range(5):
        sandbox.memory(f"dec-{number}", f"Number {number} of them.\n")
    sandbox.commit()
    assert sandbox.json("site", str(place))["written"] == len(files(place)) - 1
    (place / "CNAME").write_text("memories.example.org")
    (place / "own").mkdir()
    (place / "own/notes.txt").write_text("mine")
    again = sandbox.json("site", str(place))
    assert (again["written"], again["removed"]) == (0, 0)
    page = place / "m/dec-1.html"
    stamp = page.stat().st_mtime_ns
    sandbox.git("rm", "-q", ".memory/decision/2026-02/dec-4.md")
    sandbox.memory("dec-0", "Number zero of them.\n")
    sandbox.commit()
    planned = sandbox.json("site", str(place), "--dry-run")
    changed = sandbox.json("site", str(place))
    assert planned == changed | {"dry_run": True}
    assert not (place / "m/dec-4.html").exists()
    assert "Number zero" in (place / "m/dec-0.html").read_text()
    assert page.stat().st_mtime_ns == stamp
    assert (place / "CNAME").read_text() == "memories.example.org"
    assert (place / "own/notes.txt").read_text() == "mine"
    page.write_text("somebody wrote here")
    assert sandbox.json("site", str(place))["written"] == 1
    assert "Number 1" in page.read_text()
    assert sorted(os.listdir(tmp_path)) == ["home", "project", "site"]


def test_a_page_never_takes_the_name_of_anothers_file(sandbox: Sandbox, tmp_path: Path):
    """Where a new memory would overwrite what lies in the folder, all of it stays as it was."""
    place = tmp_path / "site"
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.run("site", str(place))
    (place / "m/dec-b.html").write_text("mine")
    before = files(place)
    sandbox.memory("dec-b")
    sandbox.commit()
    done = sandbox.run("site", str(place))
    assert done.returncode == 2
    assert "m/dec-b.html" in done.stderr
    assert files(place) == before
    assert sorted(os.listdir(tmp_path)) == ["home", "project", "site"]


def test_a_run_that_ends_between_both_renames_is_made_good(sandbox: Sandbox, tmp_path: Path):
    """The next run finds the old site next to its place, and restores it first."""
    place = tmp_path / "site"
    sandbox.memory("dec-a")
    sandbox.commit()
    sandbox.run("site", str(place))
    before = files(place)
    shutil.copytree(place, tmp_path / ".site.memtool-new")
    place.rename(tmp_path / ".site.memtool-old")
    SiteFolder(str(place))
    assert files(place) == before
    assert sorted(os.listdir(tmp_path)) == ["home", "project", "site"]


@pytest.mark.slow
def test_a_killed_run_leaves_one_whole_site(sandbox: Sandbox, tmp_path: Path):
    """Wherever it is killed, the folder holds the old site or the new one, and none of both."""
    place = tmp_path / "site"
    for number in range(40):
        sandbox.memory(f"dec-{number}", f"Number {number} of them.\n")
    sandbox.commit()
    sandbox.run("site", str(place))
    whole = [files(place)]
    for number in range(40):
        sandbox.memory(f"dec-{number}", f"Number {number} of the others.\n")
    sandbox.commit()
    sandbox.run("site", str(tmp_path / "other"))
    whole.append(files(tmp_path / "other"))
    for wait_s in (0.0, 0.01, 0.03, 0.06, 0.1):
        argv = [sys.executable, "-m", "memtool", "site", str(place)]
        with subprocess.Popen(
            argv, cwd=sandbox.path, env=sandbox.env, stdout=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and not (tmp_path / ".site.memtool-new").exists():
                time.sleep(0.001)
            time.sleep(wait_s)
            process.send_signal(signal.SIGKILL)
        assert files(place) in whole
    assert sandbox.run("site", str(place)).returncode == 0
    assert files(place) == whole[1]
    assert sorted(os.listdir(tmp_path)) == ["home", "other", "project", "site"]


def test_a_shallow_clone_says_what_it_lacks(harbor: Path, tmp_path: Path):
    """The site says where history is cut off, and still has every memory."""
    clone = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "1", harbor.as_uri(), clone],
        env=os.environ | PLAIN,
        check=True,
    )
    made(clone, tmp_path / "site")
    assert "is shallow" in (tmp_path / "site/index.html").read_text()
    assert len(os.listdir(tmp_path / "site/m")) == 60


def test_a_search_reads_little(site: Path):
    """The parts of the index hold every memory, and each is a small script."""
    word_files = {name: data for name, data in files(site).items() if name.startswith("words/")}
    tables = {
        name: json.loads(re.fullmatch(r'memtool\("[a-z0-9-]+",(.*)\);\n', data.decode())[1])
        for name, data in word_files.items()
    }
    assert len(tables["words/memories-0.js"]["ids"]) == tables["words/index.js"]["count"] == 60
    assert max(len(gzip.compress(data)) for data in word_files.values()) < 10_000
    parts = tables["words/index.js"]["words"]
    for at, prefix in enumerate(parts):
        part = tables[f"words/words-{at}.js"]
        for word in (term for rows in part.values() for term, _what in rows):
            assert max((start for start in parts if word.startswith(start)), key=len) == prefix
    forms = [row for name in tables for row in tables[name].get("forms", ()) if "words-" in name]
    assert ["refunds", "refund"] in forms
    assert ["the", ""] in forms


@given(st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 9), max_size=60))
def test_words_are_split_by_their_longest_prefix(sizes: dict[str, int]):
    """Each word is in one part, that of the longest prefix; a part has few or one that is large."""
    parts = words.split(sizes, 12)
    assert sorted(word for some in parts.values() for word in some) == sorted(sizes)
    for prefix, some in parts.items():
        assert sum(sizes[word] for word in some) <= 12 or len(some) == 1
        for word in some:
            assert max((start for start in parts if word.startswith(start)), key=len) == prefix


def test_there_is_no_site_of_global_memories_or_without_a_commit(sandbox: Sandbox, tmp_path: Path):
    """Both are refused with one sentence and what to do."""
    place = str(tmp_path / "site")
    refused = sandbox.run("--global", "site", place)
    assert (refused.returncode, "hint: " in refused.stderr) == (2, True)
    empty = sandbox.run("site", place)
    assert (empty.returncode, "Traceback" in empty.stderr) == (2, False)
    sandbox.memory("dec-a")
    sandbox.commit()
    unknown = sandbox.run("site", place, "--at", "no-such-revision")
    assert (unknown.returncode, "hint: " in unknown.stderr) == (2, True)
    assert not os.path.exists(place)
    assert sandbox.run("site", place).returncode == 0
    assert MANIFEST in os.listdir(place)


@pytest.fixture(scope="module")
def axe() -> str:
    """The source of axe-core."""
    return axe_source()


class Opened:
    """The site of the made-up team and a hostile memory, in Chromium, from the disk."""

    def __init__(self, browser: Any, place: Path) -> None:
        self.browser = browser
        self.place = place

    def page(self, **options: Any) -> Any:
        """Return a page with what it asked for, and what went wrong, in `asked` and `wrong`."""
        page = self.browser.new_context(**options).new_page()
        page.requested, page.wrong = [], []
        page.on("request", lambda request: page.requested.append(request.url))
        page.on("dialog", lambda dialog: (page.wrong.append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: page.wrong.append(str(error)))
        page.on("console", lambda message: page.wrong.append(message.text))
        return page

    def address(self, name: str) -> str:
        return (self.place / name).as_uri()


@pytest.fixture
def opened(harbor: Path, sandbox: Sandbox, tmp_path: Path) -> Iterator[Opened]:
    """A browser, and the site of a clone to which a hostile memory was committed."""
    clone = type(sandbox)(tmp_path / "clone", sandbox.env)
    subprocess.run(["git", "clone", "--quiet", harbor, clone.path], env=clone.env, check=True)
    path = sandbox.memory(
        "sem-hostile",
        "\n\n".join(PAYLOADS),
        title=f"Hostile {PAYLOADS[0]}",
        tags=("x<img src=x>",),
        source=(f"human:{PAYLOADS[1]}",),
    )
    shutil.copy(sandbox.path / path, clone.path / ".memory/semantic/sem-hostile.md")
    clone.commit()
    made(clone.path, tmp_path / "site")
    with chromium() as browser:
        yield Opened(browser, tmp_path / "site")


def asked_for(page: Any, words_: str) -> list[str]:
    """Search by the form of the page that is open, and return the titles."""
    page.fill("header input[name=q]", words_)
    with page.expect_navigation(url="**/search.html?*"):
        page.press("header input[name=q]", "Enter")
    page.wait_for_selector("#found:has-text('memor')")
    titles = "all => all.map(one => one.textContent)"
    shown: list[str] = page.eval_on_selector_all("#results h2 a", titles)
    return shown


@pytest.mark.browser
def test_the_search_works_from_a_disk(opened: Opened):
    """A person searches from any page, follows a result, and is back; nothing else is asked for."""
    page = opened.page()
    page.goto(opened.address("index.html"))
    titles = asked_for(page, "how long is a seat held")
    assert titles[0].startswith("Hold a seat for")
    page.click("#results h2 a")
    page.wait_for_url("**/m/*.html")
    assert page.text_content("h1") == titles[0]
    assert asked_for(page, "refunding")  # nobody wrote it so
    assert asked_for(page, "zzxqj") == []
    assert "Keep bookings in PostgreSQL" in asked_for(page, "postgres")
    assert "Keep bookings in PostgreSQL" not in asked_for(page, "postgres -bookings")
    page.select_option("main select[name=type]", "episodic")
    page.fill("main input[name=q]", "")
    with page.expect_navigation(url="**/search.html?*"):
        page.click("main button:not([hidden])")
    page.wait_for_selector("#found:has-text('memor')")
    assert set(
        page.eval_on_selector_all(
            "#results .type", "all => all.map(one => one.textContent.split('/')[0])"
        )
    ) == {"episodic"}
    assert page.wrong == []
    assert [url for url in page.requested if not url.startswith(opened.place.as_uri())] == []


@pytest.mark.browser
def test_a_question_is_read_as_memtool_reads_it(opened: Opened):
    """The words that the page looks up are those of our analysis, before stems."""
    texts = [
        "store.FileLock of acquireWriteLock",
        "snake_case and kebab-case",
        "v1.2.3 or 10.0.1",
        "src/pay/money.py:12",
        "HTTPServer APIs utf8 X",
        "Café naïve Straße ΣΊΣΥΦΟΣ",
        "ёлка й Ёж",
        "東京の会議 in 京",
        "한국어 test",
        "a_b.c/d-e",
        "-- :: ..",
        "file:///x",
        "x" * 80,
        "don't",
        "KeyError: CONFIG",
        "é" * 70,
        "a.b_c.D",
        "٣٤ ½",
    ]
    page = opened.page()
    page.goto(opened.address("search.html"))
    result = page.evaluate("texts => texts.map(memtool.words)", texts)
    assert result == [list(dict.fromkeys(terms(text, AS_WRITTEN))) for text in texts]


@pytest.mark.browser
def test_a_hostile_memory_does_nothing(opened: Opened):
    """No dialog, no script, no request: on its page, in lists and results."""
    page = opened.page()
    names = ["m/sem-hostile.html", "timeline.html", "index.html", "lists.html"]
    names += [
        f"list/{path.name}" for path in (opened.place / "list").iterdir() if "tags" in path.name
    ]
    for name in names:
        page.goto(opened.address(name))
    assert any(title.startswith("Hostile") for title in asked_for(page, "hostile script"))
    assert page.wrong == []
    assert [url for url in page.requested if not url.startswith(opened.place.as_uri())] == []


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_its_pages_are_accessible(opened: Opened, axe: str, theme: str):
    """axe finds nothing to mend on a page of each kind."""
    kinds = ("m", "diff", "graph", "list", "timeline", "digests")
    names = [f"{kind}/{min(os.listdir(opened.place / kind))}" for kind in kinds]
    names += [path.name for path in opened.place.glob("*.html")]
    page = opened.page(color_scheme=theme, bypass_csp=True)
    wrong = {}
    for name in (*names, "m/sem-hostile.html", "search.html?q=seat"):
        page.goto(opened.address("index.html").replace("index.html", name))
        if "?" in name:
            page.wait_for_selector("#results li")
        page.evaluate(axe)
        violations = page.evaluate(
            "tags => axe.run(document, {runOnly: tags}).then(all => all.violations"
            ".map(one => [one.id, one.nodes[0].html]))",
            list(RULES),
        )
        if violations:
            wrong[name] = violations
    assert wrong == {}


@pytest.mark.browser
def test_without_scripts_the_lists_lead_everywhere(opened: Opened):
    """The page of the search says so, and leads to the lists, and these to a memory."""
    page = opened.page(java_script_enabled=False)
    page.goto(opened.address("search.html"))
    page.click("noscript a")
    page.click("main a.row >> nth=0")
    page.click("main li.row a >> nth=0")
    assert "/m/" in page.url
