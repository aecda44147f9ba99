"""What tests of a client do past it, over HTTP: set the stage, and look at what came of it."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

from tests.support.program import PATIENCE, ServerProcess

Json = Any


class Past:
    """One project of a server."""

    def __init__(self, server: ServerProcess, project: str = "default") -> None:
        self._base = f"{server.url}/v1/{project}/stacks"

    def read(self, path: str) -> Json:
        """None when nothing is there."""
        try:
            return self._call("GET", f"/{path}")
        except urllib.error.HTTPError as error:
            assert error.code == 404
            return None

    def make(self, name: str, template: Json) -> None:
        """A stack, complete."""
        self._call("POST", "", {"stack_name": name, "template": template})
        self.until(name, "CREATE_COMPLETE")

    def status(self, name: str) -> str:
        return str(self.read(name)["stack"]["stack_status"])

    def until(self, name: str, status: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := self.status(name)) != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def values(self, name: str) -> dict[str, str]:
        """Output -> value."""
        outputs = self.read(name)["stack"]["outputs"]
        return {one["output_key"]: one["output_value"] for one in outputs}

    def physical(self, name: str) -> dict[str, str]:
        """Resource -> physical id."""
        found = self.read(f"{name}/resources")["resources"]
        return {one["resource_name"]: one["physical_resource_id"] for one in found}

    def _call(self, method: str, path: str, body: Json = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as said:
            return json.load(said)
