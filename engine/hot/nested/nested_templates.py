"""Nested templates: found among the files, parsed once each, limited in number, size and depth.

One `NestedTemplates` is created for the definition of a root stack and passed to each level; its
counters cover the whole tree.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engine.errors import Finding, Findings, Invalid, LimitReached, nearest
from engine.hot.environment.environment import Environment
from engine.hot.environment.registry import (
    ADDRESSES,
    CircularAlias,
    RegistryEntry,
    ResolvedType,
    is_template_file,
)
from engine.hot.functions.function import OUTPUT_ERROR
from engine.hot.nested.group_members import with_member_attributes
from engine.hot.nested.template_stack import (
    TEMPLATE_STACK,
    UNKNOWN_TEMPLATE,
    literal_address,
    template_stack_schema,
)
from engine.hot.nested.template_type import (
    TemplateType,
    facade_mismatches,
    settings_inside,
    template_type,
    with_secrets,
)
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.document import DEFAULT_LIMITS, DocumentLimits, read_document
from engine.hot.template.template import ResourceBody, Template, read_template

#: Default maximum of the levels of nested stacks below a root stack. TripleO's overcloud has 6.
NESTING_DEPTH: Final = 7
#: Maximum size of all encoded properties and metadata of a stack tree, in bytes.
MAX_BYTES: Final = 33_554_432
#: Maximum characters of nested templates, each counted once for each use.
MAX_TEXT: Final = 33_554_432
#: Maximum dependencies that types add to a stack tree: 20 for each of 10,000 resources. Without a
#: limit, `for_each` makes 25 million of two resources (5,000 floating IPs after 5,000 router
#: interfaces), which take 30 seconds and 1.6 GB.
MAX_IMPLICIT: Final = 200_000
#: Cost of examining an environment entry for one resource, in characters.
BYTES_PER_ENTRY: Final = 100
#: What may follow a name in a place.
_SEPARATOR: Final = re.compile(r"[.<\[]")


@dataclass(slots=True)
class _TreeState:
    """Counters and parsed templates of a stack tree."""

    resources: int = 0
    text: int = 0
    bytes: int = 0
    implicit: int = 0
    #: With the text that was parsed.
    read: dict[tuple[str, bool], tuple[str, Template | Invalid]] = field(default_factory=dict)
    reported: set[tuple[str, bool]] = field(default_factory=set)
    #: Values hold the parent's environment, because the key has its id.
    types: dict[tuple[str, RegistryEntry | None, int], tuple[Environment, TemplateType]] = field(
        default_factory=dict
    )
    #: By their text.
    environments: dict[str, Environment] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class TypeUse:
    """A resource that may use a template. type: as written. place: of the resource. of_type: place
    of its type.
    """

    resource: str
    type: str
    place: str
    of_type: str


@dataclass(frozen=True, slots=True)
class NestedTemplates:
    """files: by name, as sent. operator_files: files that the operator's environment names; user
    files never override them. most_resources: quota of the whole tree. depth: maximum levels of
    nested stacks below the root stack. path: files from the root stack to the current template.
    values_later: nested templates may have parameters without a value, for a description of them.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    operator_files: Mapping[str, str] = field(default_factory=dict)
    limits: DocumentLimits = DEFAULT_LIMITS
    most_resources: int = 10_000
    depth: int = NESTING_DEPTH
    path: tuple[str, ...] = ()
    values_later: bool = False
    _tree: _TreeState = field(default_factory=_TreeState)

    @property
    def bytes(self) -> int:
        """The number of bytes that were counted."""
        return self._tree.bytes

    def add_bytes(self, size: int) -> bool:
        """Count bytes of properties and metadata; return whether the tree is within the limit."""
        self._tree.bytes += size
        return self._tree.bytes <= MAX_BYTES

    @property
    def implicit_left(self) -> int:
        """How many dependencies types can still add."""
        return MAX_IMPLICIT - self._tree.implicit

    def count_implicit(self, count: int) -> None:
        """Count dependencies that types have added."""
        self._tree.implicit += count

    @property
    def missing(self) -> frozenset[str]:
        """URLs of templates that were looked up and are not among the files."""
        return frozenset(self._tree.missing)

    @property
    def environments(self) -> dict[str, Environment]:
        """The environments of the tree that were parsed, by their text."""
        return self._tree.environments

    def of_next_stack(self, files: Mapping[str, str]) -> "NestedTemplates":
        """Return the state for another stack of a preview, with these files: it counts anew, and
        parses no template again."""
        known = self._tree
        tree = _TreeState(read=known.read, types=known.types, environments=known.environments)
        return replace(self, files=files, path=(), _tree=tree)

    def enter(self, file: str) -> "NestedTemplates":
        """Return the state for the templates inside a file."""
        return replace(self, path=(*self.path, file))

    @property
    def resource_count(self) -> int:
        """Number of resources of the tree so far."""
        return self._tree.resources

    def count_template(self, template: Template) -> None:
        """Count the resources of a template. Raises LimitReached."""
        self.count_resources(len(template.resources))

    def count_resources(self, more: int) -> None:
        """Count more resources. Raises LimitReached."""
        self._tree.resources += more
        if self._tree.resources > self.most_resources:
            reason = f"the template has {self._tree.resources} resources"
            raise LimitReached(
                f"{reason}, including those of nested templates" if self.path else reason,
                place="resources",
                remedy=f"The limit is {self.most_resources}; the operator sets it in [quotas]"
                " resources_per_stack.",
                code="RequestLimitExceeded",
            )

    def check_depth(self, place: str) -> None:
        """Check the depth of the content of a group. Raises Invalid."""
        if len(self.path) > self.depth:
            raise Invalid([self._too_deep(place, "nested groups and templates")])

    def open_template(
        self, found: ResolvedType, use: TypeUse, environment: Environment,
        types: Mapping[str, TypeSchema], findings: Findings,
    ) -> TemplateType | None:  # fmt: skip
        """Return the template type of a resource; None with findings, whose places are in the file.

        environment: the environment of the resource's stack. Raises LimitReached.
        """
        place = nested_place(use.place, found.type)
        if len(self.path) == self.depth:
            findings.all.append(self._too_deep(place, "nested templates", found.type))
            return None
        template = self._template(found)
        if template is None:
            self._report_missing(found.type, use, findings)
        elif isinstance(template, Invalid):
            self._report_findings(found, place, template.findings, template.warnings, findings)
        else:
            self._report_findings(found, place, template.findings, template.warnings, findings)
            return self._template_type(found, use.resource, template, environment, types)
        return None

    def _template_type(
        self, found: ResolvedType, resource: str, template: Template, environment: Environment,
        types: Mapping[str, TypeSchema],
    ) -> TemplateType:  # fmt: skip
        """Return the template type, shared by all resources without settings of their own."""
        settings = settings_inside(environment.document, resource)
        self._count_text(BYTES_PER_ENTRY * settings.entry_count)
        if settings:
            self._count_text(BYTES_PER_ENTRY * sum(map(len, environment.document.values())))
        key = found.type, found.by, id(environment)
        _, known = (
            (environment, None) if settings else self._tree.types.get(key, (environment, None))
        )
        if known is None or known.template is not template:
            known = template_type(
                found.type, template, environment, found.by, settings, self._tree.environments
            )
            known = with_secrets(known, self.enter(found.type)._secret_resources(known, types))
            if not settings:
                self._tree.types[key] = environment, known
        return known

    def _secret_resources(
        self, kind: TemplateType, types: Mapping[str, TypeSchema]
    ) -> dict[str, TypeSchema]:
        """Return the schemas of the template's resources that have secrets, by name."""
        registry = kind.environment.registry
        secret = {}
        for body in kind.template.resources.values():
            try:
                found = registry.find(body.type, body.name, types)
            except CircularAlias:
                continue  # reported when the template is defined
            if found is None:
                continue
            if found.type == TEMPLATE_STACK:
                schema = self._schema_at_address(body, kind.environment, types)
            elif is_template_file(found.type):
                schema = self._nested_schema(found, body.name, kind.environment, types)
            else:
                schema = with_member_attributes(types[found.type], body, registry, types)
            if schema is not None and schema.has_secrets():
                secret[body.name] = schema
        return secret

    def _schema_at_address(
        self, body: ResourceBody, environment: Environment, types: Mapping[str, TypeSchema]
    ) -> TypeSchema | None:
        """Return the schema of a resource whose template is at a URL."""
        url = literal_address(body.properties)
        if url is None:
            return UNKNOWN_TEMPLATE
        inside = self._nested_schema(ResolvedType(url), body.name, environment, types)
        return None if inside is None else template_stack_schema(inside)

    def _nested_schema(
        self,
        found: ResolvedType,
        resource: str,
        environment: Environment,
        types: Mapping[str, TypeSchema],
    ) -> TypeSchema | None:
        if len(self.path) >= self.depth:
            return None
        template = self._template(found)
        if not isinstance(template, Template):
            return None
        return self._template_type(found, resource, template, environment, types).schema

    def check_facade(
        self, kind: TemplateType, found: ResolvedType, use: TypeUse, environment: Environment,
        types: Mapping[str, TypeSchema], findings: Findings,
    ) -> None:  # fmt: skip
        """Check a template that replaces an existing type: it must be compatible with that type."""
        facade = self._replaced_schema(found, use, environment, types)
        if facade is None or kind.template.findings:
            return
        for reason, remedy in facade_mismatches(replace(facade, name=use.type), kind.schema):
            findings.add(use.of_type, reason, remedy)

    def _replaced_schema(
        self,
        found: ResolvedType,
        use: TypeUse,
        environment: Environment,
        types: Mapping[str, TypeSchema],
    ) -> TypeSchema | None:
        if found.by is None:
            return None
        replaced = environment.registry.find(use.type, use.resource, types, without=found.by)
        if replaced is None or replaced.type == found.type:
            return None
        if replaced.type in types:
            return types[replaced.type]
        template = self._template(replaced)
        if not isinstance(template, Template):
            return None
        return self._template_type(replaced, use.resource, template, environment, types).schema

    def _too_deep(self, place: str, what: str, file: str = "") -> Finding:
        """The error for a stack below the lowest level. file: its template."""
        remedy = (
            f"Reduce the levels of {what}; the operator sets the limit in [language] nesting_depth."
        )
        if file in self.path:
            chain = (*self.path[self.path.index(file) :], file)
            remedy = f"{file} contains itself: {' -> '.join(dict.fromkeys(chain))} -> {file}."
        reason = f"Recursion depth exceeds {self.depth}."
        return Finding(place, reason, remedy, "RequestLimitExceeded")

    def _template(self, found: ResolvedType) -> Template | Invalid | None:
        """Return the parsed template, cached; None if it is not among the files. Raises
        LimitReached.
        """
        file, text = found.type, self._source_text(found)
        if text is None:
            return None
        self._count_text(len(text))
        known = self._tree.read.get(_key(found))
        if known is None or known[0] != text:
            known = self._tree.read[_key(found)] = text, self._parse(text, file)
        return known[1]

    def _count_text(self, characters: int) -> None:
        self._tree.text += characters
        if self._tree.text > MAX_TEXT:
            raise LimitReached(
                f"nested templates make the stack larger than {MAX_TEXT} characters",
                place="resources",
                remedy="Use fewer or smaller nested templates.",
                code="RequestLimitExceeded",
            )

    def _source_text(self, found: ResolvedType) -> str | None:
        if _key(found)[1] and found.type in self.operator_files:
            return self.operator_files[found.type]
        return self.files.get(found.type)

    def _report_missing(self, file: str, use: TypeUse, findings: Findings) -> None:
        if file.startswith(ADDRESSES):
            self._tree.missing.add(file)
        findings.add(
            use.of_type,
            f'Could not fetch remote template "{file}": it is not among the files',
            nearest(file, list(self.files)) or "Send its text in `files`.",
        )

    def _report_findings(
        self, found: ResolvedType, place: str, wrong: Sequence[Finding],
        warnings: Sequence[Finding], findings: Findings,
    ) -> None:  # fmt: skip
        """Add the findings and warnings of a file once, however many resources use it."""
        if _key(found) not in self._tree.reported:
            self._tree.reported.add(_key(found))
            findings.warn_all(find_in_nested(place, found.type, warnings))
            add_nested_findings(place, found.type, wrong, findings)

    def _parse(self, text: str, file: str) -> Template | Invalid:
        warnings = Findings()
        try:
            document = read_document(text, f"template {file}", self.limits, warnings)
            return read_template(document, warnings)
        except Invalid as error:
            return error


def _key(found: ResolvedType) -> tuple[str, bool]:
    """Return (file, whether it is the operator's)."""
    return found.type, found.by is not None and found.by.of_operator


def nested_place(place: str, file: str) -> str:
    """Return the place of a nested template, as in Heat: `resources.web<server.yaml>`."""
    return f"{place}<{file}>"


def place_in_nested(place: str, there: str) -> str:
    """Return a place inside a nested template. there: place in the template, "" for all of it."""
    return f"{place}.{there}" if there else place


def place_of_member(place: str, to_property_place: Callable[[str], str], there: str) -> str:
    """Return the place of a member. place: of the group's properties. to_property_place: maps a
    place in the members' template to one in the properties.
    """
    inside = to_property_place(there) if there.startswith("resources.") else ""
    return f"{place}.{inside}" if inside else there or place


def with_plain_names(
    to_property_place: Callable[[str], str], names: Iterable[str]
) -> Callable[[str], str]:
    """Return `to_property_place` for members whose names have dots or brackets, as servers can: it
    gets places with other names for them. names: of the members."""
    irregular = sorted((one for one in names if _SEPARATOR.search(one)), key=len, reverse=True)

    def place(there: str) -> str:
        for name in irregular:
            rest = there.removeprefix(f"resources.{name}")
            if rest != there and (not rest or _SEPARATOR.match(rest)):
                return to_property_place(f"resources.member{rest}")
        return to_property_place(there)

    return place if irregular else to_property_place


def find_in_nested(place: str, file: str, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of a nested template with their full places. file: of the template."""
    for one in found:
        full = place_in_nested(place, one.place)
        if one.file:
            yield replace(one, place=full, sentence="")
        else:
            inner = one.place if one.inner_place is None else one.inner_place
            yield replace(one, place=full, file=file, inner_place=inner, sentence="")


def add_nested_findings(
    place: str, file: str, wrong: Sequence[Finding], findings: Findings
) -> None:
    """Add the findings of a nested template with their full places."""
    for one in find_in_nested(place, file, wrong):
        findings.add_finding(one)


def add_output_findings(found: Iterable[Finding], findings: Findings) -> None:
    """Add the warnings of a nested template that another resource reads: an output without a value
    is an error.
    """
    for one in found:
        if one.code == OUTPUT_ERROR:
            findings.add_finding(replace(one, code="StackValidationFailed"))
        else:
            findings.warn_all([one])


def add_member_findings(
    place: str,
    to_property_place: Callable[[str], str],
    wrong: Sequence[Finding],
    findings: Findings,
) -> None:
    """Add the findings of a group's members with their full places."""
    for one in wrong:
        there = place_of_member(place, to_property_place, one.place)
        inner = one.inner_place
        if not one.file and inner is not None:  # it is in a generated template
            generated = inner.startswith("resources.")
            inner = place_of_member(place, to_property_place, inner) if generated else None
        findings.add_finding(replace(one, place=there, inner_place=inner, sentence=""))
