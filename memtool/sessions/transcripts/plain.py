"""Plain text and markdown: who speaks stands before it, or it is all what a person wrote."""

from __future__ import annotations

from memtool.sessions.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SPEAKERS = {
    "user": "user", "human": "user", "me": "user", "you": "user", "prompt": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "claude": "assistant",
    "codex": "assistant", "gemini": "assistant", "gpt": "assistant", "chatgpt": "assistant",
    "cursor": "assistant", "opencode": "assistant", "model": "assistant", "tool": "tool",
    "output": "tool", "system": "system",
}  # fmt: skip
"""Names that begin a turn as `User:`, `**User:**`, `## User` or `### Assistant`."""
MARKS = {"> ": "user", "\u276f ": "user", "⏺ ": "assistant", "● ": "assistant", "⎿ ": "tool"}
"""How turns begin in what a terminal shows."""
FENCES = ("```", "~~~")


def read(text: str) -> Iterator[Message]:
    """Yield the turns of a conversation, or the paragraphs of anything else."""
    rows = text.replace("\r\n", "\n").split("\n")
    turns = _turns(rows)
    if turns is None:
        turns = [("user", paragraph) for paragraph in _paragraphs(rows)]
    seen: dict[str, int] = {}
    for role, said in turns:
        body = "\n".join(said).strip("\n")
        if body.strip():
            name = _name(f"{role}\n{body}")
            seen[name] = seen.get(name, 0) + 1
            yield Message(0, role, body, origin=f"{name}-{seen[name]}")


def _turns(rows: list[str]) -> list[tuple[str, list[str]]] | None:
    """Return who said what, None where nobody is named; what is said before is left out."""
    is_screen = any(row.startswith(("⏺ ", "● ")) for row in rows)
    turns: list[tuple[str, list[str]]] = []
    fence = ""
    for row in rows:
        fence = _fence_after(fence, row)
        role, rest = ("", "") if fence else _speaker(row, is_screen=is_screen)
        if role:
            turns.append((role, [rest] if rest else []))
        elif turns:
            turns[-1][1].append(row)
    roles = {role for role, _said in turns}
    return turns if "user" in roles and len(turns) > 1 else None


def _speaker(row: str, *, is_screen: bool) -> tuple[str, str]:
    """Return the role that a line begins a turn of, and what it says already."""
    if is_screen:
        for mark, role in MARKS.items():
            if row.lstrip(" " if mark == "⎿ " else "").startswith(mark):
                return role, row.partition(mark)[2]
    line = row.strip()
    is_heading = line.startswith("#")
    bare = line.lstrip("#").strip()
    is_bold = bare.startswith("**")
    name, colon, rest = bare.strip("*" if is_bold else "").partition(":")
    name = name.strip("* ").lower()
    if name not in SPEAKERS or not (colon or is_heading or (is_bold and bare.endswith("**"))):
        return "", ""
    return SPEAKERS[name], rest.lstrip("* ") if colon else ""


def _paragraphs(rows: list[str]) -> Iterator[list[str]]:
    """Yield runs of lines between empty ones; what is fenced holds together."""
    run: list[str] = []
    fence = ""
    for row in rows:
        fence = _fence_after(fence, row)
        if row.strip() or fence:
            run.append(row)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _fence_after(fence: str, row: str) -> str:
    """Return the fence that is open after a line."""
    start = row.lstrip()[:3]
    if fence:
        return "" if start == fence and not row.strip().strip(fence[0]) else fence
    return start if start in FENCES else ""


def _name(text: str) -> str:
    from _blake2 import blake2b  # hashlib would import OpenSSL

    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
