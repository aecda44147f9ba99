"""tools/progress: long steps of make say that they continue."""

import os
import subprocess
from pathlib import Path

TOOL = Path(__file__).parents[2] / "tools" / "progress"


def test_a_step_prints_progress_and_ends_with_the_code_of_its_command(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = [
        str(TOOL),
        "installing a thing",
        "sh",
        "-c",
        f"read line < {gate}; echo $line; exit 3",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PROGRESS_SECONDS": "0.05"},
    ) as step:  # fmt: skip
        assert step.stdout is not None
        assert step.stdout.readline() == "make: installing a thing\n"
        for _ in range(2):
            assert step.stdout.readline().startswith("make: installing a thing: ")
        gate.write_text("done\n")
        rest, errors = step.communicate(timeout=60)
    assert step.returncode == 3
    assert "done" in rest.splitlines() and errors == ""
