"""From the row of a resource to a call of its type, and from an observation to its row. Pure."""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from engine.hooks.drift_digests import DriftDigests
from engine.hot.expressions.masking import MASK, MAX_SECRETS, leaks_secret, secret_texts
from engine.hot.expressions.member_attributes import mask_attributes
from engine.hot.schema.type_schema import TypeSchema
from engine.store.observer.observations import ObservedResource, RecordedResource
from engine.types.contract import Call
from engine.types.observation import Difference, Observation, is_shortened, shorten
from engine.types.text_cleaning import mask_secrets, replace_nul
from engine.words import FoundBy, Json, ObservedState, ResourceId, StackId
from engine.work.nodes.prepare import HIDDEN_REASON
from engine.work.observer.endpoint_back_off import Endpoint
from engine.work.observer.provider_endpoints import MAX_REASON

#: Differences of a resource that are kept.
MAX_DIFFERENCES = 20


def recorded_call(
    project: str,
    stack_id: StackId,
    stack_name: str,
    recorded: RecordedResource,
    key: UUID,
    credential: str = "",
    region: str = "",
) -> Call:
    """A call about the recorded state of a resource. credential: `Call.observation_credential`.
    region: `Call.region`."""
    return Call(
        project=project,
        stack_id=stack_id,
        stack_name=stack_name,
        resource_id=ResourceId(recorded.id),
        resource_name=recorded.name,
        operation_key=key,
        now=recorded.now,
        properties=recorded.properties or {},
        previous=recorded.properties,
        physical_id=recorded.physical_id,
        data=recorded.data,
        attributes=recorded.attributes,
        has_secrets=recorded.has_secrets,
        observation_credential=credential,
        region=region,
    )


def observed_resource(
    recorded: RecordedResource,
    observation: Observation,
    schema: TypeSchema,
    endpoint: Endpoint,
    found_by: FoundBy,
    *,
    polled: bool,
    request: str = "",
    digests: DriftDigests | None = None,
) -> ObservedResource:
    """The row of an observation, without secrets. schema: of the type. request:
    `CallGroup.request`. polled: its provider was asked. digests: None: drift is compared as it is
    shown."""
    # The next update repeats the operation that failed, unless there is nothing to update.
    repeated = not recorded.applied and observation.state in (
        ObservedState.CHANGED, ObservedState.DEGRADED
    )  # fmt: skip
    if observation.state is ObservedState.PRESENT or repeated:
        return ObservedResource(recorded.stack_id, recorded.id, recorded.updated_at, None)
    hidden = set[str]() if recorded.has_secrets else _hidden_texts(recorded, schema)
    is_hidden = recorded.has_secrets or bool(hidden)
    reason = mask_secrets(_shown_reason(observation, is_hidden=is_hidden), hidden)
    return ObservedResource(
        recorded.stack_id,
        recorded.id,
        recorded.updated_at,
        str(observation.state),
        [
            _difference(one, hidden, masked=recorded.has_secrets)
            for one in observation.differences[:MAX_DIFFERENCES]
        ],
        replace_nul(reason[:MAX_REASON]),
        endpoint[2] if observation.state is ObservedState.UNKNOWN else "",
        request if observation.state is ObservedState.UNKNOWN else "",
        found_by,
        polled,
        _digest_of(recorded, observation, digests),
    )


def without_secrets(
    observation: Observation, resources: Iterable[RecordedResource], schema: TypeSchema
) -> Observation:
    """An observation that is shown with other resources, too. resources: those that it is about.
    schema: of their type."""
    if not any(has_hidden_values(one, schema) for one in resources):
        return observation
    return replace(observation, reason=_shown_reason(observation, is_hidden=True))


def has_hidden_values(recorded: RecordedResource, schema: TypeSchema) -> bool:
    """Whether a property of a resource is secret, or an attribute that has a value. The reason of
    an observation, which may repeat it, is then not shown."""
    return recorded.has_secrets or bool(_hidden_texts(recorded, schema))


def _shown_reason(observation: Observation, *, is_hidden: bool) -> str:
    """Only the public part if the resource has hidden values."""
    if not is_hidden:
        return observation.reason
    return observation.public_reason or (HIDDEN_REASON if observation.reason else "")


def _digest_of(
    recorded: RecordedResource, observation: Observation, digests: DriftDigests | None
) -> str | None:
    """Of all differences, also of those that are not kept; None: there are none."""
    if digests is None or not observation.differences:
        return None
    found = [(one.path, one.values_hash) for one in observation.differences]
    return digests.make(recorded.stack_id, recorded.id, found)


def _hidden_texts(recorded: RecordedResource, schema: TypeSchema) -> set[str]:
    """The values of secret attributes of a resource without secret properties. A literal in its
    template can be one of them."""
    declared = {name for name, one in schema.attributes.items() if one.secret}
    secret = declared.union(recorded.secret_attributes or ())
    if not secret:
        return set()
    return set(secret_texts(recorded.attributes, mask_attributes(recorded.attributes, secret)))


def _difference(one: Difference, hidden: set[str], *, masked: bool) -> dict[str, Json]:
    """hidden: values of secret attributes. masked: all values are."""
    desired, observed = (MASK, MASK) if masked else (one.desired, replace_nul(one.observed))
    return {
        "path": one.path,
        "desired": _mask_hidden(desired, hidden),
        "observed": _mask_hidden(observed, hidden),
    }


def _mask_hidden(value: Json, hidden: set[str]) -> Json:
    """The value, shortened; a mask if it repeats a hidden value. So has a longer value, because not
    all of it is compared."""
    if hidden and (is_shortened(value) or len(hidden) > MAX_SECRETS or leaks_secret(value, hidden)):
        return MASK
    return shorten(value)
