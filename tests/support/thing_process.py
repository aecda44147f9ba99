"""The service of tests/support/http_things.py as a process of its own, which tests kill and stop.

Its objects are in a file, so they survive the process, and a test changes them behind Headgate's
back. Run as a module, this file is the service: `thing_process PORT FILE`.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.error import URLError
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from tests.support.ports import free_port

Json = Any
#: Objects in a page of the list.
PAGE = 3
#: Seconds until the process listens.
PATIENCE = 30.0
#: objects: by ID. requests: their number by method. fault: [status, Retry-After] of each GET, or
#: null. between_pages: objects to delete before the second page of a list.
EMPTY: Json = {"objects": {}, "requests": {}, "fault": None, "between_pages": [], "number": 0}


@contextmanager
def locked_state(path: Path) -> Iterator[Json]:
    """The state, which is stored at the end; no other process reads or changes it meanwhile."""
    with path.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state = json.load(file)
        yield state
        file.seek(0)
        json.dump(state, file)
        file.truncate()
        file.flush()


class ThingHandler(BaseHTTPRequestHandler):
    path_of_state: ClassVar[Path]
    protocol_version = "HTTP/1.1"

    def _respond(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        url = urlsplit(self.path)
        with locked_state(self.path_of_state) as state:
            requests = state["requests"]
            requests[self.command] = requests.get(self.command, 0) + 1
            if self.command == "GET" and state["fault"]:
                status, retry_after = state["fault"]
                return self._send(status, {}, {"Retry-After": retry_after})
            start = int(parse_qs(url.query).get("start", ["0"])[0])
            which = url.path.removeprefix("/things").removeprefix("/")
            status, document = _answer(state, self.command, which, start, body)
        return self._send(status, document, {})

    def _send(self, status: int, document: Json, headers: dict[str, str]) -> None:
        sent = b"" if status == 204 else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client waits no longer
            self.wfile.write(sent)

    do_GET = do_POST = do_PUT = do_DELETE = _respond

    def log_message(self, *_: object) -> None:
        """The requests are counted in the state."""


def _answer(state: Json, method: str, which: str, start: int, body: Json) -> tuple[int, Json]:
    objects = state["objects"]
    if method == "POST":
        state["number"] += 1
        created = {"id": f"t{state['number']}", "state": "ready", **body}
        objects[created["id"]] = created
        return 200, created
    if not which:
        if start:
            for one in state["between_pages"]:
                objects.pop(one, None)
        listed = list(objects.values())
        following = f"/things?start={start + PAGE}" if start + PAGE < len(listed) else None
        return 200, {"things": listed[start : start + PAGE], "next": following}
    if which not in objects:
        return 404, {}
    if method == "DELETE":
        del objects[which]
        return 204, {}
    if method == "PUT":
        objects[which].update(body)
    return 200, objects[which]


class ThingProcess:
    """The service on one port, which it keeps when it starts again."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "things.json"
        self._path.write_text(json.dumps(EMPTY))
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", __name__, str(self._port), str(self._path)]
        self._process = subprocess.Popen(command)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                with urlopen(f"{self.url}/things/none", timeout=1):
                    return
            except URLError as error:
                if getattr(error, "code", None) is not None:
                    return
                assert time.monotonic() < end and self._process.poll() is None
                time.sleep(0.02)

    def kill(self) -> None:
        """Nothing listens on its port then."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def suspend(self) -> None:
        """It still accepts connections, and answers nothing."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    @contextmanager
    def changing(self) -> Iterator[Json]:
        """Its state, to change it behind Headgate's back."""
        with locked_state(self._path) as state:
            yield state

    @property
    def objects(self) -> dict[str, Json]:
        with locked_state(self._path) as state:
            return dict(state["objects"])

    def take_requests(self) -> dict[str, int]:
        """The number of requests since the last call, by method."""
        with locked_state(self._path) as state:
            found, state["requests"] = dict(state["requests"]), {}
        return found


@contextmanager
def thing_process(folder: Path) -> Iterator[ThingProcess]:
    process = ThingProcess(folder)
    process.start()
    try:
        yield process
    finally:
        process.kill()


if __name__ == "__main__":
    ThingHandler.path_of_state = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), ThingHandler).serve_forever()
