"""Writes the bill of materials as a CycloneDX document, from the lock files; see `make sbom`.

The same lock files give the same document: it has neither a time nor a serial number.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
#: The lock files of the runtime, and when their requirements are installed.
LOCKS = {"run.lock": "required", "tracing.lock": "optional", "apprise.lock": "optional"}
VENDORED = ROOT / "hub" / "dashboard" / "page" / "vendor" / "LICENSES.txt"
PACKAGE = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;]+)(?: ; (?P<marker>[^\\]+?))? *\\?"
)
HASH = re.compile(r" +--hash=sha256:([0-9a-f]{64})")
VIA = re.compile(r" +# +(?:via +)?(?!via$)(?P<name>[A-Za-z0-9._-]+|-r .*)")
VENDORED_PACKAGE = re.compile(r"(?P<name>@?\S+) (?P<version>\S+) \((?P<license>[^)]+)\), in (\S+)")
HEADGATE = "headgate"

Json = Any


def locked(text: str) -> Iterator[dict[str, Any]]:
    """The requirements of a lock file: name, version, marker, hashes, and what requires each."""
    requirement: dict[str, Any] | None = None
    for line in text.splitlines():
        if match := PACKAGE.fullmatch(line):
            if requirement:
                yield requirement
            requirement = {**match.groupdict(), "hashes": [], "via": []}
        elif requirement and (match := HASH.match(line)):
            requirement["hashes"].append(match[1])
        elif requirement and (match := VIA.fullmatch(line)):
            requirement["via"].append(HEADGATE if match["name"].startswith("-r") else match["name"])
    if requirement:
        yield requirement


def python_component(requirement: dict[str, Any], scope: str) -> dict[str, Json]:
    """hashes: of all files of the version; pip installs one of them."""
    purl = f"pkg:pypi/{requirement['name'].lower()}@{requirement['version']}"
    marker = (
        [{"name": "python:marker", "value": requirement["marker"]}] if requirement["marker"] else []
    )
    files = [{"name": "python:sha256", "value": value} for value in requirement["hashes"]]
    return {
        "type": "library", "bom-ref": purl, "name": requirement["name"],
        "version": requirement["version"],
        "scope": scope, "purl": purl, "properties": [*marker, *files],
    }  # fmt: skip


def vendored_components(text: str) -> Iterator[dict[str, Json]]:
    """The libraries vendored into the dashboard."""
    for line in text.splitlines():
        if match := VENDORED_PACKAGE.fullmatch(line):
            purl = f"pkg:npm/{quote(match['name'], safe='/')}@{match['version']}"
            yield {
                "type": "library", "bom-ref": purl, "name": match["name"],
                "version": match["version"], "scope": "required", "purl": purl,
                "licenses": [{"license": {"id": match["license"]}}],
            }  # fmt: skip


def document() -> dict[str, Json]:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    components: dict[str, dict[str, Json]] = {}
    dependencies: dict[str, set[str]] = {}
    purls: dict[str, str] = {}
    for lock, scope in LOCKS.items():
        for requirement in locked((ROOT / "requirements" / lock).read_text()):
            component = python_component(requirement, scope)
            purls[requirement["name"]] = component["purl"]
            components.setdefault(component["purl"], component)
            for name in requirement["via"]:
                dependencies.setdefault(name, set()).add(component["purl"])
    for component in vendored_components(VENDORED.read_text()):
        components[component["purl"]] = component
        dependencies.setdefault(HEADGATE, set()).add(component["purl"])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application", "bom-ref": HEADGATE, "name": HEADGATE, "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [components[purl] for purl in sorted(components)],
        "dependencies": [
            {"ref": purls.get(name, name), "dependsOn": sorted(dependencies[name])}
            for name in sorted(dependencies)
        ],
    }  # fmt: skip


def main() -> None:
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document(), indent=1, ensure_ascii=False) + "\n")
    print(target)


if __name__ == "__main__":
    main()
