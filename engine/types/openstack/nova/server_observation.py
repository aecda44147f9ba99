"""Compares a server with its resource. Pure."""

from collections.abc import Mapping

from engine.types.contract import Call
from engine.types.observation import Difference, Observation
from engine.types.openstack.nova import server_state
from engine.types.openstack.nova.server_request import own_metadata
from engine.types.openstack.nova.server_requests import server_name
from engine.types.openstack.operation_marker import metadata_of
from engine.words import Json, ObservedState

#: The properties whose differences are observed.
OBSERVED = ("flavor", "image", "metadata", "name", "tags")


def observe_server(call: Call, server: Mapping[str, Json]) -> Observation:
    """Compare a server with its resource."""
    status = server_state.status_of(server)
    if not status:
        return Observation.lacking("the response about the server lacks its status")
    if status == server_state.ERROR:
        reason = server_state.fault_reason(server)
        return Observation(ObservedState.DEGRADED, (), reason, "Went to status ERROR")
    if status not in (
        server_state.ACTIVE,
        server_state.VERIFY_RESIZE,
    ) and not server_state.in_progress(server):
        reason = f"the server is {status}"
        return Observation(ObservedState.DEGRADED, (), reason, reason)
    properties, data = call.properties, call.data
    pairs: dict[str, tuple[Json, Json, Json]] = {
        "flavor": (data.get("flavor"), server_state.flavor_name(server), properties.get("flavor")),
        "image": (data.get("image"), server_state.image_id(server), properties.get("image")),
        "metadata": (metadata_of(properties), own_metadata(server), metadata_of(properties)),
        "name": (server_name(call), server.get("name"), server_name(call)),
        "tags": (
            sorted(properties.get("tags") or []),
            sorted(server.get("tags") or []),
            properties.get("tags") or [],
        ),
    }
    flavor = server.get("flavor")
    absent = {path for path in pairs if path not in server}
    if not isinstance(flavor, Mapping) or "original_name" not in flavor:
        absent.add("flavor")
    differences = [
        Difference(path, shown, actual)
        for path, (expected, actual, shown) in pairs.items()
        if path not in absent and expected is not None and expected != actual
    ]
    lacking = [path for path, (expected, *_) in pairs.items() if expected and path in absent]
    return Observation.from_comparison("the server", differences, lacking)
