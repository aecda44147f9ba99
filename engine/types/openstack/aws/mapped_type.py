"""Types whose properties become those of another type, which does the work.

A subclass is a table (`names`) and pure functions: how its properties become those of the other
type (`map`), and how the attributes of that type become its own (`own_attributes`). Properties that
only the cloud knows, such as the network of a subnet, are read once for each create or update
(`resolve`) and kept in the progress. A type with a second object saves the first one, and makes the
second one in later calls (`follow_up`).
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import Any, ClassVar, Final

from engine.errors import Findings
from engine.hot.schema.properties import fill_defaults
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Confirm, Done, Outcome, ResourceType, Wait
from engine.types.custom_constraints import ValidationContext, Verdict
from engine.types.observation import Observation, join_paths
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.cloud_operation import run_guarded
from engine.types.openstack.object_type import ObjectType
from engine.words import Json, ResourceId

#: In the progress: what `resolve` has returned.
_RESOLVED: Final = "resolved"
#: In the progress: the outcome of the create of the other type, before `follow_up`.
_CREATED: Final = "created"


class MappedType(ResourceType):
    """names: for each property, the properties of the other type that it determines.
    not_implemented: paths of properties that Heat refuses as well, such as ``Tags`` or
    ``Rules.*.Owner``. follows_up: it has a `follow_up`.
    """

    names: ClassVar[Mapping[str, tuple[str, ...]]]
    not_implemented: ClassVar[Sequence[str]] = ()
    follows_up: ClassVar[bool] = False

    def __init__(self, schema: TypeSchema, other: ResourceType, cloud: Cloud) -> None:
        self.schema = replace(schema, steps=other.schema.steps)
        self.other = other
        self.cloud = cloud
        self.replaces_tainted = other.replaces_tainted
        self.repairs = other.repairs
        self.cancellable = other.cancellable
        self.interruptible = other.interruptible
        self.supersedable = other.supersedable

    # ---- for subclasses

    @abstractmethod
    def map(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        """The properties of the other type; also for a validation, where unknown values are
        missing."""

    async def resolve(self, call: Call, session: Session) -> Mapping[str, Json]:
        """Further properties of the other type. May be repeated. Raises CloudError."""
        return {}

    def own_attributes(self, call: Call, attributes: Mapping[str, Json]) -> dict[str, Json]:
        """The attributes besides `show`. attributes: of the other type."""
        return {}

    def own_data(self, call: Call, done: Done) -> dict[str, Json]:
        """Data in addition to that of the other type."""
        return {}

    def own_value(self, name: str, value: Json) -> Json:
        """A value of the other type as a property has it."""
        return value

    async def follow_up(self, call: Call, session: Session, done: Done) -> Outcome:
        """What a create does after that of the other type, with its own progress. May be repeated.
        Returns `done`, with further data, or a Wait. Raises CloudError."""
        return done

    async def before_delete(self, call: Call, session: Session) -> Outcome | None:
        """What a delete does before that of the other type; None when that is done. May be
        repeated. Raises CloudError."""
        return None

    async def after_delete(self, call: Call, session: Session) -> None:
        """What a delete does after that of the other type. May be repeated. Raises CloudError."""

    # ---- operations

    async def create(self, call: Call) -> Outcome:
        if (created := (call.progress or {}).get(_CREATED)) is not None:
            return await self._follow_up(call, created)
        outcome = await self._run_resolved(call, "create")
        if not self.follows_up or not isinstance(outcome, Done):
            return outcome
        kept = {
            "id": outcome.physical_id,
            "attributes": dict(outcome.attributes),
            "data": dict(outcome.data),
        }
        return Wait(call.now, {_CREATED: kept})

    async def _follow_up(self, call: Call, created: Mapping[str, Json]) -> Outcome:
        done = Done(created["id"], created["attributes"], created["data"])
        progress = {name: one for name, one in (call.progress or {}).items() if name != _CREATED}
        inner = replace(call, progress=progress or None)
        session = self.cloud.session(call)
        outcome = await run_guarded(
            inner, lambda: self.follow_up(inner, session, done), done.physical_id, done.data
        )
        if isinstance(outcome, Wait):
            return replace(outcome, progress={**(outcome.progress or {}), _CREATED: created})
        return outcome

    async def update(self, call: Call) -> Outcome:
        return await self._run_resolved(call, "update")

    async def delete(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._delete(call), call.physical_id)

    async def _delete(self, call: Call) -> Outcome:
        session = self.cloud.session(call)
        if (outcome := await self.before_delete(call, session)) is not None:
            return outcome
        outcome = await self._run(self._translate(call), "delete")
        if isinstance(outcome, Done):
            await self.after_delete(call, session)
        return outcome

    async def check(self, call: Call) -> Outcome:
        return self._own(call, await self._run(self._translate(call), "check"))

    async def adopt(self, call: Call) -> Outcome:
        return self._own(call, await self._run(self._translate(call), "adopt"))

    async def suspend(self, call: Call) -> Outcome:
        return self._own(call, await self._run(self._translate(call), "suspend"))

    async def resume(self, call: Call) -> Outcome:
        return self._own(call, await self._run(self._translate(call), "resume"))

    async def snapshot(self, call: Call) -> Outcome:
        if not self.schema.snapshots:
            return Done(call.physical_id, call.attributes)
        return await self._run(self._translate(call), "snapshot")

    def needs_replace(self, call: Call) -> bool:
        """An update that repairs is not limited to what the schema allows."""
        known = self.schema.properties
        if any(not known[name].update_allowed for name in call.changed):
            return True
        return self.other.needs_replace(self._translate(call))

    def needs_credential(self, call: Call) -> bool:
        return self.other.needs_credential(self._translate(call))

    async def _run_resolved(self, call: Call, operation: str) -> Outcome:
        progress = dict(call.progress or {})
        found = progress.pop(_RESOLVED, None)
        ends_at_once = self.cancellable and not isinstance(self.other, ObjectType)
        if found is None and not (call.cancelled and ends_at_once):
            session = self.cloud.session(call)

            async def resolve() -> Outcome:
                return Wait(call.now, await self.resolve(call, session))

            resolved = await run_guarded(call, resolve, call.physical_id)
            if not isinstance(resolved, Wait) or resolved.until != call.now:
                return resolved
            found, progress = resolved.progress, {}
        inner = replace(self._translate(call, found or {}), progress=progress or None)
        outcome = await self._run(inner, operation)
        if isinstance(outcome, Wait | Confirm):
            return replace(outcome, progress={**(outcome.progress or {}), _RESOLVED: found or {}})
        return self._own(call, outcome)

    async def _run(self, call: Call, operation: str) -> Outcome:
        return await self.run_type(self.other, call, operation)

    async def run_type(self, type_: ResourceType, call: Call, operation: str) -> Outcome:
        """One call of an operation of another type."""
        outcome: Any = getattr(type_, operation)(call)
        found: Outcome = await outcome if isawaitable(outcome) else outcome
        return found

    def _translate(self, call: Call, resolved: Mapping[str, Json] | None = None) -> Call:
        changed = {one for name in call.changed for one in self.names.get(name, ())}
        return replace(
            call,
            properties={**self._all(call.properties), **(resolved or {})},
            previous=None if call.previous is None else self._all(call.previous),
            changed=frozenset(changed),
        )

    def _all(self, properties: Mapping[str, Json]) -> dict[str, Json]:
        return fill_defaults(self.other.schema, self.map(properties))

    def _own(self, call: Call, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Done):
            return outcome
        own = self.own_attributes(call, outcome.attributes)
        return replace(
            outcome,
            attributes={**own, "show": outcome.attributes.get("show")},
            data={**outcome.data, **self.own_data(call, outcome)},
        )

    # ---- validation

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        self.check_implemented(properties, place, findings)
        others = Findings()
        self.other.check_properties(self.map(properties), place, others)
        for one in others.all:
            findings.add(self._own_place(one.place, place), one.reason, one.remedy)

    def check_implemented(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        refuse_unimplemented(self.not_implemented, properties, place, findings)

    def _own_place(self, other: str, place: str) -> str:
        """The place of the property that determines the one of the other type."""
        name = other.removeprefix(f"{place}.").partition(".")[0].partition("[")[0]
        own = self._own_name(name)
        return place if own is None else f"{place}.{own}"

    def _own_name(self, name: str) -> str | None:
        return next((own for own, others in self.names.items() if name in others), None)

    def check_external(self, physical_id: str, context: ValidationContext) -> Verdict:
        return self.other.check_external(physical_id, context)

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        return self.other.observation_key(self._translate(call))

    def observation_endpoint(self, call: Call) -> str:
        return self.other.observation_endpoint(self._translate(call))

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        known = {name: one for name, one in properties.items() if not _is_unknown(one)}
        unknown = properties.keys() - known.keys()
        mapped = dict.fromkeys(other for name in unknown for other in self.names.get(name, ()))
        found = self.other.observed_paths(mapped | self._all(known))
        if found is None:
            return None
        return list(dict.fromkeys(own for one in found if (own := self._own_name(one))))

    def adopted_data(self, data: Mapping[str, Json], path: str, value: Json) -> Mapping[str, Json]:
        for other in self.names.get(path, ()):
            data = self.other.adopted_data(data, other, value)
        return data

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        found: Any = self.other.observe([self._translate(call) for call in calls])
        observed: Mapping[ResourceId, Observation] = await found if isawaitable(found) else found
        return {key: self._own_observation(one) for key, one in observed.items()}

    def observed_list(self, call: Call) -> ObservedList | None:
        listed = self.other.observed_list(self._translate(call))
        if listed is None:
            return None

        async def missing(one: Call) -> Observation:
            return self._own_observation(await listed.observe_missing(self._translate(one)))

        def compare(one: Call, found: Json) -> Observation | None:
            observation = listed.compare(self._translate(one), found)
            return observation and self._own_observation(observation)

        return replace(
            listed, compare=compare, missing=missing,
            reads_alone=lambda one: listed.reads_alone(self._translate(one)),
        )  # fmt: skip

    def _own_observation(self, found: Observation) -> Observation:
        """With the names of properties. What no property determines is left out."""
        found = found.leave_out(lambda path: self._own_name(path) is None)
        if not found.differences and not found.absent:
            return found
        names = [str(self._own_name(one)) for one in found.absent]
        differences = [
            replace(
                one,
                path=own,
                desired=self.own_value(own, one.desired),
                observed=self.own_value(own, one.observed),
            )
            for one in found.differences
            if (own := self._own_name(one.path)) is not None
        ]
        reason, public = (
            text.replace(join_paths(found.absent), join_paths(names)) if names else text
            for text in (found.reason, found.public_reason)
        )
        return replace(
            found, differences=differences, absent=names, reason=reason, public_reason=public
        )


def refuse_unimplemented(
    paths: Sequence[str], properties: Mapping[str, Json], place: str, findings: Findings
) -> None:
    """Report given properties that have no effect. paths: as in `MappedType.not_implemented`."""
    for path in paths:
        for found in _find_given(properties, path.split("."), place):
            findings.add(found, "is not implemented, as in Heat", "Remove it.")


def _find_given(value: Json, path: Sequence[str], place: str) -> Iterator[str]:
    """The places at which a path has a value."""
    if not path:
        if value not in (None, [], {}):
            yield place
    elif path[0] == "*":
        for number, one in enumerate(value if isinstance(value, list) else []):
            yield from _find_given(one, path[1:], f"{place}[{number}]")
    elif isinstance(value, Mapping) and path[0] in value:
        yield from _find_given(value[path[0]], path[1:], f"{place}.{path[0]}")


def pairs(given: Json) -> dict[str, Json]:
    """A list of maps with Key and Value, as one map; values of the same key, as a list."""
    found: dict[str, Json] = {}
    for one in given if isinstance(given, list) else []:
        if not isinstance(one, Mapping) or "Key" not in one:
            continue
        key, value = str(one["Key"]), one.get("Value")
        if key in found:
            before = found[key]
            found[key] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[key] = value
    return found


def tags(given: Json) -> dict[str, Json] | None:
    """Tags as metadata: the last one of a key."""
    if given is None:
        return None
    listed = {key: one[-1] if isinstance(one, list) else one for key, one in pairs(given).items()}
    return listed


def listed_tags(metadata: Json) -> Json:
    """Metadata as tags."""
    if not isinstance(metadata, Mapping):
        return metadata
    return [{"Key": key, "Value": one} for key, one in metadata.items()]


def _is_unknown(value: Json) -> bool:
    """Whether a value or a part of it is not known yet."""
    if isinstance(value, Mapping):
        return any(map(_is_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_is_unknown, value))
    return value is None
