"""Files that templates and environments refer to, under the names that they have there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import HeadgateError
from engine.hot.environment.registry import ADDRESSES, is_template_file
from engine.hot.syntax.document import read_document

Json = Any
#: Bytes of one file: more than any request may carry.
LARGEST = 8 * 1024 * 1024


class Unreadable(Exception):
    """A file or option that cannot be used; says which and why."""


def read_text(path: Path) -> str:
    """Raises Unreadable."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise Unreadable(f"{path}: is larger than {LARGEST} bytes")
        return raw.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise Unreadable(f"{path}: cannot be read: {why}") from error


def parsed(text: str, path: Path) -> Json:
    """Raises Unreadable."""
    try:
        return read_document(text, str(path))
    except HeadgateError as error:
        raise Unreadable(f"{path}: {error}") from error


@dataclass(slots=True)
class FileReferences:
    """top: the folder of the outermost file. texts: by name; paths: where each of them is."""

    top: Path
    texts: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)

    def by_template(self, path: Path, document: Json) -> None:
        """What `get_file` names, and templates that are types, with what these refer to."""
        for name in sorted(set(_named_files(document))):
            self._add(path, "get_file", name)
        for name in sorted(set(_template_types(document))):
            self._nested(path, "type", name)

    def by_environment(self, path: Path, document: Json) -> None:
        section = document.get("resource_registry") if isinstance(document, dict) else None
        for name in sorted(set(_mapped_templates(section))):
            self._nested(path, "resource_registry", name)

    def _nested(self, path: Path, key: str, name: str) -> None:
        if name.startswith(ADDRESSES) or not self._add(path, key, name):
            return  # the server fetches it, or it was there already
        found = self.paths[name]
        self.by_template(found, parsed(self.texts[name], found))

    def _add(self, path: Path, key: str, name: str) -> bool:
        """Whether it is new."""
        place = f"{path}: {key}"
        found = self._inside(path, place, name)
        if (known := self.paths.get(name)) is not None:
            if known != found:
                raise Unreadable(f"{place}: {name}: is {known} already; rename one of them")
            return False
        try:
            self.texts[name] = read_text(found)
        except Unreadable as error:
            raise Unreadable(f"{place}: {error}") from error
        self.paths[name] = found
        return True

    def _inside(self, path: Path, place: str, name: str) -> Path:
        """Only files below the folder of the file that names them or the working directory: a
        template from another author must not upload other files of this machine."""
        place = f"{place}: {name}"
        if "://" in name:
            raise Unreadable(f"{place}: is a URL; download it and name the file")
        try:
            found = (path.parent / name).resolve()
            allowed = (self.top.resolve(), Path.cwd())
            inside = any(found.is_relative_to(folder) for folder in allowed)
        except (OSError, ValueError) as error:
            raise Unreadable(f"{place}: is not a file name") from error
        if Path(name).is_absolute() or not inside:
            raise Unreadable(
                f"{place}: is outside of {allowed[0]}. "
                "Move it there, or run the command in a folder that contains both"
            )
        return found


def _named_files(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get("get_file"), str):
            yield value["get_file"]
        for item in value.values():
            yield from _named_files(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named_files(item)


def _template_types(document: Json) -> Iterator[str]:
    """Types that are templates, in either language."""
    if not isinstance(document, dict):
        return
    for section in (document.get("resources"), document.get("Resources")):
        for body in section.values() if isinstance(section, dict) else ():
            kind = (body.get("type") or body.get("Type")) if isinstance(body, dict) else None
            if isinstance(kind, str) and is_template_file(kind):
                yield kind


def _mapped_templates(section: Json) -> Iterator[str]:
    for name, target in section.items() if isinstance(section, dict) else ():
        if isinstance(target, dict):
            yield from _mapped_templates(target)
        elif isinstance(target, str) and is_template_file(target) and name != "base_url":
            yield target
