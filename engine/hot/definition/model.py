"""Stack definitions: the values that planning, the store and the API read."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.errors import Finding
from engine.hot.definition.lifecycle import Lifecycle
from engine.hot.evaluation.assertions import Assertion
from engine.hot.expressions.expression import Expression
from engine.hot.expressions.masked_expressions import masks_part
from engine.hot.expressions.masking import MASK
from engine.hot.functions.function import FunctionError
from engine.hot.nested.template_type import TemplateType
from engine.hot.schema.parameters import ParameterSchema, display_value
from engine.hot.template.hook_declarations import HookDeclaration
from engine.hot.template.moved_and_imported import MovedResource
from engine.words import Json, Point

if TYPE_CHECKING:
    from engine.hot.definition.reuse import ReusableResources


def undecidable(condition: Json, place: str) -> bool:
    """The `decide` of a definition without conditions. Raises FunctionError."""
    raise FunctionError("This definition has no conditions", "Update the stack with its template.")


@dataclass(frozen=True, slots=True)
class ResourceAssertions:
    """The undecided preconditions and postconditions of a resource. secret: one reads a secret."""

    preconditions: tuple[Assertion, ...]
    postconditions: tuple[Assertion, ...]
    secret: bool = False


@dataclass(slots=True)
class ResourceDefinition:
    """One resource as it should be. Do not change it once it is complete (not frozen: thousands are
    created per request).

    type: after aliases. properties, metadata: expressions, without the schema's defaults.
    masked_properties: the same with secrets masked; None if nothing is secret. requires: resources
    that must exist before this one (depends_on, and all that it reads). reads: resources whose
    reference or attributes the properties and metadata read; if empty, these are plain values.
    external_id: physical ID of an existing resource that the stack neither created nor changes.
    digest: sha256, hex; equal if type, properties, metadata and deletion policy are.
    secret_metadata: the metadata contain a secret. secret_policy: the update_policy contains a
    secret. update_policy: an expression; how a group changes its members. pauses_every_update: a
    hook inside it pauses every update, as Heat's `pre-update` hooks do. lifecycle,
    assertions: None if the template gives none. is_data: an entry of the section `data`.
    reads_data: it is one or has some inside, so that every update reads them again.
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
    pauses_every_update: bool = False
    secret_policy: bool = False
    lifecycle: Lifecycle | None = None
    assertions: "ResourceAssertions | None" = None
    is_data: bool = False
    reads_data: bool = False

    def secret_properties(self, names: Collection[str]) -> frozenset[str]:
        """Return the names of properties with secret values. names: all property names, returned if
        the properties are one expression that is masked as a whole.
        """
        masked, plain = self.masked_properties, self.properties
        if masked is None:
            return frozenset()
        if not (isinstance(masked, Mapping) and isinstance(plain, Mapping)):
            return frozenset(names)
        return frozenset(
            name
            for name, value in plain.items()
            if name not in masked or masks_part(masked[name], value)
        ) | frozenset(masked.keys() - plain.keys())


@dataclass(frozen=True, slots=True)
class OutputDefinition:
    """value: an expression, null if the output's condition is false. secret: computed from a hidden
    parameter or a secret attribute.
    """

    value: Expression
    description: str
    secret: bool = False


@dataclass(frozen=True, slots=True)
class NestedStackDefinition:
    """A nested stack, as far as it is known before it is created.

    type: the resource's type as written. parameters: the known ones. hidden: names of hidden
    parameters. nested: its nested stacks by resource. digest: sha256, hex; equal if the template,
    its environment and the resulting definition are.
    """

    type: str
    kind: TemplateType
    parameters: Mapping[str, Json] = field(repr=False)
    hidden: frozenset[str]
    nested: Mapping[str, "NestedStackDefinition"]
    digest: str

    def reads_data(self) -> bool:
        """Return whether the template, or one inside, has the section `data`."""
        bodies = self.kind.template.resources.values()
        return any(one.is_data for one in bodies) or any(
            one.reads_data() for one in self.nested.values()
        )

    def pauses_every_update(self) -> bool:
        """Return whether a hook inside pauses updates even if nothing changes, as Heat's do."""
        declarations = (
            *self.kind.template.hook_declarations,
            *self.kind.environment.hook_declarations,
        )
        short = any(one.short and one.item == Point.PRE_UPDATE for one in declarations)
        return short or any(one.pauses_every_update() for one in self.nested.values())


@dataclass(frozen=True, slots=True)
class StackDefinition:
    """version: the template version, a date. parameters: converted values by name, without pseudo
    parameters. decide(condition, place): evaluates a condition with these parameters; raises
    FunctionError. nested: nested stacks by resource. contained: definitions of nested stacks and of
    group members, as far as they are known. warnings: also of nested stacks. moved: of enabled
    resources. imported: physical IDs by resource, to adopt where a resource is new. reusable: for
    the next definition of the stack. undecided: the types of resources whose condition reads a
    parameter without a value yet, by name. undecided_parameters: names of the parameters of their
    nested stacks, by name of the resource. undecided_groups: the properties of those that are
    groups, by name.
    """

    version: str
    description: str
    resources: Mapping[str, ResourceDefinition]
    outputs: Mapping[str, OutputDefinition]
    parameters: Mapping[str, Json]
    pseudo: Mapping[str, str]
    hidden: frozenset[str]
    hook_declarations: tuple[HookDeclaration, ...]
    schemas: Mapping[str, ParameterSchema]
    decide: Callable[[Json, str], bool] = undecidable
    nested: Mapping[str, NestedStackDefinition] = field(default_factory=dict)
    contained: tuple["ContainedStack", ...] = ()
    warnings: tuple[Finding, ...] = ()
    moved: tuple[MovedResource, ...] = ()
    imported: Mapping[str, str] = field(default_factory=dict)
    reusable: "ReusableResources | None" = field(default=None, repr=False, compare=False)
    undecided: Mapping[str, str] = field(default_factory=dict)
    undecided_parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    undecided_groups: Mapping[str, Expression] = field(default_factory=dict)

    def shown_parameters(self) -> dict[str, str]:
        """Return the parameters as the Orchestration API shows them: text, hidden ones masked."""
        shown = dict(self.pseudo)
        for name, value in self.parameters.items():
            kind = self.schemas[name].kind
            shown[name] = MASK if name in self.hidden else display_value(kind, value)
        return shown


@dataclass(frozen=True, slots=True)
class ContainedStack:
    """A definition inside a resource: of its nested stack or of its members.

    resource: its name. given: names of the parameters that the resource provides. place(place
    inside): the place as seen from the root stack. secret: all values may be secret. is_sample: of
    members, of which there may be more.
    """

    resource: str
    definition: StackDefinition
    given: Collection[str]
    place: Callable[[str], str]
    secret: bool = False
    is_sample: bool = False
