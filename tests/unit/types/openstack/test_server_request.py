"""The request that creates a server, its user data and its interfaces."""

import base64
import json
import re
from email import message_from_string
from typing import Any
from uuid import UUID

import pytest

from engine.types.openstack.nova.interfaces import (
    interface_changes,
    needs_port,
    networks_error,
    port_request,
    requested_interfaces,
)
from engine.types.openstack.nova.server_request import (
    block_devices,
    create_request,
    device_error,
    is_bootable,
    microversion_of,
)
from engine.types.openstack.nova.user_data import build_user_data, size_error
from engine.types.openstack.operation_marker import MARKER

Json = Any
KEY = UUID(int=7)


def request(**properties: Json) -> Json:
    return create_request(
        "web",
        properties,
        flavor_id="F",
        image_id="I",
        networks="none",
        user_data=properties.get("user_data") or "",
        marker="m",
    )


def test_a_request_has_no_nulls() -> None:
    assert request(key_name=None, tags=[], scheduler_hints=None) == {
        "server": {
            "name": "web",
            "flavorRef": "F",
            "imageRef": "I",
            "networks": "none",
            "metadata": {MARKER: "m"},
        }
    }


def test_a_request_has_what_the_properties_say() -> None:
    sent = request(
        key_name="k",
        security_groups=["a", "b"],
        tags=["t"],
        metadata={"n": 1, "m": {"x": [1]}, "e": None},
        user_data="hi",
        diskConfig="AUTO",
        admin_pass="p",
        scheduler_hints={"group": "g", "other": None},
        personality={"/etc/motd": "hello"},
    )
    server = sent["server"]
    assert server["security_groups"] == [{"name": "a"}, {"name": "b"}]
    assert server["metadata"] == {"n": "1", "m": '{"x":[1]}', "e": "", MARKER: "m"}
    assert (server["user_data"], server["adminPass"]) == ("aGk=", "p")
    assert server["OS-DCF:diskConfig"] == "AUTO" and server["tags"] == ["t"]
    assert server["personality"] == [{"path": "/etc/motd", "contents": "aGVsbG8="}]
    assert sent["os:scheduler_hints"] == {"group": "g"}


def test_files_need_an_older_version_of_the_api() -> None:
    assert microversion_of({"personality": {"/a": "b"}}) == "compute 2.56"
    assert microversion_of({"personality": {}}) == ""


DEVICES: dict[str, tuple[Json, Json]] = {
    "volume": (
        {"volume_id": "V", "delete_on_termination": True},
        {"source_type": "volume", "uuid": "V", "delete_on_termination": True, "boot_index": 0},
    ),
    "snapshot": (
        {"snapshot_id": "S", "boot_index": 0, "disk_bus": "virtio"},
        {"source_type": "snapshot", "uuid": "S", "disk_bus": "virtio", "boot_index": 0},
    ),
    "image": (
        {"image": "I", "volume_size": 3, "volume_type": "fast"},
        {"source_type": "image", "uuid": "I", "volume_size": 3, "volume_type": "fast",
         "boot_index": 0},
    ),
    "swap": (
        {"swap_size": 64},
        {"source_type": "blank", "guest_format": "swap", "volume_size": 64, "boot_index": -1,
         "delete_on_termination": True},
    ),
    "ephemeral": (
        {"ephemeral_size": 2, "ephemeral_format": "ext4"},
        {"source_type": "blank", "guest_format": "ext4", "volume_size": 2, "boot_index": -1,
         "delete_on_termination": True},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DEVICES)
def test_a_block_device(name: str) -> None:
    given, expected = DEVICES[name]
    place = "local" if expected["source_type"] == "blank" else "volume"
    (found,) = block_devices({"block_device_mapping_v2": [given]}, None)
    assert found == {**expected, "destination_type": place}


def test_the_image_is_the_first_of_several_devices() -> None:
    first, second = block_devices({"block_device_mapping_v2": [{"volume_id": "V"}]}, "I")
    assert (first["source_type"], first["boot_index"], first["uuid"]) == ("image", 0, "I")
    assert second == {"source_type": "volume", "destination_type": "volume", "uuid": "V"}


def test_the_old_form_of_devices() -> None:
    old = [
        {"device_name": "/dev/vda", "volume_id": "V"},
        {"device_name": "vdb", "snapshot_id": "S"},
    ]
    first, second = block_devices({"block_device_mapping": old}, None)
    assert (first["boot_index"], first["source_type"]) == (0, "volume")
    assert "boot_index" not in second and second["source_type"] == "snapshot"


def test_what_a_server_boots_from() -> None:
    assert is_bootable({"image": "I"})
    assert is_bootable({"block_device_mapping_v2": [{"volume_id": "V"}]})
    assert not is_bootable({"block_device_mapping_v2": [{"swap_size": 1}]})
    assert not is_bootable({"block_device_mapping_v2": [{"volume_id": "V", "boot_index": 1}]})


def test_a_device_has_one_source() -> None:
    two = [{"volume_id": "V"}, {"volume_id": "V", "image": "I"}]
    found = device_error({"block_device_mapping_v2": two})
    assert found is not None and found[0] == "block_device_mapping_v2[1]"
    assert "volume_id and image" in found[1]
    found = device_error({"block_device_mapping": [{"device_name": "vda"}]})
    assert found is not None and "has no source" in found[1]
    assert device_error({"block_device_mapping_v2": [{"swap_size": 5}]}) is None


ERRORS: dict[str, tuple[Json, str]] = {
    "missing": (None, "networks is missing"),
    "empty": ([], "networks is missing"),
    "nothing named": ([{"fixed_ip": "10.0.0.1"}], "names no port, network or subnet"),
    "two": ([{"allocate_network": "auto"}, {"network": "n"}], "must be the only entry"),
    "both": ([{"allocate_network": "none", "network": "n"}], "must be the only entry"),
    "port and address": ([{"port": "p", "fixed_ip": "10.0.0.1"}], "the port has its own addresses"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_networks_that_are_not_valid(name: str) -> None:
    networks, expected = ERRORS[name]
    assert expected in (networks_error(networks) or "")


def test_requested_interfaces() -> None:
    assert requested_interfaces([{"allocate_network": "auto"}]) == "auto"
    entries = [
        {"network": "n", "fixed_ip": "10.0.0.5"},
        {"port": "p", "network": "n", "tag": "t"},
        {"uuid": "u"},
    ]
    assert networks_error(entries) is None
    assert requested_interfaces(entries) == [
        {"uuid": "n", "fixed_ip": "10.0.0.5"},
        {"port": "p", "tag": "t"},
        {"uuid": "u"},
    ]


def interface(port: str, net: str, *ips: str) -> Json:
    return {"port_id": port, "net_id": net, "fixed_ips": [{"ip_address": one} for one in ips]}


def test_interfaces_that_fit_stay() -> None:
    found = [interface("p1", "n", "10.0.0.1"), interface("p2", "n", "10.0.0.2")]
    wanted = [{"network": "n"}, {"network": "n", "fixed_ip": "10.0.0.1"}]
    assert interface_changes(wanted, found) == interface_changes(wanted, [*reversed(found)])
    changes = interface_changes(wanted, found)
    assert (list(changes.detach), list(changes.attach)) == ([], [])


def test_other_interfaces_are_exchanged() -> None:
    found = [interface("p1", "n", "10.0.0.1")]
    changes = interface_changes([{"port": "q"}, {"network": "m", "fixed_ip": "10.1.0.1"}], found)
    assert changes.detach == ["p1"]
    assert changes.attach == [
        {"interfaceAttachment": {"port_id": "q"}},
        {"interfaceAttachment": {"net_id": "m", "fixed_ips": [{"ip_address": "10.1.0.1"}]}},
    ]
    assert interface_changes([{"allocate_network": "none"}], found).detach == ["p1"]
    auto = interface_changes([{"allocate_network": "auto"}], found)
    assert (list(auto.detach), list(auto.attach)) == ([], [])
    assert interface_changes([{"allocate_network": "auto"}], []).attach


def test_ports_that_nova_cannot_make() -> None:
    defaults = {
        "admin_state_up": True,
        "binding:vnic_type": "normal",
        "no_fixed_ips": False,
        "value_specs": {},
        "mac_address": None,
    }
    assert needs_port({"subnet": "s"})
    assert not needs_port({"network": "n", "port_extra_properties": defaults})
    assert not needs_port({"port": "p", "subnet": "s"})
    extra = {"mac_address": "m", "qos_policy": "q", "value_specs": {"x": 1}}
    entry = {"subnet": "s", "fixed_ip": "10.0.0.1", "port_extra_properties": extra}
    assert needs_port(entry)
    assert port_request("name", entry, "n", ["g"]) == {
        "port": {
            "name": "name",
            "network_id": "n",
            "mac_address": "m",
            "qos_policy_id": "q",
            "security_groups": ["g"],
            "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.1"}],
            "x": 1,
        }
    }
    none = {"network": "n", "port_extra_properties": {"no_fixed_ips": True}}
    assert port_request("name", none, "n", [])["port"]["fixed_ips"] == []


def parts_of(user_data: str) -> list[tuple[str, str]]:
    message = message_from_string(user_data)
    assert message.is_multipart()
    return [
        (part.get_content_type(), str(part.get_payload()))
        for part in message.walk()
        if not part.is_multipart()
    ]


def test_raw_user_data_is_unchanged() -> None:
    assert build_user_data("RAW", "#!/bin/sh\n", KEY, {}, "http://cfn/") == "#!/bin/sh\n"
    assert build_user_data("RAW", "", KEY, {}, "http://cfn/") == ""


def test_a_script_comes_with_the_files_of_the_agent() -> None:
    built = build_user_data("SOFTWARE_CONFIG", "#!/bin/sh\ntrue", KEY, {"cfn": {"a": 1}}, "")
    assert built == build_user_data(
        "SOFTWARE_CONFIG", "#!/bin/sh\ntrue", KEY, {"cfn": {"a": 1}}, ""
    )
    (kind, script), (hook, writer) = parts_of(built)
    assert (kind, script, hook) == ("text/plain", "#!/bin/sh\ntrue", "text/cloud-boothook")
    encoded = writer.partition("echo ")[2].partition(" |")[0]
    assert json.loads(base64.b64decode(encoded)) == {"os-collect-config": {"cfn": {"a": 1}}}
    tools = parts_of(build_user_data("HEAT_CFNTOOLS", "", KEY, {}, "http://h/cfn/v1/"))
    assert "cfn-metadata-server" in tools[0][1]


def files_of(user_data: str) -> dict[str, str]:
    """The files that the last part of a document writes, by name."""
    writer = parts_of(user_data)[-1][1]
    found = re.findall(r"/([\w-]+) \]  *\|\| .*?echo (\S+) \| base64", writer)
    return {name: base64.b64decode(text).decode() for name, text in found}


INIT: Json = {"AWS::CloudFormation::Init": {"config": {"packages": {"yum": {"httpd": []}}}}}


@pytest.mark.parametrize(
    ("form", "names"),
    [
        ("HEAT_CFNTOOLS", {"cfn-metadata-server", "cfn-init-data"}),
        ("SOFTWARE_CONFIG", {"cfn-init-data"}),
    ],
)
def test_cfn_init_finds_the_metadata_of_the_resource(form: str, names: set[str]) -> None:
    files = files_of(build_user_data(form, "", KEY, {"a": 1}, "http://h", INIT))
    assert files.keys() == names
    agent = {"os-collect-config": {"a": 1}} if form == "SOFTWARE_CONFIG" else {}
    assert json.loads(files["cfn-init-data"]) == {**INIT, **agent}
    assert build_user_data("RAW", "#!/bin/sh", KEY, {}, "http://h", INIT) == "#!/bin/sh"


def test_the_parts_of_a_multipart_document_stay_parts() -> None:
    inner = build_user_data("HEAT_CFNTOOLS", "#cloud-config\n{}", KEY, {}, "")
    built = build_user_data("SOFTWARE_CONFIG", inner, UUID(int=8), {}, "")
    kinds = [kind for kind, _ in parts_of(built)]
    assert kinds == ["text/plain", "text/cloud-boothook", "text/cloud-boothook"]


def test_too_much_user_data() -> None:
    assert size_error("x" * 40_000) is None
    assert "Nova accepts 65535" in (size_error("x" * 50_000) or "")
