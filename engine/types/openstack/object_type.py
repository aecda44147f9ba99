"""Resource types whose resource is one object of a REST collection, described by a table row.

`ObjectRow` is the row: the service, the paths, how properties become the fields of a request.
`ObjectType` is the implementation: it creates, finds after a crash, updates, replaces, deletes,
checks, adopts and observes. A type with rules of its own derives from it and overrides the methods
of the section "for types with rules of their own".

A create that may have been interrupted (`Call.repeated`) first looks for its object, by a mark that
is derived from the operation key: the physical name, if the template gives no name; else the
description, if the template gives none; else the object is created under its physical name, and
renamed once its ID is saved. So nothing is created twice.

If a failed object is not replaced, the next update applies all properties that the failed operation
concerned, besides those that differ: the data names them until an update succeeds.

An object that can have no mark is found by its content. Its create first saves that there is no
such object, so that it takes and deletes none that it has not created.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.custom_constraints import ValidationContext
from engine.types.live_object import LiveObject
from engine.types.observation import Difference, Observation
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Cloud, Query, Session, id_of, segment
from engine.types.openstack.cloud_operation import (
    MAX_PAUSE,
    cancellation,
    observed_list,
    outcome_of_error,
    poll,
    unknown_state,
    would_wait,
)
from engine.types.openstack.live_values import (
    LiveProperties,
    fit_value,
    live_object,
    missing_object,
    needs_property,
    unreadable,
)
from engine.types.openstack.names import ID, Lookup, UnknownObject
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import Service
from engine.types.operation_outcomes import next_poll
from engine.words import Json, ObservedState, ResourceId

#: The property whose entries are added to the fields of the request.
VALUE_SPECS: Final = "value_specs"
TAGS: Final = "tags"
NAME, DESCRIPTION = "name", "description"
#: Values of properties that an object without the field has, too.
EMPTY: Final[tuple[Json, ...]] = ("", [], {})
#: The length limit of names and descriptions.
MAX_TEXT: Final = 255


@dataclass(frozen=True, slots=True)
class ObjectRow:
    """How the objects of a type are reached, and how properties become their fields.

    what: one object, in messages: `network`. path: of the collection; properties in braces are
    replaced by their values. key, list_key: of the object and of the list in documents. fields: the
    field of a property, if it is not the property's name. lookups: properties that hold the name or
    ID of an object. separate: properties that are no field of the object. cleared: the value of a
    field whose property is removed; others become null. attributes: the field of an attribute, if
    it is not the attribute's name. named: whether objects have a name, that is derived from the
    stack if the template gives none. marked: whether they have a description, by which the list
    can be filtered. tagged: whether they have tags. busy: values of `status` that change by
    themselves. failed: values of `status` of a broken object. update_method: PUT or PATCH.
    """

    what: str
    service: Service
    path: str
    key: str
    list_key: str
    fields: Mapping[str, str] = field(default_factory=dict)
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    separate: frozenset[str] = frozenset()
    cleared: Mapping[str, Json] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    named: bool = True
    marked: bool = True
    tagged: bool = False
    busy: frozenset[str] = frozenset({"BUILD", "PENDING_CREATE", "PENDING_UPDATE"})
    failed: frozenset[str] = frozenset({"ERROR"})
    update_method: str = "PUT"


#: In the progress of a create without a mark: there was no such object before.
ABSENT: Final = "absent"
#: In the progress: how often the service refused a request because something else is changing. Such
#: a request has had no effect.
REFUSED: Final = "refused"
#: In the data after a failed create or update: the properties that it may have left unapplied, or
#: applied although the resource keeps its earlier ones.
UNFINISHED: Final = "unfinished"


@dataclass(frozen=True, slots=True)
class Mark:
    """How an interrupted create finds its object. fields: of the request, which the object has;
    empty: it has no mark. query: of the list, which may ignore it. renames: the object gets its
    name in a second request."""

    fields: Mapping[str, Json]
    query: Query
    renames: bool = False

    def is_on(self, found: Mapping[str, Json]) -> bool:
        return all(found.get(name) == value for name, value in self.fields.items())


def existing_error(what: str, object_id: str) -> CloudError:
    """The error of a create that finds an object like its own, which it has not created."""
    public = f"there is such a {what} already"
    remedy = "Remove it, or adopt it with external_id."
    return CloudError(f"{public}: {object_id}. {remedy}", status=CONFLICT, public=public)


class ObjectType(ResourceType):
    """A type that an `ObjectRow` describes.

    importable: `read_live` gets all properties from the fields of an object. keep_empty: properties
    without a default whose empty value is not the same as none. saved_first: what the progress of a
    create has although no request of it can have created the object. lists_all: observations read
    the list of all objects, because its service has none of certain IDs. reads_unlisted: an object
    that this list lacks is read by itself; False: the list is read twice.
    """

    cancellable = True
    lists_all: bool = False
    reads_unlisted: bool = True
    importable: bool = False
    keep_empty: frozenset[str] = frozenset()
    saved_first: frozenset[str] = frozenset({ABSENT, REFUSED})

    def __init__(self, schema: TypeSchema, row: ObjectRow, cloud: Cloud) -> None:
        self.schema = schema
        self.row = row
        self.cloud = cloud

    # ---- operations

    async def create(self, call: Call) -> Outcome:
        names = [name for name, value in call.properties.items() if value is not None]
        return self._keep_unfinished(call, await self._run_or_end(call, self._create), names)

    async def update(self, call: Call) -> Outcome:
        names = self._changed_properties(call)
        return self._keep_unfinished(call, await self._run_or_end(call, self._update), names)

    async def delete(self, call: Call) -> Outcome:
        return await self.guard(call, self._delete(call, self.cloud.session(call)))

    async def check(self, call: Call) -> Outcome:
        return await self.guard(call, self._check(call, self.cloud.session(call)))

    async def adopt(self, call: Call) -> Outcome:
        return await self.check(call)

    async def guard(self, call: Call, run: Awaitable[Outcome]) -> Outcome:
        """Turn errors of services into outcomes. One that asks for a pause gets it."""
        try:
            return await run
        except CloudError as error:
            object_id = (call.progress or {}).get("id") or call.physical_id
            data = call.data if object_id else {**self._lost_object_data(call, error), **call.data}
            return outcome_of_error(call, error, object_id, data)

    async def _run_or_end(
        self, call: Call, operation: Callable[[Call, Session], Awaitable[Outcome]]
    ) -> Outcome:
        """One call of a create or update. A cancelled one fails where it would wait, with the
        object that it has begun, and does not repeat a request that had no effect. In a repeated
        call, a request after that one may have had an effect."""
        progress = call.progress or {}
        refused = REFUSED in progress and "id" not in progress
        if call.cancelled and refused and not call.repeated:
            return cancellation(call.physical_id, call.data)
        outcome = await self.guard(call, operation(call, self.cloud.session(call)))
        if call.cancelled and isinstance(outcome, Wait) and would_wait(call, outcome):
            object_id = outcome.progress.get("id") or call.physical_id
            data = call.data if object_id else {**self._lost_object_data(call, None), **call.data}
            return cancellation(object_id, data)
        return outcome

    def _keep_unfinished(self, call: Call, outcome: Outcome, names: Collection[str]) -> Outcome:
        """A failure of a type whose failed objects are updated, with the properties (`names`) that
        the next update applies as well."""
        is_updated = self.repairs or not self.replaces_tainted
        if not is_updated or not isinstance(outcome, Failed) or outcome.physical_id is None:
            return outcome
        unfinished = sorted({*names, *call.data.get(UNFINISHED, ())})
        return replace(outcome, data={**outcome.data, UNFINISHED: unfinished})

    async def _create(self, call: Call, session: Session) -> Outcome:
        progress = call.progress or {}
        if "id" in progress:
            return await self._continue(call, session)
        mark = self.mark(call)
        path = await self.collection(call.properties, session, call.project)
        found = None
        if not mark.fields and ABSENT not in progress:
            if (found := await self.find_created(call, session, path, mark)) is not None:
                raise existing_error(self.row.what, self.id_of(found))
            return Wait(call.now, {**progress, ABSENT: True})
        if self._may_have_created(call):
            found = await self.find_created(call, session, path, mark)
        if found is None:
            body = {**await self.fields_for_create(call, session), **mark.fields}
            found = await self.post(call, session, path, body)
        object_id = self.id_of(found)
        if mark.renames or self.status(found) in self.row.busy or self.saves_id(call):
            return Wait(call.now, {"id": object_id, "path": path, "renames": mark.renames})
        return await self._finish(call, session, found, path)

    def _may_have_created(self, call: Call) -> bool:
        """Whether an earlier call of a create may have sent its request."""
        return call.repeated or bool((call.progress or {}).keys() - self.saved_first)

    async def _continue(self, call: Call, session: Session) -> Outcome:
        """A later call of a create or update whose object is known."""
        if (waits := await self.wait_until_listed(call)) is not None:
            return waits
        return await self._finish(call, session, await self._read(call, session))

    async def _finish(
        self, call: Call, session: Session, found: Mapping[str, Json], path: str = ""
    ) -> Outcome:
        """The end of a create or update: the requests that follow it, and the wait until the object
        is ready."""
        progress = dict(call.progress or {})
        path = path or progress.get("path") or await self._path(call, session)
        if progress.pop("renames", False):
            final = self.renamed_fields(call)
            found = await self.put(session, path, self.id_of(found), final)
        if self.status(found) in self.row.failed:
            reason = await self.failure_reason(session, found)
            raise CloudError(f"the {self.row.what} has failed: {reason}")
        if self.status(found) in self.row.busy:
            progress |= {"id": self.id_of(found), "path": path}
            public = f"the {self.row.what} is not ready"
            return poll(call, progress, f"{public}: {self.status(found)}", public)
        found = await self._apply_separate(call, session, path, found)
        return await self._done(call, session, path, found)

    async def _apply_separate(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        tags = call.properties.get(TAGS) if self.row.tagged else None
        was = (call.previous or {}).get(TAGS) if self.row.tagged else None
        if tags or was:
            found = {**found, TAGS: await self.put_tags(session, self.id_of(found), tags or [])}
        return await self.follow_up(call, session, path, found)

    async def _update(self, call: Call, session: Session) -> Outcome:
        path = await self._path(call, session)
        if (call.progress or {}).get("id"):
            return await self._continue(call, session)
        names = self._changed_properties(call)
        body = await self.fields_for_update(call, session, names)
        object_id = str(call.physical_id)
        try:
            if body:
                found = await self.put(session, path, object_id, body)
            else:
                found = await self.get(session, path, object_id)
        except CloudError as error:
            refused = isinstance(error, UnknownObject) or not error.is_missing
            if refused or await self.find(session, path, object_id) is not None:
                raise
            return Replace()  # it was deleted outside of the stack
        return await self._finish(call, session, found, path)

    async def _delete(self, call: Call, session: Session) -> Outcome:
        try:
            path = await self._path(call, session)
            object_id = call.physical_id or await self._find_lost(call, session, path)
        except CloudError as error:
            if error.is_missing:  # what the object belongs to is gone
                return Done(None)
            raise
        if object_id is None:
            return Done(None)
        try:
            await self.remove(call, session, path, object_id)
        except CloudError as error:
            if error.is_missing:
                return Done(None)
            if error.status != CONFLICT:
                raise
            users = await self.users(session, path, object_id)
            if not users:
                raise CloudError(  # what used it is gone, or cannot be seen
                    str(error), retry=True, status=CONFLICT, public=error.public
                ) from None
            shown = "; ".join(users)
            public = f"the {self.row.what} is in use"
            raise CloudError(
                f"{public} by {shown}. Delete or detach them first.", public=public
            ) from None
        if await self.is_deleting(call, session, path):
            return self._wait_until_deleted(call)
        return Done(None)

    def _wait_until_deleted(self, call: Call) -> Outcome:
        tries = (call.progress or {}).get("tries", 0)
        public = f"the {self.row.what} is being deleted"
        until = next_poll(call.now, tries, MAX_PAUSE)
        return Wait(until, {"tries": tries + 1}, public, public_reason=public)

    async def _find_lost(self, call: Call, session: Session, path: str) -> str | None:
        """The ID of what a create whose answer was lost may have created."""
        if (lost := call.data.get("lost")) is None:
            return None
        mark = Mark(lost["fields"], lost["query"])
        found = await self.find_created(call, session, path, mark)
        return None if found is None else self.id_of(found)

    async def _check(self, call: Call, session: Session) -> Outcome:
        path = await self._path(call, session)
        found = await self.find(session, path, str(call.physical_id))
        if found is None:
            reason = f"the {self.row.what} {call.physical_id} does not exist"
            raise CloudError(reason, public=f"the {self.row.what} does not exist")
        if self.status(found) in self.row.failed:
            reason = await self.failure_reason(session, found)
            raise CloudError(f"the {self.row.what} has failed: {reason}")
        done = await self._done(call, session, path, found)
        return replace(done, data={**call.data, **done.data})

    async def _done(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Done:
        attributes = await self.attributes_of(session, found)
        data = {"path": path} if "{" in self.row.path else {}
        return Done(self.id_of(found), attributes, data)

    async def _read(self, call: Call, session: Session) -> Mapping[str, Json]:
        progress = call.progress or {}
        path = progress.get("path") or await self._path(call, session)
        return await self.get(session, path, progress["id"])

    async def _path(self, call: Call, session: Session) -> str:
        """The path of the collection that has the object of a call."""
        if stored := call.data.get("path"):
            return str(stored)
        properties = call.previous or call.properties
        return await self.collection(properties, session, call.project)

    def _changed_properties(self, call: Call) -> Collection[str]:
        """The changed properties; after a failure, and if drift is repaired, all given ones that an
        update can change, and those that the failed operation concerned."""
        given = [*call.properties.items(), *(call.previous or {}).items()]
        known = self.schema.properties
        changed = set(call.changed)
        if call.repeats_all:
            changed |= {
                name for name, value in given if value is not None and known[name].update_allowed
            }
        unfinished = {
            name
            for name in call.data.get(UNFINISHED, ())
            if name in known and known[name].update_allowed
        }
        return changed | unfinished

    def touches(self, call: Call, name: str) -> bool:
        """Whether a create or update concerns a property."""
        return call.touches(name) or name in self._changed_properties(call)

    def _lost_object_data(self, call: Call, error: CloudError | None) -> Mapping[str, Json]:
        """For a create without a known object: how a delete finds it. error: None: it is
        cancelled."""
        if call.previous is not None or call.physical_id:
            return {}
        mark = self.mark(call)
        if error is None and not (mark.fields and self._may_have_created(call)):
            return {}  # an object of this content is not ours
        if error is not None and not mark.fields:
            refused = error.status is not None and error.status < 500 and not call.repeated
            if refused or ABSENT not in (call.progress or {}):
                return {}  # nothing was created; an object of this content is not ours
        return {"lost": {"fields": dict(mark.fields), "query": dict(mark.query)}}

    # ---- requests

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        doing, body = f"create the {self.row.what}", {self.row.key: fields}
        return await session.create(self.row.service, path, self.row.key, doing, body)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        answer = await session.request(
            self.row.service,
            self.row.update_method,
            f"{path}/{segment(object_id)}",
            f"update the {self.row.what}",
            {self.row.key: fields},
        )
        return self._object(answer)

    async def get(self, session: Session, path: str, object_id: str) -> Mapping[str, Json]:
        """Raises CloudError, also if it does not exist."""
        answer = await session.request(
            self.row.service, "GET", f"{path}/{segment(object_id)}", f"read the {self.row.what}"
        )
        return self._object(answer)

    async def find(self, session: Session, path: str, object_id: str) -> Mapping[str, Json] | None:
        try:
            return await self.get(session, path, object_id)
        except CloudError as error:
            if error.is_missing:
                return None
            raise

    async def put_tags(
        self, session: Session, object_id: str, tags: Sequence[Json]
    ) -> Sequence[Json]:
        path = f"{self.row.path}/{segment(object_id)}/tags"
        await session.request(
            self.row.service, "PUT", path, f"tag the {self.row.what}", {TAGS: tags}
        )
        return tags

    def _object(self, answer: Json) -> Mapping[str, Json]:
        found = answer.get(self.row.key) if isinstance(answer, Mapping) else None
        if not isinstance(found, Mapping):
            reason = f"{self.row.service.name} answered without `{self.row.key}`"
            raise CloudError(reason, public=reason)
        return found

    # ---- for types with rules of their own

    def id_of(self, found: Mapping[str, Json]) -> str:
        return id_of(self.row.service, found)

    def status(self, found: Mapping[str, Json]) -> str:
        return str(found.get("status") or "")

    async def failure_reason(self, session: Session, found: Mapping[str, Json]) -> str:
        """Why an object has failed."""
        return self.status(found)

    def mark(self, call: Call) -> Mark:
        """How a create marks its object."""
        properties, specs = call.properties, call.properties.get(VALUE_SPECS) or {}
        own_name = call.own_name[-MAX_TEXT:]
        if self.row.named and properties.get(NAME) is None and NAME not in specs:
            return Mark({NAME: own_name}, {NAME: own_name})
        described = properties.get(DESCRIPTION) or specs.get(DESCRIPTION)
        if self.row.marked and not described:
            text = f"Created by Headgate: operation {call.operation_key}"
            return Mark({DESCRIPTION: text}, {DESCRIPTION: text})
        if self.row.named and properties.get(NAME) is not None:
            return Mark({NAME: own_name}, {NAME: own_name}, renames=True)
        return Mark({}, {})

    def saves_id(self, call: Call) -> bool:
        """Whether a create saves the ID of its object before its further requests."""
        return False

    def renamed_fields(self, call: Call) -> Mapping[str, Json]:
        """The fields that replace a mark with `renames`."""
        return {NAME: call.properties[NAME]}

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        """The object of an earlier call of a create; None if there is none."""
        if not mark.fields:
            return None
        found = await session.list(self.row.service, path, self.row.list_key, mark.query)
        return next((one for one in found if mark.is_on(one)), None)

    async def collection(
        self, properties: Mapping[str, Json], session: Session, project: str
    ) -> str:
        """The path of the collection, with the IDs of the objects that it names."""
        path = self.row.path
        for name, lookup in self.row.lookups.items():
            if f"{{{name}}}" in path:
                found = await lookup.find_id(session, str(properties[name]), project)
                path = path.replace(f"{{{name}}}", segment(found))
        return path

    def field_of(self, name: str) -> str:
        """The field of a property."""
        return self.row.fields.get(name, name)

    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        """The value of a property in a request. Names become IDs."""
        lookup = self.row.lookups.get(name)
        if lookup is None or value in (None, ""):
            return value
        if isinstance(value, list):
            return [await lookup.find_id(session, str(one), call.project) for one in value]
        return await lookup.find_id(session, str(value), call.project)

    def is_field(self, name: str) -> bool:
        """Whether a property is a field of the object."""
        in_path = f"{{{name}}}" in self.row.path
        return not in_path and name not in (VALUE_SPECS, TAGS) and name not in self.row.separate

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        """The fields of the request that creates the object, without the mark."""
        fields = {
            self.field_of(name): await self.value_of(call, session, name, value)
            for name, value in call.properties.items()
            if value is not None and self.is_field(name)
        }
        return fields | dict(call.properties.get(VALUE_SPECS) or {})

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """The fields of the request that updates the object. names: of changed properties."""
        fields: dict[str, Json] = {}
        for name in names:
            if name == VALUE_SPECS:
                was = (call.previous or {}).get(VALUE_SPECS) or {}
                now = call.properties.get(VALUE_SPECS) or {}
                fields |= {key: one for key, one in now.items() if was.get(key) != one}
            elif self.is_field(name):
                value = call.properties.get(name)
                fields[self.field_of(name)] = (
                    self.cleared_value(call, name)
                    if value is None
                    else await self.value_of(call, session, name, value)
                )
        return fields

    def cleared_value(self, call: Call, name: str) -> Json:
        """The value of the field of a property that is not in the template."""
        if name == NAME and self.row.named:
            return call.own_name[-MAX_TEXT:]
        if name == DESCRIPTION:
            return ""
        return self.row.cleared.get(name)

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Requests after a create or update, all of which can be repeated. Returns the object."""
        return found

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        names = self.schema.attributes
        known = {name: found.get(self.row.attributes.get(name, name)) for name in names}
        return {**known, "show": dict(found)}

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Delete the object. Raises CloudError, also if it does not exist."""
        await session.send(
            self.row.service,
            "DELETE",
            f"{path}/{segment(object_id)}",
            f"delete the {self.row.what}",
        )

    async def wait_until_listed(self, call: Call) -> Wait | None:
        """Before a later call reads its object: wait until the observer finds it ready. None: read
        it."""
        return None

    async def is_deleting(self, call: Call, session: Session, path: str) -> bool:
        """Whether the service still deletes the object after its answer."""
        return False

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        """What uses the object, so that it cannot be deleted: `port web (ID)`."""
        return ()

    # ---- validation, observation

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        if not context.credential or "{" in self.row.path:
            return None
        session = self.cloud.session(context)
        try:
            found = await self.find(session, self.row.path, physical_id)
        except CloudError as error:
            return str(error)
        return None if found else f"there is no {self.row.what} with this ID"

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        if not self.importable:
            return await super().read_live(call, imported)
        session = self.cloud.session(call)
        for name in self.schema.properties:
            if f"{{{name}}}" in self.row.path and not call.properties.get(name):
                raise needs_property(self.schema.name, name)
        try:
            path = await self.collection(call.properties, session, call.project)
            found = await self.find(session, path, str(call.physical_id))
            if found is None:
                raise missing_object(self.row.what, str(call.physical_id))
            live = await self.live_properties(session, found, imported)
            if live.values.get("tenant_id") == call.project:
                del live.values["tenant_id"]
        except CloudError as error:
            raise unreadable(self.row.what, error) from None
        name = str(found.get(NAME) or "") if self.row.named else ""

        def compare(properties: Mapping[str, Json]) -> Observation:
            seen = replace(call, properties=properties, attributes={"show": found})
            return self.compare(seen, found)

        return live_object(self.schema, name, live, call, compare, self.keep_empty)

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        """The properties of an object: its fields, in the form of the schema."""
        live = LiveProperties()
        for name, one in self.schema.properties.items():
            if one.obsolete or not self.is_observed(name):
                continue
            if self.field_of(name) in found:
                live.values[name] = fit_value(one, found[self.field_of(name)])
            else:
                live.unread(name)
        return live

    def observation_key(self, call: Call) -> str | None:
        if call.physical_id is None or "{" in self.row.path or not self.cloud.can_observe(call):
            return None
        return self.schema.name

    def observation_endpoint(self, call: Call) -> str:
        return self.row.service.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return [name for name in properties if self.is_observed(name)]

    def is_observed(self, name: str) -> bool:
        """Whether a property is compared with the object."""
        return self.is_field(name) or (name == TAGS and self.row.tagged)

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        if (listed := self.observed_list(calls[0])) is not None:
            return await listed.observe(calls)
        session = self.observer_session(calls[0])
        by_id: dict[str, list[Call]] = {}
        for call in calls:
            by_id.setdefault(str(call.physical_id), []).append(call)
        found: dict[ResourceId, Observation] = {}
        try:
            async for one in self.read_by_ids(session, list(by_id)):
                for call in by_id.get(self.id_of(one), ()):
                    found[call.resource_id] = self.compare(call, one)
        except CloudError as error:
            return {call.resource_id: unknown_state(error) for call in calls}
        gone = Observation(ObservedState.MISSING, (), self._missing, self._missing)
        return {call.resource_id: found.get(call.resource_id, gone) for call in calls}

    @property
    def _missing(self) -> str:
        return f"the {self.row.what} does not exist"

    def observed_list(self, call: Call) -> ObservedList | None:
        if not self.lists_all:
            return None
        session, path = self.observer_session(call), self.row.path

        async def find(one: Call) -> Mapping[str, Json] | None:
            return await self.find(session, path, str(one.physical_id))

        return observed_list(
            lambda: self.list_all(session), self.compare, self._missing,
            id_of=self.id_of, find=find if self.reads_unlisted else None,
        )  # fmt: skip

    def read_by_ids(
        self, session: Session, ids: Sequence[str]
    ) -> AsyncIterator[Mapping[str, Json]]:
        """Yield the objects with these IDs that exist. Raises CloudError."""
        return session.by_ids(self.row.service, self.row.path, self.row.list_key, ids)

    def list_all(self, session: Session) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
        """The pages of the list of all objects that the session may read, with `lists_all`. Raises
        CloudError."""
        return session.pages(self.row.service, self.row.path, self.row.list_key)

    def observer_session(self, call: Call) -> Session:
        """The session of `observe`."""
        return self.cloud.observer_session(call)

    def compare(self, call: Call, found: Mapping[str, Json]) -> Observation:
        """Compare an object with the properties of its resource.

        The observer may see more of an object than the requester: only the fields that an operation
        has read with the requester's token are compared. A response that lacks one of them says
        nothing about it.
        """
        recorded = call.attributes.get("show")
        readable = recorded if isinstance(recorded, Mapping) else {}
        if self.status(found) in self.row.failed:
            reason = f"the {self.row.what} has failed"
            return Observation(
                ObservedState.DEGRADED, (), f"{reason}: {self.status(found)}", reason
            )
        compared = {
            name: value
            for name, value in call.properties.items()
            if value is not None and self.is_observed(name) and self.field_of(name) in readable
        }
        differences = [
            Difference.shorten(name, value, observed)
            for name, value in compared.items()
            if self.field_of(name) in found
            and not self.is_same(name, value, observed := found[self.field_of(name)])
        ]
        absent = [
            name
            for name, value in compared.items()
            if value not in EMPTY and self.field_of(name) not in found
        ]
        return Observation.from_comparison(f"the {self.row.what}", differences, absent)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        """Whether a field has the value of a property. A name in place of an ID is not compared."""
        if name in self.row.lookups:
            items = desired if isinstance(desired, list) else [desired]
            if not all(ID.fullmatch(str(one)) for one in items):
                return True
        return is_alike(desired, observed)


class RepairedType(ObjectType):
    """A type whose failed objects an update repairs: a replacement could not get their name,
    address or place while they exist."""

    replaces_tainted = False
    repairs = True

    async def update(self, call: Call) -> Outcome:
        return Replace() if call.physical_id is None else await super().update(call)

    def needs_replace(self, call: Call) -> bool:
        """An update that repairs is not limited to what the schema allows."""
        known = self.schema.properties
        return any(not known[name].update_allowed for name in call.changed)


def is_alike(desired: Json, observed: Json) -> bool:
    """Whether a value of a service is a desired one. Lists have no order; an entry of a desired map
    that is null or missing may have any value."""
    if isinstance(desired, Mapping):
        return isinstance(observed, Mapping) and all(
            value is None or (key in observed and is_alike(value, observed[key]))
            for key, value in desired.items()
        )
    if isinstance(desired, list):
        if not isinstance(observed, list) or len(desired) != len(observed):
            return False
        left = list(observed)
        for one in desired:
            match = next((other for other in left if is_alike(one, other)), None)
            if match is None:
                return False
            left.remove(match)
        return True
    if isinstance(desired, bool) or isinstance(observed, bool):
        return desired is observed
    if observed is None:
        return desired in (None, "")
    return desired == observed or str(desired).lower() == str(observed).lower()
