"""The development container: its image has the Python that the project requires."""

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / ".devcontainer" / "devcontainer.json"


def test_its_image_has_a_python_of_the_project_and_it_is_set_up_by_make() -> None:
    container = json.loads(CONTAINER.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    image = re.fullmatch(r"python:(\d+\.\d+)-bookworm", container["image"])
    assert image
    assert f"Programming Language :: Python :: {image[1]}" in project["classifiers"]
    command, target = container["postCreateCommand"].split()
    assert command == "make"
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    settings = container["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")
