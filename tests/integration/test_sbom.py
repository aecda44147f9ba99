"""`make sbom` writes the same bill of materials each time."""

import json
import subprocess
import sys
from pathlib import Path

from tools.sbom import document

ROOT = Path(__file__).parents[2]


def test_the_bill_of_materials_is_reproducible(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        command = [sys.executable, "-m", "tools.sbom", str(tmp_path / name)]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, timeout=60)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text()) == document()
