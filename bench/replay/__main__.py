"""Whether the right decision is in front of an agent before it edits: public histories, replayed.

    python bench/replay run --mirror DIR --out run.jsonl --limit 6 --neutral 2
    python bench/replay score run.jsonl --against before.jsonl
    python bench/replay events --mirror DIR --out bench/replay/pins.tsv

An event is a commit whose message names one to three decision records that exist at its parent.
`run` makes a clone at the parent, imports the records as memories, and calls the real hooks as
Claude Code does: at the start of the session, with the prompt, and after the edit of each of the
first six files of code. The prompt is the title of the message, or all of it, without the names of
records. Neutral commits name none; what they are shown is noise.

DIR has clones of the repositories in `repos.toml`: as owner/name, owner+name or owner+name/repo,
bare or not. What is missing is skipped, and listed on stderr. An event takes 2 to 20 s of CPU. A
run appends a line for each event to its file, and goes on where it was ended. --limit and --neutral
are the numbers of each repository. `events` finds the commits again by the rules of `events.py`.

What differs from a real session: hooks have no time limit and run in one process, the import is in
the same minute as the session, the edits are in the order of their paths, and the message was
written by people who knew the record. Whether an agent obeys is not measured.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import events
import score
from events import PINS, Pin
from history import GROUPS, REPOSITORIES, History, Source, read_sources
from replay import PROMPTS, Clone, ReplayError, Row, replay

import memtool

MAX_REASON = 300


def warn(text: str) -> None:
    """Write a line to stderr."""
    print(text, file=sys.stderr, flush=True)


def iter_histories(
    sources: Sequence[Source], mirror: Path
) -> Iterator[tuple[Source, History, History]]:
    """Yield the repositories that a mirror has, each with the one that has its records."""
    for source in sources:
        history = History.find(mirror, source.name)
        records = History.find(mirror, source.records) if source.records else history
        if history is None or records is None:
            warn(
                f"skipped: {source.name if history is None else source.records} is not in {mirror}"
            )
        else:
            yield source, history, records


def find_events(args: argparse.Namespace, sources: Sequence[Source]) -> None:
    """Find the events of a mirror; those of repositories that it does not have are unchanged."""
    pins: dict[str, list[Pin]] = {}
    if args.out and args.out.exists():
        for pin in events.read_pins(args.out):
            pins.setdefault(pin.repository, []).append(pin)
    for source, history, records in iter_histories(sources, args.mirror):
        new = events.find_events(source, history, records)
        pins[source.name] = new
        count = sum(bool(pin.numbers) for pin in new)
        warn(f"{source.name}: {count} events, {len(new) - count} neutral commits")
        for pin in new if args.titles else ():
            title = events.Naming(source).title(history.read_commit(pin.commit).message)
            warn(f"  {pin.commit[:10]} {','.join(map(str, pin.numbers)) or '-'} {title}")
    text = events.format_pins(pin for rows in pins.values() for pin in rows)
    if args.out:
        args.out.write_text(text)
    else:
        sys.stdout.write(text)


def run(args: argparse.Namespace, sources: Sequence[Source]) -> None:
    """Replay events that are not yet in the file of the run."""
    pins = list(events.iter_sample(events.read_pins(args.pins), args.limit, args.neutral))
    code = digest_code()
    finished = read_finished(args.out, code)
    for source, history, records in iter_histories(sources, args.mirror):
        waiting = [
            pin for pin in pins if pin.repository == source.name and pin.commit not in finished
        ]
        with tempfile.TemporaryDirectory() as folder, args.out.open("a") as file:
            clone = Clone(Path(folder), history)
            for pin in waiting:
                try:
                    if not history.has(pin.commit):
                        raise ReplayError(f"the commit is not in {history.folder}")
                    row = replay_apart(pin, source, history, records, clone)
                except (ReplayError, subprocess.CalledProcessError) as error:
                    reason = str(error).replace("\n", " ")[:MAX_REASON]
                    warn(f"skipped: {pin.repository} {pin.commit[:10]}: {reason}")
                    continue
                row.code = code
                file.write(row.line())
                file.flush()
                warn(f"{pin.repository} {pin.commit[:10]}: {row.seconds:.1f} s")


def replay_apart(pin: Pin, source: Source, history: History, records: History, clone: Clone) -> Row:
    """Replay an event in a process of its own, so that no event inherits from another."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(replay, (pin, source, history, records, clone))


def digest_code() -> str:
    """Return a hash of the code of memtool, by which runs are told apart."""
    folder = Path(memtool.__file__).parent
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if "__pycache__" not in path.parts:
            whole.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()[:12]


def read_finished(path: Path, code: str) -> set[str]:
    """Return the commits in the file of a run; cut off a line that was not finished."""
    if not path.exists():
        return set()
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    rows = read_rows(path)
    if any(row.code != code for row in rows):
        raise SystemExit(f"{path} is a run of other code; name another file")
    return {row.commit for row in rows}


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a run."""
    return [Row.parse(line) for line in path.read_text().splitlines()]


def print_scores(args: argparse.Namespace) -> None:
    """Print the tables of a run."""
    rows = read_rows(args.run)
    groups = [args.group] if args.group else ["", *dict.fromkeys(row.group for row in rows)]
    for group in groups:
        chosen = [row for row in rows if group in ("", row.group)]
        print(f"## {group or 'all'}\n\n{score.format_scores(chosen)}\n")
        if args.against:
            compared = score.format_comparison(chosen, read_rows(args.against))
            print(f"against {args.against.name}\n\n{compared}\n")
    print(f"{score.format_sizes(rows)}\n\n{score.format_repositories(rows)}")
    if args.misses:
        print("\n" + "\n".join(score.format_misses(rows, prompt) for prompt in PROMPTS))


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python bench/replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    finder = verbs.add_parser("events", help="find the commits to replay")
    runner = verbs.add_parser("run", help="replay them")
    for verb in (finder, runner):
        verb.add_argument("--mirror", type=Path, required=True, metavar="DIR", help="the clones")
        verb.add_argument("--repo", action="append", metavar="NAME", help="only this owner/name")
        verb.add_argument("--repos", type=Path, default=REPOSITORIES, metavar="FILE",
                          help="a table of other repositories")  # fmt: skip
    finder.add_argument("--out", type=Path, metavar="FILE", help="write the pins here")
    finder.add_argument("--titles", action="store_true", help="show the titles, on stderr")
    runner.add_argument("--pins", type=Path, default=PINS, metavar="FILE", help="the commits")
    runner.add_argument("--limit", type=int, metavar="N", help="events of each repository")
    runner.add_argument("--neutral", type=int, metavar="N", help="neutral commits of each")
    runner.add_argument("--out", type=Path, required=True, metavar="FILE", help="the rows, JSONL")
    scorer = verbs.add_parser("score", help="print the tables of a run")
    scorer.add_argument("run", type=Path, metavar="FILE")
    scorer.add_argument("--against", type=Path, metavar="FILE", help="another run")
    scorer.add_argument("--group", choices=GROUPS)
    scorer.add_argument("--misses", action="store_true", help="list the events that are missed")
    return parser.parse_args()


def main() -> None:
    """Run one verb of the command line."""
    args = parse_arguments()
    if args.verb == "score":
        print_scores(args)
        return
    sources = read_sources(args.repos)
    unknown = set(args.repo or ()) - {source.name for source in sources}
    if unknown:
        raise SystemExit(f"{min(unknown)} is not in {args.repos.name}")
    sources = [source for source in sources if not args.repo or source.name in args.repo]
    (find_events if args.verb == "events" else run)(args, sources)


if __name__ == "__main__":
    main()
