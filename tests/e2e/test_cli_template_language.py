"""Headgate's template version and strict validation, through the command line."""

from pathlib import Path

from tests.support.command_line import headgate, headgate_json
from tests.support.program import ServerProcess

REPEATED_KEY = """\
heat_template_version: 2018-08-31
resources:
  a:
    type: OS::Heat::TestResource
    properties: {value: first}
    properties: {value: second}
"""
LIFECYCLE = """\
heat_template_version: 2026-12-01
parameters:
  size: {type: string, default: small}
  revision: {type: string, default: "1"}
resources:
  kept:
    type: OS::Heat::TestResource
    properties: {value: {get_param: size}}
    lifecycle: {ignore_changes: [value]}
  rebuilt:
    type: OS::Heat::TestResource
    lifecycle: {replace_when: [{get_param: revision}]}
outputs: {kept: {value: {get_attr: [kept, output]}}}
"""
UNKNOWN_TRIGGER = """\
heat_template_version: 2026-12-01
parameters: {revision: {type: string, default: "1"}}
resources:
  net: {type: OS::Heat::TestResource, properties: {value: "n${revision}"}}
  app:
    type: OS::Heat::TestResource
    properties: {value: x}
    lifecycle: {replace_when: [{get_attr: [net, output]}]}
  other: {type: OS::Heat::TestResource}
"""
IMPORT = """\
heat_template_version: 2026-12-01
parameters: {id: {type: string}}
import:
  - {resource: taken, id: {get_param: id}}
resources:
  taken: {type: OS::Heat::TestResource}
"""


def file(folder: Path, text: str) -> str:
    (folder / "template.yaml").write_text(text)
    return str(folder / "template.yaml")


def physical_id(server: ServerProcess, stack: str, resource: str) -> str:
    shown = headgate_json(server, "resource", "show", stack, resource)
    return str(shown["physical_resource_id"])


def test_a_probable_mistake_is_a_warning_and_with_strict_an_error(
    server: ServerProcess, tmp_path: Path
) -> None:
    template = file(tmp_path, REPEATED_KEY)
    refused = headgate(server, "stack", "create", "strict", "-t", template, "--strict", code=1)
    assert "properties" in refused and "template.yaml:6" in refused
    headgate(server, "stack", "show", "strict", code=1)
    created = headgate_json(server, "stack", "create", "strict", "-t", template, "--wait")
    assert created["stack_status"] == "CREATE_COMPLETE"
    (warning,) = headgate_json(server, "template", "validate", "-t", template)["warnings"]
    assert (warning["code"], warning["line"]) == ("DuplicateKey", 6)


def test_a_lifecycle_ignores_changes_and_replaces_for_others(
    server: ServerProcess, tmp_path: Path
) -> None:
    template = file(tmp_path, LIFECYCLE)
    headgate(server, "stack", "create", "cycle", "-t", template, "--wait")
    before = {one: physical_id(server, "cycle", one) for one in ("kept", "rebuilt")}
    change = ("stack", "update", "cycle", "-t", template, "-P", "size=large", "-P", "revision=2")
    preview = headgate(server, *change, "--dry-run")
    assert "-/+ rebuilt" in preview
    assert "kept" not in preview
    headgate(server, *change, "--wait")
    after = {one: physical_id(server, "cycle", one) for one in ("kept", "rebuilt")}
    assert after["kept"] == before["kept"]
    assert after["rebuilt"] != before["rebuilt"]
    (output,) = headgate_json(server, "stack", "show", "cycle")["outputs"]
    assert output["output_value"] == "small"


def test_a_dry_run_names_resources_that_an_unknown_value_may_replace(
    server: ServerProcess, tmp_path: Path
) -> None:
    template = file(tmp_path, UNKNOWN_TRIGGER)
    headgate(server, "stack", "create", "unknown", "-t", template, "--wait")
    change = ("stack", "update", "unknown", "-t", template, "-P", "revision=2")
    preview = headgate(server, *change, "--dry-run").splitlines()
    assert "?   app  OS::Heat::TestResource  (may be changed or replaced)" in preview
    assert "unknown: 1 updated, 1 may change, 1 unchanged" in preview
    before = physical_id(server, "unknown", "app")
    headgate(server, *change, "--wait")
    assert physical_id(server, "unknown", "app") != before


def test_a_template_imports_a_physical_resource(server: ServerProcess, tmp_path: Path) -> None:
    template = file(tmp_path, IMPORT)
    create = ("stack", "create", "taken", "-t", template, "-P", "id=db-7")
    assert "taken" in headgate(server, *create, "--dry-run")
    headgate(server, *create, "--wait")
    assert physical_id(server, "taken", "taken") == "db-7"
