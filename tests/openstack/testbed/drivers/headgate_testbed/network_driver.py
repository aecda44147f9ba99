"""A network without agents: a mechanism driver of Neutron's ML2.

Every port binds on every host and becomes ACTIVE, also those of routers; a floating IP is ACTIVE
while it has a port; trunks become ACTIVE; every QoS rule is accepted. A port with
`testbed-bind-fails` in its name does not bind; one with `testbed-stays-down` binds and stays DOWN.
"""

from typing import Any

from neutron.services.qos.drivers.openvswitch.driver import SUPPORTED_RULES
from neutron.services.trunk.drivers import base as trunk_base
from neutron_lib import constants
from neutron_lib import context as neutron_context
from neutron_lib.callbacks import events, registry, resources
from neutron_lib.plugins import constants as plugin_constants
from neutron_lib.plugins import directory
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base as qos_base
from neutron_lib.services.trunk import constants as trunk_constants
from oslo_log import log

LOG = log.getLogger(__name__)
NAME = "headgate_testbed"
INTERFACE = "ovs"
BIND_FAILS = "testbed-bind-fails"
STAYS_DOWN = "testbed-stays-down"
#: Ports that no agent of this test bed would report as ACTIVE.
ROUTER_PORTS = (
    constants.DEVICE_OWNER_ROUTER_INTF,
    constants.DEVICE_OWNER_ROUTER_GW,
    constants.DEVICE_OWNER_ROUTER_SNAT,
    constants.DEVICE_OWNER_FLOATINGIP,
)


@registry.has_registry_receivers
class TrunkDriver(trunk_base.DriverBase):
    """The trunk plug-in does not start without a driver."""

    is_loaded = True

    @registry.receives(resources.TRUNK_PLUGIN, [events.AFTER_INIT])
    def register(self, resource: str, event: str, trigger: Any, payload: Any = None) -> None:
        super().register(resource, event, trigger, payload=payload)
        registry.subscribe(self._activate_trunk, resources.TRUNK, events.AFTER_CREATE)
        registry.subscribe(self._activate_subports, resources.SUBPORTS, events.AFTER_CREATE)

    @staticmethod
    def _activate_trunk(resource: str, event: str, trigger: Any, payload: Any = None) -> None:
        payload.latest_state.update(status=trunk_constants.TRUNK_ACTIVE_STATUS)

    @staticmethod
    def _activate_subports(resource: str, event: str, trigger: Any, payload: Any = None) -> None:
        payload.states[0].update(status=trunk_constants.TRUNK_ACTIVE_STATUS)


class QosDriver(qos_base.DriverBase):
    def validate_rule_for_port(self, context: Any, rule: Any, port: Any) -> bool:
        return True

    def validate_rule_for_network(self, context: Any, rule: Any, network_id: str) -> bool:
        return True


class TestBedDriver(api.MechanismDriver):
    def initialize(self) -> None:
        self.trunk = TrunkDriver(
            NAME, (INTERFACE,), (trunk_constants.SEGMENTATION_TYPE_VLAN,), can_trunk_bound_port=True
        )
        self.qos = QosDriver(
            NAME,
            vif_types=[INTERFACE],
            vnic_types=["normal", "direct"],
            supported_rules=SUPPORTED_RULES,
        )
        for event in (events.AFTER_CREATE, events.AFTER_UPDATE):
            registry.subscribe(self._update_floating_ip, resources.FLOATING_IP, event)

    @property
    def connectivity(self) -> str:
        return "l2"

    def bind_port(self, context: Any) -> None:
        name = context.current.get("name") or ""
        if BIND_FAILS in name:
            return
        down = STAYS_DOWN in name
        status = constants.PORT_STATUS_DOWN if down else constants.PORT_STATUS_ACTIVE
        segment = context.segments_to_bind[0]
        details = {"port_filter": True, "connectivity": "l2", "bridge_name": "br-int"}
        context.set_binding(segment[api.ID], INTERFACE, details, status=status)

    def filter_hosts_with_segment_access(
        self, context: Any, segments: Any, candidate_hosts: Any, agent_getter: Any
    ) -> set[str]:
        return set(candidate_hosts)

    def check_segment_for_agent(self, segment: Any, agent: Any) -> bool:
        return True

    def create_port_postcommit(self, context: Any) -> None:
        self._activate_router_port(context)

    def update_port_postcommit(self, context: Any) -> None:
        self._activate_router_port(context)

    @staticmethod
    def _activate_router_port(context: Any) -> None:
        port = context.current
        if (
            port["device_owner"] in ROUTER_PORTS
            and port["status"] == constants.PORT_STATUS_DOWN
            and port["admin_state_up"]
        ):
            admin = context._plugin_context.elevated()
            directory.get_plugin().update_port_status(
                admin, port["id"], constants.PORT_STATUS_ACTIVE
            )

    @staticmethod
    def _update_floating_ip(resource: str, event: str, trigger: Any, payload: Any) -> None:
        state = payload.latest_state or {}
        # The event of a creation has the port in another key than that of an update.
        port = state.get("port_id") or state.get("fixed_port_id")
        active = constants.FLOATINGIP_STATUS_ACTIVE if port else constants.FLOATINGIP_STATUS_DOWN
        try:
            directory.get_plugin(plugin_constants.L3).update_floatingip_status(
                neutron_context.get_admin_context(), state.get("id") or payload.resource_id, active
            )
        except Exception:  # a subscriber's error would fail the request
            LOG.exception("the status of a floating IP was not updated")
