"""A small HTTP service that starts, checks and stops itself: `service.py start|check|stop`.

Each instance is named after its operation key, and has three files in the working directory:

    service-KEY.pid    process ID; the instance holds a lock on the file while it runs
    service-KEY.state  port, URL and release; exists once the instance listens
    service-KEY.log    output

A repeated start therefore finds the instance of the first one, and two releases can run side by
side while one replaces the other.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

#: Seconds to wait until an instance listens or has ended.
TIMEOUT = 10.0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Reports whether the configuration was read, and the length of the secret."""
        try:
            secret = json.loads(Path(os.environ["CONFIG"]).read_text())["secret"]
        except (OSError, ValueError, KeyError):
            return self.answer(503, {"release": os.environ["RELEASE"], "config": "missing"})
        state = {"release": os.environ["RELEASE"], "config": "read", "secret": len(secret)}
        return self.answer(200, state)

    def answer(self, status: int, state: dict[str, Any]) -> None:
        body = json.dumps(state).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start() -> None:
    name = os.environ["HEADGATE_OPERATION_KEY"]
    if not is_listening(name):
        launch(name)
    print(json.dumps({"id": name, **json.loads(file_of(name, "state").read_text())}))


def launch(name: str) -> None:
    """Start the daemon and wait until it listens. Clean up if that fails."""
    # Signals received. They are handled below, so that no daemon is left behind.
    signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    with file_of(name, "log").open("ab") as log:
        # In its own session, the daemon outlives this command.
        daemon = subprocess.Popen(
            [sys.executable, __file__, "serve", name],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(
            lambda: (
                signals
                or is_listening(name)
                or (daemon.poll() is not None and not is_running(name))
            )
        )
        if signals:
            sys.exit("terminated during the start")
        if not is_listening(name):
            sys.exit(f"the service ended at once: {file_of(name, 'log').read_text()[-400:]}")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it runs: always report it
    except SystemExit:
        daemon.kill()
        daemon.wait()
        if not is_running(name):  # otherwise the files belong to a concurrent start
            clear(name)
        raise


def serve(name: str) -> None:
    pid = os.open(file_of(name, "pid"), os.O_RDWR | os.O_CREAT, 0o600)
    if not becomes_true(0.5, lambda: locked(pid)):
        return  # a concurrent start won, and its instance serves
    file_of(name, "state").unlink(missing_ok=True)  # left by an instance that died
    os.truncate(pid, 0)
    os.write(pid, str(os.getpid()).encode())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)  # port 0: any free port
    port = server.server_port
    state = {"port": port, "url": f"http://127.0.0.1:{port}/", "release": os.environ["RELEASE"]}
    new_file = file_of(name, "new")
    new_file.write_text(json.dumps(state))
    new_file.replace(file_of(name, "state"))
    server.serve_forever()


def check() -> None:
    state = json.loads(file_of(os.environ["HEADGATE_PHYSICAL_ID"], "state").read_text())
    with urlopen(state["url"], timeout=2):  # raises an error for a status of 400 or more
        return


def stop() -> None:
    """Also works after a failed `start`, and for an instance that died."""
    physical_id = os.environ["HEADGATE_PHYSICAL_ID"]
    for name in {path.stem.removeprefix("service-") for path in Path().glob("service-*")}:
        if belongs_to(physical_id, name):
            end(name)


def end(name: str) -> None:
    if is_running(name):
        os.kill(int(file_of(name, "pid").read_text()), signal.SIGTERM)
        wait_until(lambda: not is_running(name))
    clear(name)


def belongs_to(physical_id: str, key: str) -> bool:
    """Whether the physical ID belongs to the operation key. If the output of create was lost, the
    physical ID is one that Headgate derived from the key."""
    return physical_id == key or physical_id.endswith("-" + key.replace("-", "")[:12])


def file_of(name: str, kind: str) -> Path:
    return Path(f"service-{Path(name).name}.{kind}")


def clear(name: str) -> None:
    for kind in ("new", "state", "pid", "log"):
        file_of(name, kind).unlink(missing_ok=True)


def is_listening(name: str) -> bool:
    return is_running(name) and file_of(name, "state").exists()


def is_running(name: str) -> bool:
    """Whether the lock is held. The process ID alone may already belong to another process."""
    try:
        pid = os.open(file_of(name, "pid"), os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not locked(pid)
    finally:
        os.close(pid)


def locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_until(condition: Callable[[], object]) -> None:
    if not becomes_true(TIMEOUT, condition):
        sys.exit("timed out")


def becomes_true(seconds: float, condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        {"start": start, "check": check, "stop": stop}[sys.argv[1]]()
