"""OS::Neutron::Port and Trunk."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from time import monotonic
from typing import Final

from engine.errors import Findings
from engine.hot.schema.type_schema import (
    Attribute,
    ImplicitDependency,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.ttl_cache import TtlCache
from engine.types.contract import Call, Outcome, ResourceType, Wait
from engine.types.openstack.addresses import canonical
from engine.types.openstack.cloud import Cloud, Session, id_of, segment
from engine.types.openstack.live_values import LiveProperties
from engine.types.openstack.neutron.lookups import (
    NETWORKS,
    PORTS,
    QOS_POLICIES,
    SECURITY_GROUPS,
    between,
    custom,
    one_of,
)
from engine.types.openstack.neutron.networks import ADMIN_STATE, TAGS, VALUE_SPECS, name_of
from engine.types.openstack.neutron.neutron_type import (
    NeutronType,
    describe,
    fixed_ip,
    without_nulls,
)
from engine.types.openstack.object_type import ObjectRow
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import NETWORK
from engine.words import Json

#: Seconds for which ports share what was read of their networks and subnets.
REMEMBER: Final = 30.0
#: The security group that each project has, and that ports without groups get.
DEFAULT_GROUP: Final = "default"
#: The kinds of Neutron's errors about an address that another port has.
_ADDRESS_IN_USE: Final = frozenset({"IpAddressAlreadyAllocated", "IpAddressInUse"})
#: In the progress of a create: the port that it takes addresses from, with all that this had.
_TAKEN: Final = "taken"
_SECURITY: Final = frozenset({"port_security_enabled", "security_groups"})

PORT: Final = TypeSchema(
    "OS::Neutron::Port",
    description="A port of a network.",
    follows=(ImplicitDependency("OS::Neutron::Subnet", "network", "network"),),
    properties={
        "name": name_of("port"),
        "network": Property(
            Kind.STRING,
            "Name or ID of the network.",
            required=True,
            constraints=custom("neutron.network"),
            former_names=("network_id",),
        ),
        "device_id": updatable(Kind.STRING, "ID of the device that uses it.", default=""),
        "device_owner": updatable(Kind.STRING, "Kind of the device that uses it.", default=""),
        "fixed_ips": updatable(
            Kind.LIST,
            "Its addresses; the default is one of each IP version.",
            items=Property(
                Kind.MAP,
                "An address.",
                fields={
                    "subnet": Property(
                        Kind.STRING,
                        "Name or ID of the subnet.",
                        constraints=custom("neutron.subnet"),
                        former_names=("subnet_id",),
                    ),
                    "ip_address": Property(
                        Kind.STRING, "The address.", constraints=custom("ip_addr")
                    ),
                },
            ),
        ),
        "no_fixed_ips": updatable(
            Kind.BOOLEAN, "Whether it has no address; then omit fixed_ips.", default=False
        ),
        "replacement_policy": Property(
            Kind.STRING, "No effect; an update decides whether it replaces.", obsolete=True
        ),
        "security_groups": updatable(
            Kind.LIST, "Names or IDs of security groups; the default is the group `default`."
        ),
        "value_specs": VALUE_SPECS,
        "admin_state_up": ADMIN_STATE,
        "allowed_address_pairs": updatable(
            Kind.LIST,
            "Further addresses that it may send from.",
            items=Property(
                Kind.MAP,
                "An address.",
                fields={
                    "mac_address": Property(
                        Kind.STRING, "MAC address.", constraints=custom("mac_addr")
                    ),
                    "ip_address": Property(
                        Kind.STRING,
                        "IP address or CIDR.",
                        required=True,
                        constraints=custom("ip_or_cidr"),
                    ),
                },
            ),
        ),
        "mac_address": Property(Kind.STRING, "MAC address.", constraints=custom("mac_addr")),
        "binding:vnic_type": updatable(
            Kind.STRING,
            "Kind of virtual network card.",
            default="normal",
            constraints=one_of(
                "normal", "direct", "macvtap", "direct-physical", "baremetal",
                "virtio-forwarder", "smart-nic",
            ),
        ),
        "port_security_enabled": updatable(
            Kind.BOOLEAN, "Whether addresses and security groups are enforced."
        ),
        "qos_policy": updatable(
            Kind.STRING, "Name or ID of a QoS policy.", constraints=custom("neutron.qos_policy")
        ),
        "dns_name": updatable(Kind.STRING, "DNS name.", constraints=custom("dns_name")),
        "tags": TAGS,
        "propagate_uplink_status": updatable(
            Kind.BOOLEAN, "Whether it follows the state of the physical port."
        ),
    },
    attributes={
        "admin_state_up": Attribute(Kind.STRING, "Whether it is up."),
        "device_id": Attribute(Kind.STRING, "ID of the device that uses it."),
        "device_owner": Attribute(Kind.STRING, "Kind of the device that uses it."),
        "fixed_ips": Attribute(Kind.LIST, "Its addresses, with the IDs of their subnets."),
        "mac_address": Attribute(Kind.STRING, "MAC address."),
        "name": Attribute(Kind.STRING, "Name."),
        "network_id": Attribute(Kind.STRING, "ID of the network."),
        "security_groups": Attribute(Kind.LIST, "IDs of its security groups."),
        "status": Attribute(Kind.STRING, "Status in Neutron."),
        "tenant_id": Attribute(Kind.STRING, "ID of the owning project."),
        "allowed_address_pairs": Attribute(Kind.LIST, "Further addresses."),
        "subnets": Attribute(Kind.LIST, "The subnets of its addresses."),
        "port_security_enabled": Attribute(Kind.BOOLEAN, "Whether groups are enforced."),
        "qos_policy_id": Attribute(Kind.STRING, "ID of its QoS policy."),
        "dns_assignment": Attribute(Kind.MAP, "DNS names of its addresses."),
        "network": Attribute(Kind.MAP, "The network."),
        "propagate_uplink_status": Attribute(Kind.BOOLEAN, "Whether it follows the physical port."),
    },
)  # fmt: skip

TRUNK: Final = TypeSchema(
    "OS::Neutron::Trunk",
    description="A port that carries the traffic of other ports.",
    properties={
        "name": name_of("trunk"),
        "port": Property(
            Kind.STRING,
            "Name or ID of the parent port.",
            required=True,
            immutable=True,
            constraints=custom("neutron.port"),
        ),
        "sub_ports": updatable(
            Kind.LIST,
            "The ports that it carries.",
            items=Property(
                Kind.MAP,
                "A port.",
                fields={
                    "port": Property(
                        Kind.STRING,
                        "Name or ID of the port.",
                        required=True,
                        constraints=custom("neutron.port"),
                    ),
                    "segmentation_type": Property(
                        Kind.STRING, "Kind of segment.", required=True, constraints=one_of("vlan")
                    ),
                    "segmentation_id": Property(
                        Kind.INTEGER, "ID of the VLAN.", required=True, constraints=between(1, 4094)
                    ),
                },
            ),
        ),
        "description": updatable(Kind.STRING, "Description."),
        "admin_state_up": updatable(Kind.BOOLEAN, "Whether it is up."),
    },
    attributes={"port_id": Attribute(Kind.STRING, "ID of the parent port.")},
)


class PortType(NeutronType):
    importable = True
    keep_empty = frozenset({"security_groups"})

    def __init__(self, schema: TypeSchema, row: ObjectRow, cloud: Cloud) -> None:
        super().__init__(schema, row, cloud)
        self._near: TtlCache[tuple[str | None, str, str], Mapping[str, Json]] = TtlCache()

    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name == "fixed_ips":
            return [await fixed_ip(call, session, one) for one in value]
        if name == "allowed_address_pairs":
            return [without_nulls(one) for one in value]
        return await super().value_of(call, session, name, value)

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        fields = await super().fields_for_create(call, session)
        if call.properties.get("no_fixed_ips"):
            fields["fixed_ips"] = []
        return fields

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        """A server or router that uses the port has set `device_id`: only a change of the property
        sets it. Without fixed_ips, the port keeps its addresses."""
        given = call.properties
        sent = set(names) - {"no_fixed_ips"}
        if given.get("fixed_ips") is None:
            sent.discard("fixed_ips")
        sent -= {"device_id", "device_owner"} - call.changed
        fields = await super().fields_for_update(call, session, sent)
        if given.get("no_fixed_ips") and "no_fixed_ips" in names:
            fields["fixed_ips"] = []
        if set(names) & _SECURITY:
            fields["security_groups"] = await self._groups(call, session)
        return fields

    async def _create(self, call: Call, session: Session) -> Outcome:
        """The port that it replaces has its addresses until the new one needs them, and gets them
        back if the create fails."""
        progress = call.progress or {}
        if (taken := progress.get(_TAKEN)) is not None:
            return await self._create_with_taken(call, session, taken)
        try:
            return await super()._create(call, session)
        except CloudError as error:
            taken = await self._conflicting(call, session, error)
            if taken is None:
                raise
            return Wait(call.now, {**progress, _TAKEN: taken})

    def saves_id(self, call: Call) -> bool:
        return _TAKEN in (call.progress or {})

    async def _create_with_taken(
        self, call: Call, session: Session, taken: Mapping[str, Json]
    ) -> Outcome:
        """A call of a create that takes addresses from the replaced port. A failed call returns
        them; so each call takes them again, if necessary."""
        object_id = (call.progress or {}).get("id")
        try:
            if object_id is None:
                await self._set_addresses(session, taken, _other_addresses(call, taken))
            else:
                await self._take_again(call, session, taken, object_id)
            outcome = await super()._create(call, session)
        except CloudError:
            with suppress(CloudError):
                if object_id is not None:
                    await self._set_addresses(session, {"id": object_id}, [])
                await self._set_addresses(session, taken, taken["fixed_ips"])
            raise
        if isinstance(outcome, Wait):
            return replace(outcome, progress={**outcome.progress, _TAKEN: taken})
        return outcome

    async def _take_again(
        self, call: Call, session: Session, taken: Mapping[str, Json], object_id: str
    ) -> None:
        found = await self.get(session, self.row.path, object_id)
        has = {canonical(str(one.get("ip_address"))) for one in found.get("fixed_ips") or []}
        if _wanted_addresses(call) <= has:
            return
        await self._set_addresses(session, taken, _other_addresses(call, taken))
        addresses = await self.value_of(call, session, "fixed_ips", call.properties["fixed_ips"])
        await self.put(session, self.row.path, object_id, {"fixed_ips": addresses})

    async def _conflicting(
        self, call: Call, session: Session, error: CloudError
    ) -> Mapping[str, Json] | None:
        """The port that it replaces, if that has an address of the new one."""
        if error.kind not in _ADDRESS_IN_USE or call.replaced is None:
            return None
        found = await self.find(session, self.row.path, call.replaced)
        if found is None or _other_addresses(call, found) == (found.get("fixed_ips") or []):
            return None
        return {"id": call.replaced, "fixed_ips": found["fixed_ips"]}

    async def _set_addresses(
        self, session: Session, port: Mapping[str, Json], addresses: Json
    ) -> None:
        try:
            await self.put(session, self.row.path, port["id"], {"fixed_ips": addresses})
        except CloudError as error:
            if not error.is_missing:
                raise

    async def _groups(self, call: Call, session: Session) -> Json:
        """The security groups: none without port security, since Neutron refuses to turn it off
        while there are some; without the property, the group of the project."""
        given = call.properties.get("security_groups")
        if call.properties.get("port_security_enabled") is False:
            return given or []
        if given is not None:
            return await self.value_of(call, session, "security_groups", given)
        found = await SECURITY_GROUPS.find_named(session, DEFAULT_GROUP)
        return [id_of(NETWORK, one) for one in found if one.get("project_id") == call.project][:1]

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        attributes = await super().attributes_of(session, found)
        attributes["network"] = await self._read_near(
            session, f"/networks/{segment(found.get('network_id'))}", "network"
        )
        subnets = dict.fromkeys(
            id_of(NETWORK, one, "subnet_id") for one in found.get("fixed_ips") or []
        )
        attributes["subnets"] = [
            await self._read_near(session, f"/subnets/{segment(one)}", "subnet") for one in subnets
        ]
        return attributes

    async def _read_near(self, session: Session, path: str, key: str) -> Mapping[str, Json]:
        """A network or subnet of a port, read once for many ports of a change."""
        place = (session.credential, session.region, path)
        known = self._near.get(place, monotonic())
        if known is None:
            known = await session.find(NETWORK, path, key, f"read the {key}") or {}
            self._near.keep(place, known, monotonic() + REMEMBER)
        return known

    async def users(self, session: Session, path: str, object_id: str) -> Sequence[str]:
        users = []
        for one in await session.list(NETWORK, "/trunks", "trunks"):
            carried = [sub.get("port_id") for sub in one.get("sub_ports") or []]
            if object_id in (one.get("port_id"), *carried):
                users.append(describe("trunk", one))
        return users or await self.ports_using(session, {"id": object_id})

    async def live_properties(
        self, session: Session, found: Mapping[str, Json], imported: Collection[str]
    ) -> LiveProperties:
        """What uses a port sets its device, also if a stack has the port."""
        live = await super().live_properties(session, found, imported)
        for name in ("device_id", "device_owner"):
            live.values.pop(name, None)
        if not live.values.get("fixed_ips"):
            live.values["no_fixed_ips"] = True
        return live

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name in ("device_id", "device_owner") and desired == "":
            return True
        if name == "fixed_ips":
            renamed = [
                {"subnet_id": one.get("subnet"), "ip_address": one.get("ip_address")}
                for one in desired
            ]
            named = any(one["subnet_id"] and not _is_id(one["subnet_id"]) for one in renamed)
            return named or super().is_same(name, renamed, observed)
        return super().is_same(name, desired, observed)

    def is_observed(self, name: str) -> bool:
        return name != "no_fixed_ips" and super().is_observed(name)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if properties.get("no_fixed_ips") is True and properties.get("fixed_ips"):
            reason = "no_fixed_ips and fixed_ips exclude each other"
            findings.add(place, reason, "Remove one of them.")
        if properties.get("port_security_enabled") is False and properties.get("security_groups"):
            reason = "a port with port_security_enabled: false has no security groups"
            findings.add(f"{place}.security_groups", reason, "Remove one of them.")


def _other_addresses(call: Call, port: Mapping[str, Json]) -> list[Json]:
    """The addresses of a port, without those that the properties of the call name."""
    wanted = _wanted_addresses(call)
    found = port.get("fixed_ips") or []
    return [one for one in found if canonical(str(one.get("ip_address"))) not in wanted]


def _wanted_addresses(call: Call) -> set[str]:
    given = call.properties.get("fixed_ips") or []
    return {canonical(one["ip_address"]) for one in given if one.get("ip_address")}


def _is_id(value: Json) -> bool:
    return isinstance(value, str) and len(value) == 36 and value.count("-") == 4


class TrunkType(NeutronType):
    async def value_of(self, call: Call, session: Session, name: str, value: Json) -> Json:
        if name == "sub_ports":
            return [await self._sub_port(call, session, one) for one in value]
        return await super().value_of(call, session, name, value)

    async def _sub_port(
        self, call: Call, session: Session, given: Mapping[str, Json]
    ) -> dict[str, Json]:
        sub_port = without_nulls(given)
        port = await PORTS.find_id(session, str(sub_port.pop("port")), call.project)
        return {**sub_port, "port_id": port}

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        sent = [name for name in names if name != "sub_ports"]
        return await super().fields_for_update(call, session, sent)

    async def follow_up(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        return found if call.previous is None else await self._set_ports(call, session, path, found)

    async def _update(self, call: Call, session: Session) -> Outcome:
        """Neutron changes the ports of enabled trunks only."""
        if call.properties.get("admin_state_up") is False and not call.progress:
            path = await self._path(call, session)
            found = await self.find(session, path, str(call.physical_id))
            if found is not None and found.get("admin_state_up"):
                await self._set_ports(call, session, path, found)
        return await super()._update(call, session)

    async def _set_ports(
        self, call: Call, session: Session, path: str, found: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        """Make the ports of the trunk those of the template."""
        wanted = await self.value_of(
            call, session, "sub_ports", call.properties.get("sub_ports") or []
        )
        has = found.get("sub_ports") or []
        extra = [{"port_id": id_of(NETWORK, one, "port_id")} for one in has if one not in wanted]
        missing = [one for one in wanted if one not in has]
        at = f"{path}/{segment(self.id_of(found))}"
        for action, ports in (("remove_subports", extra), ("add_subports", missing)):
            if ports:
                doing = "change the ports of the trunk"
                body = {"sub_ports": ports}
                await session.request(NETWORK, "PUT", f"{at}/{action}", doing, body)
        return await self.get(session, path, self.id_of(found)) if extra or missing else found

    async def remove(self, call: Call, session: Session, path: str, object_id: str) -> None:
        """Neutron deletes enabled trunks only."""
        try:
            await super().remove(call, session, path, object_id)
        except CloudError as error:
            if error.kind != "TrunkDisabled":
                raise
            await self.put(session, path, object_id, {"admin_state_up": True})
            await super().remove(call, session, path, object_id)

    def is_same(self, name: str, desired: Json, observed: Json) -> bool:
        if name == "sub_ports":
            desired = [
                {**{key: value for key, value in one.items() if key != "port"},
                 "port_id": one["port"] if _is_id(one["port"]) else None}
                for one in desired
            ]  # fmt: skip
        return super().is_same(name, desired, observed)


def port_types(cloud: Cloud) -> list[ResourceType]:
    return [
        PortType(
            PORT,
            ObjectRow(
                "port", NETWORK, "/ports", "port", "ports",
                fields={"network": "network_id", "qos_policy": "qos_policy_id"},
                lookups={"network": NETWORKS, "qos_policy": QOS_POLICIES,
                         "security_groups": SECURITY_GROUPS},
                separate=frozenset({"no_fixed_ips"}),
                cleared={
                    "allowed_address_pairs": [], "dns_name": "", "binding:vnic_type": "normal",
                    "port_security_enabled": True, "propagate_uplink_status": True,
                    "device_id": "", "device_owner": "",
                },
                tagged=True,
            ),
            cloud,
        ),
        TrunkType(
            TRUNK,
            ObjectRow(
                "trunk", NETWORK, "/trunks", "trunk", "trunks",
                fields={"port": "port_id"}, lookups={"port": PORTS},
                cleared={"admin_state_up": True},
            ),
            cloud,
        ),
    ]  # fmt: skip
