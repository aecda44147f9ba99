"""Request bodies from templates and environments, with the files that these refer to."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hub.cli.inputs.file_references import FileReferences
from hub.cli.inputs.files import read_text
from hub.cli.inputs.request_bodies import merge_files

Json = Any


def template_body(path: Path, paths: dict[str, Path] | None = None) -> dict[str, Json]:
    """{template: text, files: {name: text}}, with the files that the template refers to.

    paths: of the files of the request, by name; gets those of these files.
    """
    references = FileReferences(path.parent, paths={} if paths is None else paths)
    text = references.add_template(path, read_text(path))
    return {"template": text, "files": references.texts}


def environment_body(
    environments: Sequence[Path], paths: dict[str, Path] | None = None
) -> dict[str, Json]:
    """Environments in the order in which the server merges them, with their templates.

    paths: of the files of the request, by name; gets those of these templates.
    """
    paths = {} if paths is None else paths
    texts: dict[str, str] = {}
    files: dict[str, str] = {}
    for path in environments:
        references = FileReferences(path.parent, paths=paths)
        texts[str(path)] = references.add_environment(path, read_text(path))
        files = merge_files(files, references.texts)
    if len(environments) == 1:
        return {"environment": texts[str(environments[0])]} | ({"files": files} if files else {})
    if not environments:
        return {}
    return {"environment_files": [*texts], "files": merge_files(texts, files)}
