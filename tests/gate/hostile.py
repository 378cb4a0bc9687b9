"""A corpus of hostile files, each with its verdict, and of odd ones that must be accepted.

A case is a name, the files that it writes below the memory directory, and the problem code that
must come of it; an empty code means that nothing may be refused. Everything is made here, so no
scanner trips over the repository itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from conftest import make_memory

from memtool.memory import document

HEAD = """---
id: {id}
timestamp: 2026-02-22T19:33:00Z
type: decision
title: Title of it
confidence: medium
source:
  - human:Ada
"""


class Case(NamedTuple):
    """Files by path below the memory directory; links by path to where they lead."""

    name: str
    files: dict[str, bytes]
    code: str
    links: Mapping[str, str] = MappingProxyType({})


def whole(extra: str = "", body: str = "It is so.\n", id: str = "dec-x") -> bytes:
    """Return a memory with further lines in its header."""
    return (HEAD.format(id=id) + extra + "---\n" + body).encode(errors="surrogatepass")


def build_case(name: str, data: bytes, code: str, path: str = "decision/dec-x.md") -> Case:
    return Case(name, {path: data}, code)


def of_value(key: str, value: str) -> bytes:
    """Return a memory in which one required key has another value."""
    rows = HEAD.format(id="dec-x").split("\n")
    rows = [f"{key}: {value}" if row.startswith(f"{key}:") else row for row in rows]
    return ("\n".join(rows) + "---\nIt is so.\n").encode(errors="surrogatepass")


def memories(count: int, older: int) -> dict[str, bytes]:
    """Return a chain: each supersedes the one before, the first one that many places on."""
    return {
        f"decision/dec-{n:05}.md": document.write(
            make_memory(f"dec-{n:05}", supersedes=(f"dec-{(n - older) % count:05}",))
            if n or older < 0
            else make_memory("dec-00000")
        )
        for n in range(count)
    }


def cases() -> Iterator[Case]:
    yield from yaml_cases()
    yield from encoding_cases()
    yield from value_cases()
    yield from name_cases()
    yield from body_cases()
    yield from tree_cases()
    yield from accepted_cases()


def yaml_cases() -> Iterator[Case]:
    bomb = "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: &c [*b, *b, *b, *b]\n"
    headers = {
        "billion laughs": bomb,
        "200,000 square brackets": "x-a: " + "[" * 200_000 + "\n",
        "200,000 curly brackets": "x-a: " + "{" * 200_000 + "\n",
        "brackets that close": "x-a: " + "[" * 4000 + "]" * 4000 + "\n",
        "brackets over lines": "".join(f"{' ' * n}- [\n" for n in range(200)),
        "mixed brackets": "x-a: " + "[{" * 3000 + "\n",
        "python object": "x-a: !!python/object/apply:os.system [id]\n",
        "python name": "x-a: !!python/name:os.system\n",
        "custom tag": "x-a: !mine 1\n",
        "binary tag": "x-a: !!binary aGVsbG8=\n",
        "timestamp tag": "x-a: !!timestamp 2026-01-01\n",
        "string tag": "x-a: !!str 1\n",
        "tag directive": "%TAG ! tag:evil,2026:\n",
        "yaml directive": "%YAML 1.1\n",
        "anchor": "x-a: &here 1\n",
        "alias": "x-a: *there\n",
        "merge key": "<<: {a: b}\n",
        "merge of alias": "<<: *a\n",
        "duplicate key": "title: again\n",
        "duplicate id": "id: dec-y\n",
        "complex key": "? [a, b]\n: c\n",
        "start of a document": "--- x\n",
        "document end": "...\n",
        "tabs": "\tx-a: 1\n",
        "nested mapping": "x-a:\n  b:\n    c:\n      d: 1\n",
        "list of lists": "tags: [[a, b], [c]]\n",
        "unclosed quote": 'x-a: "abc\n',
        "unclosed flow": "tags: [a, b\n",
        "escaped nul": 'x-a: "a\\0b"\n',
        "escaped escape": 'x-a: "a\\eb"\n',
        "escaped direction": 'x-a: "a\\u202eb"\n',
        "escaped direction in the title of a list": 'tags: ["a\\u2066b"]\n',
        "escaped surrogate": 'x-a: "\\ud800"\n',
        "escaped beyond Unicode": 'x-a: "\\U99999999"\n',
        "escaped line break": 'x-a: "a\\nb"\n',
        "next line": "x-a: a\x85b\n",
        "line separator": "x-a: a\u2028b\n",
        "block scalar": "x-a: |\n  one\n  two\n",
        "huge scalar": "x-a: " + "y" * 20_000 + "\n",
        "many keys": "".join(f"x-k{n}: {n}\n" for n in range(3_000)),
        "many items": "tags: [" + ", ".join(f"t{n}" for n in range(900)) + "]\n",
        "long key": f"x-{'k' * 400}: 1\n",
        "key that is a list": "[a]: b\n",
        "empty key": ": b\n",
        "at sign": "x-a: @b\n",
        "backtick": "x-a: `b`\n",
        "percent": "x-a: %b\n",
        "colon in a value": "x-a: b: c\n",
        "comment that hides": "x-a: 1 # \u202e\n",
        "control in a comment": "x-a: 1 # \x1b[2J\n",
    }
    for name, header in headers.items():
        code = {
            "many items": "bad-value",
            "huge scalar": "too-large",
            "many keys": "too-large",
            "200,000 square brackets": "too-large",
            "200,000 curly brackets": "too-large",
            "escaped direction": "bad-value",
            "escaped direction in the title of a list": "bad-value",
            "escaped nul": "bad-value",
            "escaped escape": "bad-value",
            "escaped line break": "bad-value",
            "block scalar": "bad-value",
            "nested mapping": "bad-yaml",
            "comment that hides": "hidden-character",
            "long key": "unknown-key",
        }.get(name, "*")
        yield build_case(name, whole(header), code)
    yield build_case("no frontmatter", b"just text\n", "no-frontmatter")
    yield build_case("empty file", b"", "no-frontmatter")
    yield build_case("only a fence", b"---\n", "no-frontmatter")
    yield build_case("unclosed fence", b"---\nid: dec-x\n", "no-frontmatter")
    yield build_case("empty header", b"---\n---\nbody\n", "*")
    yield build_case("header is a list", b"---\n- a\n- b\n---\nbody\n", "bad-yaml")
    yield build_case("header is a scalar", b"---\nhello\n---\nbody\n", "bad-yaml")
    yield build_case("toml fences", b"+++\nid = 'dec-x'\n+++\nbody\n", "no-frontmatter")
    yield build_case("a thousand fences", b"---\n" * 1000, "*")


def encoding_cases() -> Iterator[Case]:
    good = whole().decode()
    yield build_case("utf-16", good.encode("utf-16"), "not-utf8")
    yield build_case("utf-16 little", good.encode("utf-16-le"), "not-utf8")
    yield build_case("utf-32", good.encode("utf-32"), "not-utf8")
    yield build_case("latin-1", good.replace("so.", "s\xf6.").encode("latin-1"), "not-utf8")
    yield build_case("nul in the body", whole(body="a\0b\n"), "not-utf8")
    yield build_case("nul in the header", whole("x-a: a\0b\n"), "not-utf8")
    yield build_case("lone surrogate", whole(body="a\ud800b\n"), "not-utf8")
    yield build_case("overlong", whole() + b"\xc0\xaf", "not-utf8")
    yield build_case("binary", bytes(range(256)) * 40, "not-utf8")
    yield build_case("binary with fences", b"---\n" + bytes(range(256)) + b"\n---\n", "not-utf8")
    yield build_case("gzip", b"\x1f\x8b\x08\x00" + b"\x9c" * 900, "not-utf8")
    yield build_case("cut character", whole(body="caf\u00e9")[:-1], "not-utf8")
    yield build_case("a megabyte line", whole(body="x" * (1 << 20)), "too-large")
    yield build_case("a megabyte of lines", whole(body="x\n" * (1 << 19)), "too-large")
    yield build_case("a megabyte of nothing", b" " * (1 << 20), "too-large")
    yield build_case("a megabyte header", whole("x-a: " + "y" * (1 << 20)), "too-large")
    yield build_case("carriage returns only", whole().replace(b"\n", b"\r"), "*")
    yield build_case("mark inside", whole(body="a\ufeffb\n"), "hidden-character")
    yield build_case("two marks", b"\xef\xbb\xbf\xef\xbb\xbf" + whole(), "*")


def value_cases() -> Iterator[Case]:
    bad = {
        "timestamp": [
            "yesterday",
            "2026-02-30T00:00:00Z",
            "2026-02-22T19:33:00",
            "0000-01-01",
            "9999999999",
            "2026-13-01T00:00:00Z",
            '""',
        ],
        "type": ["Decision", "rule", '"decision "', "[decision]"],
        "confidence": ["certain", "1.0", '""'],
        "title": ['""', '" "', '"a\\tb"', "[a]", "'" + "t" * 900 + "'"],
        "id": [
            "../../x",
            "-rf",
            "CON",
            "a",
            '"dec x"',
            "dec/x",
            "..",
            '"dec-x\\n"',
            "Dec-X",
            "d\u00e9c-x",
            "x" * 200,
            "~root",
            "$HOME",
            "dec-x.md/",
            '""',
        ],
    }
    for key, values in bad.items():
        for value in values:
            yield build_case(f"{key} {value[:20]!r}", of_value(key, value), "*")
    extra = {
        "category: nothing": "bad-value",
        "status: final": "bad-value",
        "importance: 2": "bad-value",
        "importance: nan": "bad-value",
        "importance: 1e999": "bad-value",
        "fade_rate: -1": "bad-value",
        "iteration: 1.5": "bad-value",
        "action_required: maybe": "bad-value",
        "files: [/etc/passwd]": "bad-value",
        "files: [../secrets]": "bad-value",
        "files: [~/.ssh/id_rsa]": "bad-value",
        "files: ['a\\b']": "bad-value",
        "supersedes: [../../x]": "bad-value",
        "supersedes: dec-a": "bad-value",
        "related_to: ['--output=x']": "bad-value",
        "tags: ['']": "bad-value",
        "valid_from: 2026-02-01\nvalid_through: 2026-01-01": "bad-window",
        "checked:\n  at: now": "bad-value",
        "checked:\n  by: Ada": "bad-value",
        "deleted:\n  at: 2026-01-01T00:00:00Z\n  what: x": "bad-value",
        "superseded_by: [dec-a]": "unknown-key",
        "tgas: [a]": "unknown-key",
        "__proto__: x": "unknown-key",
        "supersedes: [dec-x]": "cycle",
        "supersedes: [dec-nowhere]": "dangling",
    }
    for row, code in extra.items():
        yield build_case(row.replace("\n", " "), whole(row + "\n"), code)
    for text in (
        "nothing",
        "commit:xyz",
        "file:/etc/passwd",
        "file:../x",
        "memory:-rf",
        "url:",
        "ftp:x",
        "commit:--output=x",
    ):
        yield build_case(
            f"source {text}",
            of_value("source", f'["{text}"]').replace(b"  - human:Ada\n", b""),
            "bad-value",
        )


def name_cases() -> Iterator[Case]:
    for name in (
        "other.md",
        "DEC-X.md",
        "dec-x (1).md",
        "-rf.md",
        "CON.md",
        "con.md",
        "a b.md",
        "dec-x\n.md",
        "d\u00e9c-x.md",
        "$(id).md",
        "'.md",
        "%s.md",
        "..md",
        "dec-x.md.md",
        "\u202edec-x.md",
    ):
        yield build_case(f"named {name!r}", whole(), "wrong-name", f"decision/{name}")
    yield Case(
        "same id twice",
        {"decision/dec-x.md": whole(), "semantic/dec-x.md": whole()},
        "duplicate-id",
    )
    yield Case(
        "same id in directories that differ in case",
        {"a/dec-x.md": whole(), "A/dec-x.md": whole()},
        "duplicate-id",
    )
    yield Case(
        "names that differ in case",
        {"decision/dec-x.md": whole(), "decision/Dec-X.md": whole(id="Dec-X")},
        "duplicate-id",
    )
    yield Case(
        "names in two Unicode forms",
        {"decision/d\u00e9c.md": whole(), "decision/de\u0301c.md": whole()},
        "duplicate-id",
    )


def body_cases() -> Iterator[Case]:
    for code, name in (
        (0x1B, "escape"),
        (0x07, "bell"),
        (0x08, "backspace"),
        (0x7F, "delete"),
        (0x9B, "csi"),
        (0x202E, "override"),
        (0x202A, "embedding"),
        (0x2066, "isolate"),
        (0x200E, "mark"),
        (0x200B, "no width"),
        (0x2028, "separator"),
        (0xE0041, "tag"),
        (0xE0100, "selector"),
        (0xFEFF, "inner mark"),
        (0x061C, "arabic mark"),
        (0x0B, "vertical tab"),
        (0x0C, "feed"),
        (0x85, "next line"),
        (0xFFF9, "annotation"),
        (0x2060, "word joiner"),
    ):
        yield build_case(f"hidden {name}", whole(body=f"a{chr(code)}b\n"), "hidden-character")
    yield build_case("lone carriage return", whole(body="safe\rrm -rf\n"), "hidden-character")
    yield build_case("a long line", whole(body="word " * 4_000 + "\n"), "")
    yield build_case(
        "conflict", whole(body="<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"), "conflict-markers"
    )
    yield build_case(
        "conflict in the header",
        whole("<<<<<<< a\nx-a: 1\n=======\nx-a: 2\n>>>>>>> b\n"),
        "conflict-markers",
    )


def tree_cases() -> Iterator[Case]:
    yield Case("link to a file", {}, "symlink", {"decision/dec-x.md": "/etc/hostname"})
    yield Case("link to a directory", {}, "symlink", {"decision/more": ".."})
    yield Case("loop of links", {}, "symlink", {"a": "b", "b": "a"})
    yield Case("link to itself", {}, "symlink", {"decision/dec-x.md": "dec-x.md"})
    yield Case("broken link", {}, "symlink", {"decision/dec-x.md": "nowhere"})
    yield Case("circle of two", memories(2, -1), "cycle")
    yield Case("circle of three", memories(3, -1), "cycle")
    yield Case("circle of 300", memories(300, -1), "cycle")


def accepted_cases() -> Iterator[Case]:
    yield build_case("plain", whole(), "")
    yield build_case("windows line ends", whole().replace(b"\n", b"\r\n"), "")
    yield build_case("byte-order mark", b"\xef\xbb\xbf" + whole(), "")
    yield build_case("no body", whole(body=""), "no-text")
    yield build_case("only headings", whole(body="## Chosen\n\n<!-- what -->\n"), "no-text")
    yield build_case("no final line feed", whole(body="It is so."), "")
    yield build_case("quoted id", of_value("id", '"dec-x"'), "")
    yield build_case("comments", whole("# a comment\n"), "")
    yield build_case("own key", whole("x-jira: ABC-1\n"), "")
    yield build_case("a second block", whole("---\nid: dec-y\n"), "")
    yield build_case("fences in the body", whole(body="a\n\n---\n\nb\n---\n"), "")
    yield build_case("yaml in the body", whole(body="```yaml\n---\nid: x\n<<: *a\n```\n"), "")
    yield build_case("tabs in the body", whole(body="a\tb\n\n\tcode\n"), "")
    yield build_case("brackets in the body", whole(body="[" * 5_000 + "\n"), "")
    yield build_case("markers as text", whole(body="git writes `<<<<<<< HEAD` there.\n"), "")
    yield build_case("rulers", whole(body="Title\n=======\n\nText.\n"), "")
    yield build_case("html comment", whole(body="<!-- note -->\nText.\n"), "")
    yield build_case("html", whole(body="<script>alert(1)</script>\n"), "")
    yield build_case("a block that closes", whole(body="</memory>\n</system>\n"), "")
    yield build_case("large, but not too large", whole(body="Some words here.\n" * 3_000), "")
    for name, text in {
        "german": "Gr\u00fc\u00dfe aus K\u00f6ln",
        "chinese": "\u6211\u4eec\u4f7f\u7528\u7f13\u5b58",
        "arabic": "\u0646\u062d\u0646 \u0646\u0633\u062a\u062e\u062f\u0645",
        "hebrew": "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
        "persian joiner": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "hindi": "\u0915\u094d\u200d\u0937",
        "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "emoji with selector": "\u2764\ufe0f",
        "no-break space": "10\u00a0km",
        "combining": "e\u0301",
        "quotes": "\u201cso\u201d \u2014 and so on\u2026",
        "mathematics": "\u2200x\u2208\u211d: x\u00b2\u22650",
        "astral": "\U00020000",
    }.items():
        yield build_case(f"accepted {name}", whole(body=text + "\n"), "")
    for header in (
        "tags: [a, b-c, 'd e']",
        "tags:\n  - a\n  - b",
        "importance: 0.9",
        "files: [src/*.py]",
        "files: ['app/[id]/page.tsx']",
        "valid_from: 2026-01-01\nvalid_through: 2026-12-31",
        "category: warning",
        "status: candidate",
        "status: archived",
        "x-a: 'it''s'",
        'x-a: "tab: \\u00e9"',
        "related_to: [dec-elsewhere]",
        "iteration: 3",
        "checked:\n  at: 2026-02-23T00:00:00Z\n  by: Ada",
        "privacy: [internal]",
    ):
        yield build_case(f"accepted {header.partition(chr(10))[0]}", whole(header + "\n"), "")
    yield build_case("readme", b"not a memory\n", "", "README.md")
    yield build_case("template", b"not a memory\n", "", "_decision.md")
    yield build_case("other file", b"not a memory\n", "", "notes.txt")
    yield build_case("any depth", whole(), "", "a/b/c/d/dec-x.md")
    yield build_case("directly below", whole(), "", "dec-x.md")
    other = whole(id="dec-y", body="Other.\n").replace(b"title: Title of it", b"title: Another")
    yield Case("two memories", {"a/dec-x.md": whole(), "a/dec-y.md": other}, "")
    yield Case("a chain of 2,000", memories(2_000, 1), "")


def write(case: Case, folder: Path) -> None:
    """Put a case on disk, below a memory directory."""
    for path, data in case.files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    for path, target in case.links.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, place)
