"""Files of the command line: texts, documents, and the files that these refer to."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from engine.errors import Finding, Findings, HeadgateError, Invalid
from engine.hot.environment.registry import ADDRESSES, is_template_file
from engine.hot.syntax.document import read_document
from engine.hot.syntax.positions import join_path
from engine.hot.syntax.source_lines import locate

Json = Any
#: Maximum bytes of one file: more than any request may have.
MAX_BYTES = 8 * 1024 * 1024


class InputError(Exception):
    """A file or option that cannot be used, with the reason. finding: what is wrong in a document
    and where, with the path of its file; None for other errors.
    """

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


def shown_path(path: Path) -> str:
    """A path as text, relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _located(finding: Finding, path: Path, text: str) -> InputError:
    """An error in the text of a file, with its position and the quoted line."""
    name = shown_path(path)
    (one,) = locate([replace(finding, file=name)], {name: text})
    where = f"{name}:{one.line}:{one.column}" if one.line else name
    quote = "".join(f"\n    {line}" for line in one.quote.splitlines())
    return InputError(f"{where}: {one}{quote}", one)


def read_text(path: Path) -> str:
    """Raises InputError."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise InputError(f"{path}: is larger than {MAX_BYTES} bytes")
        return raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise InputError(f"{path}: cannot be read: {reason}") from error


def parse(text: str, path: Path) -> Json:
    """A document in YAML or JSON. Raises InputError."""
    try:
        return read_document(text, str(path), warnings=Findings())
    except Invalid as error:
        raise _located(error.findings[0], path, text) from error
    except HeadgateError as error:
        raise InputError(f"{path}: {error}") from error


def read_data(path: Path) -> Json:
    """Any JSON, or a map in YAML. Raises InputError."""
    text = read_text(path)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return parse(text, path)


DocumentPath = tuple[str | int, ...]


class Reference(NamedTuple):
    """The name of a file, and where in its document it is."""

    path: DocumentPath
    name: str


@dataclass(slots=True)
class FileReferences:
    """The files that a template or environment refers to, under the names used there.

    top: the directory of the template or environment. texts, paths: by name.
    """

    top: Path
    texts: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    def add_template(self, path: Path, document: Json) -> None:
        """Add the files of `get_file`, and templates used as types, with their references."""
        self._add_files(path, _named_files(document))
        self._add_nested(path, _template_types(document))

    def add_environment(self, path: Path, document: Json) -> None:
        section = document.get("resource_registry") if isinstance(document, dict) else None
        self._add_nested(path, _mapped_templates(section, ("resource_registry",)))

    def _add_files(self, path: Path, references: Iterable[Reference]) -> list[str]:
        """Return the names that are new."""
        first = {one.name: one for one in reversed([*references])}
        return [name for name, one in sorted(first.items()) if self._add(path, one)]

    def _add_nested(self, path: Path, references: Iterable[Reference]) -> None:
        own = (one for one in references if not one.name.startswith(ADDRESSES))
        for name in self._add_files(path, own):  # the server fetches addresses
            nested = self.paths[name]
            self.add_template(nested, parse(self.texts[name], nested))

    def _add(self, path: Path, reference: Reference) -> bool:
        """Whether it is new. path: of the document that has the reference."""
        name = reference.name
        try:
            file = self._resolve(path, name)
            if (known := self.paths.get(name)) is not None:
                if known != file:
                    raise InputError(f"{name}: already refers to {known}; rename one of them")
                return False
            self.texts[name] = read_text(file)
        except InputError as error:
            gone = isinstance(error.__cause__, FileNotFoundError)
            remedy = "Correct the name, or create the file." if gone else ""
            found = Finding(join_path(reference.path), str(error), remedy)
            raise _located(found, path, read_text(path)) from error
        self.paths[name] = file
        return True

    def _resolve(self, path: Path, name: str) -> Path:
        """A file below `top` or the working directory: a template of another author must not
        upload other files of this machine."""
        if "://" in name:
            raise InputError(f"{name}: is a URL; download it and name the file")
        try:
            file = (path.parent / name).resolve()
            allowed = (self.top.resolve(), Path.cwd())
            inside = any(file.is_relative_to(folder) for folder in allowed)
        except (OSError, ValueError) as error:
            raise InputError(f"{name}: is not a file name") from error
        if Path(name).is_absolute() or not inside:
            raise InputError(
                f"{name}: is outside of {allowed[0]}. "
                "Move it there, or run the command in a folder that contains both"
            )
        return file


def _named_files(value: Json, path: DocumentPath = ()) -> Iterator[Reference]:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_file"), str):
            yield Reference((*path, "get_file"), value["get_file"])
        for key, item in value.items():
            yield from _named_files(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _named_files(item, (*path, number))


def _template_types(document: Json) -> Iterator[Reference]:
    """Template files used as types, in HOT or CFN."""
    if not isinstance(document, dict):
        return
    for section, key in (("resources", "type"), ("Resources", "Type")):
        bodies = document.get(section)
        for resource, body in bodies.items() if isinstance(bodies, dict) else ():
            kind = body.get(key) if isinstance(body, dict) else None
            if isinstance(kind, str) and is_template_file(kind):
                yield Reference((section, resource, key), kind)


def _mapped_templates(section: Json, path: DocumentPath) -> Iterator[Reference]:
    for name, target in section.items() if isinstance(section, dict) else ():
        if isinstance(target, dict):
            yield from _mapped_templates(target, (*path, name))
        elif isinstance(target, str) and is_template_file(target) and name != "base_url":
            yield Reference((*path, name), target)
