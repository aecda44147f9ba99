"""Files with keys that several processes create at once."""

import multiprocessing
import os
from multiprocessing.synchronize import Barrier
from pathlib import Path

from engine.store.encryption import KEY_BYTES
from engine.store.key_files import read_or_create


def _create(path: Path, both: Barrier, read: "multiprocessing.Queue[bytes]") -> None:
    def create() -> bytes:
        both.wait(30)  # both processes have seen that there is no file
        return os.urandom(KEY_BYTES)

    read.put(read_or_create(path, create, name="the key", place="[test]"))


def test_two_processes_that_create_a_key_file_at_once_get_one_key(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path, both, read = tmp_path / "keys" / "key", context.Barrier(2), context.Queue()
    processes = [context.Process(target=_create, args=(path, both, read)) for _ in range(2)]
    for process in processes:
        process.start()
    try:
        keys = [read.get(timeout=60) for _ in processes]
    finally:
        for process in processes:
            process.join(60)
    assert keys[0] == keys[1] == path.read_bytes()
    assert len(keys[0]) == KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
