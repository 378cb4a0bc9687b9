"""The server as a process, talked to by the official client."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio
import pytest
from conftest import Sandbox, make_memory
from mcp import Client, MCPError, StdioServerParameters, types
from mcp.client.stdio import stdio_client

from memtool.authoring.phrases import normalize
from memtool.calls.run import ServedRepository
from memtool.calls.wording import with_tools
from memtool.hosts.edits import load_skill
from memtool.inject.budget import estimate_tokens
from memtool.mcp import transport
from memtool.mcp.server import COMMON, ServerMethods, format_instructions, list_tools
from memtool.memory import document
from memtool.sessions.extract.rules import may_be_wish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Story = Callable[[Client], Awaitable[None]]

ERAS = ("legacy", "2026-07-28")
"""The handshake that hosts have used so far, and the revision without one."""
TOKEN = "ghp_" + "k7Qm2Zx9Lw4Tn8Vb3Rj6Hd5Pf1Sg0Yc2AeUi"
SERVER = [sys.executable, "-m", "memtool"]
ALL = ("--all", "--structured")
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def talk(
    sandbox: Sandbox,
    *stories: Story,
    era: str = "2026-07-28",
    args: tuple[str, ...] = (),
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    **client: Any,
) -> str:
    """Start a server for each story, let all be told at once, and return what went to stderr."""
    log = sandbox.path.parent / "stderr"

    async def tell(story: Story) -> None:
        with log.open("a") as errlog:
            started = StdioServerParameters(
                command=SERVER[0],
                args=[*SERVER[1:], "mcp", *ALL, *args],
                cwd=cwd or sandbox.path,
                env=sandbox.env | (env or {}),
            )
            async with Client(stdio_client(started, errlog), mode=era, **client) as connected:
                await story(connected)

    async def tell_all() -> None:
        async with anyio.create_task_group() as group:
            for story in stories:
                group.start_soon(tell, story)

    anyio.run(tell_all)
    return log.read_text()


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool, expect an answer, and return its structured part; the client checks it."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Call a tool, expect a refusal, and return its text."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None  # some clients hold it to the shape of an answer
    assert result.meta["memtool/error"]["message"] in result.content[0].text
    assert "Traceback" not in result.content[0].text
    return str(result.content[0].text)


def exchange(
    sandbox: Sandbox, *lines: bytes, **env: str
) -> tuple[list[dict[str, Any]], subprocess.CompletedProcess[bytes]]:
    """Send raw lines, close the connection, and return the answers and how the server ended."""
    done = subprocess.run(
        [*SERVER, "mcp"],
        input=b"".join(line + b"\n" for line in lines),
        cwd=sandbox.path,
        env=sandbox.env | env,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done


def test_a_citation_that_leads_nowhere_is_refused_and_may_be_kept(sandbox: Sandbox):
    """The hint names the argument of the tool, and the id to cite instead."""
    sandbox.memory("sem-old", title="Towers over 40 floors", type="semantic")
    sandbox.memory("sem-new", title="Towers over 50 floors", supersedes=("sem-old",))
    sandbox.commit()
    draft = {"type": "decision", "title": "Nine weeks", "body": "The plan allows nine weeks."}

    async def story(client: Client) -> None:
        text = await refused(client, "new", **draft, source=["memory:sem-old"])
        assert 'source: memory:sem-old is superseded by "Towers over 50 floors" (sem-new)' in text
        assert "cite what holds now: `source` memory:sem-new" in text
        assert "to write it as given: add `keep_citation`" in text
        made = await ask(client, "new", **draft, source=["memory:sem-old"], keep_citation=True)
        assert "settled_on:\n  - memory:sem-new\n" in (sandbox.path / made["path"]).read_text()
        text = await refused(client, "remember", text="Never edit a.py.", file=["a.py"])
        assert "files: a.py does not match any file" in text

    talk(sandbox, story)


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_works_in_both_eras(sandbox: Sandbox, era: str):
    """Write, find, correct, prove, settle and forget, each answer in the shape it promises."""
    sandbox.run("init")
    sandbox.commit()

    async def story(client: Client) -> None:
        listed = (await client.list_tools()).tools
        made = await ask(
            client,
            "new",
            type="decision",
            title="Keep sessions in Redis",
            body="Sessions live in Redis.",
            tag=["auth"],
            said_by_user="keep them in Redis",
            commit=True,
        )
        old = made["id"]
        assert (await ask(client, "search", query="where do sessions live"))["results"][0][
            "id"
        ] == old
        assert (await ask(client, "list", filters="tag:auth"))["total"] == 1
        injected = await ask(client, "inject", prompt="where do sessions live?")
        assert [item["id"] for item in injected["items"]] == [old]
        shown = await ask(client, "show", id=old)
        assert shown["body"].endswith("## Said by the user\n\n> keep them in Redis\n")
        assert shown["agent"] == "acme code"
        assert (await ask(client, "pin", id=old))["changes"]["status"][1] == "pinned"
        assert [c["id"] for c in (await ask(client, "diff"))["changes"]] == [old]
        assert (await ask(client, "unpin", id=old))["changes"]["status"][0] == "pinned"
        assert (await ask(client, "blame", id=old))["fields"][0]["commit"] == made["commit"]
        left = await ask(
            client,
            "supersede",
            old=old,
            title="Keep sessions in Postgres",
            body="In Postgres.",
            said_by_user="use Postgres",
        )
        right = await ask(client, "remember", text="Always deploy on Tuesdays, before noon.")
        assert (await ask(client, "why", id=left["id"]))["sources"]
        assert (await ask(client, "conflicts"))["conflicts"] == []
        assert (await ask(client, "log", id=old))["events"]
        assert (await ask(client, "check"))["problems"] == []
        assert (await ask(client, "status"))["total"] == 3
        gone = await ask(client, "forget", id=right["id"], reason="it was a joke", dry_run=True)
        assert gone["forgotten"][0]["dry_run"]
        await ask(client, "forget", id=right["id"], reason="it was a joke")
        await ask(client, "restore", id=right["id"])
        undone = await ask(client, "undo", id=old, dry_run=True)
        assert (undone["step"], undone["how"]) == ("superseded", "discarded")
        merged = await ask(
            client,
            "resolve",
            ids=[left["id"], right["id"]],
            merge="Both",
            body="Both hold.",
            reason="to try it",
            commit=True,
        )
        assert merged["resolved"][0]["kept"] == "merged"
        called = {
            "new",
            "search",
            "list",
            "inject",
            "show",
            "pin",
            "unpin",
            "diff",
            "blame",
            "supersede",
            "remember",
            "why",
            "conflicts",
            "log",
            "check",
            "status",
            "forget",
            "restore",
            "undo",
            "resolve",
        }
        assert {tool.name for tool in listed} == called

    who = types.Implementation(name="acme\n code", version="1")
    assert talk(sandbox, story, era=era, client_info=who) == ""
    assert sandbox.json("status")["total"] == 4


@pytest.mark.parametrize(
    ("name", "expected"),
    [("acme", "acme"), ("x" * 99, "x" * 60), ("acme\u202e", ""), (" \n", ""), (None, "")],
)
def test_a_client_is_known_by_a_name_that_can_be_written(name: str | None, expected: str):
    """It becomes a key of a memory: one short line that a person can see, or nothing."""
    client = transport.Client(0, 1)
    client.info = {"name": name}
    assert client.name == expected


def test_hosts_are_told_what_a_tool_does(sandbox: Sandbox):
    """Names, version, hints: enough to let reading tools run and to ask before the others."""

    async def story(client: Client) -> None:
        assert client.server_info.name == "memtool"
        assert client.server_info.version
        assert client.instructions == format_instructions([*COMMON, "pin"])
        by_tool = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
        hints = {
            name: (
                annotation.read_only_hint,
                annotation.destructive_hint,
                annotation.idempotent_hint,
            )
            for name, annotation in by_tool.items()
        }
        assert hints["search"] == hints["inject"] == (True, False, True)
        assert hints["new"] == hints["remember"] == (False, False, False)
        assert hints["pin"] == (False, False, True)
        assert hints["undo"] == (False, True, False)  # again it goes further back
        assert hints["forget"] == (False, True, True)
        assert {annotation.open_world_hint for annotation in by_tool.values()} == {False}

    talk(sandbox, story, era="legacy")


def test_instructions_name_only_tools_that_are_offered():
    """A server that may not write says nothing of writing."""
    whole = format_instructions(list_tools())
    assert "before you change files, `inject` with their paths" in whole
    assert whole.endswith("correct with `supersede`. No secrets.")
    reading = format_instructions(list_tools(read_only=True))
    assert "`search`" in reading
    assert not [name for name in ("remember", "new", "supersede") if f"`{name}`" in reading]
    for word in ("promote", "confirm"):
        assert word not in whole + "".join(tool.description for tool in list_tools().values())


def test_instructions_and_skill_name_the_same_words_of_a_wish():
    """Both ask for `remember` at the words that the prompt hook knows, and for few tokens."""
    instructions = format_instructions(list_tools())
    assert estimate_tokens(instructions) <= 150
    row = next(line for line in load_skill().body.splitlines() if "THEIR SENTENCE" in line)
    words = re.findall(r'"([^"]+)"', row)
    assert words == re.findall(r'"([^"]+)"', instructions)
    assert [word for word in words if not may_be_wish(normalize(word))] == []


def test_an_answer_is_that_of_the_command_line(sandbox: Sandbox):
    """The same verb, the same JSON, the same text; a block tells the text of its items once."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    sandbox.memory("dec-b", "Sessions end after a day.\n")
    sandbox.commit()
    block = with_tools(sandbox.run("inject", "--prompt", "sessions").stdout, list_tools(every=True))
    assert "`show` ID prints one in full" in block
    expected = sandbox.json("search", "sessions", "--limit", "1")

    async def story(client: Client) -> None:
        answer = await client.call_tool("search", {"query": "sessions", "limit": 1})
        same = {"elapsed_ms": 0}
        assert answer.structured_content | same == expected | same
        texts = [content.text for content in answer.content]
        assert texts[0] + "\n" == sandbox.run("search", "sessions", "--limit", "1").stdout
        assert texts[1:] == ["note: 1 of 2 shown; `limit` 0 shows all"]
        injected = await client.call_tool("inject", {"prompt": "sessions"})
        assert injected.content[0].text == block == injected.structured_content["text"]
        assert all("text" not in item for item in injected.structured_content["items"])
        assert (await client.call_tool("inject", {"prompt": "zebra"})).content == []

    talk(sandbox, story)


def test_what_other_processes_change_is_seen_by_the_next_call(sandbox: Sandbox):
    """An edit, a commit, a checkout, new settings and a removed file, while the server is warm."""
    path = sandbox.memory("dec-a", "Sessions live in Redis.\n")
    first = sandbox.commit()

    async def story(client: Client) -> None:
        async def bodies() -> dict[str, tuple[str, str | None]]:
            results = (await ask(client, "search", query="sessions"))["results"]
            return {result["id"]: (result["snippet"], result["commit"]) for result in results}

        assert await bodies() == {"dec-a": ("Sessions live in Redis.", first)}
        sandbox.memory("dec-b", "Sessions end after a day.\n")
        assert (await bodies())["dec-b"] == ("Sessions end after a day.", None)
        second = sandbox.commit()
        assert (await bodies())["dec-b"][1] == second
        # The same size, in place: only the file itself tells.
        with (sandbox.path / path).open("r+") as file:
            text = file.read().replace("Redis", "MySQL")
            file.seek(0)
            file.write(text)
        assert (await bodies())["dec-a"][0] == "Sessions live in MySQL."
        sandbox.git("checkout", "--quiet", "--", path)
        sandbox.git("checkout", "--quiet", "--detach", first)
        assert await bodies() == {"dec-a": ("Sessions live in Redis.", first)}
        sandbox.write(".memory/aliases.toml", 'login = ["sessions"]\n')
        answer = await ask(client, "search", query="login")
        assert [result["id"] for result in answer["results"]] == ["dec-a"]
        (sandbox.path / path).unlink()
        assert await bodies() == {}

    talk(sandbox, story)


def test_a_bad_call_is_answered_and_the_next_one_works(sandbox: Sandbox):
    """Unknown names, wrong types, paths outside, secrets, huge texts: the server lives on."""
    sandbox.memory("dec-a")
    sandbox.commit()

    async def story(client: Client) -> None:
        with pytest.raises(MCPError, match="unknown tool 'purge'"):
            await client.call_tool("purge", {})
        assert "did you mean query?" in await refused(client, "search", qeury="x")
        assert "limit takes" in await refused(client, "search", query="x", limit="all")
        assert "no memory is called" in await refused(client, "show", id="dec-zzz")
        assert "hint: " in await refused(client, "supersede", old="nope", title="T")
        assert "not in the repository" in await refused(client, "inject", files=["/etc/passwd"])
        assert "not in the repository" in await refused(client, "check", path=["../.."])
        assert "inside the repository" in await refused(
            client, "new", type="semantic", title="T", source=["file:../../etc/passwd"]
        )
        assert "the limit is 65,536" in await refused(client, "remember", text="word " * 200_000)
        assert '"--output=x"' in await refused(client, "show", id="dec-a", at="--output=x")
        assert 'no revision "--all"' in await refused(client, "check", range="--all..HEAD")
        message = await refused(client, "remember", text=f"The token is {TOKEN}.")
        assert TOKEN not in message
        assert (await ask(client, "list"))["total"] == 1

    log = talk(sandbox, story)
    assert TOKEN not in log
    assert "Traceback" not in log
    files = [path for path in sandbox.path.rglob("*") if path.is_file()]
    assert not [path for path in files if TOKEN.encode() in path.read_bytes()]


def test_a_bug_is_told_and_does_not_end_the_server(sandbox: Sandbox):
    """A file of ours that is a directory breaks one answer at most."""
    sandbox.memory("dec-a")
    sandbox.write(".memory/config.toml", "broken = [")

    async def story(client: Client) -> None:
        assert "config.toml" in await refused(client, "search", query="x")
        sandbox.write(".memory/config.toml", "")
        assert (await ask(client, "list"))["total"] == 1

    talk(sandbox, story)


@pytest.mark.slow
def test_two_clients_and_many_calls_at_once(sandbox: Sandbox):
    """Nothing is lost, nothing torn: each of forty memories is there, with its own commit."""
    sandbox.memory("dec-a")
    sandbox.commit()

    def writer(name: str) -> Story:
        async def story(client: Client) -> None:
            async def remember_one(number: int) -> None:
                text = f"{name}{number} is the port of service {name * 3}{number * 7919}."
                await ask(client, "remember", text=text, commit=number % 5 == 0)
                await ask(client, "search", query=f"port {number}")

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(remember_one, number)

        return story

    assert talk(sandbox, writer("x"), writer("y")) == ""
    assert sandbox.json("status")["total"] == 41
    assert len(sandbox.git("log", "--format=%H").split()) == 9


def test_memories_are_resources(sandbox: Sandbox):
    """Listed by pages, read by address, completed by their beginning; a bad address is an error."""
    for number in range(101):
        sandbox.memory(f"dec-{number:03}", f"Note {number}.\n")
    sandbox.commit()

    async def story(client: Client) -> None:
        page = await client.list_resources()
        assert (len(page.resources), page.resources[0].uri) == (100, "memory://dec-000")
        next_page = await client.list_resources(cursor=page.next_cursor)
        assert ([resource.name for resource in next_page.resources], next_page.next_cursor) == (
            ["dec-100"],
            None,
        )
        (text,) = (await client.read_resource("memory://dec-007")).contents
        assert "\n\nNote 7.\n\n" in text.text
        (template,) = (await client.list_resource_templates()).resource_templates
        reference = {"type": "ref/resource", "uri": template.uri_template}
        completion = await client.complete(_reference(reference), {"name": "id", "value": "dec-09"})
        assert completion.completion.values == [f"dec-09{n}" for n in range(10)]
        for uri in ("memory://dec-999", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        with pytest.raises(MCPError, match="is not a cursor"):
            await client.list_resources(cursor="%%%")

    talk(sandbox, story)


def test_the_primer_is_a_prompt(sandbox: Sandbox):
    """Hosts without hooks offer it to their user; without memories it says so."""
    sandbox.run("init")

    async def story(client: Client) -> None:
        (prompt,) = (await client.list_prompts()).prompts
        (empty,) = (await client.get_prompt(prompt.name)).messages
        assert empty.content.text == "There is no memory to begin with."
        sandbox.memory("dec-pinned", "Never force-push.\n", status="pinned")
        (message,) = (await client.get_prompt(prompt.name, {"for": "claude"})).messages
        primer = sandbox.run("inject", "--primer", "--for", "claude").stdout
        assert message.content.text == with_tools(primer, list_tools(every=True))
        assert "`search` WORDS" in message.content.text
        assert "Never force-push." in message.content.text
        for name, arguments in (("nope", {}), ("primer", {"for": "x"}), ("primer", {"write": "x"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)

    talk(sandbox, story)


def _reference(fields: dict[str, str]) -> Any:
    from mcp_types import ResourceTemplateReference

    return ResourceTemplateReference.model_validate(fields)


def test_a_client_may_only_read(sandbox: Sandbox):
    """With --read-only the writing tools are not there at all."""
    sandbox.memory("dec-a")

    async def story(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert all(tool.annotations.read_only_hint for tool in listed)
        with pytest.raises(MCPError):
            await client.call_tool("remember", {"text": "x"})

    talk(sandbox, story, args=("--read-only",))


def test_the_off_switch_leaves_nothing_to_call(sandbox: Sandbox):
    """MEMTOOL_OFF silences memtool, without a host that complains about a dead server."""
    sandbox.memory("dec-a")

    async def story(client: Client) -> None:
        assert (await client.list_tools()).tools == []
        assert (await client.list_resources()).resources == []
        assert (await client.list_resource_templates()).resource_templates == []

    talk(sandbox, story, env={"MEMTOOL_OFF": "1"})


def test_without_a_repository_a_root_of_the_client_is_taken(sandbox: Sandbox, tmp_path: Path):
    """A host that starts its servers anywhere still gets the memories of its project."""
    from mcp_types import ListRootsResult, Root

    sandbox.memory("dec-a")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "another").mkdir()

    async def roots(_context: object) -> ListRootsResult:
        places = (tmp_path / "another", sandbox.path)
        return ListRootsResult(roots=[Root(uri=place.as_uri()) for place in places])

    async def story(client: Client) -> None:
        assert [resource.name for resource in (await client.list_resources()).resources] == [
            "dec-a"
        ]
        assert (await ask(client, "list"))["total"] == 1

    talk(sandbox, story, era="legacy", cwd=tmp_path / "elsewhere", list_roots_callback=roots)


def test_memories_land_in_the_worktree_that_is_meant(sandbox: Sandbox, tmp_path: Path):
    """A tool call names it, or the client's roots do; the answer says where, and main stays."""
    from mcp_types import ListRootsResult, Root

    sandbox.run("init")
    sandbox.commit()
    linked = tmp_path / "linked"
    sandbox.git("worktree", "add", "--quiet", "-b", "topic", str(linked))
    sandbox.git("init", "--quiet", str(tmp_path / "foreign"))
    before = sandbox.git("rev-parse", "HEAD")

    async def named(client: Client) -> None:
        arguments = {
            "text": "Sign webhooks with Ed25519.",
            "commit": True,
            "directory": str(linked),
        }
        result = await client.call_tool("remember", arguments)
        assert f"written in {linked}, on the branch topic" in str(result.content)
        assert (await ask(client, "list", directory=str(linked)))["total"] == 1
        assert (await ask(client, "list"))["total"] == 0
        message = await refused(client, "list", directory=str(tmp_path / "foreign"))
        assert "is in another repository" in message

    async def rooted(client: Client) -> None:
        result = await client.call_tool("remember", {"text": "The QA lead is Bo.", "commit": True})
        assert f"written in {linked}, on the branch topic" in str(result.content)

    async def roots(_context: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=linked.as_uri())])

    talk(sandbox, named)
    talk(sandbox, rooted, era="legacy", list_roots_callback=roots)
    assert sandbox.git("rev-parse", "HEAD") == before
    assert len(sandbox.git("log", "--format=%s", f"{before.strip()}..topic").splitlines()) == 2


def test_a_client_without_a_name_is_no_person(sandbox: Sandbox):
    """The source of what it writes is still an agent."""
    sandbox.run("init")
    params = {"name": "remember", "arguments": {"text": "The QA lead is Bo."}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    nameless = HELLO | {"params": HELLO["params"] | {"clientInfo": {}}}  # type: ignore[operator]
    exchange(sandbox, json.dumps(nameless).encode(), json.dumps(call).encode())
    (record,) = sandbox.context().tree().records
    assert record.memory.items("source") == ("tool:agent",)


def test_without_any_repository_every_call_says_so(sandbox: Sandbox, tmp_path: Path):
    """The server still starts; git init later is enough."""
    place = tmp_path / "nothing"
    place.mkdir()

    async def story(client: Client) -> None:
        assert (await client.list_resources()).resources == []
        message = await refused(client, "search", query="x")
        assert "is not in a git repository\nhint: the user can run git init" in message
        sandbox.git("init", "--quiet", str(place))
        assert "hint: the user can run memtool init" in await refused(client, "list")
        assert (await client.list_resources()).resources == []
        (place / ".memory" / "decision").mkdir(parents=True)
        (place / ".memory" / "decision" / "dec-a.md").write_bytes(document.write(make_memory()))
        assert (await ask(client, "list"))["total"] == 1

    talk(sandbox, story, cwd=place)


def test_another_directory_may_be_named(sandbox: Sandbox, tmp_path: Path):
    """-C works as for every verb."""
    sandbox.memory("dec-a")

    async def story(client: Client) -> None:
        assert (await ask(client, "list"))["total"] == 1

    talk(sandbox, story, args=("-C", str(sandbox.path)), cwd=tmp_path)


def test_global_memories_are_asked_for_by_name(sandbox: Sandbox):
    """They are written to the user's own repository, and read from there."""
    sandbox.memory("dec-a")

    async def story(client: Client) -> None:
        made = await ask(client, "remember", text="Answer in British English.", **{"global": True})
        assert made["commit"]
        listed = (await ask(client, "list", **{"global": True}))["memories"]
        assert [memory["id"] for memory in listed] == [made["id"]]
        assert (await ask(client, "list"))["total"] == 1

    async def all_global(client: Client) -> None:
        assert (await ask(client, "list"))["total"] == 1
        assert "dec-a" not in str(await client.list_resources())

    talk(sandbox, story)
    talk(sandbox, all_global, args=("--global",))


def test_a_client_that_leaves_ends_the_server(sandbox: Sandbox):
    """End of input is the end, with exit code 0, when what was asked before it is answered."""
    call = {"name": "remember", "arguments": {"text": "Deploys run on Tuesdays."}}
    last = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    lines = (json.dumps(line).encode() for line in (HELLO, LIST, last))
    answers, done = exchange(sandbox, *lines)
    assert sorted(answer["id"] for answer in answers) == [0, 1, 2]
    assert (done.returncode, done.stderr) == (0, b"")
    assert sandbox.json("list")["total"] == 1
    assert exchange(sandbox)[1].returncode == 0


PARSE, INVALID, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


def to_bytes(*messages: Any) -> list[bytes]:
    return [json.dumps(message).encode() for message in messages]


def request_tool(id_: int | str, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}


@pytest.mark.parametrize(
    ("line", "id_", "code"),
    [
        (b"{", None, PARSE),
        (b"\xff\xfe", None, PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', None, PARSE),
        (b"[" * 200_000, None, PARSE),
        (b'{"id":' + b"9" * 5_000 + b"}", None, PARSE),
        (b"[]", None, INVALID),
        (b'"x"', None, INVALID),
        (b"null", None, INVALID),
        (b'{"jsonrpc":"2.0","id":7}', 7, INVALID),
        (b'{"jsonrpc":"2.0","id":7,"method":7}', 7, INVALID),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, INVALID),
        (b'{"jsonrpc":"2.0","id":8,"method":"memories/purge"}', 8, NO_METHOD),
        (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":[]}', 9, BAD_PARAMS),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":7}}', 9, BAD_PARAMS),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list","arguments":[]}}',
            9,
            BAD_PARAMS,
        ),
    ],
)
def test_a_line_that_is_no_message_is_answered(
    sandbox: Sandbox, line: bytes, id_: int | None, code: int
):
    """With the error of JSON-RPC and the id if it has one; the next message is answered."""
    answers, done = exchange(sandbox, *to_bytes(HELLO), line, *to_bytes(PING))
    assert [answer["id"] for answer in answers] == [0, id_, "ping"]
    assert answers[1]["error"]["code"] == code
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_needs_no_answer_gets_none(sandbox: Sandbox):
    """Notifications, answers to questions that we never asked, and blank lines."""
    messages = to_bytes(
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        {"jsonrpc": "2.0", "id": "memtool-9", "result": {}},
        {"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "x"}},
    )
    lines = [*messages, b"", b" \r", b"\xef\xbb\xbf" + to_bytes(PING)[0] + b"\r"]
    assert [answer["id"] for answer in exchange(sandbox, *lines)[0]] == ["ping"]


def test_a_line_beyond_the_limit_is_refused(sandbox: Sandbox):
    """In time that grows with its length, and without keeping it."""
    lines = to_bytes(HELLO, request_tool(1, "search", query="x" * 30_000_000), PING)
    began = time.monotonic()
    answers, _done = exchange(sandbox, *lines)
    assert time.monotonic() - began < 20
    assert [answer["id"] for answer in answers] == [0, None, "ping"]
    assert answers[1]["error"]["code"] == INVALID
    assert "1,048,576 bytes" in answers[1]["error"]["message"]


@pytest.mark.parametrize(("version", "has_batches"), [("2025-03-26", True), ("2025-06-18", False)])
def test_a_batch_is_answered_where_there_are_batches(
    sandbox: Sandbox, version: str, *, has_batches: bool
):
    """Each member by itself, in one line; in other revisions a batch is one invalid request."""
    hello = HELLO | {"params": HELLO["params"] | {"protocolVersion": version}}  # type: ignore[operator]
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    batch = [PING, note, {"jsonrpc": "2.0", "id": 5, "method": "nope"}, 7, LIST]
    answers, _done = exchange(sandbox, *to_bytes(hello, batch, [note], PING))
    if not has_batches:
        assert [answer["id"] for answer in answers] == [0, None, None, "ping"]
        assert {answer["error"]["code"] for answer in answers[1:3]} == {INVALID}
        return
    (_hello, replies, ping) = answers
    assert [reply["id"] for reply in replies] == ["ping", 5, None, 1]  # type: ignore[index]
    codes = [reply.get("error", {}).get("code") for reply in replies]  # type: ignore[attr-defined]
    assert codes == [None, NO_METHOD, INVALID, None]
    assert ping["id"] == "ping"


def test_a_call_that_waits_can_be_cancelled(sandbox: Sandbox):
    """It is not done and not answered; an id of another type is another call."""
    sandbox.run("init")

    def cancel(id_: Any) -> dict[str, Any]:
        return {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": id_},
        }

    calls = [
        request_tool(number, "remember", text=f"Deploys of service {number} are on Tuesdays.")
        for number in (1, 2, 3)
    ]
    answers, _done = exchange(
        sandbox, *to_bytes(HELLO, *calls, cancel(2), cancel("3"), cancel(9), cancel(None), PING)
    )
    assert [answer["id"] for answer in answers] == [0, 1, 3, "ping"]
    assert sandbox.json("status")["total"] == 2


def test_arguments_as_strings_are_read(sandbox: Sandbox):
    """What Claude Code sends instead of numbers, booleans and lists."""
    sandbox.run("init")
    sandbox.commit()
    calls = [
        request_tool(2, "search", query="redis", limit="5"),
        request_tool(3, "remember", text="Deploys are on Tuesdays.", tag='["deploy"]'),
        request_tool(4, "remember", text="Backups are on Mondays.", tag="backup", commit="true"),
        request_tool(5, "search", query="redis", limit="some"),
    ]
    answers, _done = exchange(sandbox, *to_bytes(HELLO, *calls))
    results = {answer["id"]: answer["result"] for answer in answers}
    assert [results[id_].get("isError", False) for id_ in (2, 3, 4, 5)] == [False] * 3 + [True]
    assert "limit takes a whole number, not a text" in str(results[5])
    tags = {record.memory.items("tags") for record in sandbox.context().tree().records}
    assert tags == {("deploy",), ("backup",)}
    assert len(sandbox.git("log", "--format=%H").split()) == 2


def test_structured_answers_have_a_declared_shape(sandbox: Sandbox):
    """Every tool declares it with --structured, and none without."""
    sandbox.run("init")
    shapes = {
        is_structured: [
            tool.get("outputSchema", {}).get("type")
            for tool in ServerMethods(
                ServedRepository(str(sandbox.path), {}, is_structured=is_structured),
                list_tools(every=True),
            ).list_tools(transport.Client(0, 1), {})["tools"]
        ]
        for is_structured in (True, False)
    }
    assert set(shapes[True]) == {"object"}
    assert set(shapes[False]) == {None}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_a_user_is_asked_where_the_client_can(
    sandbox: Sandbox, era: str, action: Literal["accept", "decline", "cancel"]
):
    """Before a trusted memory is replaced, and before memories are deleted or settled."""
    sandbox.memory("dec-a", "Sessions live in Redis.\n")
    for name, text in (("dec-b", "Use tabs.\n"), ("dec-c", "Use spaces.\n")):
        sandbox.memory(name, text, supersedes=("dec-z",))
    sandbox.memory("dec-z", "Use both.\n")
    sandbox.commit()
    sandbox.git("update-ref", "refs/remotes/origin/main", "HEAD")
    sandbox.run("config", "trust.ref", "origin/main")
    sandbox.commit()
    questions: list[str] = []

    async def answer(_context: object, params: Any) -> types.ElicitResult:
        questions.append(params.message)
        has_field = "said_by_user" in params.requested_schema["properties"]
        content = {"said_by_user": "use Postgres"} if has_field and action == "accept" else None
        return types.ElicitResult(action=action, content=content)

    async def story(client: Client) -> None:
        change = {"old": "dec-a", "title": "Keep sessions in Postgres", "body": "In Postgres."}
        settle = {"ids": ["dec-b", "dec-c"], "keep": "dec-b", "reason": "we type tabs"}
        results = [
            await client.call_tool("supersede", change | {"dry_run": "true"}),
            await client.call_tool("supersede", change | {"old": "dec-zzz"}),
            await client.call_tool("supersede", change | {"title": f"Use {TOKEN}"}),
            await client.call_tool("supersede", change),
            await client.call_tool("resolve", settle),
            await client.call_tool("forget", {"id": "dec-b", "reason": "x"}),
        ]
        are_errors = [result.is_error for result in results]
        assert are_errors == [
            False,
            True,
            True,
            action == "decline",
            action != "accept",
            action != "accept",
        ]
        if action == "decline":
            message = 'the user declined to replace "Title of dec-a" (dec-a)\n'
            assert results[3].content[0].text.startswith(message)

    talk(sandbox, story, era=era, elicitation_callback=answer)
    assert questions[0].startswith('Replace the trusted memory "Title of dec-a" (dec-a) by "Keep ')
    assert questions[1].startswith("Settle the conflict of ")
    assert questions[2].startswith('Delete the memory "Title of dec-b" (dec-b)?')
    assert len(questions) == 3  # nothing that would be refused, and no dry run
    assert TOKEN not in str(questions)
    status = {record.id: record.memory.status for record in sandbox.context().tree().records}
    new = [status[id_] for id_ in status if len(id_) > len("dec-a")]
    expected = {"accept": ["confirmed"] * 2, "decline": [], "cancel": ["candidate"]}
    assert new == expected[action]


def test_a_call_can_be_cancelled_while_the_user_is_asked(sandbox: Sandbox):
    """The question is withdrawn, nothing is done, and a ping meanwhile is answered."""
    sandbox.memory("dec-a")
    sandbox.commit()
    params = HELLO["params"] | {"capabilities": {"elicitation": {}}}  # type: ignore[operator]
    with subprocess.Popen(
        [*SERVER, "mcp", "--all"],
        cwd=sandbox.path,
        env=sandbox.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdin
        assert server.stdout

        def send(*messages: dict[str, Any]) -> None:
            assert server.stdin
            server.stdin.write(b"".join(line + b"\n" for line in to_bytes(*messages)))
            server.stdin.flush()

        def read() -> dict[str, Any]:
            assert server.stdout
            return dict(json.loads(server.stdout.readline()))

        send(HELLO | {"params": params}, request_tool(1, "forget", id="dec-a", reason="x"))
        read()
        question = read()
        assert question["method"] == "elicitation/create"
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        send(PING)
        assert read()["id"] == "ping"
        send(cancelled | {"params": {"requestId": 1}})
        withdrawn = read()
        assert withdrawn == cancelled | {"params": {"requestId": question["id"]}}
        send(LIST)
        assert read()["id"] == LIST["id"]
        server.stdin.close()
        assert server.wait(timeout=60) == 0
    assert sandbox.git("status", "--short") == ""


def test_a_closed_pipe_is_no_error(sandbox: Sandbox):
    """A host that was killed leaves a server that ends in silence."""
    with subprocess.Popen(
        [*SERVER, "mcp"],
        cwd=sandbox.path,
        env=sandbox.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        server.stdout.readline()
        server.stdout.close()
        server.stdin.write(json.dumps(LIST).encode() + b"\n")
        server.stdin.flush()
        assert (server.wait(timeout=60), server.stderr.read()) == (0, b"")


def test_an_interrupt_ends_it_at_once(sandbox: Sandbox):
    """Whoever started it by hand gets out of it, though it waits for input."""
    with subprocess.Popen(
        [*SERVER, "mcp"],
        cwd=sandbox.path,
        env=sandbox.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        assert server.stdin
        assert server.stdout
        assert server.stderr
        server.stdin.write(json.dumps(HELLO).encode() + b"\n")
        server.stdin.flush()
        server.stdout.readline()
        os.kill(server.pid, signal.SIGINT)
        assert (server.wait(timeout=60), server.stderr.read()) == (130, b"")


def test_the_verb_itself_is_no_function(sandbox: Sandbox):
    """The Python API names the verb, and says how it is started."""
    from memtool.commands.mcp import mcp
    from memtool.errors import MemtoolError

    with pytest.raises(MemtoolError, match="can only be started from the command line"):
        mcp(sandbox.context())


def test_no_package_is_needed(sandbox: Sandbox):
    """Other implementations of the protocol take a second to load."""
    sandbox.memory("dec-a")
    query = {"name": "search", "arguments": {"query": "dec-a"}}
    lines = (HELLO, LIST, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": query})
    script = (
        "import sys; from memtool.cli.main import main; main(['mcp']); "
        "print(*{'mcp', 'mcp_types', 'anyio', 'pydantic'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=sandbox.path,
        env=sandbox.env,
        capture_output=True,
        check=True,
        text=True,
        input="".join(f"{json.dumps(line)}\n" for line in lines),
    )
    assert done.stderr.strip() == ""
    answers = {
        answer["id"]: answer["result"] for answer in map(json.loads, done.stdout.splitlines())
    }
    assert [tool["name"] for tool in answers[1]["tools"]] == list(COMMON)
    assert "dec-a" in answers[2]["content"][0]["text"]
    assert "structuredContent" not in answers[2]
