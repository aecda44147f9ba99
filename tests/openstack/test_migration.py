"""A stack of OpenStack Heat moves to Headgate, as docs/how-to/migrate-from-heat.md says."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.openstack.cloud import OpenStack, Project
from tests.openstack.openstack_client import environment_of, run_client
from tests.openstack.page_reader import member_reader
from tests.openstack.stacks import delete, run
from tests.support.page_commands import page_command
from tests.support.program import Program

Json = Any
PAGE = "docs/how-to/migrate-from-heat.md"
__all__ = ["run"]  # a fixture
TEMPLATE = """
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 1}
resources:
  key:
    type: OS::Nova::KeyPair
    properties: {name: migrated, public_key: PUBLIC_KEY}
  network: {type: OS::Neutron::Net}
  subnet:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: network}, cidr: 10.41.0.0/24, dns_nameservers: [10.0.0.1]}
  router:
    type: OS::Neutron::Router
    properties: {external_gateway_info: {network: public}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: subnet}}
  group:
    type: OS::Neutron::SecurityGroup
    properties: {rules: [{protocol: tcp, port_range_min: 80, port_range_max: 80}]}
  rule:
    type: OS::Neutron::SecurityGroupRule
    properties: {security_group: {get_resource: group}, protocol: icmp}
  port:
    type: OS::Neutron::Port
    properties:
      network: {get_resource: network}
      fixed_ips: [{subnet: {get_resource: subnet}}]
      security_groups: [{get_resource: group}]
  address:
    type: OS::Neutron::FloatingIP
    depends_on: interface
    properties: {floating_network: public, port_id: {get_resource: port}}
  servers: {type: OS::Nova::ServerGroup, properties: {policies: [anti-affinity]}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.nano
      image: cirros
      key_name: {get_resource: key}
      networks: [{port: {get_resource: port}}]
      metadata: {role: web}
      user_data_format: RAW
      user_data: "#!/bin/sh"
  own_port:
    type: OS::Nova::Server
    properties:
      flavor: m1.nano
      image: cirros
      networks: [{network: {get_resource: network}}]
      scheduler_hints: {group: {get_resource: servers}}
  volume:
    type: OS::Cinder::Volume
    properties: {size: {get_param: size}, description: data}
  attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {instance_uuid: {get_resource: server}, volume_id: {get_resource: volume}}
outputs:
  address: {value: {get_attr: [address, floating_ip_address]}}
"""


@pytest.fixture(scope="session", autouse=True)
def heat(openstack: OpenStack) -> None:
    """OpenStack Heat runs; it starts once per run."""
    openstack.start("heat")


async def test_a_stack_of_heat_moves_to_headgate(
    run: Program,
    openstack: OpenStack,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is replaced: neither by the adoption, nor by the first update."""
    key = Ed25519PrivateKey.generate().public_key()
    public = key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    (template := tmp_path / "web.yaml").write_text(TEMPLATE.replace("PUBLIC_KEY", public))
    in_heat = environment_of(openstack, project)
    await run_client(in_heat, "stack", "create", "web", "-t", str(template), "--wait")
    monkeypatch.chdir(tmp_path)
    reader = await member_reader(run, openstack, project, {})
    await reader.type(page_command(PAGE, "openstack stack abandon"))
    document = json.loads(Path("web.json").read_text())
    ids = {name: one["resource_id"] for name, one in document["resources"].items()}

    await reader.type(page_command(PAGE, "headgate stack adopt"))
    assert (await run.stack("web"))["stack_status"] == "ADOPT_COMPLETE"
    found = await run.resources("web")
    assert {name: one["physical_resource_id"] for name, one in found.items()} == ids
    (output,) = (await run.stack("web"))["outputs"]
    addresses = await asyncio.to_thread(lambda: list(project.cloud.network.ips()))
    assert output["output_value"] in {one.floating_ip_address for one in addresses}

    body: Json = {"template": template.read_text(), "parameters": {"size": 1}}
    preview = await run.stack_request("PUT", "web", "/preview", body)
    changes = preview["resource_changes"]
    assert [one for kind, those in changes.items() if kind != "unchanged" for one in those] == []
    await run.update("web", "PUT", **body | {"parameters": {"size": 2}})
    assert await run.until_ended("web") == "UPDATE_COMPLETE"
    found = await run.resources("web")
    assert {name: one["physical_resource_id"] for name, one in found.items()} == ids
    volume: Any = await asyncio.to_thread(project.cloud.block_storage.get_volume, ids["volume"])
    assert volume.size == 2
    await delete(run, "web")
