"""The demo shop in the dashboard, which runs until Ctrl-C."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

PATIENCE = 60.0


def test_the_demo_shop_runs_until_ctrl_c(data_directory: Path) -> None:
    command = [sys.executable, "-m", "hub.cli.main", "demo", "--look"]
    place = os.environ | {"TMPDIR": str(data_directory.parent), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=place, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        output = ""
        while "Ctrl-C" not in output:
            line = demo.stdout.readline()
            assert line, output
            output += line
        url = output.partition("The stack:")[2].split()[0]
        request = urllib.request.Request(url, headers={"Accept": "text/html"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as page:
            assert b"<title>Headgate</title>" in page.read()
        # As a terminal does: to the demo and to its server.
        os.killpg(demo.pid, signal.SIGINT)
        rest, _ = demo.communicate(timeout=PATIENCE)
    assert (demo.returncode, list(data_directory.parent.iterdir())) == (0, []), output + rest
