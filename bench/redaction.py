"""Measure redaction: hits, false alarms and speed. Run it as a script.

python bench/redaction.py [SEED] [--show] [--files GLOB...]
"""

from __future__ import annotations

import glob
import sys
import time
from pathlib import Path

sys.path.pop(0)  # this file has the name of a room of the tests
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from redaction import carriers, corpus, judged

from memtool.redaction.find import find, is_personal, redact

CHARACTERS = 100_000


def measure(split: str, seed: int, *, show: bool) -> dict[str, float]:
    """Return the figures of one split, in rewrite mode: caught = the secret is gone."""
    caught: dict[str, list[bool]] = {}
    right = wrong = damaged = unstable = 0
    for note in corpus.secret_notes(split, seed) + corpus.personal_notes(split, seed):
        findings = find(note.text)
        after = redact(note.text, findings)
        gone = not any(secret in after for secret in note.secrets)
        caught.setdefault(note.name.split("-")[0], []).append(gone)
        lines = {
            note.text.count("\n", 0, note.text.index(s)) + 1 + k
            for s in note.secrets
            for k in range(s.count("\n") + 1)
        }
        is_key = note.name.startswith("key")
        outside = [
            f for f in findings if f.line not in lines and not (is_key and f.kind == "private-key")
        ]
        wrong += len(outside)
        damaged += bool(outside)
        right += gone
        unstable += bool(find(after))
        if show and (not gone or outside):
            at = note.text.index(note.secrets[0])
            print(
                "MISS" if not gone else "HARM",
                note.name,
                repr(note.text[max(0, at - 60) : at + 120]),
                [(f.kind, note.text[f.start : f.end]) for f in outside],
            )
    benign = corpus.benign_notes(split, seed)
    alarms = 0
    for note in benign:
        findings = find(note.text)
        alarms += bool(findings)
        wrong += bool(findings)
        for f in findings if show else ():
            print("ALARM", f.kind, repr(note.text[max(0, f.start - 50) : f.end + 20]))
    personal = ("email", "phone", "ssn", "card")
    secrets = [ok for kind, oks in caught.items() if kind not in personal for ok in oks]
    persons = [ok for kind, oks in caught.items() if kind in personal for ok in oks]
    recall = right / (len(secrets) + len(persons))
    precision = right / (right + wrong)
    figures = {
        "secrets": sum(secrets) / len(secrets),
        "personal": sum(persons) / len(persons),
        "alarms": alarms / len(benign),
        "precision": precision,
        "F1": 2 * precision * recall / (precision + recall),
        "damaged": damaged,
        "unstable": unstable,
    }
    return figures | {f"  {kind}": sum(oks) / len(oks) for kind, oks in sorted(caught.items())}


def by_carrier(part: str, seed: int, *, show: bool) -> dict[str, float]:
    """Return the figures of one part of the second corpus, by kind and by carrier.

    A secret counts as found where no half of it is left.
    """
    rows: dict[str, list[bool]] = {}
    halves = 0
    for note in (*carriers.secret_samples(part, seed), *carriers.personal_samples(part, seed)):
        after = redact(note.text, find(note.text))
        leftovers = carriers.left_over(after, note.parts)
        halves += bool(leftovers) and after != note.text
        group = "personal" if note.personal else "secrets"
        for name in (group, f"  kind {note.kind.partition('-')[0]}", f"  in {note.carrier}"):
            rows.setdefault(name, []).append(not leftovers)
        if show and leftovers:
            print("MISS", note.name, repr(note.text.partition("\n\n")[2][:160]))
    decoys = carriers.decoy_samples(part, seed)
    alarmed = [note for note in decoys if find(note.text)]
    for note in alarmed if show else ():
        print("ALARM", repr(note.carrier), [detection.kind for detection in find(note.text)])
    figures = {name: sum(oks) / len(oks) for name, oks in rows.items()}
    return figures | {"alarms": len(alarmed) / len(decoys), "halves left": halves}


def judge(seed: int) -> dict[str, float]:
    """Return the figures of the corpus that no detector is tuned on: never look at its samples."""
    figures: dict[str, float] = {}
    halves = 0
    for group, notes in (
        ("secrets", judged.secret_notes(seed)),
        ("personal", judged.personal_notes(seed)),
    ):
        rows: dict[str, list[bool]] = {}
        for note in notes:
            after = redact(note.text, find(note.text))
            remaining = [secret for secret in note.secrets if secret in after]
            halves += 0 < len(remaining) < len(note.secrets)
            for name in (group, f"  {note.name.rpartition('-')[0]}"):
                rows.setdefault(name, []).append(not remaining)
        figures |= {name: sum(oks) / len(oks) for name, oks in rows.items()}
    harmless = judged.harmless_notes(seed)
    figures["alarms"] = sum(bool(find(note.text)) for note in harmless) / len(harmless)
    return figures | {"halves left": halves}


BAITS = {
    "password=": "password=",
    "password is ": "password is ",
    "token: ": "token: ",
    "key ": "key ",
    "begin": "-----BEGIN ",
    "begin key": "-----BEGIN PRIVATE KEY-----\n",
    "base64": "aB3/x9Kq",
    "digits": "4539578763621486",
    "digit groups": "4539 ",
    "at": "@",
    "address": "a.b@",
    "mail": "a@b.",
    "scheme": "://",
    "userinfo": "a://b:c",
    "userinfo@": "a://b:c@",
    "jwt": "eyJ",
    "jwt dots": "eyJabcdefghij.",
    "prefixes": "ghp_",
    "sk-": "sk-",
    "eyJ.": "eyJa.",
    "plus": "+1 (",
    "phone": "415-555-",
    "spaces": " ",
    "newlines": "\n",
    "pipes": "|",
    "table": "|a|b|\n|---|---|\n",
    "quotes": "\"'",
    "secret quote": 'secret "',
    "passwort chain": "password password_",
    "cookie": "Cookie: a=b; ",
    "curl": "curl -u a:",
    "mysql": "mysql -u a ",
    "slashes": "/a/b/c",
    "dashes": "a-b_",
    "hex": "0123456789abcdef",
    "authorization": "Authorization: Bearer ",
    "putty": "PuTTY-User-Key-File-3: x\n",
    "marks": "[REDACTED:password]",
    "dots": "a.",
    "M.": "MABCDEFGHIJKLMNOPQRSTUVWX.",
    "is is": "password is now set to ",
    "call": "call me ",
    "backslash n": "\\n",
    "key_": "api_key_",
    "paren": "password (",
    "echo": "echo a | ",
    "call with names": "auth('a', 'b', ",
    "fold": "key: >-\n  ab\n  cd\n",
    "concatenated": '"ab" + "cd" + ',
    "numbers": "1234 5678\n",
    "element": "<key>password</key> <b> ",
    "leaders": "password . . . ",
    "entropy": "Zk3Qx9Lm2Vt7Rp5Wb8Nc4 ",
    "secrets": "password=Zk3!Qx9Lm\n",
    "unicode": "İé密码",
}


def hostile() -> None:
    """Print the CPU seconds for 50 and 100 KB of each detector's own bait, and their ratio."""
    print(f"\n{'bait':16} {'50 KB':>8} {'100 KB':>8} {'ratio':>6}")
    for name, bait in BAITS.items():
        half, whole = (cpu(bait * (size // len(bait))) for size in (CHARACTERS // 2, CHARACTERS))
        flag = "  <-" if whole > 1 or (whole > 0.1 and whole / half > 2.6) else ""
        print(f"{name:16} {half:8.3f} {whole:8.3f} {whole / max(half, 1e-4):6.2f}{flag}")


def cpu(text: str) -> float:
    start = time.process_time()
    find(text)
    return time.process_time() - start


def speed() -> None:
    """Print the CPU seconds for 1,000 notes of 1 KB."""
    notes = corpus.benign_notes("held", 1, 500) + corpus.secret_notes("held", 1, 500)
    texts = [(note.text * 3)[:1024] for note in notes]
    start = time.process_time()
    for text in texts:
        find(text)
    print(f"\n1,000 files of 1 KB: {time.process_time() - start:.2f} s CPU, first use included")


def real(patterns: list[str], *, show: bool) -> None:
    """Print how many real files are flagged."""
    paths = sorted({path for pattern in patterns for path in glob.glob(pattern, recursive=True)})
    flagged = persons = 0
    for path in paths:
        text = Path(path).read_text(encoding="utf-8", errors="replace")[:200_000]
        findings = find(text)
        flagged += any(not is_personal(f.kind) for f in findings)
        persons += any(is_personal(f.kind) for f in findings)
        for f in findings if show else ():
            if not is_personal(f.kind) or f.kind != "email":
                print(
                    path.split("/")[-1],
                    f.line,
                    f.kind,
                    repr(text[max(0, f.start - 40) : f.end + 15])[:150],
                )
    print(
        f"\n{len(paths)} real files: secrets in {flagged}"
        f" ({flagged / max(1, len(paths)):.2%}), personal in {persons}"
    )


def table(results: dict[str, dict[str, float]]) -> None:
    """Print figures by name, a column for each split; a dash where a split has none."""
    print(f"\n{'':24}" + "".join(f"{split:>10}" for split in results))
    names = {name for figures in results.values() for name in figures}
    for name in sorted(names, key=lambda name: (name[0] == " ", name)):
        cells = (figures.get(name) for figures in results.values())
        print(
            f"{name:24}" + "".join(f"{'-' if c is None else format(c, '.4f'):>10}" for c in cells)
        )


def main(args: list[str]) -> None:
    """Print every table."""
    show = "--show" in args
    seed = next((int(arg) for arg in args if arg.isdigit()), 1)
    splits = ["tuned"] if "--tuned" in args else ["tuned", "held", "fresh"]
    if "--files" in args:
        real(args[args.index("--files") + 1 :], show=show)
        return
    table({split: measure(split, seed, show=show) for split in splits})
    parts = carriers.PARTS[:1] if "--tuned" in args else carriers.PARTS
    table({part: by_carrier(part, seed, show=show) for part in parts})
    if "--tuned" not in args:
        table({"unseen": judge(seed)})
    speed()
    if "--tuned" not in args:
        hostile()


if __name__ == "__main__":
    main(sys.argv[1:])
