"""The files in deploy/ci for GitHub and GitLab, compared with the schemas of both services."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CI = Path(__file__).parents[2] / "deploy" / "ci"
GUIDE = (CI.parents[1] / "docs" / "how-to" / "review-plans.md").read_text()
SCHEMAS = files("check_jsonschema") / "builtin_schemas" / "vendor"


def read(name: str) -> dict[Any, Any]:
    found = yaml.safe_load((CI / name).read_text())
    assert isinstance(found, dict)
    # YAML 1.1 reads the key `on` of a workflow as true; GitHub reads YAML 1.2.
    return {("on" if key is True else key): value for key, value in found.items()}


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("action.yml", "github-actions.json"),
        ("github-workflow.yml", "github-workflows.json"),
        ("gitlab-ci.yml", "gitlab-ci.json"),
    ],
)
def test_the_files_are_valid_for_their_service(name: str, schema: str) -> None:
    validator = jsonschema.Draft7Validator(json.loads((SCHEMAS / schema).read_text()))
    assert [error.message for error in validator.iter_errors(read(name))] == []


def test_the_workflow_gives_the_action_the_inputs_that_it_has() -> None:
    inputs = read("action.yml")["inputs"]
    (job,) = read("github-workflow.yml")["jobs"].values()
    (given,) = (step["with"] for step in job["steps"] if "with" in step)
    required = {name for name, one in inputs.items() if one.get("required")}
    assert required <= set(given) <= set(inputs)


def test_the_guide_lists_the_inputs_of_the_action() -> None:
    lines = [line for line in GUIDE.splitlines() if line.startswith("| `")]
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    listed = {row[0].strip("`"): row[1] == "yes" for row in rows if len(row) == 4}
    inputs = read("action.yml")["inputs"]
    assert listed == {name: bool(one.get("required")) for name, one in inputs.items()}


def test_a_step_takes_inputs_only_from_variables() -> None:
    """In the text of a script, what someone else has written would be run."""
    for step in read("action.yml")["runs"]["steps"]:
        assert "${{" not in step["run"]
