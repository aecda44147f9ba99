"""Direct HTTP requests, with which tests of a client prepare stacks and check the result."""

import json
import time
import urllib.error
import urllib.request
from typing import Any

from tests.support.program import PATIENCE, ServerProcess

Json = Any


class DirectApi:
    """The stacks of one project of a server."""

    def __init__(self, server: ServerProcess, project: str = "default") -> None:
        self._base = f"{server.url}/v1/{project}/stacks"

    def get(self, path: str) -> Json:
        """The response, or None if it is 404."""
        try:
            return self._call("GET", f"/{path}")
        except urllib.error.HTTPError as error:
            assert error.code == 404
            return None

    def create(self, name: str, template: Json) -> None:
        """Create a stack and wait until it is complete."""
        self._call("POST", "", {"stack_name": name, "template": template})
        self.until_status(name, "CREATE_COMPLETE")

    def status(self, name: str) -> str:
        return str(self.get(name)["stack"]["stack_status"])

    def until_status(self, name: str, status: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while (found := self.status(name)) != status:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def outputs(self, name: str) -> dict[str, str]:
        """The outputs: name -> value."""
        outputs = self.get(name)["stack"]["outputs"]
        return {one["output_key"]: one["output_value"] for one in outputs}

    def physical_ids(self, name: str) -> dict[str, str]:
        """The physical IDs: resource -> ID."""
        found = self.get(f"{name}/resources")["resources"]
        return {one["resource_name"]: one["physical_resource_id"] for one in found}

    def _call(self, method: str, path: str, body: Json = None) -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)
