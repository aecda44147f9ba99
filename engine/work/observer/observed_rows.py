"""From the row of a resource to a call of its type, and from an observation to its row. Pure."""

from uuid import UUID

from engine.hot.expressions.masking import MASK
from engine.store.observer.observations import ObservedResource, RecordedResource
from engine.types.contract import Call
from engine.types.observation import Difference, Observation, shorten
from engine.types.text_cleaning import replace_nul
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
    endpoint: Endpoint,
    found_by: FoundBy,
    *,
    polled: bool,
) -> ObservedResource:
    """The row of an observation, without secrets. polled: its provider was asked."""
    # The next update repeats the operation that failed, unless there is nothing to update.
    repeated = not recorded.applied and observation.state in (
        ObservedState.CHANGED, ObservedState.DEGRADED
    )  # fmt: skip
    if observation.state is ObservedState.PRESENT or repeated:
        return ObservedResource(recorded.stack_id, recorded.id, recorded.updated_at, None)
    reason = shown_reason(observation, hidden=recorded.has_secrets)
    return ObservedResource(
        recorded.stack_id,
        recorded.id,
        recorded.updated_at,
        str(observation.state),
        [
            _difference(one, masked=recorded.has_secrets)
            for one in observation.differences[:MAX_DIFFERENCES]
        ],
        replace_nul(reason[:MAX_REASON]),
        endpoint[2] if observation.state is ObservedState.UNKNOWN else "",
        found_by,
        polled,
    )


def shown_reason(observation: Observation, *, hidden: bool) -> str:
    if not hidden:
        return observation.reason
    return observation.public_reason or (HIDDEN_REASON if observation.reason else "")


def _difference(one: Difference, *, masked: bool) -> dict[str, Json]:
    desired, observed = (MASK, MASK) if masked else (one.desired, one.observed)
    return {
        "path": one.path,
        "desired": shorten(desired),
        "observed": shorten(replace_nul(observed)),
    }
