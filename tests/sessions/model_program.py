"""A stand-in for a language model: reads the prompt and answers by its argument."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

RAW = {
    "content": "The webhook signature is computed over the raw body.",
    "category": "discovery",
    "confidence": 0.92,
    "importance": 0.8,
    "messages": [1],
    "files": [],
    "tags": ["api"],
}


TURNED = "We always store the webhook signature of the raw body."
GOOD = json.dumps({"findings": [RAW]})


def fails() -> str:
    print("not logged in \x1b[31m", file=sys.stderr)
    sys.exit(1)


def hangs() -> str:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    with open(os.environ["ASKED"] + ".pid", "w", encoding="utf-8") as file:
        file.write(str(child.pid))
    time.sleep(60)
    return ""


def huge() -> str:
    while True:
        sys.stdout.write("x" * 65_536)


def second() -> str:
    with open(os.environ["ASKED"], encoding="utf-8") as file:
        return GOOD if file.read().count("\0") > 1 else "one moment please"


def where() -> str:
    place = [os.getcwd(), os.environ.get("MEMTOOL_OFF"), os.environ.get("GIT_DIR"), os.listdir()]
    return json.dumps({"findings": place})


ANSWERS = {
    "good": lambda: GOOD,
    "fenced": lambda: f"Here is what I found:\n```json\n{GOOD}\n```\nAnything else?",
    "wrapped": lambda: json.dumps({"type": "result", "result": GOOD}),
    "turned": lambda: json.dumps({"findings": [RAW | {"content": TURNED}]}),
    "empty": lambda: '{"findings": []}',
    "prose": lambda: "I found nothing of interest, but the weather is nice.",
    "partial": lambda: GOOD[: len(GOOD) // 2],
    "list": lambda: json.dumps([RAW]),
    "actions": lambda: json.dumps({"actions": json.loads(os.environ["ACTIONS"])}),
    "fails": fails,
    "hangs": hangs,
    "huge": huge,
    "second": second,
    "where": where,
}
"""What each mode answers; those that never end or fail do so in their function."""


def main(mode: str) -> None:
    """Answer in one way; the file `ASKED` holds every prompt, so that they can be counted."""
    prompt = sys.stdin.read()
    with open(os.environ["ASKED"], "a", encoding="utf-8") as file:
        file.write(prompt + "\0")
    print(ANSWERS[mode]())


if __name__ == "__main__":
    main(sys.argv[1])
