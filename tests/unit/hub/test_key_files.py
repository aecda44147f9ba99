"""Files with keys that several processes create at once."""

from collections.abc import Callable
from pathlib import Path

from engine.store.encryption.secret_values import KEY_BYTES
from hub.keys.key_files import read_or_create

FIRST, SECOND = b"1" * KEY_BYTES, b"2" * KEY_BYTES


def test_the_key_file_that_is_created_first_stays(tmp_path: Path) -> None:
    """The first file appears after the second process has found none."""
    path = tmp_path / "keys" / "key"
    keys = []

    def read(create_key: Callable[[], bytes]) -> bytes:
        return read_or_create(path, create_key, name="the key", place="[test]")

    def create_second() -> bytes:
        keys.append(read(lambda: FIRST))
        return SECOND

    keys.append(read(create_second))
    assert keys == [FIRST, FIRST]
    assert path.read_bytes() == FIRST
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
