"""The files that the templates and environments of the command line refer to."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from engine.errors import Finding
from engine.hot.environment.registry import ADDRESSES, is_template_file
from engine.hot.syntax.positions import join_path
from hub.cli.inputs.documents import locate_error, parse
from hub.cli.inputs.files import InputError, read_text

Json = Any
DocumentPath = tuple[str | int, ...]


class Reference(NamedTuple):
    """The name of a file, and where in its document it is."""

    path: DocumentPath
    name: str


@dataclass(slots=True)
class FileReferences:
    """The files that a template or environment refers to, under the names used there.

    top: the directory of the template or environment. texts: by name. paths: by name, of the whole
    request. nested: names of the templates whose references are known.

    Documents in two directories can use one name for different files. The second file then gets
    another name, and the texts that refer to it have that name.
    """

    top: Path
    texts: dict[str, str] = field(default_factory=dict)
    paths: dict[str, Path] = field(default_factory=dict)
    nested: set[str] = field(default_factory=set)

    def add_template(self, path: Path, text: str) -> str:
        """Add the files of `get_file`, and templates used as types, with their references. Return
        the text with the names of the request."""
        document = parse(text, path)
        files, types = [*_named_files(document)], [*_template_types(document)]
        names = self._add_files(path, files)
        names |= self._add_nested(path, types)
        return rename_references(text, [*files, *types], names)

    def add_environment(self, path: Path, text: str) -> str:
        """As `add_template`, for the templates of an environment."""
        document = parse(text, path) if text.strip() else {}
        section = document.get("resource_registry") if isinstance(document, dict) else None
        mapped = [*_mapped_templates(section, ("resource_registry",))]
        return rename_references(text, mapped, self._add_nested(path, mapped))

    def _add_files(self, path: Path, references: Sequence[Reference]) -> dict[str, str]:
        """Return the names of the request by the names as written."""
        first = {one.name: one for one in reversed(references)}
        return {name: self._add(path, one) for name, one in sorted(first.items())}

    def _add_nested(self, path: Path, references: Sequence[Reference]) -> dict[str, str]:
        own = [one for one in references if not one.name.startswith(ADDRESSES)]
        names = self._add_files(path, own)  # the server fetches addresses
        for name in names.values():
            if name not in self.nested:
                self.nested.add(name)
                self.texts[name] = self.add_template(self.paths[name], self.texts[name])
        return names

    def _add(self, path: Path, reference: Reference) -> str:
        """Return the name of the request. path: of the document that has the reference."""
        try:
            file = self._resolve(path, reference.name)
            name = self._free_name(reference.name, file)
            if name not in self.texts:
                self.texts[name] = read_text(file)
        except InputError as error:
            gone = isinstance(error.__cause__, FileNotFoundError)
            remedy = "Correct the name, or create the file." if gone else ""
            found = Finding(join_path(reference.path), str(error), remedy)
            raise locate_error(found, path, read_text(path)) from error
        self.paths[name] = file
        return name

    def _free_name(self, written: str, file: Path) -> str:
        """Return the name as written, or a path that means no other file; at last a URL, which
        Heat's client sends for each file."""
        if self.paths.get(written, file) == file:
            return written
        folders = (self.top.resolve(), Path.cwd())
        inside = [file.relative_to(one).as_posix() for one in folders if file.is_relative_to(one)]
        known = [name for name, path in self.paths.items() if path == file]
        here = [f"./{name}" for name in inside]
        for name in (*known, *inside, *here, file.as_uri()):
            same_kind = is_template_file(name) == is_template_file(written)
            if same_kind and self.paths.get(name, file) == file:
                return name
        other = self.paths[written]
        raise InputError(f"{written}: already refers to {other}; rename one of them")

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


def rename_references(text: str, references: Iterable[Reference], names: Mapping[str, str]) -> str:
    """Return the text of a document with other names of files. names: the new ones by the names as
    written."""
    changed = {
        one.path: names[one.name] for one in references if names.get(one.name, one.name) != one.name
    }
    if not changed:
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return _rename_in_yaml(text, changed)
    for path, name in changed.items():
        around = document
        for token in path[:-1]:
            around = around[token]
        around[path[-1]] = name
    return json.dumps(document, indent=1, ensure_ascii=False)


def _rename_in_yaml(text: str, changed: Mapping[DocumentPath, str]) -> str:
    """Replace the values only: comments, lines and everything else stay as they are."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    spans: dict[tuple[int, int], str] = {}
    for path, name in changed.items():
        node = root
        for token in path:
            node = _child(node, token)
        if isinstance(node, yaml.ScalarNode):
            spans[node.start_mark.index, node.end_mark.index] = name
    for (start, end), name in sorted(spans.items(), reverse=True):
        written = text[start:end]
        kept = _PROPERTIES.match(written)
        broken = "\n" if written.endswith("\n") else ""
        text = f"{text[:start]}{kept[0] if kept else ''}{json.dumps(name)}{broken}{text[end:]}"
    return text


#: The anchor and the tag of a value in YAML.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")


def _child(node: yaml.Node | None, token: str | int) -> yaml.Node | None:
    """The last value of a key, also of a merged map, or an item; None if there is none."""
    if isinstance(node, yaml.SequenceNode):
        if isinstance(token, int):
            item: yaml.Node = node.value[token]
            return item
        found = (_child(one, token) for one in node.value)  # maps that are merged
        return next((one for one in found if one is not None), None)
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs: list[tuple[str, yaml.Node]] = [(key.value, value) for key, value in reversed(node.value)]
    for key, value in pairs:
        if key == token:
            return value
    merged = (_child(value, token) for key, value in pairs if key == "<<")
    return next((one for one in merged if one is not None), None)


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
    """Template files used as types, in HOT or CFN, also by members of groups."""
    if not isinstance(document, dict):
        return
    for section, key in (("resources", "type"), ("Resources", "Type")):
        bodies = document.get(section)
        for resource, body in bodies.items() if isinstance(bodies, dict) else ():
            kind = body.get(key) if isinstance(body, dict) else None
            if isinstance(kind, str) and is_template_file(kind):
                yield Reference((section, resource, key), kind)
            for inside in ("properties", "Properties"):
                if isinstance(body, dict):
                    yield from _member_types(body.get(inside), (section, resource, inside))


def _member_types(value: Json, path: DocumentPath) -> Iterator[Reference]:
    """Template files that a key `type` names, at any depth, as Heat's client sends them."""
    if isinstance(value, dict):
        kind = value.get("type")
        if isinstance(kind, str) and is_template_file(kind):
            yield Reference((*path, "type"), kind)
        for key, item in value.items():
            yield from _member_types(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _member_types(item, (*path, number))


def _mapped_templates(section: Json, path: DocumentPath) -> Iterator[Reference]:
    for name, target in section.items() if isinstance(section, dict) else ():
        if isinstance(target, dict):
            yield from _mapped_templates(target, (*path, name))
        elif isinstance(target, str) and is_template_file(target) and name != "base_url":
            yield Reference((*path, name), target)
