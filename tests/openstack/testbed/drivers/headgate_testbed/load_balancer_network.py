"""The network of load balancers without machines: a network driver of Octavia.

What users see is real: networks and subnets are checked, and the address of a load balancer is a
port of Neutron. What concerns machines does nothing. A load balancer with `testbed-create-fails` in
its name ends in the status ERROR.
"""

from typing import Any

from octavia.network.base import NetworkException, PortNotFound
from octavia.network.drivers.neutron.allowed_address_pairs import AllowedAddressPairsDriver
from octavia.network.drivers.noop_driver.driver import NoopNetworkDriver

CREATE_FAILS = "testbed-create-fails"
#: Owns the ports that Octavia has created itself.
OWNER = "Octavia"


class TestBedDriver(NoopNetworkDriver):
    def __init__(self) -> None:
        super().__init__()
        self._neutron = AllowedAddressPairsDriver()
        for name in (
            "allocate_vip",
            "get_network",
            "get_subnet",
            "get_port",
            "get_network_by_name",
            "get_subnet_by_name",
            "get_port_by_name",
            "get_security_group",
            "get_qos_policy",
            "get_network_ip_availability",
        ):
            setattr(self, name, getattr(self._neutron, name))

    def update_vip_sg(self, load_balancer: Any, vip: Any) -> Any:
        if CREATE_FAILS in (load_balancer.name or ""):
            raise NetworkException("the load balancer fails on request")
        return super().update_vip_sg(load_balancer, vip)

    def deallocate_vip(self, vip: Any) -> None:
        try:
            port = self._neutron.get_port(vip.port_id)
        except PortNotFound:
            return
        if port.device_owner == OWNER:
            self._neutron.delete_port(port.id)
