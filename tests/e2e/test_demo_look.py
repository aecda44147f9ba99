"""The demo that stays: a shop in the dashboard, until somebody presses Ctrl-C."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

PATIENCE = 60.0


def test_the_shop_stays_until_ctrl_c(data_directory: Path) -> None:
    command = [sys.executable, "-m", "hub.cli.main", "demo", "--look"]
    place = os.environ | {"TMPDIR": str(data_directory.parent), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=place, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        said = ""
        while "Ctrl-C" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        url = said.partition("The stack:")[2].split()[0]
        asked = urllib.request.Request(url, headers={"Accept": "text/html"})
        with urllib.request.urlopen(asked, timeout=PATIENCE) as page:
            assert b"<title>Headgate</title>" in page.read()
        # As a terminal does: to the demo, and to the server that it began.
        os.killpg(demo.pid, signal.SIGINT)
        rest, _ = demo.communicate(timeout=PATIENCE)
    assert (demo.returncode, list(data_directory.parent.iterdir())) == (0, []), said + rest
