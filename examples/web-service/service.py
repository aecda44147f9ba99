"""A small HTTP service that starts, checks and stops itself: `service.py start|check|stop`.

Each instance is named by its operation's key, so that a start that is run twice finds the instance
it made the first time, and two releases live side by side while one takes over from the other.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        config = json.loads(Path(os.environ["CONFIG"]).read_text())
        body = json.dumps({"release": os.environ["RELEASE"], "secret": len(config["secret"])})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        return


def state_file(name: str) -> Path:
    return Path(f"service-{name}.state")


def start() -> None:
    name = os.environ["HEADGATE_OPERATION_KEY"]
    state = state_file(name)
    if not state.exists():
        command = [sys.executable, __file__, "serve", str(state.absolute())]
        subprocess.Popen(
            command,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(state.exists)
    known = json.loads(state.read_text())
    print(json.dumps({"id": name, "pid": known["pid"], "url": known["url"]}))


def serve(state: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    url = f"http://127.0.0.1:{server.server_port}/"
    fresh = Path(state + ".new")
    fresh.write_text(json.dumps({"pid": os.getpid(), "url": url}))
    fresh.replace(state)
    server.serve_forever()


def check() -> None:
    known = json.loads(state_file(os.environ["HEADGATE_PHYSICAL_ID"]).read_text())
    with urllib.request.urlopen(known["url"], timeout=2) as answer:
        sys.exit(0 if answer.status == 200 else 1)


def stop() -> None:
    state = state_file(os.environ["HEADGATE_PHYSICAL_ID"])
    if not state.exists():
        return
    pid = json.loads(state.read_text())["pid"]
    try:
        os.kill(pid, signal.SIGTERM)
        until(lambda: not alive(pid))
    except ProcessLookupError:
        pass
    state.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def until(condition, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit("it took too long")
        time.sleep(0.02)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        {"start": start, "check": check, "stop": stop}[sys.argv[1]]()
