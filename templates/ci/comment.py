"""Post a report as memtool's one comment on a pull or merge request, or update that comment.

    python "$(python -P -m memtool.templates ci/comment.py)" github|gitlab FILE

The first line of the file is the hidden mark by which the comment is found again, if its author is
the one who posts it now. A report without findings makes no new comment.

GitHub    GITHUB_TOKEN, GITHUB_API_URL, GITHUB_REPOSITORY; MEMTOOL_AUTHOR if the token is not that
          of the workflow
GitLab    MEMTOOL_GITLAB_TOKEN, CI_API_V4_URL, CI_PROJECT_ID
both      MEMTOOL_NUMBER, that of the request; with MEMTOOL_HEAD only if this is its last commit
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.request
from typing import Any

MAX_CHARS = 60_000
MAX_ANSWER_BYTES = 32 << 20
MAX_PAGES = 30
PAGE_SIZE = 100
TIMEOUT_S = 30
MARK = "<!-- memtool "


class StoppedError(Exception):
    """Nothing was posted; the text says why."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, which would take the token to another address."""

    def redirect_request(self, *_request: Any) -> None:
        return None


class Forge:
    """The comments of one request on a forge: their address, and the headers with the token."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        self.base = base.rstrip("/")
        self.headers = headers | {"Content-Type": "application/json", "User-Agent": "memtool"}

    def call(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        """Return the JSON answer to a request."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, self.headers, method=method)  # noqa: S310
        try:
            opener = urllib.request.build_opener(_NoRedirect)
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return json.loads(answer.read(MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            hint = ": the token may not do this" if error.code in (401, 403) else ""
            raise StoppedError(f"{method} {path}: HTTP {error.code}{hint}") from None
        except (OSError, ValueError) as error:
            raise StoppedError(f"{method} {path}: {type(error).__name__}") from None

    def find(self, path: str, mark: str, author: tuple[str, object]) -> dict[str, Any] | None:
        """Return the comment with the mark by an author, given as a key and its value."""
        key, value = author
        between = "&" if "?" in path else "?"
        for page in range(1, MAX_PAGES + 1):
            rows = self.call("GET", f"{path}{between}per_page={PAGE_SIZE}&page={page}")
            for row in rows:
                is_marked = str(row.get("body", "")).startswith(mark)
                writer = row.get("user") or row.get("author") or {}
                if is_marked and writer.get(key) == value:
                    return dict(row)
            if len(rows) < PAGE_SIZE:
                break
        return None


def post_github(body: str, mark: str, number: str, head: str) -> str:
    """Post to GitHub; return what was done."""
    repository = _need("GITHUB_REPOSITORY", r"[\w.-]+/[\w.-]+")
    token = _need("GITHUB_TOKEN")
    forge = Forge(
        os.environ.get("GITHUB_API_URL") or "https://api.github.com",
        {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
    )
    top = f"/repos/{repository}"
    if head:
        pull = forge.call("GET", f"{top}/pulls/{number}")
        if pull["state"] != "open" or pull["head"]["sha"] != head:
            return f"no comment: {head[:10]} is not the last commit of the open request {number}"
    author = os.environ.get("MEMTOOL_AUTHOR") or "github-actions[bot]"
    comments = f"{top}/issues/{number}/comments"
    old = forge.find(comments, mark, ("login", author))
    return _write(forge, body, old, ("POST", comments), ("PATCH", f"{top}/issues/comments/%s"))


def post_gitlab(body: str, mark: str, number: str, head: str) -> str:
    """Post to GitLab; return what was done."""
    project = _need("CI_PROJECT_ID", r"\d+")
    forge = Forge(_need("CI_API_V4_URL"), {"PRIVATE-TOKEN": _need("MEMTOOL_GITLAB_TOKEN")})
    top = f"/projects/{project}/merge_requests/{number}"
    if head and forge.call("GET", top)["sha"] != head:
        return f"no comment: {head[:10]} is not the last commit of request {number}"
    old = forge.find(f"{top}/notes", mark, ("id", forge.call("GET", "/user")["id"]))
    return _write(forge, body, old, ("POST", f"{top}/notes"), ("PUT", f"{top}/notes/%s"))


def _write(
    forge: Forge,
    body: str,
    old: dict[str, Any] | None,
    create: tuple[str, str],
    update: tuple[str, str],
) -> str:
    if old is None:
        if "\n- " not in body:
            return "nothing to report"
        forge.call(*create, {"body": body})
        return "commented"
    if old["body"].replace("\r\n", "\n").strip() == body.strip():
        return "the comment is up to date"
    method, path = update
    forge.call(method, path % int(old["id"]), {"body": body})
    return "updated the comment"


def _need(name: str, pattern: str = r"\S+") -> str:
    value = os.environ.get(name, "")
    if not re.fullmatch(pattern, value, re.ASCII):
        raise StoppedError(f"{name} is {'not valid' if value else 'not set'}")
    return value


FORGES = {"github": post_github, "gitlab": post_gitlab}


def main(forge: str, file: str) -> int:
    """Post a report; return the exit code."""
    try:
        number = _need("MEMTOOL_NUMBER", r"[1-9]\d{0,9}")
        head = os.environ.get("MEMTOOL_HEAD") and _need("MEMTOOL_HEAD", r"[0-9a-f]{40,64}")
        with open(file, encoding="utf-8") as stream:
            body = stream.read(MAX_CHARS + 1)
        mark = body.partition("\n")[0]
        if len(body) > MAX_CHARS or not mark.startswith(MARK):
            raise StoppedError(f"{file} is not a report of memtool, or too long for a comment")
        done = FORGES[forge](body, mark, number, head or "")
    except StoppedError as error:
        print(f"memtool: no comment: {error}", file=sys.stderr)
        return 1
    print(f"memtool: {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
