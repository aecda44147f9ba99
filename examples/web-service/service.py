"""A small HTTP service that starts, checks and stops itself: `service.py start|check|stop`.

Each instance is named by its operation's key, and has three files in the folder it runs in:

    service-KEY.pid    its process id, locked by it for as long as it lives
    service-KEY.state  its port, address and release, there once it listens
    service-KEY.log    what it says

So a start that runs twice finds the instance it made the first time, and two releases live side by
side while one takes over from the other.
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

#: Seconds to wait for an instance to listen, or to be gone.
PATIENCE = 10.0


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Tells that the configuration was read, and how long the secret is; never the secret."""
        try:
            secret = json.loads(Path(os.environ["CONFIG"]).read_text())["secret"]
        except (OSError, ValueError, KeyError):
            return self.answer(503, {"release": os.environ["RELEASE"], "config": "missing"})
        known = {"release": os.environ["RELEASE"], "config": "read", "secret": len(secret)}
        return self.answer(200, known)

    def answer(self, status: int, known: dict[str, Any]) -> None:
        body = json.dumps(known).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def start() -> None:
    name = os.environ["HEADGATE_OPERATION_KEY"]
    if not listens(name):
        launch(name)
    print(json.dumps({"id": name, **json.loads(file_of(name, "state").read_text())}))


def launch(name: str) -> None:
    """Start the daemon and wait until it listens; leave nothing behind when that does not work."""
    asked: list[int] = []  # to end: only noted, so that no daemon is forgotten half way
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    with file_of(name, "log").open("ab") as log:
        # A session of its own: it outlives this command.
        daemon = subprocess.Popen(
            [sys.executable, __file__, "serve", name],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: asked or listens(name) or (daemon.poll() is not None and not lives(name)))
        if asked:
            sys.exit("asked to end while starting")
        if not listens(name):
            sys.exit(f"the service ended at once: {file_of(name, 'log').read_text()[-400:]}")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is made: say so, come what may
    except SystemExit:
        daemon.kill()
        daemon.wait()
        if not lives(name):  # it would be the one of a start that ran at the same time
            clear(name)
        raise


def serve(name: str) -> None:
    pid = os.open(file_of(name, "pid"), os.O_RDWR | os.O_CREAT, 0o600)
    if not within(0.5, lambda: locked(pid)):
        return  # two starts ran at once, and the other one's instance serves
    file_of(name, "state").unlink(missing_ok=True)  # of an instance that died
    os.truncate(pid, 0)
    os.write(pid, str(os.getpid()).encode())
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)  # port 0: any that is free
    port = server.server_port
    known = {"port": port, "url": f"http://127.0.0.1:{port}/", "release": os.environ["RELEASE"]}
    fresh = file_of(name, "new")
    fresh.write_text(json.dumps(known))
    fresh.replace(file_of(name, "state"))
    server.serve_forever()


def check() -> None:
    known = json.loads(file_of(os.environ["HEADGATE_PHYSICAL_ID"], "state").read_text())
    with urlopen(known["url"], timeout=2):  # raises for any status but a good one
        return


def stop() -> None:
    """Also after a `start` that failed, or an instance that died: then there is less to do."""
    wanted = os.environ["HEADGATE_PHYSICAL_ID"]
    for name in {path.stem.removeprefix("service-") for path in Path().glob("service-*")}:
        if means(wanted, name):
            end(name)


def end(name: str) -> None:
    if lives(name):
        os.kill(int(file_of(name, "pid").read_text()), signal.SIGTERM)
        until(lambda: not lives(name))
    clear(name)


def means(physical_id: str, key: str) -> bool:
    """The key itself; or, when what create printed was lost, the id that Headgate made of it."""
    return physical_id == key or physical_id.endswith("-" + key.replace("-", "")[:12])


def file_of(name: str, kind: str) -> Path:
    return Path(f"service-{Path(name).name}.{kind}")


def clear(name: str) -> None:
    for kind in ("new", "state", "pid", "log"):
        file_of(name, kind).unlink(missing_ok=True)


def listens(name: str) -> bool:
    return lives(name) and file_of(name, "state").exists()


def lives(name: str) -> bool:
    """Whether somebody holds the lock; a number in a file alone may belong to anyone by now."""
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


def until(condition: Callable[[], object]) -> None:
    if not within(PATIENCE, condition):
        sys.exit("it took too long")


def within(seconds: float, condition: Callable[[], object]) -> bool:
    over = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > over:
            return False
        time.sleep(0.02)
    return True


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        {"start": start, "check": check, "stop": stop}[sys.argv[1]]()
