"""Writes: whole or not at all, never over another's, never outside, whatever happens to them."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from store.small_disk import ALONE, needs_small_disk

from memtool.errors import MemtoolError
from memtool.sessions.journal import explain_errors
from memtool.store import files
from memtool.store.files import NameTakenError, read_regular

if TYPE_CHECKING:  # the processes that import this module know no conftest
    from conftest import Sandbox

PROCESSES = 16
TESTS = Path(__file__).parents[1]


def content(seed: str) -> bytes:
    """Bytes that carry their own checksum, so that half of them is noticed."""
    body = (seed * 700).encode()
    return hashlib.sha256(body).hexdigest().encode() + body


def is_whole(data: bytes) -> bool:
    return hashlib.sha256(data[64:]).hexdigest().encode() == data[:64]


def names(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def _race(root: str, number: int) -> list[str]:
    won = []
    for file in range(25):
        path = f".memory/a/b/f{file:02}.md"
        try:
            files.create(root, path, content(f"{number}-{file}"))
            won.append(path)
        except NameTakenError:
            pass
        own = f".memory/own-{number}/f{file:02}.md"
        files.create(root, own, content(f"{number}-{file}"))
        won.append(own)
    return won


def test_sixteen_writers_of_the_same_names_lose_nothing(tmp_path: Path) -> None:
    """Each name has one winner, complete, and no temporary file is left."""
    with get_context("fork").Pool(PROCESSES) as pool:
        won = pool.starmap(_race, [(str(tmp_path), number) for number in range(PROCESSES)])
    flat = [path for paths in won for path in paths]
    assert len(flat) == len(set(flat)) == 25 + PROCESSES * 25
    assert names(tmp_path) == sorted(flat)
    for number, paths in enumerate(won):
        for path in paths:
            seed = f"{number}-{int(path[-5:-3])}"
            assert (tmp_path / path).read_bytes() == content(seed)


def _count_up(root: str, times: int) -> None:
    for _ in range(times):
        while True:
            before = (Path(root) / "n").read_bytes()
            with files.locked(root, "lock"):
                try:
                    files.replace(root, "n", b"%d" % (int(before) + 1), expected=before)
                    break
                except MemtoolError as error:
                    assert error.code == "changed"  # noqa: PT017  # told apart from other refusals


def test_changes_are_never_lost_to_another_writer(tmp_path: Path) -> None:
    """Eight processes that add one at a time reach the sum: a stale expectation is refused."""
    (tmp_path / "n").write_bytes(b"0")
    with get_context("fork").Pool(8) as pool:
        pool.starmap(_count_up, [(str(tmp_path), 20)] * 8)
    assert (tmp_path / "n").read_bytes() == b"160"
    assert names(tmp_path) == ["lock", "n"]


def test_create_never_replaces(tmp_path: Path) -> None:
    """A file, a link or a directory of that name stays what it was."""
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    for name in ("file", "link", "folder"):
        with pytest.raises(NameTakenError):
            files.create(str(tmp_path), name, b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link"]


def test_replace_refuses_a_file_that_changed(tmp_path: Path) -> None:
    """Other bytes than expected, or none, or some where none were expected, are kept."""
    (tmp_path / "a").write_bytes(b"theirs")
    for name, expected in (("a", b"old"), ("a", None), ("b", b"old")):
        with pytest.raises(MemtoolError, match="was changed in the meantime"):
            files.replace(str(tmp_path), name, b"new", expected=expected)
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]
    files.replace(str(tmp_path), "a", b"new", expected=b"theirs")
    files.replace(str(tmp_path), "b/c", b"new", expected=None)
    assert names(tmp_path) == ["a", "b/c"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_replace_keeps_permissions(tmp_path: Path, mode: int) -> None:
    """A private file stays private."""
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(mode)
    files.replace(str(tmp_path), "a", b"new", expected=b"old")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == mode


WRITER = """
import sys
from pathlib import Path
from memtool.store import files
sys.path.insert(0, sys.argv[2])
from store.test_files import content
root = sys.argv[1]
number = int(sys.argv[3])
before = (Path(root) / "changed").read_bytes()
print("ready", flush=True)
while True:
    number += 1
    files.create(root, f"made/{number}", content(str(number)))
    after = content(f"{number}!")
    files.replace(root, "changed", after, expected=before)
    before = after
    print(number, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    """Whenever a writer is killed, each file is whole, and what it reported done is there."""
    rng = random.Random(11)
    root = tmp_path / "root"
    root.mkdir()
    (root / "made").mkdir()
    (root / "changed").write_bytes(content("0!"))
    number = acknowledged = 0
    for _kill in range(24):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), str(TESTS), str(number)],
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
            numbers = writer.stdout.read().split()
        acknowledged = int(numbers[-1]) if numbers else acknowledged
        made = {int(name) for name in os.listdir(root / "made") if name.isdigit()}
        number = max(made, default=0)
        assert made == set(range(1, number + 1))
        for name in names(root):
            assert is_whole((root / name).read_bytes()) or files.TEMP_PREFIX in name
        reached = int((root / "changed").read_bytes()[64:].partition(b"!")[0])
        assert acknowledged <= reached <= number
    assert number


LIMITED = """
import resource, signal, sys
from memtool.errors import MemtoolError
from memtool.store import files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
for call in (
    lambda: files.create(sys.argv[1], "a/new", b"n" * 200_000),
    lambda: files.replace(sys.argv[1], "old", b"n" * 200_000, expected=b"old"),
):
    try:
        call()
    except MemtoolError as error:
        print(error.code, error.message)
"""


def test_a_write_that_is_cut_short_changes_nothing(tmp_path: Path) -> None:
    """Where the system takes only a part, the old file stays and no part of the new is left."""
    (tmp_path / "old").write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "disk cannot write a/new: File too large; nothing was changed",
        "disk cannot write old: File too large; nothing was changed",
    ]
    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_bytes() == b"old"


TMPFS = """
set -e
mount -t tmpfs -o size=64k tmpfs "$1"
printf old > "$1/old"
"$2" -B -c "$3" "$1"
mount -o remount,bind,ro "$1"
"$2" -B -c "$3" "$1"
ls -A "$1" "$1/a"
cat "$1/old"
"""
ON_TMPFS = LIMITED.replace("(10_000, 10_000)", "(-1, -1)")


@needs_small_disk
def test_a_full_or_read_only_disk_changes_nothing(tmp_path: Path) -> None:
    """On a disk without space, and on one that is read-only, the refusal says so."""
    done = subprocess.run(
        [*ALONE, "sh", "-c", TMPFS, "sh", str(tmp_path), sys.executable, ON_TMPFS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "disk cannot write a/new: No space left on device; nothing was changed",
        "disk cannot write old: No space left on device; nothing was changed",
        "disk cannot write a/new: Read-only file system; nothing was changed",
        "disk cannot write old: Read-only file system; nothing was changed",
        f"{tmp_path}:",
        "a",
        "old",
        "",
        f"{tmp_path}/a:",
        "old",
    ], done.stderr


def test_no_link_leads_a_write_outside(tmp_path: Path) -> None:
    """A link in the place of any directory, or of the file, is refused, and nothing is written."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    (root / "link").symlink_to(outside)
    (root / "real" / "link").symlink_to("../../outside")
    (root / "real" / "file").symlink_to("../../outside/file")
    for path in ("link/new", "link/deep/new", "real/link/new"):
        for write in (files.create, lambda *args: files.replace(*args, expected=None)):
            with pytest.raises(MemtoolError) as caught:
                write(str(root), path, b"new")
            assert caught.value.code == "symlink"
    with pytest.raises(MemtoolError):
        files.replace(str(root), "real/file", b"new", expected=b"theirs")
    assert names(outside) == ["file"]
    assert (outside / "file").read_bytes() == b"theirs"


@pytest.mark.parametrize(
    "path",
    ["../new", "a/../../new", "a/./new", "/new", "a//new", "", ".git/hooks/pre-commit", ".."],
)
def test_paths_stay_below_the_root(tmp_path: Path, path: str) -> None:
    """A path that is absolute, climbs, or leads into the git directory is refused."""
    root = tmp_path / "root"
    root.mkdir()
    with pytest.raises(MemtoolError) as caught:
        files.create(str(root), path, b"new")
    assert caught.value.code == "outside"
    assert names(tmp_path) == []


def test_a_file_in_the_place_of_a_directory_is_told(tmp_path: Path) -> None:
    """The obstacle is named in one sentence."""
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(MemtoolError, match="a link or another file is in the way"):
        files.create(str(tmp_path), "a/b", b"new")


def test_a_pipe_does_not_block_a_change(tmp_path: Path) -> None:
    """A FIFO in the place of a file is refused without waiting for a writer."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MemtoolError, match="is in the way"):
        files.replace(str(tmp_path), "pipe", b"new", expected=b"old")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_file_system_without_links_still_creates_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where hard links are refused the name is created exclusively."""

    def no_links(*_args: object, **_options: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    files.create(str(tmp_path), "a/b", b"one")
    with pytest.raises(NameTakenError):
        files.create(str(tmp_path), "a/b", b"two")
    assert (tmp_path / "a" / "b").read_bytes() == b"one"
    assert names(tmp_path) == ["a/b"]


def failing(
    patch: pytest.MonkeyPatch, name: str, is_meant: Callable[[object], bool], code: int = errno.EIO
) -> None:
    """Let a function of `os` fail for the calls that are meant."""
    real = getattr(os, name)

    def fails(*args: object, **options: object) -> object:
        if is_meant(args[0]):
            raise OSError(code, os.strerror(code))
        return real(*args, **options)

    patch.setattr(os, name, fails)


def is_folder(handle: object) -> bool:
    return isinstance(handle, int) and stat.S_ISDIR(os.fstat(handle).st_mode)


def test_a_folder_that_cannot_be_synced_leaves_no_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was changed is true then: the new file, or all of several, are taken back."""
    failing(monkeypatch, "fsync", is_folder)
    with pytest.raises(MemtoolError, match="cannot write a: Input/output error; nothing was"):
        files.create(str(tmp_path), "a", b"new")
    with pytest.raises(MemtoolError, match="nothing was changed"):
        files.create_all(str(tmp_path), [("b", b"new"), ("c", b"new")])
    assert names(tmp_path) == []


def test_an_interrupted_user_finds_no_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of the time goes into the sync of the folder, so that is where Ctrl-C comes."""

    def interrupted(handle: int) -> None:
        if is_folder(handle) and (tmp_path / "b").exists():
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.create_all(str(tmp_path), [("a", b"new"), ("b", b"new"), ("c", b"new")])
    assert names(tmp_path) == []


def test_of_several_those_that_stay_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a new file cannot be taken back, the message does not say that nothing was changed."""
    failing(monkeypatch, "unlink", lambda name: name == "a")
    failing(monkeypatch, "write", lambda _handle: (tmp_path / "a").exists(), errno.ENOSPC)
    with pytest.raises(MemtoolError, match=r"No space left on device; written before that: a$"):
        files.create_all(str(tmp_path), [("a", b"new"), ("c", b"new")])


def test_what_is_written_and_cannot_be_taken_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rename, or if the new file cannot be removed, the message names the file."""
    (tmp_path / "old").write_bytes(b"old")
    failing(monkeypatch, "fsync", is_folder)
    failing(monkeypatch, "unlink", lambda name: name == "new")
    for call in (
        lambda: files.replace(str(tmp_path), "old", b"new", expected=b"old"),
        lambda: files.create(str(tmp_path), "new", b"new"),
    ):
        with pytest.raises(MemtoolError, match="was written, but the disk did not confirm it"):
            call()
    assert names(tmp_path) == ["new", "old"]
    assert (tmp_path / "old").read_bytes() == b"new"


def test_a_leftover_that_cannot_be_removed_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is written; the leftover is swept on another day."""
    failing(monkeypatch, "unlink", lambda name: str(name).startswith(files.TEMP_PREFIX))
    files.create(str(tmp_path), "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_whoever_writes_sweeps_what_killed_writers_left(tmp_path: Path) -> None:
    """In any directory, by create and by replace; never a file of the user with such a name."""
    ours, theirs = ".tmp-12-0123abcd-AGENTS.md", (".tmp-notes", ".tmp-12-0123abcd", ".tmp-1-xyz-a")
    for number, write in enumerate((files.create, partial(files.replace, expected=None))):
        for name in (ours, *theirs):
            (tmp_path / name).write_bytes(b"")
            os.utime(tmp_path / name, (0, 0))
        (tmp_path / ".tmp-12-0123abcd-fresh").write_bytes(b"")
        write(str(tmp_path), str(number), b"new")
        assert not (tmp_path / ours).exists()
    assert names(tmp_path) == sorted((*theirs, ".tmp-12-0123abcd-fresh", "0", "1"))


def full_after(patch: pytest.MonkeyPatch, path: str) -> None:
    """Let the disk be full when a file is replaced that is called so."""
    real = files.replace

    def replace(root: str, name: str, data: bytes, **options: Any) -> None:
        if name.endswith(path):
            raise MemtoolError(f"{name} cannot be written: full; nothing was changed", code="disk")
        real(root, name, data, **options)

    patch.setattr(files, "replace", replace)


def test_a_verb_that_writes_several_files_names_those_before(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No message says that nothing was changed where something was."""
    with monkeypatch.context() as patch:
        full_after(patch, "_semantic.md")
        done = sandbox.run("init")
    assert "full; written before that: .memory/config.toml" in done.stderr
    for name in ("dec-a", "dec-b"):
        sandbox.memory(name, f"Mail to {name}@acme-corp.com.\n")
    with monkeypatch.context() as patch:
        full_after(patch, "dec-b.md")
        done = sandbox.run("redact")
    assert "full; written before that: .memory/decision/2026-02/dec-a.md\n" in done.stderr
    sandbox.run("redact")
    with monkeypatch.context() as patch:
        full_after(patch, "dec-b.md")
        done = sandbox.run("resolve", "dec-a", "dec-b", "--keep", "both", "--reason", "so it is")
    assert "full; nothing was changed\n" in done.stderr
    assert "conflicts_accepted" not in sandbox.run("show", "dec-a").stdout


def test_a_removal_that_is_refused_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is still there; one that is gone already is not an error."""
    files.remove(str(tmp_path), "gone/file")
    (tmp_path / "a").write_bytes(b"")
    failing(monkeypatch, "unlink", lambda name: name == "a")
    with pytest.raises(MemtoolError, match="a cannot be removed: Input/output error"):
        files.remove(str(tmp_path), "a")


def test_no_lock_is_needed_where_none_can_be_made(tmp_path: Path) -> None:
    """Where the lock's directory cannot exist the work goes on, and its errors come out."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(KeyError), files.locked(str(tmp_path / "file" / "x"), "lock"):
        raise KeyError


def test_descriptors_are_given_back(tmp_path: Path) -> None:
    """Neither success nor refusal leaves a file open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(os.listdir("/proc/self/fd"))
    (tmp_path / "folder").mkdir()
    for number in range(50):
        files.create(str(tmp_path), f"a/{number}", b"x")
        with pytest.raises(NameTakenError):
            files.create(str(tmp_path), f"a/{number}", b"x")
        with pytest.raises(MemtoolError):
            files.replace(str(tmp_path), "folder", b"x", expected=b"y")
    assert len(os.listdir("/proc/self/fd")) <= before  # fewer where garbage of other tests goes
    assert (soft, hard) == resource.getrlimit(resource.RLIMIT_NOFILE)


@pytest.mark.parametrize("size", [0, 1, 4096, 70_000])
@pytest.mark.parametrize("limit", [-1, 0, 1, 4096, 70_000, 70_001])
def test_a_file_is_read_to_its_end_or_to_what_is_asked(
    tmp_path: Path, size: int, limit: int
) -> None:
    """No byte is lost, and none is read past the most."""
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    assert read_regular(str(tmp_path / "file"), limit) == (data if limit < 0 else data[:limit])


def test_a_file_without_a_size_is_read() -> None:
    """A generated file that reports size 0 is read to its end, too."""
    place = Path("/proc/self/mounts")
    if not place.exists():
        pytest.skip("no such file here")
    assert read_regular(str(place)) == place.read_bytes()


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """A pipe is refused at once, not waited for."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is no plain file") as caught:
        read_regular(str(tmp_path / "pipe"))
    assert caught.value.errno == errno.ELOOP


def test_many_files_sweep_each_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is listed as often as it is new, not as often as a file comes into it."""
    listed: list[object] = []
    real = os.listdir
    monkeypatch.setattr(files.os, "listdir", lambda place: listed.append(place) or real(place))
    files.create_all(str(tmp_path), ((f"{'ab'[n % 2]}/{n}.md", b"x") for n in range(40)))
    assert len(listed) == 2


def test_git_passes_over_temporary_files(sandbox: Sandbox) -> None:
    """Leftovers of a killed writer are ignored by git, and no other file is."""
    sandbox.run("remember", "Queues are drained at night.")
    leftover = ".memory/decision/.tmp-4000000-0123abcd-dec-a.md"
    sandbox.write(leftover, "half")
    sandbox.write(".memory/.tmp-notes", "mine")
    shown = sandbox.git("status", "--porcelain", "-uall")
    assert leftover not in shown
    assert ".memory/.tmp-notes" in shown
    exclude = (sandbox.path / ".git/info/exclude").read_text()
    sandbox.run("remember", "Queues are filled at noon.")
    assert (sandbox.path / ".git/info/exclude").read_text() == exclude


def test_what_a_dead_process_left_is_swept_after_a_minute(tmp_path: Path) -> None:
    """That of a process that runs stays for a day: it may be slow."""
    dead, alive = (f".tmp-{process}-0123abcd-a.md" for process in (4_000_000, os.getpid()))
    for name in (dead, alive):
        (tmp_path / name).write_text("half")
        os.utime(tmp_path / name, (time.time() - 100,) * 2)
    files.create(str(tmp_path), "new.md", b"x")
    assert sorted(os.listdir(tmp_path)) == [alive, "new.md"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_is_named_with_the_command_that_gives_it_back(tmp_path: Path):
    """The highest one inside of what is ours; nothing where all is ours, or nothing is."""
    own = tmp_path / "our clone"
    sessions = own / "memtool" / "sessions"
    sessions.mkdir(parents=True)
    assert files.build_chown_command(str(sessions)) == ""
    for folder in (sessions.parent, sessions):
        os.chown(folder, 65_534, 65_534)
    expected = f"sudo chown -R \"$(id -u):$(id -g)\" '{sessions.parent}'"
    assert files.build_chown_command(str(sessions / "absent")) == expected
    assert files.build_chown_command(str(sessions.parent)) == expected
    assert files.build_chown_command(str(own)) == ""
    with pytest.raises(MemtoolError) as caught, explain_errors(str(sessions / "head"), "written"):
        raise PermissionError(errno.EACCES, "denied")
    assert caught.value.hint == expected
