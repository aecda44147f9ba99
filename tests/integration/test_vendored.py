"""The dashboard's vendored libraries are those of its lock file."""

import shutil
import subprocess
import sys
from pathlib import Path

DASHBOARD = Path(__file__).parents[2] / "hub" / "dashboard"


def test_vendored_files_are_those_of_the_lock_file(tmp_path: Path) -> None:
    node = shutil.which("node", path=str(Path(sys.executable).parent))
    assert node, "run `make setup`: the tests need the node that it brings"
    build = DASHBOARD / "vendoring" / "build.js"
    subprocess.run([node, str(build), str(tmp_path)], check=True, timeout=60)
    kept = DASHBOARD / "page" / "vendor"
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert files == {path.name: path.read_bytes() for path in kept.iterdir()}
    assert {"preact.js", "codemirror.js", "LICENSES.txt"} <= files.keys()


def test_the_lock_file_names_no_host() -> None:
    assert '"resolved"' not in (DASHBOARD / "package-lock.json").read_text()
