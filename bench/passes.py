"""How far data travel through the code: files entered, and passes from file to file, verb by verb.

    python bench/passes.py [VERB ...]

Each verb runs in a process of its own on the repository of `memtool demo`, with everything derived
in place, under `sys.setprofile`. A file counts that runs a line of ours, be it only to be imported;
a pass is a call whose caller is in another file of ours. Fewer of both are shorter ways for a
reader: a layer that only hands things on costs one of each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from corpus import ENV

import memtool

ROOT = str(Path(memtool.__file__).parent)
COUNT = """
import os, sys
root, out = sys.argv.pop(1), int(sys.argv.pop(1))
files, passes = set(), 0
def profile(frame, event, argument):
    global passes
    if event != "call":
        return
    name = frame.f_code.co_filename
    if name.startswith(root):
        files.add(name)
        caller = frame.f_back.f_code.co_filename if frame.f_back else name
        passes += caller != name and caller.startswith(root)
def leave(status):
    sys.setprofile(None)
    os.write(out, b"%d %d" % (len(files), passes))
    real(status)
real, os._exit = os._exit, leave
sys.setprofile(profile)
from memtool.cli.main import command
command()
"""
RULE = "From now on, tickets are refunded within a day of the request."


def calls(folder: Path) -> dict[str, list[str]]:
    """Return the command line of each verb."""
    event = {"cwd": str(folder), "session_id": "", "prompt": "how long is a seat held?"}
    return {
        "search": ["search", "how long is a seat held"],
        "inject": ["inject", "--prompt", "how long is a seat held?"],
        "hook": ["hook", "claude", "user-prompt-submit", "--input", json.dumps(event)],
        "show": ["show", "seat"],
        "status": ["status"],
        "check": ["check", "--staged"],
        "promote": ["promote", "--dry-run"],
        "remember": ["remember", RULE],
    }


def measured(folder: Path, args: list[str]) -> tuple[int, int]:
    """Run a verb; return how many files of ours it enters, and how often one calls another."""
    ends, out = os.pipe()
    try:
        subprocess.run(
            [sys.executable, "-c", COUNT, ROOT, str(out), *args],
            cwd=folder,
            env=ENV,
            pass_fds=[out],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    finally:
        os.close(out)
    with os.fdopen(ends) as pipe:
        files, passes = pipe.read().split()
    return int(files), int(passes)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "harbor")
        argv = [sys.executable, "-m", "memtool", "demo", str(folder)]
        subprocess.run(argv, env=ENV, stdout=subprocess.DEVNULL, check=True)
        commands = calls(folder)
        print(f"{'verb':<10}{'files':>7}{'passes':>9}")
        for verb in sys.argv[1:] or commands:
            if verb == "check":  # of one staged file
                measured(folder, commands["remember"])
                subprocess.run(["git", "add", "-A"], cwd=folder, env=ENV, check=True)
            measured(folder, commands[verb])
            files, passes = measured(folder, commands[verb])
            print(f"{verb:<10}{files:>7}{passes:>9,}", flush=True)


if __name__ == "__main__":
    main()
