"""Renders a chart with Helm, and reads the manifests.

Helm runs in a process of its own, because its library starts threads and tests fork. Run as a
module, this file is that process: it answers one request a line.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Json = Any
ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "headgate"
EXAMPLES = ROOT / "deploy" / "helm" / "examples"
NAMESPACE = "ops"


_running: list[subprocess.Popen[str]] = []


@contextmanager
def running_helm() -> Iterator[None]:
    """Start the process that `render` and `lint` ask."""
    command = [sys.executable, "-m", "tests.support.helm_chart"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        _running.append(process)
        try:
            yield
        finally:
            _running.remove(process)
            process.kill()


class RefusedValuesError(Exception):
    """Helm's message about values that the chart does not accept."""


@dataclass(frozen=True)
class RenderedChart:
    manifests: list[Json]
    notes: str

    def find(self, kind: str, name: str) -> Json:
        (found,) = (
            one for one in self.manifests if (one["kind"], one["metadata"]["name"]) == (kind, name)
        )
        return found

    def of_kind(self, kind: str) -> dict[str, Json]:
        """By their names."""
        found = [one for one in self.manifests if one["kind"] == kind]
        return {one["metadata"]["name"]: one for one in found}

    @property
    def pods(self) -> dict[str, Json]:
        """The templates of pods, by the name of their Deployment or Job."""
        return {
            one["metadata"]["name"]: one["spec"]["template"]
            for one in self.manifests
            if one["kind"] in ("Deployment", "Job")
        }


def render(*values: str | Mapping[str, Json], name: str = "headgate") -> RenderedChart:
    """Render the chart as `helm template -f VALUES ... NAME`. values: YAML texts or mappings; later
    ones take precedence. Raises RefusedValuesError."""
    texts = [one if isinstance(one, str) else yaml.safe_dump(dict(one)) for one in values]
    response = _request({"action": "render", "values": texts, "name": name})
    files: dict[str, str] = response["files"]
    (notes,) = [text for file, text in files.items() if file.endswith("NOTES.txt")]
    manifests = [
        one
        for file, text in sorted(files.items())
        if file.endswith(".yaml")
        for one in yaml.load_all(text, yaml.CSafeLoader)
        if one is not None
    ]
    return RenderedChart(manifests, notes)


def lint(values: str) -> list[Json]:
    """The findings of `helm lint --strict`."""
    return list(_request({"action": "lint", "values": [values]})["messages"])


def _request(request: Json) -> Json:
    (process,) = _running
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, "Helm's process ended; its error is in the output"
    response = json.loads(line)
    if refused := response.get("refused"):
        raise RefusedValuesError(refused)
    return response


def _merge(under: Json, over: Json) -> Json:
    if not (isinstance(under, dict) and isinstance(over, dict)):
        return over
    return {**under, **{name: _merge(under.get(name), one) for name, one in over.items()}}


def _handle(request: Json) -> Iterator[tuple[str, Json]]:
    import helm_python

    values: Json = {}
    try:
        for text in request["values"]:
            values = _merge(values, helm_python.values_from_yaml(text))
        if request["action"] == "lint":
            yield "messages", helm_python.lint(CHART, values, strict=True)["messages"]
            return
        with helm_python.Chart.load(CHART) as chart:
            name = request["name"]
            yield "files", chart.render(values=values, name=name, namespace=NAMESPACE)
    except helm_python.HelmError as error:
        yield "refused", str(error)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(dict(_handle(json.loads(line)))), flush=True)
