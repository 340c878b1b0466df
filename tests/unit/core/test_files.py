"""core.files: whole files, locks that die with their holder, safe names, trees that can be removed."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.core.errors import MADEngineError
from madengine.core.files import locked, remove_tree, safe_name, write_atomic


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


class TestWriteAtomic:
    def test_writes_text_as_utf8_and_bytes_as_they_are(self, tmp_path: Path) -> None:
        write_atomic(tmp_path / "text", "sü\n")
        write_atomic(str(tmp_path / "bytes"), b"\xff\r\n")
        assert (tmp_path / "text").read_bytes() == b"s\xc3\xbc\n"
        assert (tmp_path / "bytes").read_bytes() == b"\xff\r\n"

    def test_a_file_name_inside_the_text_that_is_not_utf8_survives(self, tmp_path: Path) -> None:
        write_atomic(tmp_path / "f", os.fsdecode(b"caf\xe9"))
        assert (tmp_path / "f").read_bytes() == b"caf\xe9"

    def test_leaves_nothing_but_the_file(self, tmp_path: Path) -> None:
        write_atomic(tmp_path / "f", "1")
        write_atomic(tmp_path / "f", "2")
        assert [path.name for path in tmp_path.iterdir()] == ["f"]
        assert (tmp_path / "f").read_text() == "2"

    def test_a_new_file_follows_the_umask(self, tmp_path: Path) -> None:
        before = os.umask(0o027)
        try:
            write_atomic(tmp_path / "f", "")
        finally:
            os.umask(before)
        assert permissions(tmp_path / "f") == 0o640

    def test_an_existing_file_keeps_its_permissions(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_text("old")
        path.chmod(0o604)
        write_atomic(path, "new")
        assert permissions(path) == 0o604

    def test_given_permissions_win(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        path.write_text("old")
        path.chmod(0o644)
        write_atomic(path, "new", mode=0o600)
        assert permissions(path) == 0o600

    def test_a_symbolic_link_stays_and_its_target_is_written(self, tmp_path: Path) -> None:
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to("real")
        write_atomic(tmp_path / "link", "new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == "new"

    def test_the_longest_possible_name_can_be_written(self, tmp_path: Path) -> None:
        write_atomic(tmp_path / ("x" * 255), "1")
        assert (tmp_path / ("x" * 255)).read_text() == "1"

    @pytest.mark.parametrize("call", ["fsync", "fchmod"])
    def test_a_full_disk_leaves_the_old_file_and_no_other(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        path = tmp_path / "f"
        path.write_text("old")

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, call, full)
        with pytest.raises(MADEngineError) as caught:
            write_atomic(path, "new")
        assert str(caught.value) == (
            f"{path}: cannot be written: No space left on device (the old content, if any, is untouched)"
        )
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("f", "old")]

    def test_a_real_write_error_leaves_the_old_file_and_no_other(self, tmp_path: Path) -> None:
        """The kernel refuses to let a file grow beyond 64 KiB, as a quota would."""
        (tmp_path / "f").write_text("old")
        program = (
            "import resource\n"
            "from madengine.core.files import write_atomic\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
            "write_atomic('f', b'x' * 1_000_000)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert "MADEngineError: f: cannot be written: File too large" in done.stderr
        assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("f", "old")]

    def test_an_interruption_leaves_no_temporary_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(_: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            write_atomic(tmp_path / "f", "new")
        assert list(tmp_path.iterdir()) == []

    def test_a_pipe_or_device_is_not_replaced(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(MADEngineError, match="no regular file"):
            write_atomic(tmp_path / "pipe", "new")
        assert (tmp_path / "pipe").is_fifo()

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("no/such/folder", "No such file or directory"), ("folder", "it is a folder"), ("file/x", "Not a directory")],
    )
    def test_where_no_file_can_be_the_error_says_where_and_why(self, tmp_path: Path, name: str, reason: str) -> None:
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        with pytest.raises(MADEngineError) as caught:
            write_atomic(tmp_path / name, "x")
        assert caught.value.message == f"cannot be written: {reason}"
        assert caught.value.where == str(tmp_path / name)

    def test_a_folder_that_cannot_be_synced_is_no_error(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.fsync

        def picky(descriptor: int) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not on this file system")
            real(descriptor)

        monkeypatch.setattr(os, "fsync", picky)
        write_atomic(tmp_path / "f", "x")
        assert (tmp_path / "f").read_text() == "x"

    @pytest.mark.parametrize(("durable", "synced"), [(True, ["file", "folder"]), (False, [])])
    def test_only_a_durable_write_waits_for_the_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durable: bool, synced: list[str]
    ) -> None:
        seen: list[str] = []

        def watch(descriptor: int) -> None:
            seen.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

        monkeypatch.setattr(os, "fsync", watch)
        write_atomic(tmp_path / "f", "new", durable=durable)
        assert (tmp_path / "f").read_text() == "new"
        assert seen == synced

    def test_readers_never_see_a_part(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        contents = {b"a" * 200_000, b"b" * 100_000}
        write_atomic(path, b"a" * 200_000)
        seen: set[bytes] = set()
        stop = threading.Event()

        def read() -> None:
            while not stop.is_set():
                seen.add(path.read_bytes())

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(30):
            for content in sorted(contents):
                write_atomic(path, content)
        stop.set()
        reader.join()
        assert seen <= contents


ADD_ONE = """
import sys
from pathlib import Path
from madengine.core.files import locked
counter = Path(sys.argv[1])
for _ in range(50):
    with locked(counter):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


class TestLocked:
    def test_many_processes_and_threads_lose_no_update(self, tmp_path: Path) -> None:
        counter = tmp_path / "counter"
        counter.write_text("0")

        def add_one() -> None:
            for _ in range(50):
                with locked(counter):
                    counter.write_text(str(int(counter.read_text()) + 1))

        threads = [threading.Thread(target=add_one) for _ in range(4)]
        workers = [subprocess.Popen([sys.executable, "-c", ADD_ONE, str(counter)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [worker.wait() for worker in workers] == [0, 0, 0, 0]
        assert counter.read_text() == "400"

    def test_a_killed_holder_does_not_keep_it(self, tmp_path: Path) -> None:
        path = tmp_path / "f"
        program = (
            "import sys, time\nfrom madengine.core.files import locked\n"
            "with locked(sys.argv[1]):\n    print('held', flush=True)\n    time.sleep(60)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            holder.send_signal(signal.SIGKILL)
            with locked(path):
                assert holder.wait() == -signal.SIGKILL

    def test_is_held_while_inside_and_free_after_an_exception(self, tmp_path: Path) -> None:
        import fcntl

        path = tmp_path / "f"

        def free() -> bool:
            with (tmp_path / ".f.lock").open() as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

        with pytest.raises(RuntimeError), locked(path):
            assert not free()
            raise RuntimeError
        assert free()

    def test_makes_no_file_of_the_name_itself_and_works_for_files_that_are_not_there(self, tmp_path: Path) -> None:
        with locked(tmp_path / "f"):
            assert [path.name for path in tmp_path.iterdir()] == [".f.lock"]

    def test_two_ways_to_the_same_file_are_one_lock(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("f")
        (tmp_path / "f").touch()
        with locked(tmp_path / "link"):
            pass
        assert (tmp_path / ".f.lock").exists()

    def test_where_no_lock_file_can_be_the_error_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(MADEngineError, match="the lock file cannot be opened: No such file or directory"):  # noqa: SIM117
            with locked(tmp_path / "gone" / "f"):
                pytest.fail("there was no lock")

    def test_a_file_system_without_locks_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import fcntl

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(fcntl, "flock", refuse)
        with pytest.raises(MADEngineError, match="gives no lock: No locks available"), locked(tmp_path / "f"):
            pytest.fail("there was no lock")

    def test_a_lock_file_that_may_only_be_read_is_enough(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / ".f.lock").touch()
        real = os.open

        def read_only(path: Path, flags: int, mode: int = 0o777) -> int:
            if flags & os.O_RDWR:
                raise PermissionError(errno.EACCES, "Permission denied")
            return real(path, flags, mode)

        monkeypatch.setattr(os, "open", read_only)
        with locked(tmp_path / "f"):
            pass


SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class TestSafeName:
    @pytest.mark.parametrize("name", ["a", "pyt_vllm_llama-3.1-8b", "A.B-c_9", "_x", "a.", "x" * 100, "v1.2-0123abcd"])
    def test_what_is_safe_already_stays(self, name: str) -> None:
        assert safe_name(name) == name

    @pytest.mark.parametrize(
        ("text", "start"),
        [
            ("dir/name", "dir_name"),
            ("a b", "a_b"),
            ("../../etc", "____etc"),
            ("..", "_"),
            (".", "x"),
            ("", "x"),
            ("-rf", "rf"),
            (".hidden", "hidden"),
            ("a..b", "a_b"),
            ("jax-maxtext/MI355X", "jax-maxtext_MI355X"),
            ("日本", "_"),
            ("a\n", "a_"),
            ("x" * 101, "x" * 89),
            ("a-0123456789", "a-0123456789"),
        ],
    )
    def test_what_is_not_is_made_readable_and_gets_a_digest(self, text: str, start: str) -> None:
        assert re.fullmatch(re.escape(start) + "-[0-9a-f]{10}", safe_name(text))

    def test_the_digest_is_of_the_whole_text_and_never_changes(self) -> None:
        assert safe_name("a b") == "a_b-c8687a08aa"

    def test_hostile_strings_are_safe_short_and_different(self) -> None:
        names = [safe_name(text) for text in HOSTILE]
        assert len(set(names)) == len(HOSTILE)
        assert all(SAFE.fullmatch(name) and len(name) <= 100 and ".." not in name for name in names)

    def test_a_text_that_looks_like_the_name_of_another_gets_another_name(self) -> None:
        assert safe_name(safe_name("a b")) != safe_name("a b")

    @given(st.text(), st.integers(12, 120))
    def test_any_text_gives_a_safe_name_within_the_limit(self, text: str, limit: int) -> None:
        name = safe_name(text, limit)
        assert SAFE.fullmatch(name)
        assert len(name) <= limit
        assert ".." not in name

    @given(st.text("a./- ", max_size=6), st.text("a./- ", max_size=6))
    def test_different_texts_give_different_names(self, one: str, other: str) -> None:
        assert (safe_name(one) == safe_name(other)) == (one == other)

    def test_half_a_character_is_no_trouble(self) -> None:
        assert safe_name("\ud800").startswith("_-")


class TestRemoveTree:
    def test_a_tree_goes_with_all_that_is_in_it(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "b" / "f").touch()
        (root / "g").touch()
        (root / "fifo").parent.mkdir(exist_ok=True)
        os.mkfifo(root / "fifo")
        assert remove_tree(root) == []
        assert list(tmp_path.iterdir()) == []

    def test_what_is_not_there_is_fine(self, tmp_path: Path) -> None:
        assert remove_tree(tmp_path / "gone") == []

    def test_a_file_is_removed(self, tmp_path: Path) -> None:
        (tmp_path / "f").touch()
        assert remove_tree(str(tmp_path / "f")) == []
        assert not (tmp_path / "f").exists()

    def test_links_are_removed_and_never_followed(self, tmp_path: Path) -> None:
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "f").touch()
        root = tmp_path / "root"
        root.mkdir()
        (root / "link").symlink_to("../kept")
        (root / "dangling").symlink_to("nowhere")
        (tmp_path / "rootlink").symlink_to("kept")
        assert remove_tree(root) == remove_tree(tmp_path / "rootlink") == []
        assert not root.exists()
        assert (tmp_path / "kept" / "f").exists()

    def test_folders_without_permissions_are_removed_when_they_are_ours(self, tmp_path: Path) -> None:
        (tmp_path / "root" / "a").mkdir(parents=True)
        (tmp_path / "root" / "a" / "f").touch()
        (tmp_path / "root" / "a").chmod(0)
        assert remove_tree(tmp_path / "root") == []
        assert not (tmp_path / "root").exists()

    def test_a_tree_deeper_than_the_interpreter_recurses(self, tmp_path: Path) -> None:
        deep = tmp_path / "root"
        deep.mkdir()
        for _ in range(1100):
            deep = deep / "d"
            deep.mkdir()
        assert remove_tree(tmp_path / "root") == []
        assert not (tmp_path / "root").exists()

    def test_what_cannot_be_removed_is_returned_and_the_rest_is_gone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        root = tmp_path / "root"
        (root / "a").mkdir(parents=True)
        (root / "b").mkdir()
        for name in ("a/owned", "a/f", "b/f"):
            (root / name).touch()
        real = Path.unlink

        def refuse(path: Path, missing_ok: bool = False) -> None:
            if path.name == "owned":
                raise PermissionError(errno.EACCES, "Permission denied")
            real(path, missing_ok)

        monkeypatch.setattr(Path, "unlink", refuse)
        assert remove_tree(root) == [root / "a" / "owned"]
        assert sorted(path.relative_to(root).as_posix() for path in root.rglob("*")) == ["a", "a/owned"]

    def test_an_empty_folder_that_cannot_be_removed_is_returned(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "root" / "a").mkdir(parents=True)

        def busy(*_: object, **__: object) -> None:
            raise OSError(errno.EBUSY, "Device or resource busy")

        monkeypatch.setattr(Path, "rmdir", busy)
        assert remove_tree(tmp_path / "root") == [tmp_path / "root" / "a"]

    def test_another_file_system_below_is_left_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from madengine.core import files

        mounted = tmp_path / "root" / "mounted"
        mounted.mkdir(parents=True)
        (mounted / "f").touch()
        real = files._device
        monkeypatch.setattr(files, "_device", lambda path: -1 if path == mounted else real(path))
        assert remove_tree(tmp_path / "root") == [mounted]
        assert (mounted / "f").exists()
