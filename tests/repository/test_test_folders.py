"""`make test` collects every folder of tests, except those that need a test bed."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Folders with targets of their own in the Makefile.
SEPARATE = {
    "tests/ansible", "tests/failover", "tests/measurement", "tests/model", "tests/openstack",
    "tests/property", "tests/upgrade",
}  # fmt: skip


def test_every_folder_of_tests_is_collected() -> None:
    pytest_settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    folders = {
        f"tests/{file.relative_to(ROOT / 'tests').parts[0]}"
        for file in (ROOT / "tests").rglob("test_*.py")
    }
    assert set(pytest_settings["ini_options"]["testpaths"]) == folders - SEPARATE
