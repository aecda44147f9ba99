"""The interface of resource types, for the built-in ones and for plug-ins.

An operation receives a frozen `Call` and returns an `Outcome`. It must be re-entrant: after a crash
it is called again with the same ``operation_key`` and the last saved progress, and must find what
the lost call created. It never sleeps: to wait, it returns `Wait`.

An operation is a function (it computes) or a coroutine function (it does I/O).

Properties, attributes, data and progress may contain secrets. They are excluded from all reprs
here, and a type must not put them into reasons. If a resource depends on a secret, only the
`public_reason` and the `public_seen` of the outcome are shown.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from inspect import isawaitable
from uuid import UUID

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.hot.syntax.keyed_names import plain_name
from engine.types.completion import Completions
from engine.types.custom_constraints import CustomConstraint, ValidationContext, Verdict
from engine.types.group_size import SizeAdjustment
from engine.types.live_object import LiveObject, UnreadableCode, UnreadableObject
from engine.types.nested_observation import NestedStackState, observe_nested_stack
from engine.types.observation import PRESENT, Observation
from engine.types.observed_list import ObservedList
from engine.types.operation_outcomes import (
    ActOnNested,
    Confirm,
    DeleteNested,
    Done,
    Failed,
    NestedCommand,
    Outcome,
    ReconcileNested,
    Replace,
    RestoreNested,
    RunNested,
    Stopped,
    Wait,
)
from engine.types.signal_urls import SignalUrl
from engine.types.successor import Successors
from engine.words import Json, ObservedState, ResourceId, StackId, TraversalState

__all__ = [
    "ActOnNested",
    "Call",
    "Child",
    "Confirm",
    "Confirmation",
    "DeleteNested",
    "Done",
    "Failed",
    "Member",
    "NestedCommand",
    "Outcome",
    "ReconcileNested",
    "Replace",
    "ResourceType",
    "RestoreNested",
    "RunNested",
    "Stopped",
    "Wait",
]  # fmt: skip


#: Why a resource is unknown whose check returned no result.
CHECK_NOT_ENDED = "the check of the resource did not end"


@dataclass(frozen=True, slots=True)
class Member:
    """A current resource of the nested stack. Replaced resources are not included.

    status: of its action. created_at: when it was first planned. secret_attributes: the names of
    its secret attributes, "" for its reference and "*" for all attributes. up_to_date: False: the
    last step ended before it had applied the definition in `Child.template`. under_way: an
    operation on the member has not ended. marked: it has failed only because a converge repairs it
    (`engine.plan.drift.DriftMarks`).
    """

    name: str
    type: str
    action: str
    status: str
    physical_id: str | None
    reference: Json = field(repr=False)
    attributes: Mapping[str, Json] = field(repr=False)
    created_at: datetime
    secret_attributes: Sequence[str] = ()
    up_to_date: bool = True
    under_way: bool = False
    marked: bool = False


@dataclass(frozen=True, slots=True)
class Child:
    """The nested stack of a resource.

    step: the last step of this operation that ran on it (`RunNested.step`); "" before the first.
    state: the result of that step, or of an earlier operation: COMPLETE, FAILED or STOPPED. RUNNING
    means that the stack runs an action of its own, which the next step supersedes. members: in the
    order of their creation. outputs: by name; None for an output that cannot be evaluated.
    secret_outputs: the names of outputs computed from secrets. template, parameters: of the last
    step, even if it failed: as in `ReconcileNested`, or as the template file defines them.
    """

    id: StackId
    name: str
    step: str
    state: TraversalState
    reason: str
    members: Sequence[Member] = field(default=(), repr=False)
    outputs: Mapping[str, Json] = field(default_factory=dict, repr=False)
    template: Mapping[str, Json] = field(default_factory=dict, repr=False)
    parameters: Mapping[str, Json] = field(default_factory=dict, repr=False)
    secret_outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an operation.

    properties: resolved, with defaults. For delete: as last applied.
    previous: resolved and last applied; None for a create.
    changed: the names of top-level properties that differ between the two. Empty if a failed update
    is repeated with the properties that the resource had before.
    failed: the last operation on the resource failed, or the update repairs drift: the physical
    resource may also differ in properties that are not in `changed`.
    attributes: as currently recorded.
    progress: the progress that the operation last returned, or None at the first call.
    attempts: the number of failed attempts of this operation. repeated: an earlier call of this
    operation may have had effects that are not in `progress`: it failed, or its result was lost.
    kept: for an update or create that restores a snapshot, the data of `snapshot`; else None.
    confirmation: the answer to the last `Confirm` of the operation, or None.
    answers: data of the answers to hooks of this node, by point.
    credential: of the request, or of the answer that resumed the node, for calls to the cloud; ""
    for none. The type must not store it.
    signals: data of all signals to the resource, oldest first, including those that arrived before
    the operation. A type whose schema has `signals` is called when one arrives while it waits.
    After ``Wait.signal_resource_id``, these are the signals of that resource.
    signal_url: for a type with signals. Its token is a secret.
    signal_resource_type: the type of the resource in ``Wait.signal_resource_id``; None: the stack
    has no such resource.
    update_policy: from the template, resolved: how a group changes its members.
    child: the nested stack of a type that has one; None before it is created.
    superseded: the change ended early. An operation under way may continue to its end; one that
    only waits should return `Failed`, because a newer change may wait for it.
    cancelled: the change was cancelled, has timed out, or was superseded by a delete, so no change
    needs the outcome. The operation should return `Failed` at once, with the physical resource that
    may exist, which the next change deletes. Never set for a delete.
    referenced: the properties of the resource that `ResourceType.referenced_resource` names; None:
    there is no such resource.
    has_secrets: a property is secret, also one of `referenced`.
    adjusted: for an update that scales a group, the adjustment; else None.
    replaced: for a create, the physical ID of the resource that it replaces. replaced_data: the
    data of that resource, which may have failed.
    observation_credential: in `observe`: the ID of the credential that the owner of the project has
    handed over for observations, which is no secret; "" for none.
    metadata: of the resource in the template, for a create or update.
    region: of the cloud, as the environment of the root stack names it; "": the configured one.
    now: the database's time.
    """

    project: str
    stack_id: StackId
    stack_name: str
    resource_id: ResourceId
    resource_name: str
    operation_key: UUID
    now: datetime
    properties: Mapping[str, Json] = field(repr=False)
    previous: Mapping[str, Json] | None = field(default=None, repr=False)
    changed: frozenset[str] = frozenset()
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    attributes: Mapping[str, Json] = field(default_factory=dict, repr=False)
    progress: Json | None = field(default=None, repr=False)
    attempts: int = 0
    kept: Mapping[str, Json] | None = field(default=None, repr=False)
    confirmation: "Confirmation | None" = None
    answers: Mapping[str, Json] = field(default_factory=dict, repr=False)
    credential: str = field(default="", repr=False)
    signals: Sequence[Json] = field(default=(), repr=False)
    signal_url: SignalUrl = field(default=SignalUrl(), repr=False)
    signal_resource_type: str | None = None
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    child: Child | None = None
    superseded: bool = False
    cancelled: bool = False
    referenced: Mapping[str, Json] | None = field(default=None, repr=False)
    has_secrets: bool = False
    adjusted: Mapping[str, Json] | None = None
    repeated: bool = False
    replaced: str | None = None
    failed: bool = False
    observation_credential: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict, repr=False)
    replaced_data: Mapping[str, Json] = field(default_factory=dict, repr=False)
    region: str = ""

    def touches(self, name: str) -> bool:
        """Whether a create or update concerns a property."""
        return self.previous is None or name in self.changed or self.repeats_all

    @property
    def repeats_all(self) -> bool:
        """Whether an update applies all properties, not only the changed ones."""
        return self.failed or not self.changed

    @property
    def own_name(self) -> str:
        """A name for the physical resource, the same in all calls of this operation."""
        return make_physical_name(
            self.stack_name, self.resource_name, short_key(self.operation_key)
        )


def short_key(operation_key: UUID) -> str:
    """What names of physical resources have of the key of the operation that creates them."""
    return operation_key.hex[:12]


def make_physical_name(stack_name: str, resource_name: str, key: str) -> str:
    """As `Call.own_name`. key: see `short_key`."""
    return f"{stack_name}-{plain_name(resource_name)}-{key}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """accepted: continue; else undo the step if possible, and return `Failed`."""

    step: str
    accepted: bool
    by: str
    reason: str = ""


def observe_outcome(checked: Outcome) -> Observation:
    """The observed state that the outcome of a check stands for."""
    match checked:
        case Done():
            return PRESENT
        case Failed(retry=False):
            return Observation(
                ObservedState.DEGRADED,
                reason=checked.reason,
                public_reason=checked.public_reason,
            )
        case Failed() | Wait():
            reason, public = checked.reason, checked.public_reason
            return Observation.unknown(reason or CHECK_NOT_ENDED, public or CHECK_NOT_ENDED)
        case _:
            return Observation.unknown(CHECK_NOT_ENDED, CHECK_NOT_ENDED)


class ResourceType(ABC):
    """A resource type: its schema and operations.

    replaces_tainted: the update after a failed update replaces the resource, as in Heat; False: it
    repeats the update. repairs: an update repairs every failure, even of create; the resource is
    never replaced for it. uses_credential: False: it calls no cloud, and its calls have no
    credential (`needs_credential`). has_nested_stack: its operations may return `RunNested`
    (`run_nested`). cancellable: if its operation is cancelled while it waits, it is called again at
    once with `Call.cancelled`, to end. interruptible: also during a call, which gets
    `asyncio.CancelledError`. supersedable: if its change ends early for any reason while it waits,
    also by an update, it is called again at once with `Call.superseded`, to stop waiting.
    computes_only: its create is a plain
    function without effects, so its outcome may be discarded and computed again with another
    operation key. The engine may then execute it together with the resources that wait for it, and
    write all of them in one transaction. check_observes: `check` asks the provider, changes nothing
    and needs no credential, so a type without `observe` is observed by it, with one call for each
    resource. constraints: custom constraints for
    parameters and properties of any template and type. completions: has the observer complete
    operations. successors: reads the resource that has replaced one. Both are set by the
    program before the first call.
    """

    schema: TypeSchema
    replaces_tainted: bool = True
    repairs: bool = False
    uses_credential: bool = True
    has_nested_stack: bool = False
    cancellable: bool = False
    interruptible: bool = False
    supersedable: bool = False
    computes_only: bool = False
    check_observes: bool = False
    constraints: Sequence[CustomConstraint] = ()
    completions: Completions | None = None
    successors: Successors | None = None

    def needs_credential(self, call: Call) -> bool:
        """Whether this call sends requests to a cloud; the call has no credential yet. Only then is
        the credential of the change exchanged, which fails if the identity service is down."""
        return self.uses_credential

    @abstractmethod
    def create(self, call: Call) -> Outcome | Awaitable[Outcome]: ...

    def update(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Update in place. Called only if properties differ and all of these allow updates."""
        return Replace()

    @abstractmethod
    def delete(self, call: Call) -> Outcome | Awaitable[Outcome]: ...

    def check(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Compare the physical resource with the recorded state; Failed if it is unhealthy.

        Done has the current attributes.
        """
        reason = f"CHECK not supported for {self.schema.name}"
        return Done(call.physical_id, call.attributes, call.data, reason, public_reason=reason)

    def adopt(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Adopt the physical resource ``call.physical_id`` and read its attributes."""
        return self.check(call)

    def suspend(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Suspend the physical resource without loss of data."""
        return Done(call.physical_id, call.attributes, call.data)

    def resume(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Resume the physical resource."""
        return Done(call.physical_id, call.attributes, call.data)

    def snapshot(self, call: Call) -> Outcome | Awaitable[Outcome]:
        """Take a snapshot. The ``data`` of Done is passed to a restore as ``call.kept``.

        The resource's attributes and data do not change.
        """
        return Done(call.physical_id, call.attributes)

    def observation_key(self, call: Call) -> str | None:
        """Resources with the same key are observed by one call of `observe`. None: the resource
        cannot be observed, because the type or its properties name no way to read it.

        The key must have no secret. Raises nothing. By default, the ID of the resource with
        `check_observes`.
        """
        return str(call.resource_id) if self.check_observes and call.physical_id else None

    def observation_endpoint(self, call: Call) -> str:
        """The service that `observe` asks, in the budgets of requests too. If it fails
        (`Observation.scope`), observations by policy wait before they try it again. It must have no
        secret. Raises nothing."""
        return ""

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        """The paths that differences of a resource can have; None: not known. properties: with the
        schema's defaults. A value that is not known before the resource exists is None, also inside
        of maps and lists.

        By default, none if `check` or nothing observes the type, else not known.
        """
        own = (type(self).observe, type(self).observed_list)
        base = (ResourceType.observe, ResourceType.observed_list)
        return () if own == base else None

    def adopted_places(
        self, properties: Mapping[str, Json], path: str
    ) -> Sequence[tuple[str, ...]]:
        """Where the properties take over the observed value of a difference, if an answer adopts
        it; see `engine.plan.overrides`. Empty: it cannot be adopted. properties: recorded.

        By default, the property of this name, if it can be updated in place or is observed.
        """
        known = self.schema.properties.get(path)
        if known is None:
            return ()
        observed = known.update_allowed or path in (self.observed_paths(properties) or ())
        return ((path,),) if observed else ()

    def adopted_value(self, place: Sequence[str], value: Json) -> Json:
        """How a property has an adopted value at a place of `adopted_places`, such as with escaped
        placeholders, so that it stays data. By default, as it is."""
        return value

    def adopted_data(self, data: Mapping[str, Json], path: str, value: Json) -> Mapping[str, Json]:
        """The data of the resource after an answer has adopted an observed value."""
        return data

    def observe(
        self, calls: Sequence[Call]
    ) -> Mapping[ResourceId, Observation] | Awaitable[Mapping[ResourceId, Observation]]:
        """Read the state of physical resources of one project and region that have the same
        `observation_key`, and compare it with their properties. It changes nothing. Calls have no
        credential and no progress.

        Returns the observations by resource ID; a resource without one is unknown. By default, what
        `observed_list` has, or the outcomes of `check` with `check_observes`.
        """
        if (listed := self.observed_list(calls[0])) is not None:
            return listed.observe(calls)
        return self._observe_by_check(calls) if self.check_observes else {}

    def observed_list(self, call: Call) -> ObservedList | None:
        """Return the list that has the objects of all resources with the same `observation_key`, so
        that the observer reads it once for any number of them. None: `observe` reads them. call: of
        one of these resources, as in `observe`."""
        return None

    async def _observe_by_check(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        found: dict[ResourceId, Observation] = {}
        for call in calls:
            outcome = self.check(call)
            checked = await outcome if isawaitable(outcome) else outcome
            found[call.resource_id] = observe_outcome(checked)
        return found

    def observe_nested(
        self, properties: Mapping[str, Json], found: NestedStackState | None
    ) -> Observation:
        """For a type with a nested stack, in place of `observe`: the observed state of a resource.
        No provider is asked. properties: recorded. found: its nested stack; None: it does not
        exist.

        What differs inside is drift of the resources inside, and no part of the result.
        """
        return observe_nested_stack(found)

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        """Read the physical resource ``call.physical_id`` for a template that imports it, without a
        change. ``call.properties``: given by the caller, checked one by one, without defaults;
        they win over the ones that are read. imported: the physical IDs that the same template
        imports.

        Raises UnreadableObject.
        """
        raise UnreadableObject(
            UnreadableCode.UNSUPPORTED,
            "type",
            f"{self.schema.name} cannot read existing objects for an import",
            "Write the resource by hand, with an entry in the section import of the template.",
        )

    def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        """For a type that uses `completions`: read the objects of all operations that wait with the
        same key, page by page, by ID. definition: of one of these operations.

        Other objects are ignored, and an operation whose object is missing waits on. Raises
        ObjectsUnknown.
        """
        raise NotImplementedError

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        """For a type that uses `completions`: the service that `read_objects` asks, as
        `observation_endpoint` names it. definition: of an operation."""
        return ""

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        """For a type that uses `completions`: whether the operation has ended, also in a failure.
        definition: of the operation. found: its object, from `read_objects`."""
        raise NotImplementedError

    def reference(
        self, resource_name: str, physical_id: str | None, data: Mapping[str, Json]
    ) -> str:
        """The value of ``get_resource``: the physical ID, or the name before there is one."""
        return physical_id or resource_name

    def needs_replace(self, call: Call) -> bool:
        """Whether this change replaces the resource although the schema allows an update."""
        return False

    def preview_nested(self, call: Call) -> ReconcileNested | None:
        """For a type that generates the template of its nested stack: the command for the members
        that a create or update ends with, for a dry run; None if they are not known.

        `call.properties` contain `engine.plan.expected_changes.UNKNOWN` for unknown values, at any
        depth, and `call.child` has no outputs.
        """
        return None

    def accept_signal(self, data: Json, number: int) -> Json:
        """Validate the data of a signal and return what to store.

        number: of signals to the resource, including this one. Raises Invalid: the signal is
        refused and not stored.
        """
        return data

    def referenced_resource(self, properties: Mapping[str, Json]) -> str | None:
        """The value of get_resource of another resource of the stack, whose properties a type with
        a nested stack needs (`Call.referenced`); None if it needs none."""
        return None

    def adjust(self, properties: Mapping[str, Json]) -> SizeAdjustment | None:
        """For a type whose signals scale a group: the adjustment. Its signals are not stored."""
        return None

    def check_external(self, physical_id: str, context: ValidationContext) -> Verdict:
        """Return the reason why an ``external_id`` is invalid, or None. Called before anything is
        stored. May be a coroutine function, like `CustomConstraint.validate`."""
        return None

    def max_duration(self, properties: Mapping[str, Json]) -> float:
        """The longest time that an operation may take, in seconds; 0: unknown.

        Values that are unknown before creation are absent, and defaults are not filled in.
        """
        return 0

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        """Validate rules that concern several properties, and add findings.

        properties: without values that are unknown before creation, and without defaults. place: of
        the properties, such as ``resources.a.properties``.
        """


class InternalType(ResourceType):
    """The base class of types without physical resources: a delete has nothing to do."""

    uses_credential = False

    def delete(self, call: Call) -> Outcome | Awaitable[Outcome]:
        return Done(None)


def run_nested(
    call: Call,
    step: str,
    goal: NestedCommand,
    then: Callable[[Child], Outcome],
    progress: Json = None,
) -> Outcome:
    """Run one step on the nested stack, then return `then` of the stack. A step that fails or is
    stopped ends the operation in the same way.

    The type computes only: engine/service/traversals/nested.py runs the command, continues after a
    crash, and ends it early when a newer change supersedes it.
    """
    child = call.child
    if child is None or child.step != step:
        return RunNested(step, goal, call.progress if progress is None else progress)
    match child.state:
        case TraversalState.COMPLETE:
            return then(child)
        case TraversalState.STOPPED:
            return Stopped(child.reason, str(child.id), call.data, public_reason=child.reason)
        case _:
            return Failed(child.reason, str(child.id), call.data, public_reason=child.reason)
