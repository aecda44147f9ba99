"""Templates inside templates: found among the files, read once each, counted, not too deep.

One `Nesting` is made for the definition of one stack; it is handed down, a level deeper each time,
and what it counts is counted for the whole tree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engine.errors import Finding, Findings, Invalid, LimitReached, nearest
from engine.hot.environment import Environment
from engine.hot.known_members import with_members
from engine.hot.registry import ADDRESSES, CircularAlias, Found, Mapped, is_template_file
from engine.hot.schema import TypeSchema
from engine.hot.source import DEFAULT_LIMITS, Limits, read_document
from engine.hot.template import Template, read_template
from engine.hot.template_types import (
    TemplateType,
    facade_faults,
    said_inside,
    template_type,
    with_secrets,
)

#: Levels of nested stacks beneath a stack.
MOST_LEVELS: Final = 5
TOO_DEEP: Final = f"Recursion depth exceeds {MOST_LEVELS}."
#: All encoded properties and metadata of a stack, in bytes.
MOST_BYTES: Final = 33_554_432
#: Characters of nested templates, each counted as often as it is used.
MOST_TEXT: Final = 33_554_432
#: What an entry of an environment counts as, where it is looked at for one resource.
BYTES_OF_ENTRY: Final = 100


@dataclass(slots=True)
class _Tree:
    """What is counted, and what was read, for a stack with all that is nested in it."""

    resources: int = 0
    text: int = 0
    bytes: int = 0
    read: dict[tuple[str, bool], Template | Invalid] = field(default_factory=dict)
    told: set[tuple[str, bool]] = field(default_factory=set)
    #: With the environment around, whose id is good as long as it is kept.
    types: dict[tuple[str, Mapped | None, int], tuple[Environment, TemplateType]] = field(
        default_factory=dict
    )
    missing: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Use:
    """A resource that may use a template. type: as it is written. place: of the resource; of_type:
    of its type; both as its own template spells them."""

    resource: str
    type: str
    place: str
    of_type: str


@dataclass(frozen=True, slots=True)
class Nesting:
    """files: by name, as they were sent. operator_files: those that the operator's environment
    names, which nobody's files replace. most_resources: of a whole tree. path: the files from the
    outermost to where this is."""

    files: Mapping[str, str] = field(default_factory=dict)
    operator_files: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = DEFAULT_LIMITS
    most_resources: int = 10_000
    path: tuple[str, ...] = ()
    _tree: _Tree = field(default_factory=_Tree)

    def fits(self, size: int) -> bool:
        """Whether the tree may have so many bytes more of properties and metadata."""
        self._tree.bytes += size
        return self._tree.bytes <= MOST_BYTES

    @property
    def missing(self) -> frozenset[str]:
        """Addresses of templates that were looked for and are not among the files."""
        return frozenset(self._tree.missing)

    def inside(self, file: str) -> "Nesting":
        return replace(self, path=(*self.path, file))

    @property
    def counted(self) -> int:
        """The resources of the tree so far."""
        return self._tree.resources

    def count(self, template: Template) -> None:
        """Raises LimitReached."""
        self.count_resources(len(template.resources))

    def count_resources(self, more: int) -> None:
        """Raises LimitReached."""
        self._tree.resources += more
        if self._tree.resources > self.most_resources:
            said = f"the template has {self._tree.resources} resources"
            raise LimitReached(
                f"{said}, those of nested templates among them" if self.path else said,
                place="resources",
                remedy=f"The most is {self.most_resources}; the operator sets it in [quotas].",
                code="RequestLimitExceeded",
            )

    def check_depth(self, place: str) -> None:
        """Of what is inside of a group. Raises Invalid."""
        if len(self.path) > MOST_LEVELS:
            remedy = "Nest fewer groups and templates in each other."
            raise Invalid([Finding(place, TOO_DEEP, remedy, "RequestLimitExceeded")])

    def open(
        self, found: Found, use: Use, around: Environment,
        types: Mapping[str, TypeSchema], findings: Findings,
    ) -> TemplateType | None:  # fmt: skip
        """The template type that a resource has; None with findings, whose places lead into the
        file. around: the environment of the resource's stack. Raises LimitReached."""
        place = inside_place(use.place, found.type)
        if len(self.path) == MOST_LEVELS:
            findings.add(place, TOO_DEEP, self._circle(found.type), "RequestLimitExceeded")
            return None
        template = self._template(found)
        if template is None:
            self._tell_missing(found.type, use, findings)
        elif isinstance(template, Invalid):
            self._tell_wrong(found, place, template.findings, findings)
        else:
            self._tell_wrong(found, place, template.wrong, findings)
            return self._type(found, use.resource, template, around, types)
        return None

    def _type(
        self, found: Found, resource: str, template: Template, around: Environment,
        types: Mapping[str, TypeSchema],
    ) -> TemplateType:  # fmt: skip
        """The same for all resources of a stack of which their environment says nothing more."""
        said = said_inside(around.document, resource)
        self._spend(BYTES_OF_ENTRY * said.looked_at)
        if said:
            self._spend(BYTES_OF_ENTRY * sum(map(len, around.document.values())))
        key = found.type, found.by, id(around)
        _, known = (around, None) if said else self._tree.types.get(key, (around, None))
        if known is None:
            known = template_type(found.type, template, around, found.by, said)
            known = with_secrets(known, self.inside(found.type)._secret(known, types))
            if not said:
                self._tree.types[key] = around, known
        return known

    def _secret(self, kind: TemplateType, types: Mapping[str, TypeSchema]) -> dict[str, TypeSchema]:
        """Resources inside a template of which something is nobody's to see, with their types."""
        registry = kind.environment.registry
        secret = {}
        for body in kind.template.resources.values():
            try:
                found = registry.find(body.type, body.name, types)
            except CircularAlias:
                continue  # told when the template is defined, as all else that is wrong with it
            if found is None:
                continue
            if is_template_file(found.type):
                schema = self._beneath(found, body.name, kind.environment, types)
            else:
                schema = with_members(types[found.type], body, registry, types)
            if schema is not None and schema.has_secrets():
                secret[body.name] = schema
        return secret

    def _beneath(
        self, found: Found, resource: str, around: Environment, types: Mapping[str, TypeSchema]
    ) -> TypeSchema | None:
        if len(self.path) >= MOST_LEVELS:
            return None
        template = self._template(found)
        if not isinstance(template, Template):
            return None
        return self._type(found, resource, template, around, types).schema

    def check_facade(
        self, kind: TemplateType, found: Found, use: Use, around: Environment,
        types: Mapping[str, TypeSchema], findings: Findings,
    ) -> None:  # fmt: skip
        """Where a template stands for a type that there is as well, it has to be like that one."""
        facade = self._facade(found, use, around, types)
        if facade is None or kind.template.wrong:
            return
        for reason, remedy in facade_faults(replace(facade, name=use.type), kind.schema):
            findings.add(use.of_type, reason, remedy)

    def _facade(
        self, found: Found, use: Use, around: Environment, types: Mapping[str, TypeSchema]
    ) -> TypeSchema | None:
        if found.by is None:
            return None
        beneath = around.registry.find(use.type, use.resource, types, without=found.by)
        if beneath is None or beneath.type == found.type:
            return None
        if beneath.type in types:
            return types[beneath.type]
        template = self._template(beneath)
        if not isinstance(template, Template):
            return None
        return self._type(beneath, use.resource, template, around, types).schema

    def _circle(self, file: str) -> str:
        if file not in self.path:
            return "Nest fewer templates in each other."
        chain = (*self.path[self.path.index(file) :], file)
        return f"{file} contains itself: {' -> '.join(dict.fromkeys(chain))} -> {file}."

    def _template(self, found: Found) -> Template | Invalid | None:
        """Read once for all who use it; None: it is not among the files. Raises LimitReached."""
        file, text = found.type, self._text(found)
        if text is None:
            return None
        self._spend(len(text))
        read = self._tree.read.get(_key(found))
        if read is None:
            read = self._tree.read[_key(found)] = self._parsed(text, file)
        return read

    def _spend(self, characters: int) -> None:
        self._tree.text += characters
        if self._tree.text > MOST_TEXT:
            raise LimitReached(
                f"nested templates make the stack larger than {MOST_TEXT} characters",
                place="resources",
                remedy="Nest fewer, or smaller ones.",
                code="RequestLimitExceeded",
            )

    def _text(self, found: Found) -> str | None:
        if _key(found)[1] and found.type in self.operator_files:
            return self.operator_files[found.type]
        return self.files.get(found.type)

    def _tell_missing(self, file: str, use: Use, findings: Findings) -> None:
        if file.startswith(ADDRESSES):
            self._tree.missing.add(file)
        findings.add(
            use.of_type,
            f'Could not fetch remote template "{file}": it is not among the files',
            nearest(file, list(self.files)) or "Send its text in `files`.",
        )

    def _tell_wrong(
        self, found: Found, place: str, wrong: Sequence[Finding], findings: Findings
    ) -> None:
        """Once, however many resources use the file."""
        if _key(found) not in self._tree.told:
            self._tree.told.add(_key(found))
            add_inside(place, wrong, findings)

    def _parsed(self, text: str, file: str) -> Template | Invalid:
        try:
            return read_template(read_document(text, f"template {file}", self.limits))
        except Invalid as error:
            return error


def _key(found: Found) -> tuple[str, bool]:
    """A file, and whether it is the operator's."""
    return found.type, found.by is not None and found.by.of_operator


def inside_place(place: str, file: str) -> str:
    """Where a nested template is, as Heat writes it: ``resources.web<server.yaml>``."""
    return f"{place}<{file}>"


def place_inside(place: str, there: str) -> str:
    """place: of a nested template. there: in it; "" for the whole."""
    return f"{place}.{there}" if there else place


def place_of_member(place: str, among: Callable[[str], str], there: str) -> str:
    """place: of the properties of a group. among(place in the template of the members): where that
    is among these."""
    inside = among(there) if there.startswith("resources.") else ""
    return f"{place}.{inside}" if inside else there or place


def add_inside(place: str, wrong: Sequence[Finding], findings: Findings) -> None:
    """Tell of what is wrong inside a nested template, with places that lead there."""
    for one in wrong:
        findings.add(place_inside(place, one.place), one.reason, one.remedy, one.code)


def add_members(
    place: str, among: Callable[[str], str], wrong: Sequence[Finding], findings: Findings
) -> None:
    """Tell of what is wrong with members of a group."""
    for one in wrong:
        there = place_of_member(place, among, one.place)
        findings.add(there, one.reason, one.remedy, one.code)
