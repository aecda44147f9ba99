"""OS::Nova::Server: a virtual machine.

A create first looks for the server of a lost call, by the operation key in its metadata. Each step
of an update follows from the state of the server, so that an operation that is called again after
a crash continues where the lost one was.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace

from engine.errors import Findings
from engine.types.completion import ObjectsUnknown
from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.custom_constraints import ValidationContext
from engine.types.http_client import ServiceError
from engine.types.live_object import LiveObject
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.cloud_operation import (
    CloudType,
    ObjectProgress,
    cancellation,
    observed_list,
    poll,
    proceed,
    run_guarded,
)
from engine.types.openstack.live_values import live_object, missing_object, unreadable
from engine.types.openstack.lookups import IMAGES, compute_constraints, find_flavor
from engine.types.openstack.nova import interfaces, server_state
from engine.types.openstack.nova.live_server import live_server
from engine.types.openstack.nova.server_observation import OBSERVED, observe_server
from engine.types.openstack.nova.server_ports import PORT_NAMES, ServerPorts, port_names
from engine.types.openstack.nova.server_request import (
    create_request,
    device_error,
    is_bootable,
    microversion_of,
    own_metadata,
)
from engine.types.openstack.nova.server_requests import (
    find_server,
    post_action,
    server_name,
    wait_for_fault,
)
from engine.types.openstack.nova.server_schema import SERVER
from engine.types.openstack.nova.server_state import (
    ACTIVE,
    SUSPENDED,
)
from engine.types.openstack.nova.server_update import STEPS, ServerUpdate, UpdatedServer
from engine.types.openstack.nova.user_data import (
    CFN_TOOLS,
    SOFTWARE_CONFIG,
    build_user_data,
    size_error,
)
from engine.types.openstack.operation_marker import MARKER, check_metadata
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import COMPUTE, IMAGE, NETWORK
from engine.types.regions import listed_region
from engine.types.software.deployed_server import (
    OS_COLLECT_CONFIG,
    AgentConnection,
    ServerTransport,
)
from engine.types.software.metadata_objects import OBJECTS
from engine.types.software.multipart import is_config_id
from engine.types.software.software_store import SoftwareStore
from engine.words import Json

_GONE = "the server does not exist"
#: A field of a server's document that may have secrets.
_USER_DATA = "OS-EXT-SRV-ATTR:user_data"


class Server(CloudType):
    """A failed server is repaired by an update, which replaces it if Nova has given it up."""

    replaces_tainted = False
    repairs = True
    cancellable = True
    schema = replace(SERVER, snapshots=True, steps=STEPS)

    def __init__(
        self, cloud: Cloud, software_store: SoftwareStore, transport: ServerTransport
    ) -> None:
        """transport: how the agents in servers get their metadata."""
        super().__init__(cloud)
        self._software_store = software_store
        self._transport = transport
        self._ports = ServerPorts()
        self.constraints = compute_constraints(cloud)

    async def create(self, call: Call) -> Outcome:
        progress = call.progress or {}
        data = {
            "name": server_name(call),
            "ports": progress.get("ports") or [],
            PORT_NAMES: port_names(call),
            "marker": call.operation_key.hex,
            **{name: progress[name] for name in (OBJECTS,) if name in progress},
        }
        if call.cancelled:
            return await run_guarded(call, lambda: self._cancellation(call, data), None, data)
        if "id" not in progress:
            return await run_guarded(call, lambda: self._begin_create(call), None, data)
        return await run_guarded(call, lambda: self._poll_create(call, data), progress["id"], data)

    async def update(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return Replace()
        call = self._ports.with_names(call)
        if call.cancelled:
            return cancellation(call.physical_id, call.data)
        return await run_guarded(call, lambda: self._update(call), call.physical_id)

    async def adopt(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._adopt(call), call.physical_id)

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        session = self._cloud.session(call)
        try:
            server = await find_server(session, str(call.physical_id))
            if server is None:
                raise missing_object("server", str(call.physical_id))
            query = {"device_id": id_of(COMPUTE, server)}
            ports = await session.list(NETWORK, "/ports", "ports", query)
        except CloudError as error:
            raise unreadable("server", error) from None
        ports = sorted(ports, key=lambda one: (str(one.get("created_at")), str(one.get("id"))))
        live = live_server(server, ports, imported)

        def compare(properties: Mapping[str, Json]) -> Observation:
            if server_state.status_of(server) != server_state.ERROR:
                server_data = {"flavor": properties.get("flavor"), "image": properties.get("image")}
                running = {**server, "status": server_state.ACTIVE}
                return observe_server(
                    replace(call, properties=properties, data=server_data), running
                )
            return observe_server(call, server)

        return live_object(self.schema, str(server.get("name") or ""), live, call, compare)

    async def suspend(self, call: Call) -> Outcome:
        return await run_guarded(
            call, lambda: self._act(call, "suspend", SUSPENDED), call.physical_id
        )

    async def resume(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._act(call, "resume", ACTIVE), call.physical_id)

    async def snapshot(self, call: Call) -> Outcome:
        return await run_guarded(call, lambda: self._snapshot(call), call.physical_id)

    def needs_replace(self, call: Call) -> bool:
        before, now, changed = call.previous or {}, call.properties, call.changed
        if any(not SERVER.properties[name].update_allowed for name in changed):
            return True  # an update that repairs is not limited to what the schema allows
        if "flavor" in changed and now.get("flavor_update_policy") == "REPLACE":
            return True
        if "image" in changed:
            boots = bool(before.get("image")) and bool(now.get("image"))
            if not boots or now.get("image_update_policy") == "REPLACE":
                return True
        policy = now.get("user_data_update_policy") or "REPLACE"
        return "user_data" in changed and policy == "REPLACE"

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        self._transport.check(properties, place, findings)
        networks = properties.get("networks") or []
        for number, one in enumerate(networks):
            allocates = isinstance(one, Mapping) and one.get("allocate_network")
            if allocates and (len(networks) > 1 or len(one) > 1):
                remedy = "Remove it, or the others."
                findings.add(f"{place}.networks", interfaces.combined_error(number), remedy)
        for number in interfaces.named_ports(networks):
            findings.add(
                f"{place}.networks[{number}].port_extra_properties.value_specs.name",
                "is reserved: Headgate finds the port of an interrupted create by its name",
                "Remove it, or name a port of your own: an OS::Neutron::Port in networks[].port.",
            )
        check_metadata(properties, place, findings)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        session = self._cloud.session(context)
        found = await find_server(session, physical_id)
        return None if found is not None else f"there is no server {physical_id}"

    # Creation

    async def _begin_create(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        name = server_name(call)
        found = await _find_marked(session, name, call.operation_key.hex) if call.repeated else None
        if found is not None:
            ports = await self._ports.of_operation(session, call)
            connected = await self._connect(call, "")
            begun = {"id": id_of(COMPUTE, found), "ports": ports}
            return proceed(call, {**begun, **connected.data})
        if (reason := _properties_error(call.properties)) is not None:
            return Failed(reason, public_reason=reason)
        connected = await self._connect(call, "")
        user_data = await self._build_user_data(call, connected)
        if isinstance(user_data, Failed):
            return user_data
        flavor = await find_flavor(session, call.properties["flavor"])
        properties = await _with_image_ids(session, call.properties)
        async with self._ports.remove_on_failure(session, call):
            entries, ports = await self._ports.prepare(session, call)
            request = create_request(
                name,
                properties,
                flavor_id=id_of(COMPUTE, flavor),
                image_id=properties.get("image"),
                networks=interfaces.requested_interfaces(entries),
                user_data=user_data,
                marker=call.operation_key.hex,
            )
            created = await session.create(
                COMPUTE, "/servers", "server", "create the server", request,
                microversion_of(call.properties),
            )  # fmt: skip
        begun = {"id": id_of(COMPUTE, created), "ports": ports}
        return proceed(call, {**begun, **connected.data})

    async def _cancellation(self, call: Call, data: Mapping[str, Json]) -> Outcome:
        """The failure of a cancelled create, with the server that a lost call may have created."""
        found = (call.progress or {}).get("id")
        if found is None:
            session = self._cloud.session(call)
            server = await _find_marked(session, server_name(call), call.operation_key.hex)
            found = None if server is None else id_of(COMPUTE, server)
        return cancellation(found, data)

    async def _poll_create(self, call: Call, data: Mapping[str, Json]) -> Outcome:
        progress = call.progress or {}
        session = self._cloud.session(call)
        reason = "the server is not active; the observer lists the servers"
        waits = await self.wait_for_observer(call, "servers", progress["id"], reason)
        if waits is not None:
            return waits
        server = await find_server(session, progress["id"])
        if server is None:
            return Failed("the server was deleted while it was created", None, data)
        judged = server_state.judge(server, {ACTIVE}, "create")
        match judged.progress:
            case ObjectProgress.PENDING:
                return poll(call, progress, judged.reason, "the server is not active yet")
            case ObjectProgress.BROKEN:
                if (wait := wait_for_fault(call, server, progress)) is not None:
                    return wait
                server_id = progress["id"]
                return Failed(judged.reason, server_id, data, public_reason=judged.public)
        await self._ports.associate_floating_ips(session, call, progress["id"])
        return await self._done(session, call, server, data)

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        try:
            session = self._cloud.reader_session(listed_region(definition))
            async for page in _server_pages(session, project):
                yield {id_of(COMPUTE, one): server_state.progress_fields(one) for one in page}
        except CloudError as error:
            reason = error.public or "the servers cannot be listed"
            raise ObjectsUnknown(reason, error.throttled) from None

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return COMPUTE.name

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return server_state.judge(found, {ACTIVE}, "create").progress is not ObjectProgress.PENDING

    async def _connect(self, call: Call, server_id: str) -> AgentConnection:
        """The connection of the agent, if the server has one. Raises CloudError."""
        if call.properties.get("user_data_format") != SOFTWARE_CONFIG:
            return AgentConnection({})
        try:
            return await self._transport.connect(call, server_id)
        except CloudError:
            raise
        except ServiceError as error:
            raise CloudError(str(error), retry=error.retry, public=error.public) from None

    async def _user_data(self, call: Call) -> str | Failed:
        """The user data of a rebuild."""
        return await self._build_user_data(call, await self._connect(call, call.physical_id or ""))

    async def _build_user_data(self, call: Call, connected: AgentConnection) -> str | Failed:
        properties = call.properties
        form = str(properties.get("user_data_format") or CFN_TOOLS)
        text = str(properties.get("user_data") or "")
        if form != CFN_TOOLS and is_config_id(text):
            config = await self._software_store.config(call.project, text)
            if config is not None and not isinstance(config.config, str):
                reason = "user_data names a software config that is a map, not text"
                return Failed(reason, public_reason=reason)
            text = str(config.config) if config is not None else text
        url = self._transport.urls.url
        built = build_user_data(
            form, text, call.operation_key, connected.settings, url, call.metadata
        )
        too_large = size_error(built)
        return Failed(too_large, public_reason=too_large) if too_large else built

    async def _update(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        result = await ServerUpdate(session, call, self._ports, self._user_data).run()
        if not isinstance(result, UpdatedServer):
            return result
        return await self._connect_and_end(session, call, result.server, result.data)

    async def _connect_and_end(
        self,
        session: Session,
        call: Call,
        server: Mapping[str, Json],
        data: Mapping[str, Json],
    ) -> Done:
        connected = await self._connect(call, id_of(COMPUTE, server))
        return await self._done(session, call, server, {**data, **connected.data})

    # Other operations

    async def _delete(self, call: Call) -> Outcome:
        session, data = self._cloud.session(call), call.data
        if call.physical_id is not None:
            server = await find_server(session, call.physical_id)
        elif marker := data.get("marker"):  # a create without an answer may have created one
            server = await _find_marked(session, str(data["name"]), str(marker))
        else:
            server = None
        if server is not None and not server_state.is_gone(server):
            return await self._delete_again(session, call, server)
        await self._ports.delete(session, await self._ports.find_own(session, data))
        if call.properties.get("user_data_format") == SOFTWARE_CONFIG or OBJECTS in data:
            await self._transport.remove(call)
        return Done(None)

    async def _delete_again(
        self, session: Session, call: Call, server: Mapping[str, Json]
    ) -> Outcome:
        """Send the request, unless Nova works on it already, and wait."""
        progress, reason = dict(call.progress or {}), "the server is being deleted"
        if server_state.is_deleting(server):
            return poll(call, progress, reason, reason)
        if progress.get("deleting") and server_state.status_of(server) == server_state.ERROR:
            if (wait := wait_for_fault(call, server, progress)) is not None:
                return wait
            fault = server_state.fault_reason(server)
            public = "Went to status ERROR"
            return Failed(fault, call.physical_id, call.data, public_reason=public)
        try:
            path = f"/servers/{segment(id_of(COMPUTE, server))}"
            await session.request(COMPUTE, "DELETE", path, "delete the server")
            progress["deleting"] = True
        except CloudError as error:
            if not error.is_missing and error.status != CONFLICT:
                raise
        return poll(call, progress, reason, reason)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        server = await find_server(session, call.physical_id or "")
        if server is None:
            return Failed(_GONE, None, call.data, public_reason=_GONE)
        status = server_state.status_of(server)
        if status != ACTIVE:
            error = server_state.fault_reason(server) if status == server_state.ERROR else ""
            reason = error or f"the server is {status}, not {ACTIVE}"
            public = f"the server is not {ACTIVE}"
            return Failed(reason, call.physical_id, call.data, public_reason=public)
        return await self._done(session, call, server, call.data)

    async def _adopt(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        server = await find_server(session, call.physical_id or "")
        if server is None:
            return Failed(f"there is no server {call.physical_id}", None, public_reason=_GONE)
        data = {"name": str(server.get("name")), "ports": [], **call.data}
        return await self._connect_and_end(session, call, server, data)

    async def _act(self, call: Call, action: str, wanted: str) -> Outcome:
        session = self._cloud.session(call)
        server = await find_server(session, call.physical_id or "")
        if server is None:
            return Failed(_GONE, None, call.data, public_reason=_GONE)
        if server_state.status_of(server) == wanted and not server_state.task_of(server):
            return await self._done(session, call, server, call.data)
        if call.progress is None and not server_state.in_progress(server):
            await post_action(session, call, {action: None}, f"{action} the server")
            return proceed(call, {"asked": True})
        judged = server_state.judge(server, {wanted}, action)
        if judged.progress is ObjectProgress.PENDING:
            return poll(call, call.progress or {"asked": True}, judged.reason)
        if (wait := wait_for_fault(call, server, call.progress or {})) is not None:
            return wait
        return Failed(judged.reason, call.physical_id, call.data, public_reason=judged.public)

    async def _snapshot(self, call: Call) -> Outcome:
        """An image of the server, named after the operation."""
        session = self._cloud.session(call)
        image_id = (call.progress or {}).get("image")
        if image_id is None:
            return proceed(call, {"image": await self._take_image(session, call)})
        image = await session.find(IMAGE, f"/images/{segment(image_id)}", "", "read the image")
        status = image.get("status") if image is not None else "deleted"
        if status == "active":
            return Done(call.physical_id, call.attributes, {"snapshot_image_id": image_id})
        if status in ("queued", "saving", "importing"):
            return poll(call, call.progress or {}, f"the image of the server is {status}")
        reason = f"the image of the server is {status}"
        return Failed(reason, call.physical_id, call.data, public_reason=reason)

    async def _take_image(self, session: Session, call: Call) -> str:
        found = await session.list(IMAGE, "/images", "images", {"name": call.own_name})
        if found:
            return id_of(IMAGE, found[0])
        action = {"createImage": {"name": call.own_name}}
        created = await post_action(session, call, action, "take a snapshot of the server")
        return str(created["image_id"])

    async def _done(
        self,
        session: Session,
        call: Call,
        server: Mapping[str, Json],
        data: Mapping[str, Json],
    ) -> Done:
        server_id = id_of(COMPUTE, server)
        ports = await session.list(NETWORK, "/ports", "ports", {"device_id": server_id})
        shown = {name: one for name, one in server.items() if name != _USER_DATA}
        attributes: dict[str, Json] = {
            "show": {**shown, "metadata": own_metadata(server)},
            "name": server.get("name"),
            "accessIPv4": server.get("accessIPv4") or "",
            "accessIPv6": server.get("accessIPv6") or "",
            "addresses": server_state.addresses_with_ports(server, ports),
            "networks": server_state.networks_attribute(server, ports),
            "first_address": server_state.first_address(server),
            "instance_name": server.get("OS-EXT-SRV-ATTR:instance_name"),
            "tags": server.get("tags") or [],
            "console_urls": {},
        }
        if call.properties.get("user_data_format") == SOFTWARE_CONFIG:
            attributes[OS_COLLECT_CONFIG] = self._transport.read_connection(call, data).settings
        kept = {
            **data,
            "flavor": server_state.flavor_name(server),
            "image": server_state.image_id(server),
        }
        return Done(server_id, attributes, kept)

    # Observation

    def observation_key(self, call: Call) -> str | None:
        return "servers" if self._cloud.can_observe(call) else None

    def observation_endpoint(self, call: Call) -> str:
        return COMPUTE.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str]:
        return OBSERVED

    def adopted_data(self, data: Mapping[str, Json], path: str, value: Json) -> Mapping[str, Json]:
        return {**data, path: value} if path in ("flavor", "image") else data

    def observed_list(self, call: Call) -> ObservedList:
        session = self._cloud.observer_session(call)
        return observed_list(lambda: _server_pages(session, call.project), observe_server, _GONE)


def _properties_error(properties: Mapping[str, Json]) -> str | None:
    """The reason why Nova would refuse the properties; they are all known."""
    if (reason := interfaces.networks_error(properties.get("networks"))) is not None:
        return reason
    if (wrong := device_error(properties)) is not None:
        return f"{wrong[0]} {wrong[1]}"
    if not is_bootable(properties):
        return (
            "Neither image nor bootable volume is specified: set image, or boot_index: 0 of a block"
            " device in block_device_mapping_v2"
        )
    return None


async def _find_marked(session: Session, name: str, marker: str) -> Mapping[str, Json] | None:
    """The server that an operation created. Nova's filter by name is a pattern."""
    query = {"name": f"^{re.escape(name)}$"}
    for one in await session.list(COMPUTE, "/servers/detail", "servers", query):
        if (one.get("metadata") or {}).get(MARKER) == marker:
            return one
    return None


def _server_pages(session: Session, project: str) -> AsyncIterator[Sequence[Mapping[str, Json]]]:
    query = {"all_tenants": "True", "project_id": project} if session.reads_all_projects else {}
    return session.pages(COMPUTE, "/servers/detail", "servers", query)


async def _with_image_ids(session: Session, properties: Mapping[str, Json]) -> dict[str, Json]:
    """The properties with IDs of images, also in block devices."""
    found = dict(properties)
    if found.get("image"):
        found["image"] = await IMAGES.find_id(session, found["image"])
    devices = []
    for one in found.get("block_device_mapping_v2") or []:
        image = one.get("image") or one.get("image_id")
        known = {"image": await IMAGES.find_id(session, image)} if image else {}
        devices.append({**one, **known})
    return {**found, "block_device_mapping_v2": devices}
