"""What a definition is: values that planning, the store and the API read."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from engine.hot.declared import DeclaredHook
from engine.hot.expression import Expression
from engine.hot.function import Wrong
from engine.hot.parameters import ParameterSchema, shown_value
from engine.hot.resolve import MASK
from engine.hot.template_types import TemplateType
from engine.words import Json, Point


def never(condition: Json, place: str) -> bool:
    raise Wrong("There is nothing to decide by")


@dataclass(slots=True)
class DefinedResource:
    """One resource to be; never changed once it is made (not frozen: a thousand are made at once).

    type: after aliases. properties, metadata: expressions; defaults of the schema not filled in.
    masked_properties: the same for display, or None where nothing is secret.
    requires: what must be there before (depends_on, and all that is read). reads: names whose
    reference or attributes properties and metadata read; when empty, these are plain values.
    external_id: the real thing that it stands for, which it neither made nor may change.
    digest: sha256, hex, equal when type, properties, metadata and deletion policy are.
    secret_metadata: the metadata have something secret that the properties have not.
    update_policy: an expression; how a type that has members changes them.
    asks: a breakpoint inside of it asks at every update, as Heat's short ones do.
    """

    name: str
    type: str
    properties: Expression
    masked_properties: Expression | None
    metadata: Expression
    requires: frozenset[str]
    reads: frozenset[str]
    deletion_policy: str
    description: str
    digest: str
    place: str
    external_id: str | None = None
    secret_metadata: bool = False
    update_policy: Expression = None
    asks: bool = False


@dataclass(frozen=True, slots=True)
class DefinedOutput:
    """value: an expression, null when the output's condition is off."""

    value: Expression
    description: str


@dataclass(frozen=True, slots=True)
class NestedDefinition:
    """A stack inside a stack, as far as it is known before it is made.

    type: as the resource has it written. parameters: those given to it that are known now. hidden:
    names of those whose values are nobody's to see. nested: what is nested in it, by resource.
    digest: sha256, hex, equal when the template, its environment and what they make of it are.
    """

    type: str
    kind: TemplateType
    parameters: Mapping[str, Json] = field(repr=False)
    hidden: frozenset[str]
    nested: Mapping[str, "NestedDefinition"]
    digest: str

    def asks(self) -> bool:
        """Whether a breakpoint somewhere inside asks even if nothing changes, as Heat's do."""
        declared = (*self.kind.template.declared, *self.kind.environment.declared)
        short = any(one.short and one.item == Point.PRE_UPDATE for one in declared)
        return short or any(one.asks() for one in self.nested.values())


@dataclass(frozen=True, slots=True)
class Definition:
    """nested: by resource, where its type is a template. inside: what that came to, and members of
    groups, as far as they are known.

    parameters: converted values by name, without pseudo ones. version: a date.

    decide(condition, its place): whether a condition holds with these parameters. Raises Wrong.
    """

    version: str
    description: str
    resources: Mapping[str, DefinedResource]
    outputs: Mapping[str, DefinedOutput]
    parameters: Mapping[str, Json]
    pseudo: Mapping[str, str]
    hidden: frozenset[str]
    declared: tuple[DeclaredHook, ...]
    schemas: Mapping[str, ParameterSchema]
    decide: Callable[[Json, str], bool] = never
    nested: Mapping[str, NestedDefinition] = field(default_factory=dict)
    inside: tuple["Within", ...] = ()

    def shown_parameters(self) -> dict[str, str]:
        """Parameters as the Orchestration API shows them: text, hidden ones masked."""
        shown = dict(self.pseudo)
        for name, value in self.parameters.items():
            kind = self.schemas[name].kind
            shown[name] = MASK if name in self.hidden else shown_value(kind, value)
        return shown


@dataclass(frozen=True, slots=True)
class Within:
    """What a resource holds. given: names of parameters that the resource gives. place(where in
    there): where that is, seen from the outermost stack."""

    definition: Definition
    given: Collection[str]
    place: Callable[[str], str]
