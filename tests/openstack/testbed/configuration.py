"""The configuration files of the services."""

import os
import shutil
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from pwd import getpwuid
from uuid import UUID

import yaml
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from tests.openstack.testbed.layout import (
    ENVIRONMENT,
    OBJECTS_ADMIN,
    REGION,
    SERVICE,
    Layout,
)

#: A configuration file: options by section.
Sections = dict[str, dict[str, object]]

# No project is limited: a test sets the quotas that it is about.
NOVA_QUOTAS = (
    "instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members",
    "metadata_items", "injected_files",
)  # fmt: skip
CINDER_QUOTAS = ("volumes", "snapshots", "gigabytes", "backups", "backup_gigabytes", "groups")
NEUTRON_QUOTAS = (
    "network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule",
    "rbac_policy", "trunk",
)  # fmt: skip
SERVICE_PLUGINS = (
    "router", "qos", "trunk", "segments", "port_forwarding", "metering", "auto_allocate",
    "network_ip_availability", "network_segment_range", "flavors",
)  # fmt: skip
#: Encrypts what Nova and Cinder keep. There is no key manager.
FIXED_KEY = "0" * 64
#: Publishes what happens to the objects of a service, for Headgate's observer.
NOTIFICATIONS: Sections = {"oslo_messaging_notifications": {"driver": "messagingv2"}}
#: The certification authority of Octavia, in its directory.
CA_CERTIFICATE, CA_KEY = "ca.pem", "ca.key"
#: The name servers of Designate, in its directory.
POOLS = "pools.yaml"
#: Volume types and the back end of each.
VOLUME_BACKENDS = {"standard": "files", "other": "more_files"}


def write_configuration(layout: Layout, broker: str) -> None:
    """Write the files of all services. broker: the URL of RabbitMQ."""
    for service, sections in CONFIGURATIONS.items():
        if service in layout.services:
            write(layout.configuration(service), sections(layout, broker))
    _write_keys(layout)
    _write_computes(layout, broker)
    _write_entry_points(layout)
    if "heat" in layout.optional:
        _write_heat_environments(layout)
    if "octavia" in layout.optional:
        _write_certificate(layout)
    if "swift" in layout.optional:
        _write_object_servers(layout)
    if "designate" in layout.optional:
        _write_pools(layout)


def write(path: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in options.items())]
    path.write_text("\n".join(lines) + "\n")


def authentication(layout: Layout) -> dict[str, object]:
    """How a service authenticates."""
    return {
        "auth_type": "password",
        "auth_url": layout.auth_url,
        "username": SERVICE,
        "password": layout.password,
        "project_name": SERVICE,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
        "region_name": REGION,
    }


def database(layout: Layout, name: str) -> dict[str, object]:
    return {"connection": layout.database(name), "max_pool_size": 5, "max_overflow": 20}


def common(layout: Layout) -> Sections:
    """Sections of every service behind Keystone."""
    return {
        "oslo_concurrency": {"lock_path": layout.folder("locks")},
        "oslo_messaging_notifications": {"driver": "noop"},
        "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
        "oslo_policy": {"enforce_scope": "false"},
        "oslo_limit": {"endpoint_id": "none"},
        "keystone_authtoken": {
            "www_authenticate_uri": layout.auth_url,
            "service_token_roles_required": "true",
            "memcached_servers": f"127.0.0.1:{layout.ports['memcached']}",
            **authentication(layout),
        },
    }


def keystone(layout: Layout, broker: str) -> Sections:
    keys = layout.folder("keystone/keys")
    return {
        "DEFAULT": {"transport_url": broker},
        "database": database(layout, "keystone"),
        "fernet_tokens": {"key_repository": keys},
        "fernet_receipts": {"key_repository": keys},
        "credential": {"key_repository": keys},
        "identity": {"password_hash_rounds": 4},
        "token": {"expiration": 86400},
        "oslo_policy": {"enforce_scope": "false"},
        "oslo_messaging_notifications": {"driver": "noop"},
        "cache": {
            "enabled": "true",
            "backend": "dogpile.cache.pymemcache",
            "memcache_servers": f"127.0.0.1:{layout.ports['memcached']}",
        },
    }


def placement(layout: Layout, broker: str) -> Sections:
    return {
        "api": {"auth_strategy": "keystone"},
        "placement_database": database(layout, "placement"),
        **common(layout),
    }


def glance(layout: Layout, broker: str) -> Sections:
    stores: Sections = {
        name: {"filesystem_store_datadir": layout.folder(f"glance/{name}")}
        for name in ("file", "os_glance_staging_store", "os_glance_tasks_store")
    }
    return {
        "DEFAULT": {
            "transport_url": broker,
            "enabled_backends": "file:file",
            # A list without brackets makes every upload fail.
            "enabled_import_methods": "[glance-direct,web-download,copy-image]",
            "worker_self_reference_url": layout.url("glance"),
            "node_staging_uri": f"file://{layout.folder('glance/os_glance_staging_store')}",
            "image_cache_dir": layout.folder("glance/cache"),
        },
        "glance_store": {"default_backend": "file"},
        **stores,
        # Glance downloads from loopback only if it is listed.
        "import_filtering_opts": {"allowed_hosts": "[127.0.0.1,localhost]", "allowed_ports": "[]"},
        "database": database(layout, "glance"),
        "paste_deploy": {
            "flavor": "keystone",
            "config_file": ENVIRONMENT / "etc/glance/glance-api-paste.ini",
        },
        **common(layout),
    }


def nova(layout: Layout, broker: str) -> Sections:
    auth = authentication(layout)
    return {
        "DEFAULT": {
            "transport_url": broker,
            "my_ip": "127.0.0.1",
            "state_path": layout.folder("nova/state"),
            # Resolved in nova.virt, which console_command.py extends.
            "compute_driver": "compute_driver.TestBedDriver",
            "allow_resize_to_same_host": "true",
            "resize_confirm_window": 0,
            "sync_power_state_interval": -1,
            "image_cache_manager_interval": -1,
            "heal_instance_info_cache_interval": 300,
            "update_resources_interval": 60,
            "max_concurrent_builds": 20,
            "osapi_max_limit": 10000,
        },
        "api": {"auth_strategy": "keystone"},
        "wsgi": {"api_paste_config": ENVIRONMENT / "etc/nova/api-paste.ini"},
        "api_database": database(layout, "nova_api"),
        "database": database(layout, "nova_cell1"),
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
        "filter_scheduler": {"track_instance_changes": "false"},
        "quota": dict.fromkeys(NOVA_QUOTAS, -1),
        "vnc": {"enabled": "false"},
        "spice": {"enabled": "false"},
        "glance": auth,
        "placement": auth,
        "neutron": auth,
        "cinder": {
            **auth,
            "os_region_name": REGION,
            "catalog_info": "block-storage::publicURL",
        },
        "key_manager": {
            "backend": "nova.keymgr.conf_key_mgr.ConfKeyManager",
            "fixed_key": FIXED_KEY,
        },
        "service_user": {"send_service_user_token": "true", **auth},
        "workarounds": {"skip_cpu_compare_on_dest": "true"},
        **common(layout),
        **NOTIFICATIONS,
        "notifications": {
            "notification_format": "versioned",
            "notify_on_state_change": "vm_state",
        },
    }


def neutron(layout: Layout, broker: str) -> Sections:
    auth = authentication(layout)
    return {
        "DEFAULT": {
            "transport_url": broker,
            "core_plugin": "ml2",
            "service_plugins": ",".join(SERVICE_PLUGINS),
            "api_paste_config": ENVIRONMENT / "etc/neutron/api-paste.ini",
            "state_path": layout.folder("neutron/state"),
            "auth_strategy": "keystone",
            "notify_nova_on_port_status_changes": "true",
            "notify_nova_on_port_data_changes": "true",
            "dns_domain": "testbed.example.",
            "allow_automatic_dhcp_failover": "false",
            "global_physnet_mtu": 1500,
        },
        "database": database(layout, "neutron"),
        "nova": auth,
        "placement": auth,
        "ml2": {
            "type_drivers": "local,flat,vlan,vxlan,geneve",
            "tenant_network_types": "vxlan",
            "mechanism_drivers": "headgate_testbed",
            "extension_drivers": "port_security,qos,dns,dns_domain_ports,uplink_status_propagation",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:199,physnet2"},
        "ml2_type_vxlan": {"vni_ranges": "1:65000"},
        "ml2_type_geneve": {"vni_ranges": "1:65000", "max_header_size": 38},
        "quotas": {
            "default_quota": -1,
            **dict.fromkeys((f"quota_{name}" for name in NEUTRON_QUOTAS), -1),
        },
        **common(layout),
        **NOTIFICATIONS,
    }


def cinder(layout: Layout, broker: str) -> Sections:
    auth = authentication(layout)
    backends = {
        backend: {
            "volume_driver": "headgate_testbed.volume_driver.FileDriver",
            "volume_backend_name": backend,
            "file_driver_directory": layout.folder(f"cinder/{backend}"),
        }
        for backend in VOLUME_BACKENDS.values()
    }
    return {
        "DEFAULT": {
            "transport_url": broker,
            "my_ip": "127.0.0.1",
            "host": "testbed",
            "state_path": layout.folder("cinder/state"),
            "image_conversion_dir": layout.folder("cinder/conversion"),
            "api_paste_config": ENVIRONMENT / "etc/cinder/api-paste.ini",
            "resource_query_filters_file": ENVIRONMENT / "etc/cinder/resource_filters.json",
            "auth_strategy": "keystone",
            "osapi_volume_listen": "127.0.0.1",
            "enabled_backends": ",".join(backends),
            "default_volume_type": "standard",
            "glance_api_servers": layout.url("glance"),
            "enable_force_upload": "true",
            "allow_availability_zone_fallback": "true",
            "backup_driver": "cinder.backup.drivers.posix.PosixBackupDriver",
            "backup_posix_path": layout.folder("cinder/backup"),
            "scheduler_driver_init_wait_time": 5,
            **dict.fromkeys((f"quota_{name}" for name in CINDER_QUOTAS), -1),
        },
        **backends,
        "coordination": {"backend_url": f"file://{layout.folder('cinder/locks')}"},
        "database": database(layout, "cinder"),
        "nova": {**auth, "interface": "public"},
        "key_manager": {
            "backend": "cinder.keymgr.conf_key_mgr.ConfKeyManager",
            "fixed_key": FIXED_KEY,
        },
        "service_user": {"send_service_user_token": "true", **auth},
        **common(layout),
        **NOTIFICATIONS,
    }


def heat(layout: Layout, broker: str) -> Sections:
    auth = authentication(layout)
    cfn = layout.url("heat-cfn")
    return {
        "DEFAULT": {
            "transport_url": broker,
            "num_engine_workers": 2,
            "max_resources_per_stack": -1,
            "max_stacks_per_tenant": 100000,
            "stack_domain_admin": "heat_domain_admin",
            "stack_domain_admin_password": layout.password,
            "stack_user_domain_name": "heat",
            "heat_metadata_server_url": cfn,
            "heat_waitcondition_server_url": f"{cfn}/v1/waitcondition",
            "deferred_auth_method": "trusts",
            "region_name_for_services": REGION,
            "auth_encryption_key": FIXED_KEY[:32],
            "environment_dir": layout.folder("heat/environment.d"),
            "template_dir": ENVIRONMENT / "etc/heat/templates",
            "max_json_body_size": 16 << 20,
            "max_template_size": 16 << 20,
            "server_keystone_endpoint_type": "public",
            "enable_stack_abandon": "true",
        },
        "database": database(layout, "heat"),
        "trustee": {key: value for key, value in auth.items() if not key.startswith("project_")},
        "clients": {"endpoint_type": "publicURL"},
        "clients_keystone": {"auth_uri": layout.auth_url},
        "paste_deploy": {"api_paste_config": ENVIRONMENT / "etc/heat/api-paste.ini"},
        **common(layout),
    }


def octavia(layout: Layout, broker: str) -> Sections:
    auth = authentication(layout)
    certificate = layout.folder("octavia") / CA_CERTIFICATE
    return {
        "DEFAULT": {"transport_url": broker, "host": "testbed"},
        "api_settings": {
            "auth_strategy": "keystone",
            "api_base_uri": layout.url("octavia"),
            "enabled_provider_drivers": "amphora:load balancers without machines",
            "default_provider_driver": "amphora",
        },
        "database": database(layout, "octavia"),
        "health_manager": {
            "heartbeat_key": FIXED_KEY[:16],
            # Nothing listens there: there are no machines that could report.
            "controller_ip_port_list": "127.0.0.1:5555",
        },
        "controller_worker": {
            "workers": 1,
            "amphora_driver": "amphora_noop_driver",
            "compute_driver": "compute_noop_driver",
            "network_driver": "headgate_testbed",
            "volume_driver": "volume_noop_driver",
            "image_driver": "image_noop_driver",
            "client_ca": certificate,
            "amp_image_tag": "amphora",
            "amp_flavor_id": "1",
            "amp_boot_network_list": UUID(int=1),
            "loadbalancer_topology": "SINGLE",
        },
        # Octavia signs a certificate for each machine, also for one that does not exist.
        "certificates": {
            "cert_generator": "local_cert_generator",
            "cert_manager": "local_cert_manager",
            "ca_certificate": certificate,
            "ca_private_key": layout.folder("octavia") / CA_KEY,
            "ca_private_key_passphrase": layout.password,
            "server_certs_key_passphrase": FIXED_KEY[:32],
        },
        "oslo_messaging": {"topic": "octavia_prov"},
        "service_auth": auth,
        "neutron": auth,
        **common(layout),
        "oslo_policy": {"enforce_scope": "false", "policy_file": _write_octavia_policy(layout)},
    }


def barbican(layout: Layout, broker: str) -> Sections:
    return {
        "DEFAULT": {
            "transport_url": broker,
            "host_href": layout.url("barbican"),
            "db_auto_create": "false",
        },
        "database": database(layout, "barbican"),
        # Workers fulfil orders.
        "queue": {"enable": "true", "asynchronous_workers": 1},
        "secretstore": {"enabled_secretstore_plugins": "store_crypto"},
        "crypto": {"enabled_crypto_plugins": "simple_crypto"},
        "simple_crypto_plugin": {"kek": b64encode(FIXED_KEY[:32].encode()).decode()},
        **common(layout),
    }


def designate(layout: Layout, broker: str) -> Sections:
    one_worker: dict[str, object] = {"workers": 1, "threads": 20}
    return {
        "DEFAULT": {
            "transport_url": broker,
            "host": "testbed",
            "rpc_response_timeout": 120,
            "state_path": layout.folder("designate/state"),
            # A pause would end after the patience of a test.
            "default_soa_refresh_min": 3500,
            "default_soa_refresh_max": 3600,
        },
        "service:api": {
            "auth_strategy": "keystone",
            "enable_api_v2": "true",
            "enable_api_admin": "true",
            "enable_host_header": "true",
        },
        "service:central": one_worker,
        "service:mdns": {"workers": 1, "listen": f"127.0.0.1:{layout.ports['designate-mdns']}"},
        "service:worker": {
            **one_worker,
            "enabled": "true",
            "poll_timeout": 5,
            "poll_retry_interval": 1,
            "poll_max_retries": 5,
            "poll_delay": 0,
        },
        "service:producer": {"workers": 1},
        # Designate carries out changes of records in rounds.
        "producer_task:increment_serial": {"interval": 1},
        "producer_task:delayed_notify": {"interval": 1},
        "storage:sqlalchemy": database(layout, "designate"),
        "coordination": {"backend_url": f"file://{layout.folder('designate/locks')}"},
        **common(layout),
    }


def mistral(layout: Layout, broker: str) -> Sections:
    return {
        "DEFAULT": {"transport_url": broker},
        "pecan": {"auth_enable": "true"},
        "database": database(layout, "mistral"),
        "coordination": {"backend_url": f"file://{layout.folder('mistral/locks')}"},
        "mistral": {"url": f"{layout.url('mistral')}/v2"},
        **common(layout),
    }


def aodh(layout: Layout, broker: str) -> Sections:
    return {
        # An event is evaluated with the alarms of this moment.
        "DEFAULT": {
            "transport_url": broker,
            "event_alarm_cache_ttl": 0,
            "member_creation_time": 0,
        },
        "api": {"auth_mode": "keystone"},
        "evaluator": {"evaluation_interval": 2},
        "database": database(layout, "aodh"),
        "coordination": {"backend_url": f"file://{layout.folder('aodh/locks')}"},
        "service_credentials": authentication(layout),
        **common(layout),
    }


def gnocchi(layout: Layout, _broker: str) -> Sections:
    """Measures are files. They are aggregated at once."""
    return {
        "DEFAULT": {
            "coordination_url": f"file://{layout.folder('gnocchi/locks')}",
            "parallel_operations": 1,
        },
        "api": {"auth_mode": "keystone"},
        "indexer": {"url": layout.database("gnocchi")},
        "storage": {"driver": "file", "file_basepath": layout.folder("gnocchi/data")},
        "metricd": {"workers": 1, "metric_processing_delay": 1, "metric_reporting_delay": -1},
        **common(layout),
    }


def magnum(layout: Layout, broker: str) -> Sections:
    """Clusters have no machines: a driver of the test bed completes them."""
    clients = ("magnum", "nova", "glance", "cinder", "neutron", "octavia", "barbican", "heat")
    return {
        "DEFAULT": {
            "transport_url": broker,
            "host": "testbed",
            "state_path": layout.folder("magnum/state"),
        },
        "api": {"api_paste_config": ENVIRONMENT / "etc/magnum/api-paste.ini"},
        "conductor": {"workers": 1},
        "certificates": {"cert_manager_type": "x509keypair"},
        "drivers": {"send_cluster_metrics": "false"},
        "keystone_auth": authentication(layout),
        "database": database(layout, "magnum"),
        **{f"{name}_client": {"region_name": REGION} for name in clients},
        **common(layout),
    }


def manila(layout: Layout, broker: str) -> Sections:
    """Shares are entries of the database: the driver does nothing, at once."""
    auth = authentication(layout)
    return {
        "DEFAULT": {
            "transport_url": broker,
            "my_ip": "127.0.0.1",
            "host": "testbed",
            "state_path": layout.folder("manila/state"),
            "api_paste_config": ENVIRONMENT / "etc/manila/api-paste.ini",
            "auth_strategy": "keystone",
            "enabled_share_backends": "nowhere",
            "enabled_share_protocols": "NFS,CIFS",
        },
        "nowhere": {
            "share_backend_name": "nowhere",
            "share_driver": "manila.tests.share.drivers.dummy.DummyDriver",
            "driver_handles_share_servers": "false",
            "dummy_driver_default_driver_method_delay": 0,
            "dummy_driver_driver_methods_delays": "create_share:0",
        },
        "coordination": {"backend_url": f"file://{layout.folder('manila/locks')}"},
        "database": database(layout, "manila"),
        **{name: auth for name in ("nova", "neutron", "cinder", "glance")},
        **common(layout),
    }


def trove(layout: Layout, broker: str) -> Sections:
    """Databases are servers of Nova with a volume. One process stands for their guest agents."""
    return {
        "DEFAULT": {
            "transport_url": broker,
            "host": "127.0.0.1",
            "api_paste_config": ENVIRONMENT / "etc/trove/api-paste.ini",
            "enable_secure_rpc_messaging": "false",
            "trove_security_groups_support": "false",
            "trove_volume_support": "true",
            "cinder_service_type": "block-storage",
            "update_status_on_fail": "true",
            "usage_sleep_time": 1,
            "trove_conductor_workers": 1,
            "max_volumes_per_tenant": 1000,
        },
        "service_credentials": authentication(layout),
        "database": database(layout, "trove"),
        **common(layout),
    }


def zaqar(layout: Layout, broker: str) -> Sections:
    """Messages are in Swift, everything else is in the database."""
    auth = authentication(layout)
    return {
        "DEFAULT": {
            "auth_strategy": "keystone",
            "admin_mode": "false",
            "unreliable": "true",
            "enable_deprecated_api_versions": "",
        },
        "drivers": {
            "transport": "wsgi", "management_store": "sqlalchemy", "message_store": "swift",
        },
        "drivers:management_store:sqlalchemy": {"uri": layout.database("zaqar")},
        "drivers:message_store:swift": {
            "uri": f"swift://{SERVICE}:{layout.password}@/{SERVICE}",
            "auth_url": layout.auth_url,
            "region_name": REGION,
        },
        "signed_url": {"secret_key": layout.password},
        # Sends messages to subscribers.
        "storage": {"message_pipeline": "zaqar.notification.notifier"},
        "trustee": {name: one for name, one in auth.items() if not name.startswith("project_")},
        "notification": {"require_confirmation": "false"},
        **common(layout),
    }  # fmt: skip


def swift(layout: Layout, broker: str) -> Sections:
    """What all servers of Swift have in common."""
    return {
        "swift-hash": {"swift_hash_path_prefix": "testbed", "swift_hash_path_suffix": "testbed"},
        "storage-policy:0": {"name": "standard", "default": "yes"},
    }


CONFIGURATIONS: dict[str, Callable[[Layout, str], Sections]] = {
    "keystone": keystone,
    "placement": placement,
    "glance": glance,
    "nova": nova,
    "neutron": neutron,
    "cinder": cinder,
    "heat": heat,
    "octavia": octavia,
    "barbican": barbican,
    "designate": designate,
    "magnum": magnum,
    "manila": manila,
    "mistral": mistral,
    "aodh": aodh,
    "gnocchi": gnocchi,
    "trove": trove,
    "zaqar": zaqar,
    "swift": swift,
}
#: The middleware of Swift, in order.
OBJECT_PIPELINE = (
    "catch_errors", "gatekeeper", "healthcheck", "request_log", "listing_formats", "bulk",
    "tempurl", "slo", "dlo", "versioned_writes", "authtoken", "keystoneauth", "copy",
    "container_quotas", "account_quotas",
)  # fmt: skip
#: Further options of the middleware.
OBJECT_FILTERS: Mapping[str, Mapping[str, object]] = {
    "versioned_writes": {"allow_versioned_writes": "true"},
    "keystoneauth": {"operator_roles": "admin,member", "reseller_admin_role": OBJECTS_ADMIN},
}


def _write_keys(layout: Layout) -> None:
    keys = layout.folder("keystone/keys")
    keys.chmod(0o700)
    for number in range(2):
        key = keys / str(number)
        if not key.exists():
            key.write_bytes(Fernet.generate_key())


def _write_computes(layout: Layout, broker: str) -> None:
    """A compute node must not have access to the databases."""
    sections = nova(layout, broker)
    del sections["database"], sections["api_database"]
    for number in range(1, layout.computes + 1):
        host = f"compute{number}"
        sections["DEFAULT"] |= {"host": host, "state_path": layout.folder(f"nova/{host}")}
        write(layout.folder("nova") / f"{host}.conf", sections)


def _write_entry_points(layout: Layout) -> None:
    """Neutron, Octavia and Magnum find drivers by the entry points of distributions."""
    info = layout.folder("entry_points/headgate_testbed-1.0.dist-info")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: headgate-testbed\nVersion: 1.0\n")
    write(
        info / "entry_points.txt",
        {
            "neutron.ml2.mechanism_drivers": {
                "headgate_testbed": "headgate_testbed.network_driver:TestBedDriver"
            },
            "octavia.network.drivers": {
                "headgate_testbed": "headgate_testbed.load_balancer_network:TestBedDriver"
            },
            "magnum.drivers": {"headgate_testbed": "headgate_testbed.cluster_driver:TestBedDriver"},
        },
    )


def object_servers(layout: Layout) -> dict[str, Path]:
    """The configuration file of each server of Swift."""
    folder = layout.folder("swift")
    names = {"swift": "proxy-server.conf"}
    names |= {f"swift-{kind}": f"{kind}-server.conf" for kind in ("account", "container", "object")}
    return {name: folder / file for name, file in names.items()}


def _write_object_servers(layout: Layout) -> None:
    """Each server has one process; there are no replicas, and nothing copies or audits them."""
    common_options = {
        "bind_ip": "127.0.0.1",
        "workers": 0,
        "swift_dir": layout.folder("swift"),
        "user": getpwuid(os.getuid()).pw_name,
    }
    servers = object_servers(layout)
    layout.folder("swift/devices/d1")
    for kind in ("account", "container", "object"):
        app = f"{kind}-server"
        write(
            servers[f"swift-{kind}"],
            {
                "DEFAULT": {
                    **common_options,
                    "bind_port": layout.ports[f"swift-{kind}"],
                    "devices": layout.folder("swift/devices"),
                    "mount_check": "false",
                    "disable_fallocate": "true",
                },
                "pipeline:main": {"pipeline": app},
                f"app:{app}": {"use": f"egg:swift#{kind}"},
            },
        )
    filters: Sections = {
        f"filter:{name}": {"use": f"egg:swift#{name}", **OBJECT_FILTERS.get(name, {})}
        for name in OBJECT_PIPELINE
    }
    filters["filter:request_log"] = {
        "paste.filter_factory": "headgate_testbed.request_log:filter_factory",
        "path": layout.requests("swift"),
    }
    filters["filter:authtoken"] = {
        "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
        "www_authenticate_uri": layout.auth_url,
        "delay_auth_decision": "true",
        # Swift asks Keystone for each request, so that it notices at once when a token ends.
        "token_cache_time": -1,
        **authentication(layout),
    }
    write(
        servers["swift"],
        {
            "DEFAULT": {**common_options, "bind_port": layout.ports["swift"]},
            "pipeline:main": {"pipeline": " ".join((*OBJECT_PIPELINE, "proxy-server"))},
            "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": "true"},
            **filters,
        },
    )


def _write_pools(layout: Layout) -> None:
    """Designate's own server of zones answers for them; no other server gets them."""
    folder = layout.folder("designate")
    shutil.copy(ENVIRONMENT / "etc/designate/api-paste.ini", folder)
    server = {"host": "127.0.0.1", "port": layout.ports["designate-mdns"]}
    pool = {
        "name": "default",
        "description": "The server of zones itself.",
        "attributes": {},
        "ns_records": [{"hostname": "ns1.testbed.example.", "priority": 1}],
        "nameservers": [server],
        "targets": [
            {"type": "fake", "description": "nothing", "masters": [server], "options": server}
        ],
    }
    (folder / POOLS).write_text(yaml.safe_dump([pool]))


def _write_octavia_policy(layout: Layout) -> Path:
    """Members of a project may have load balancers without further roles."""
    path = layout.folder("octavia") / "policy.yaml"
    rules = {
        "load-balancer:observer_and_owner": "role:reader and project_id:%(project_id)s",
        "load-balancer:member_and_owner": "role:member and project_id:%(project_id)s",
        "load-balancer:global_observer": "role:admin",
        "load-balancer:quota-admin": "role:admin",
        "load-balancer:admin": "role:admin",
    }
    path.write_text(yaml.safe_dump(rules))
    return path


def _write_certificate(layout: Layout) -> None:
    """A certification authority, whose key must be encrypted."""
    folder = layout.folder("octavia")
    if (folder / CA_KEY).exists():
        return
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "testbed")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / CA_CERTIFICATE).write_bytes(certificate.public_bytes(Encoding.PEM))
    protection = BestAvailableEncryption(layout.password.encode())
    (folder / CA_KEY).write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, protection)
    )


def _write_heat_environments(layout: Layout) -> None:
    """Heat's own environment files name templates in /etc."""
    for source in (ENVIRONMENT / "etc/heat/environment.d").glob("*.yaml"):
        text = source.read_text().replace("file:///etc/heat", f"file://{ENVIRONMENT}/etc/heat")
        (layout.folder("heat/environment.d") / source.name).write_text(text)
