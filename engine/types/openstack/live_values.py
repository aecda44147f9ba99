"""Fields of existing objects in the form of properties, for templates that import them. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from engine.hot.schema.properties import fill_defaults
from engine.hot.schema.type_schema import Kind, Property, TypeSchema
from engine.types.contract import Call
from engine.types.live_object import (
    NOT_READABLE,
    NOT_RETURNED,
    LiveObject,
    UnreadableCode,
    UnreadableObject,
)
from engine.types.observation import Observation
from engine.types.openstack.service_errors import FORBIDDEN, UNAUTHORIZED, CloudError
from engine.words import Json, ObservedState


@dataclass(slots=True)
class LiveProperties:
    """values: by property; None: the object has none. reasons: of properties that were not read."""

    values: dict[str, Json] = field(default_factory=dict, repr=False)
    reasons: dict[str, str] = field(default_factory=dict)

    def unread(self, name: str, reason: str = NOT_RETURNED) -> None:
        self.values.pop(name, None)
        self.reasons[name] = reason


def fit_value(one: Property, value: Json) -> Json:
    """A field in the form of its property: maps have only the known keys, of which `network` may be
    `network_id` in the field."""
    if one.kind is Kind.LIST and one.items is not None and isinstance(value, list):
        return [fit_value(one.items, item) for item in value]
    if one.kind is Kind.MAP and one.fields is not None and isinstance(value, Mapping):
        fitted = {
            name: fit_value(inner, value[name] if name in value else value.get(f"{name}_id"))
            for name, inner in one.fields.items()
        }
        return {name: inner for name, inner in fitted.items() if inner is not None}
    return value


def live_object(
    schema: TypeSchema,
    name: str,
    live: LiveProperties,
    call: Call,
    compare: Callable[[Mapping[str, Json]], Observation],
    keep_empty: Collection[str] = (),
) -> LiveObject:
    """The object with the given properties, and what it has otherwise. compare: the object with
    properties. keep_empty: properties without a default whose empty value is not the same as
    none."""
    given = {key: value for key, value in call.properties.items() if value is not None}
    known = schema.properties
    read = {
        key: value
        for key, value in live.values.items()
        if value is not None
        and (value not in ("", [], {}) or key in keep_empty or known[key].default is not None)
    }
    hidden = {key: NOT_READABLE for key, one in schema.properties.items() if one.hidden}
    properties = {key: one for key, one in (read | given).items() if key not in hidden}
    observed = compare(fill_defaults(schema, properties))
    if observed.state is ObservedState.DEGRADED:
        raise UnreadableObject(
            UnreadableCode.UNSUPPORTED, "id", observed.reason, "Repair or replace the object first."
        )
    reasons = {key: why for key, why in live.reasons.items() if key not in properties}
    return LiveObject(name, properties, reasons | hidden, observed.differences)


def missing_object(what: str, object_id: str) -> UnreadableObject:
    reason = f"there is no {what} {object_id} that you can see"
    remedy = "Check the ID, and that the object is in your project."
    return UnreadableObject(UnreadableCode.MISSING, "id", reason, remedy)


def needs_property(type_name: str, name: str) -> UnreadableObject:
    reason = f"{type_name} is read below its {name}, which is not given"
    return UnreadableObject(
        UnreadableCode.INVALID, "properties", reason, f"Give the property {name} with the resource."
    )


def unreadable(what: str, error: CloudError) -> UnreadableObject:
    """What an error of a service means for an import."""
    reason = f"the {what} cannot be read: {error}"
    if error.status in (UNAUTHORIZED, FORBIDDEN):
        remedy = "Use a credential that may read it, or leave it out."
        return UnreadableObject(UnreadableCode.FORBIDDEN, "id", reason, remedy)
    if error.is_missing:
        remedy = "Check the ID, and that the object is in your project."
        return UnreadableObject(UnreadableCode.MISSING, "id", reason, remedy)
    remedy = "Try again later." if error.retry else "Correct the request."
    return UnreadableObject(UnreadableCode.UNAVAILABLE, "id", reason, remedy)
