"""The Helm chart: Helm renders it, Kubernetes knows its manifests, and Headgate starts as they say."""

import asyncio
import functools
import json
import os
import re
import shlex
import textwrap
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import jsonschema
import kubernetes_validate
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hub.cli.commands.server_commands import ROLES
from hub.settings.settings import Settings, load_settings
from hub.settings.sources import merge, nest
from tests.support import forks
from tests.support.forks import ForkedProcess, start_forked
from tests.support.helm_chart import (
    CHART,
    EXAMPLES,
    ROOT,
    Json,
    RefusedValuesError,
    RenderedChart,
    lint,
    render,
    running_helm,
)
from tests.support.ports import free_port
from tests.support.program import PATIENCE, eventually

#: The least values that the chart accepts.
MINIMUM: dict[str, Json] = {
    "image": {"repository": "registry.example.org/headgate"},
    "keys": {"existingSecret": "headgate-keys"},
    "database": {"existingSecret": "headgate-database"},
}
NAMES = sorted(one.stem for one in EXAMPLES.glob("*.yaml"))
#: The oldest version that the chart allows, and the newest whose schemas the tests have.
KUBERNETES = ("1.27", "1.30", "1.34", kubernetes_validate.latest_version())
#: The values of secrets, as in the examples.
SECRETS: dict[str, dict[str, bytes]] = {
    "headgate-keys": {
        "credentials.key": b"k" * 32,
        "audit.key": Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    },
    "headgate-database": {"url": b"postgresql://headgate:pw@db.example.org/headgate"},
    "headgate-db-app": {"uri": b"postgresql://headgate:pw@headgate-db-rw.ops:5432/headgate"},
    "headgate-broker": {"url": b"amqps://headgate:pw@mq.example.org:5671/"},
}
#: The structure of the objects that operators define, as their documentation has it. Their own schemas
#: are in no package.
FOREIGN = {
    "ServiceMonitor": {
        "required": ["selector", "endpoints"],
        "additionalProperties": False,
        "properties": {
            "selector": {"required": ["matchLabels"]},
            "podTargetLabels": {"type": "array", "items": {"type": "string"}},
            "endpoints": {
                "type": "array",
                "items": {
                    "additionalProperties": False,
                    "required": ["port"],
                    "properties": {
                        "port": {"type": "string"},
                        "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                        "scheme": {"enum": ["http", "https"]},
                        "authorization": {
                            "additionalProperties": False,
                            "properties": {
                                "type": {"const": "Bearer"},
                                "credentials": {
                                    "required": ["name", "key"], "additionalProperties": False,
                                    "properties": {"name": {}, "key": {}},
                                },
                            },
                        },
                        "tlsConfig": {"properties": {"serverName": {"type": "string"}}},
                    },
                },
            },
        },
    },
    "Cluster": {
        "required": ["instances", "storage"],
        "additionalProperties": False,
        "properties": {
            "instances": {"type": "integer", "minimum": 1},
            "imageName": {"type": "string"},
            "bootstrap": {
                "properties": {
                    "initdb": {
                        "additionalProperties": False,
                        "properties": {"database": {}, "owner": {}},
                    }
                }
            },
            "storage": {
                "required": ["size"], "additionalProperties": False,
                "properties": {"size": {"type": "string"}, "storageClass": {"type": "string"}},
            },
            "postgresql": {
                "additionalProperties": False,
                "properties": {
                    "parameters": {"additionalProperties": {"type": "string"}},
                    "synchronous": {
                        "required": ["method", "number"], "additionalProperties": False,
                        "properties": {
                            "method": {"enum": ["any", "first"]},
                            "number": {"type": "integer", "minimum": 1},
                        },
                    },
                },
            },
            "affinity": {
                "additionalProperties": False,
                "properties": {
                    "enablePodAntiAffinity": {"type": "boolean"},
                    "podAntiAffinityType": {"enum": ["preferred", "required"]},
                    "topologyKey": {"type": "string"},
                },
            },
            "resources": {"type": "object"},
            "backup": {"type": "object"},
            "monitoring": {"properties": {"enablePodMonitor": {"type": "boolean"}}},
        },
    },
}  # fmt: skip
FOREIGN_VERSIONS = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "Cluster": "postgresql.cnpg.io/v1",
}


@pytest.fixture(scope="module", autouse=True)
def _helm() -> Iterator[None]:
    with running_helm():
        yield


@functools.cache
def example(name: str) -> RenderedChart:
    return render((EXAMPLES / f"{name}.yaml").read_text())


def minimal(**more: Json) -> RenderedChart:
    return render(MINIMUM, more)


def refusal(**more: Json) -> str:
    with pytest.raises(RefusedValuesError) as refused:
        minimal(**more)
    return str(refused.value)


@pytest.mark.parametrize("name", NAMES)
def test_helm_finds_nothing_in_the_chart(name: str) -> None:
    """But that it has no icon."""
    findings = lint((EXAMPLES / f"{name}.yaml").read_text())
    assert [one["error"] for one in findings] == ["icon is recommended"]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_knows_the_manifests(name: str, version: str) -> None:
    kinds = set()
    for one in example(name).manifests:
        kinds.add(one["kind"])
        if one["kind"] not in FOREIGN:
            kubernetes_validate.validate(one, version, strict=True)
    assert {"Deployment", "PodDisruptionBudget", "NetworkPolicy", "Job", "ConfigMap"} <= kinds


def test_objects_of_operators_have_their_structure() -> None:
    """Both kinds are in the examples."""
    checked = set()
    for name in NAMES:
        for one in example(name).manifests:
            if one["kind"] in FOREIGN:
                assert one["apiVersion"] == FOREIGN_VERSIONS[one["kind"]]
                jsonschema.validate(one["spec"], FOREIGN[one["kind"]])
                checked.add(one["kind"])
    assert checked == set(FOREIGN)


def environment_of(pod: Json, secrets: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    variables = {}
    for one in container["env"]:
        reference = one.get("valueFrom", {}).get("secretKeyRef")
        secret = secrets[reference["name"]][reference["key"]].decode() if reference else ""
        variables[one["name"]] = secret or one["value"]
    return variables


def settings_of(chart: RenderedChart, role: str, folder: Path) -> Settings:
    """The settings with which the process of a role starts."""
    file = folder / "headgate.toml"
    file.write_text(chart.find("ConfigMap", "headgate")["data"]["headgate.toml"])
    variables = environment_of(chart.pods[f"headgate-{role}"], SECRETS)
    return load_settings(file, {}, environment=variables)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", NAMES)
def test_headgate_accepts_the_settings(name: str, role: str, tmp_path: Path) -> None:
    chart = example(name)
    settings = settings_of(chart, role, tmp_path)
    assert settings.server.listen == "0.0.0.0:8004" and settings.auth.mode == "tokens"
    assert settings.server.public_url == "https://headgate.example.org"
    has_metrics = settings.metrics.address == "0.0.0.0:9464" and settings.metrics.is_open_to_all
    assert has_metrics == (role != "api")
    (container,) = chart.pods[f"headgate-{role}"]["spec"]["containers"]
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    # Another role than purge creates an audit key in the directory of its data, which signs nothing.
    # Only the API serves HTTPS.
    for file in settings.key_files:
        if file == Path(settings.server.key_file) and role != "api":
            continue
        assert any(file.is_relative_to(mount) for mount in mounts), file
    own = settings.audit.key_path(settings.database.data_dir)
    assert own.is_relative_to("/etc/headgate/audit") == (role == "purge")


def test_settings_of_the_examples_arrive(tmp_path: Path) -> None:
    settings = settings_of(example("external-database"), "engine", tmp_path)
    first, second = settings.hooks.rules
    assert first.on == ("pre-stack-update", "pre-stack-delete") and first.exclude == "requester"
    assert (second.at, second.on) == ("*database*", ("pre-delete",))
    assert settings.channels.amqp.url[0].get_secret_value().startswith("amqps://headgate:pw@")
    assert settings.channels.amqp.ca_file == "/etc/headgate/secrets/broker/ca.crt"
    assert settings.server.requests_per_token == 50.0
    settings = settings_of(example("cloudnativepg"), "engine", tmp_path)
    assert settings.database.url.get_secret_value().endswith("@headgate-db-rw.ops:5432/headgate")
    assert (settings.database.pool, settings.engine.operations) == (15, 200)
    assert settings.server.cert_file == "/etc/headgate/tls/tls.crt"


def test_all_settings_can_be_values(tmp_path: Path) -> None:
    """Also the commented ones. The file contains each setting; what the chart sets is left out."""
    text = (ROOT / "config.example.toml").read_text()
    text = re.sub(r"^# ((?:\[|\w+ = |# ).*)$", r"\1", text, flags=re.MULTILINE)
    config = tomllib.loads(text)
    for section, names in {
        "server": ("listen", "processes", "cert_file", "key_file"),
        "database": ("url", "data_dir", "binaries", "account"),
        "credentials": ("key_file", "fallback_key_files"),
        "audit": ("key_file", "checkpoints_file"),
        "metrics": ("address",),
    }.items():
        for name in names:
            del config[section][name]
    config["auth"]["mode"] = "tokens"
    del config["cells"]["databases"]  # not possible with [database] url, which the chart sets
    slack = config["channels"]["slack"]
    slack |= {"team": "T1", "signing_secret_file": "/etc/headgate/secrets/slack/secret"}
    del slack["users"][0]["roles"]  # not possible in this mode
    assert len(config) == len(Settings.model_fields)
    chart = minimal(config=config)
    settings = settings_of(chart, "api", tmp_path)
    own = settings_of(minimal(), "api", tmp_path)
    expected = Settings(
        **config
        | {
            "server": config["server"] | {"listen": own.server.listen},
            "database": {"url": own.database.url, "data_dir": own.database.data_dir}
            | config["database"],
            "credentials": {"key_file": own.credentials.key_file},
        }
    )
    assert settings == expected


def test_strange_texts_and_numbers_arrive(tmp_path: Path) -> None:
    config: Json = {
        "server": {"max_body": 2_097_153, "requests_per_token": 0.25, "hidden_stack_tags": []},
        "auth": {"mode": "keystone", "keystone": {"url": "https://k", "username": "u", "project": "p", "roles": {"ü \"x\"\\'": ["reader"]}}},
        "quotas": {"projects": {"a.b c": {"stacks_per_project": 2_000_000_000}}},
        "convergence": {"rules": [{"ignore": {"web*": ["$.tags.*"]}, "window": {"days": ["mon-fri"], "from": "22:00", "to": "04:00"}}]},
        "hooks": {"rules": [{"on": ["pre-delete"], "at": "a<b>&\n'\u2028", "when": {"equals": [1, True]}}]},
    }  # fmt: skip
    password = {
        "name": "HEADGATE_AUTH__KEYSTONE__PASSWORD",
        "secret": "headgate-broker",
        "key": "url",
    }
    settings = settings_of(minimal(config=config, secretEnv=[password]), "api", tmp_path)
    own = settings_of(minimal(), "api", tmp_path)
    config["auth"]["keystone"]["password"] = settings.auth.keystone.password
    config["server"] |= {"listen": own.server.listen}
    fixed = {"database": own.database, "credentials": own.credentials}
    assert settings == Settings.model_validate(config | fixed)


def test_no_manifest_has_a_secret() -> None:
    for name in NAMES:
        chart = example(name)
        assert chart.of_kind("Secret") == {}
        assert "pw@" not in json.dumps(chart.manifests)
        for pod in chart.pods.values():
            (container,) = pod["spec"]["containers"]
            plain = {one["name"] for one in container["env"] if "value" in one}
            assert not any(re.search("URL|PASSWORD|SECRET$|TOKEN", one) for one in plain)


# --- what is refused


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"replicas": 2}, "additional properties 'replicas' not allowed"),
        ({"roles": {"worker": {}}}, "at '/roles': additional properties 'worker' not allowed"),
        ({"roles": {"api": {"replicas": -1}}}, "at '/roles/api/replicas': minimum: got -1"),
        ({"config": {"server": {"lissten": "x"}}}, "at '/config/server': additional properties 'lissten' not allowed"),
        ({"config": {"hooks": {"rules": [{"points": []}]}}}, "at '/config/hooks/rules/0': additional properties 'points' not allowed"),
        ({"config": {"auth": {"mode": "oauth"}}}, "at '/config/auth/mode': value must be one of 'none', 'tokens', 'keystone'"),
        ({"secretEnv": [{"name": "PASSWORD", "secret": "s", "key": "k"}]}, "at '/secretEnv/0/name'"),
        ({"secretEnv": [{"name": "HEADGATE_X__Y", "value": "pw"}]}, "missing properties 'secret', 'key'"),
        ({"database": {"url": "postgresql://u:pw@h/d"}}, "at '/database': additional properties 'url' not allowed"),
        ({"image": {"tag": "1.0 "}}, "at '/image/tag'"),
    ],
)  # fmt: skip
def test_unknown_and_invalid_values_are_refused_with_their_place(values: Json, place: str) -> None:
    assert place in refusal(**values)


CNPG = {"existingSecret": "", "cloudnativepg": {"enabled": True}}
MONITOR = {"enabled": True, "apiToken": {"existingSecret": "t"}}
CONTRADICTIONS: dict[str, tuple[Json, str]] = {
    "no image": ({"image": {"repository": ""}}, "image.repository is empty. Build the image"),
    "no keys": ({"keys": {"existingSecret": ""}}, "keys.existingSecret is empty. Create a Secret"),
    "one key": ({"keys": {"audit": "credentials.key"}}, "name the same entry"),
    "no database": ({"database": {"existingSecret": ""}}, "There is no database. Set database.existingSecret"),
    "two databases": ({"database": {"cloudnativepg": {"enabled": True}}}, "name two databases. Use one of them."),
    "one synchronous instance": ({"database": CNPG | {"cloudnativepg": {"enabled": True, "instances": 1}}}, "so a commit waits for a replica, but instances is 1: commits stop while one of them is away. Use 3 instances"),
    "two synchronous instances": ({"database": CNPG | {"cloudnativepg": {"enabled": True, "instances": 2}}}, "but instances is 2: commits stop while one of them is away. Use 3 instances"),
    "audit key for all roles": ({"keys": {"fallback": ["next.key", "audit.key"]}}, 'keys.fallback has "audit.key", which is the entry of another key.'),
    "too many connections": ({"database": CNPG, "config": {"database": {"pool": 20}}}, "The processes open up to 242 connections, with one more pod of each role during an upgrade, and database.cloudnativepg.maxConnections is 200, of which PostgreSQL and its operator need 10. Raise it to at least 252"),
    "mode none": ({"config": {"auth": {"mode": "none"}}}, 'config.auth.mode is "none", which gives every client every right'),
    "listen": ({"config": {"server": {"listen": "127.0.0.1:1"}}}, "config.server.listen is set by the chart. Remove it, and set listenHost"),
    "database url": ({"config": {"database": {"url": "x"}}}, "config.database.url is set by the chart. Remove it, and set database.existingSecret"),
    "empty key file": ({"config": {"credentials": {"key_file": ""}}}, "config.credentials.key_file is set by the chart."),
    "metrics address": ({"config": {"metrics": {"address": ""}}}, "config.metrics.address is set by the chart."),
    "command": ({"config": {"resource_types": {"command": {"enabled": True}}}}, "The pods of the chart do not run as root"),
    "keystone password": ({"config": {"auth": {"keystone": {"password": "pw"}}}}, "config.auth.keystone.password has a secret, and everyone who can read the ConfigMap could read it. Remove it, put it into a Secret, and add {name: HEADGATE_AUTH__KEYSTONE__PASSWORD, secret: NAME, key: ENTRY} to secretEnv."),
    "pooler": (
        {"config": {"database": {"pooler_url": "postgresql://u:pw@h/d"}}},
        "config.database.pooler_url has a secret",
    ),
    "replica": (
        {"config": {"database": {"read_url": "postgresql://u:pw@h/d"}}},
        "config.database.read_url has a secret",
    ),
    "client secret": (
        {"config": {"auth": {"oidc": {"client_secret": "pw"}}}},
        "config.auth.oidc.client_secret has a secret",
    ),
    "broker password": ({"config": {"channels": {"amqp": {"url": ["amqp://a", "amqp://u:pw@b"]}}}}, "config.channels.amqp.url has a secret"),
    "one broker password": ({"config": {"observer": {"amqp": {"url": "amqp://u:pw@b"}}}}, "config.observer.amqp.url has a secret"),
    "proxy password": ({"config": {"channels": {"webhook": {"proxy": "http://u:pw@b"}}}}, "config.channels.webhook.proxy has a secret"),
    "subscription secret": ({"config": {"subscriptions": [{"project": "p", "target": "https://x", "secret": "whsec_"}]}}, "config.subscriptions[0].secret is a secret"),
    "credential": ({"config": {"resource_types": {"http": {"credentials": {"rabbit": {"secret": "pw"}}}}}}, "HEADGATE_RESOURCE_TYPES__HTTP__CREDENTIALS__RABBIT__SECRET"),
    "chat room": ({"config": {"subscriptions": [{"project": "p", "channel": "slack", "target": "https://hooks.example.org/pw"}]}}, "config.subscriptions[0].target is a secret"),
    "password of a receiver": ({"config": {"subscriptions": [{"project": "p", "target": "https://u:pw@x"}]}}, "config.subscriptions[0].target is a secret"),
    "secret of a role": ({"roles": {"api": {"env": {"HEADGATE_AUTH__KEYSTONE__PASSWORD": "pw"}}}}, "roles.api.env.HEADGATE_AUTH__KEYSTONE__PASSWORD has a secret, and everyone who can read the Deployment could read it."),
    "broker password of a role": ({"roles": {"engine": {"env": {"HEADGATE_CHANNELS__AMQP__URL": "amqp://u:pw@b"}}}}, "roles.engine.env.HEADGATE_CHANNELS__AMQP__URL has a secret"),
    "mode none of a role": ({"roles": {"api": {"env": {"HEADGATE_AUTH__MODE": "none"}}}}, 'roles.api.env.HEADGATE_AUTH__MODE is "none"'),
    "command of a role": ({"roles": {"engine": {"env": {"HEADGATE_RESOURCE_TYPES__COMMAND__ENABLED": "true"}}}}, "roles.engine.env.HEADGATE_RESOURCE_TYPES__COMMAND__ENABLED is set, but the pods of the chart do not run as root"),
    "secret of a role twice": (
        {"secretEnv": [{"name": "HEADGATE_X__Y", "secret": "s", "key": "k"}], "roles": {"api": {"env": {"HEADGATE_X__Y": "1"}}}},
        "roles.api.env.HEADGATE_X__Y is set by secretEnv. Remove it.",
    ),
    "own variable as a secret": ({"secretEnv": [{"name": "HEADGATE_METRICS__NEEDS", "secret": "s", "key": "k"}]}, "secretEnv has HEADGATE_METRICS__NEEDS, which is set by the chart."),
    "database twice": ({"secretEnv": [{"name": "HEADGATE_DATABASE__URL", "secret": "s", "key": "k"}]}, "secretEnv has HEADGATE_DATABASE__URL, which is set by the chart. Remove it, and set database.existingSecret"),
    "variable twice": ({"secretEnv": [{"name": "HEADGATE_X__Y", "secret": "s", "key": "k"}] * 2}, "secretEnv has HEADGATE_X__Y twice."),
    "file twice": ({"secretFiles": [{"name": "ca", "secret": "s"}] * 2}, 'secretFiles has the name "ca" twice.'),
    "own variable": ({"roles": {"purge": {"env": {"HEADGATE_AUDIT__KEY_FILE": "/x"}}}}, "roles.purge.env.HEADGATE_AUDIT__KEY_FILE is set by the chart. Remove it, and set keys.audit."),
    "newer API": ({"image": {"tag": "1.2.0"}, "roles": {"api": {"tag": "1.10.0"}}}, "The tag of the API is 1.10.0 and that of the engines 1.2.0. Engines are upgraded first and the API last"),
    "drain": ({"config": {"engine": {"drain": "2m"}}}, "roles.engine.terminationGracePeriodSeconds is 60, but operations have 2m to finish ([engine] drain). Make it longer."),
    "drain of the API": ({"roles": {"api": {"terminationGracePeriodSeconds": 24}}}, "roles.api.terminationGracePeriodSeconds is 24, but operations have 20s to finish ([engine] drain), and a pod of the API waits 5s before. Make it longer."),
    "cells": ({"config": {"cells": {"revision": 1, "databases": [{"name": "a", "url": "postgresql://u:pw@h/d"}]}}}, "config.cells.databases is set, but the chart runs the processes of one database"),
    "cells of a role": ({"roles": {"api": {"env": {"HEADGATE_CELLS__DATABASES": "pw"}}}}, "roles.api.env.HEADGATE_CELLS__DATABASES is set, but the chart runs the processes of one database."),
    "pooler of a role": ({"roles": {"engine": {"env": {"HEADGATE_DATABASE__POOLER_URL": "postgresql://h/d?password=pw"}}}}, "roles.engine.env.HEADGATE_DATABASE__POOLER_URL has a secret"),
    "ingress without host": ({"ingress": {"enabled": True}}, "ingress.host is empty."),
    "ingress without proxies": ({"ingress": {"enabled": True, "host": "h"}}, "config.server.trusted_proxies is empty. Set it to the network of the controller's pods"),
    "monitor without token": ({"serviceMonitor": {"enabled": True}}, "serviceMonitor.apiToken.existingSecret is empty, and the API does not show its metrics without a token."),
    "monitor without network": ({"serviceMonitor": MONITOR}, "networkPolicy.metricsFrom is empty, so Prometheus cannot connect."),
    "monitor without TLS": ({"serviceMonitor": MONITOR, "tls": {"existingSecret": "t"}}, "serviceMonitor.tlsConfig is empty, but the API serves HTTPS"),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused_with_a_remedy(case: str) -> None:
    values, sentence = CONTRADICTIONS[case]
    refused = refusal(**values)
    assert sentence in refused
    # Each is a line of its own, and nothing else is wrong.
    assert len(re.findall(r"^- ", refused, re.MULTILINE)) <= 4, refused
    assert "pw" not in refused


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(RefusedValuesError) as refused:
        render("{}")
    assert len(re.findall(r"^- ", str(refused.value), re.MULTILINE)) == 3


def test_what_is_valid_is_not_refused() -> None:
    """Values near those that are refused."""
    older = minimal(image={"tag": "1.10.0"}, roles={"api": {"tag": "1.2.0"}})
    assert older.pods["headgate-api"]["spec"]["containers"][0]["image"].endswith(":1.2.0")
    minimal(image={"tag": "main"}, roles={"api": {"tag": "other"}})
    minimal(config={"channels": {"amqp": {"url": ["amqp://mq.example.org:5672/a@b"]}}})
    minimal(config={"engine": {"drain": "54s"}})
    minimal(
        config={"engine": {"drain": "59s"}}, roles={"api": {"terminationGracePeriodSeconds": 65}}
    )
    minimal(config={"subscriptions": [{"project": "p", "target": "https://x/a:b@c"}]})
    minimal(
        roles={"api": {"env": {"HEADGATE_DATABASE__POOL": "20", "HEADGATE_AUTH__MODE": "keystone"}}}
    )
    minimal(config={"metrics": {"needs": "nothing"}}, serviceMonitor={"enabled": True}, networkPolicy={"enabled": False})  # fmt: skip
    stopped = minimal(roles={one: {"replicas": 0} for one in ROLES})
    assert {one["spec"]["replicas"] for one in stopped.of_kind("Deployment").values()} == {0}


GUIDE = (ROOT / "docs" / "how-to" / "run-on-kubernetes.md").read_text()
README = (CHART / "README.md").read_text()
BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
BLOCKS = [textwrap.dedent(text) for _, text in BLOCK.findall(GUIDE + README)]


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_values_in_the_documentation_are_accepted(number: int) -> None:
    values = BLOCKS[number]
    render(MINIMUM | ({"database": {}} if "database:" in values else {}), values)


def test_commands_in_the_documentation_set_existing_values() -> None:
    """With the values of the guide, whose tag is that of the old release."""
    commands = re.findall(r"^ *helm (?:install|upgrade) (?:.*\\\n)*.*$", GUIDE, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        values: Json = {}
        for one in re.findall(r"--set (\S+)", command):
            for part in one.split(","):
                place, _, value = part.partition("=")
                values = merge(values, nest({place: yaml.safe_load(value)}))
        assert values or "--set" not in command
        render(MINIMUM, values)


# --- objects fit together


def selects(labels: Mapping[str, str], pod: Json) -> bool:
    return bool(labels.items() <= pod["metadata"]["labels"].items())


def test_selectors_select_the_pods_of_their_role() -> None:
    for name in NAMES:
        chart = example(name)
        for deployment in chart.of_kind("Deployment").values():
            labels = deployment["spec"]["selector"]["matchLabels"]
            assert [one for one, pod in chart.pods.items() if selects(labels, pod)] == [
                deployment["metadata"]["name"]
            ]
        budgets = chart.of_kind("PodDisruptionBudget")
        assert set(budgets) == {
            one
            for one, deployment in chart.of_kind("Deployment").items()
            if deployment["spec"]["replicas"] > 1
        }
        for own, budget in budgets.items():
            labels = budget["spec"]["selector"]["matchLabels"]
            assert [one for one, pod in chart.pods.items() if selects(labels, pod)] == [own]


def test_services_lead_to_ports_that_the_policies_open() -> None:
    for name in NAMES:
        chart = example(name)
        policies = chart.of_kind("NetworkPolicy").values()
        served = set()
        for service in chart.of_kind("Service").values():
            for one, pod in chart.pods.items():
                if not selects(service["spec"]["selector"], pod):
                    continue
                served.add(one)
                (container,) = pod["spec"]["containers"]
                ports = {port["name"] for port in container["ports"]}
                for port in service["spec"]["ports"]:
                    assert port["targetPort"] in ports
                    assert (
                        port["targetPort"]
                        in {
                            opened["port"]
                            for policy in policies
                            if selects(policy["spec"]["podSelector"]["matchLabels"], pod)
                            for rule in policy["spec"].get("ingress", [])
                            for opened in rule["ports"]
                        }
                        or name == "cloudnativepg"
                    )  # has no metricsFrom
        assert served == {f"headgate-{role}" for role in ROLES}


def test_prometheus_finds_every_role() -> None:
    chart = example("external-database")
    monitor = chart.find("ServiceMonitor", "headgate")["spec"]
    found = {
        (service["metadata"]["name"], port["name"])
        for service in chart.of_kind("Service").values()
        if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        for port in service["spec"]["ports"]
    }
    assert {port for _, port in found} == {one["port"] for one in monitor["endpoints"]}
    (rule,) = chart.find("NetworkPolicy", "headgate-api")["spec"]["ingress"]
    names = [one["namespaceSelector"]["matchLabels"] for one in rule["from"]]
    assert [one["kubernetes.io/metadata.name"] for one in names] == ["ingress-nginx", "monitoring"]


def test_pods_reach_no_metadata_service_and_have_no_rights() -> None:
    for name in NAMES:
        chart = example(name)
        rules = chart.find("NetworkPolicy", "headgate")["spec"]["egress"]
        blocks = [
            peer["ipBlock"] for rule in rules for peer in rule.get("to", []) if "ipBlock" in peer
        ]
        assert {"169.254.0.0/16", "fe80::/10"} <= {out for one in blocks for out in one["except"]}
        for pod in chart.pods.values():
            spec = pod["spec"]
            assert spec["automountServiceAccountToken"] is False
            assert spec["securityContext"]["runAsNonRoot"] is True
            (container,) = spec["containers"]
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] and security["capabilities"]["drop"] == [
                "ALL"
            ]


def test_the_account_of_the_pods_is_that_of_the_image() -> None:
    image = (ROOT / "deploy" / "container" / "Containerfile").read_text()
    (user,) = re.findall(r"^USER (\d+)$", image, re.MULTILINE)
    for pod in minimal().pods.values():
        assert pod["spec"]["securityContext"]["runAsUser"] == int(user)


def test_changed_settings_restart_the_pods() -> None:
    def annotations(chart: RenderedChart) -> set[str]:
        pods = [pod for one, pod in chart.pods.items() if not one.endswith("check")]
        return {pod["metadata"]["annotations"]["checksum/settings"] for pod in pods}

    before, after = annotations(minimal()), annotations(minimal(config={"engine": {"workers": 3}}))
    assert len(before) == len(after) == 1 and before != after


def test_the_check_before_an_upgrade_runs_as_the_new_engines() -> None:
    """On their nodes, with their settings; a service account that the chart creates may not exist."""
    tolerations = [{"key": "ops", "operator": "Exists"}]
    near: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
    engine: Json = {
        "env": {"HEADGATE_ENGINE__LABELS": '["region=eu"]'}, "nodeSelector": {"disk": "ssd"},
        "tolerations": tolerations, "affinity": {"nodeAffinity": near, "podAntiAffinity": {}},
    }  # fmt: skip
    account = {"create": False, "name": "ops"}
    pods = minimal(roles={"engine": engine}, serviceAccount=account).pods
    spec, engines = pods["headgate-upgrade-check"]["spec"], pods["headgate-engine"]["spec"]
    for key in ("nodeSelector", "tolerations", "serviceAccountName"):
        assert spec[key] == engines[key]
    assert spec["affinity"] == {"nodeAffinity": near}
    assert engine["env"].items() <= environment_of(pods["headgate-upgrade-check"], SECRETS).items()
    assert "serviceAccountName" not in minimal().pods["headgate-upgrade-check"]["spec"]


@pytest.mark.parametrize(("tag", "label"), [("1.2.0_", "1.2.0"), ("x" * 128, "x" * 63)])
def test_any_tag_has_a_valid_label(tag: str, label: str) -> None:
    for one in minimal(image={"tag": tag}).of_kind("Deployment").values():
        assert one["metadata"]["labels"]["app.kubernetes.io/version"] == label


def test_the_api_is_held_back() -> None:
    chart = minimal(image={"tag": "1.1.0"}, roles={"api": {"tag": "1.0.0"}})
    tags = {
        one: pod["spec"]["containers"][0]["image"].rpartition(":")[2]
        for one, pod in chart.pods.items()
    }
    assert tags.pop("headgate-api") == "1.0.0"
    assert set(tags.values()) == {"1.1.0"} and "headgate-upgrade-check" in tags
    assert "held back at 1.0.0. When the engines with 1.1.0 are ready" in chart.notes
    assert "held back" not in minimal().notes


def test_names_have_at_most_63_characters() -> None:
    chart = render(
        MINIMUM, {"database": CNPG}, name="a-name-of-a-release-that-is-as-long-as-helm-allows"
    )
    names = [one["metadata"]["name"] for one in chart.manifests]
    # The operator of the database appends the number of an instance.
    assert max(map(len, names)) <= 60 and len(set(names)) > len(ROLES)


# --- the processes run


@dataclass
class Node:
    """Starts containers as a node of Kubernetes does, with directories below `folder` and ports of its
    own."""

    folder: Path
    secrets: Mapping[str, Mapping[str, bytes]]
    chart: RenderedChart
    ports: dict[str, int] = field(default_factory=dict)
    #: Arguments and environment of each prepared container.
    commands: dict[str, tuple[list[str], dict[str, str]]] = field(default_factory=dict)

    def prepare(self, name: str) -> tuple[list[str], dict[str, str]]:
        """Write the files of a pod; return arguments and environment of its container."""
        spec = self.chart.pods[name]["spec"]
        root = self.folder / name
        volumes = {one["name"]: one for one in spec["volumes"]}
        (container,) = spec["containers"]
        port = self.ports[name] = free_port()

        def localize(text: str) -> str:
            text = re.sub(r"0\.0\.0\.0:(8004|9464)", f"127.0.0.1:{port}", text)
            return re.sub(r"(/etc/headgate|/var/lib/headgate)", rf"{root}\1", text)

        for mount in container["volumeMounts"]:
            path = Path(f"{root}{mount['mountPath']}")
            volume = volumes[mount["name"]]
            if reference := volume.get("configMap"):
                data = self.chart.find("ConfigMap", reference["name"])["data"]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(localize(data[mount["subPath"]]))
                continue
            path.mkdir(parents=True)
            if reference := volume.get("secret"):
                for item in reference["items"]:
                    content = self.secrets[reference["secretName"]][item["key"]]
                    (path / item["path"]).write_bytes(content)
                    (path / item["path"]).chmod(reference["defaultMode"])
        variables = environment_of(self.chart.pods[name], self.secrets)
        local = {one: localize(value) for one, value in variables.items()}
        self.commands[name] = [localize(one) for one in container["args"]], local
        return self.commands[name]

    @asynccontextmanager
    async def run(self, name: str) -> AsyncIterator[ForkedProcess]:
        arguments, variables = self.prepare(name)
        with (self.folder / f"{name}.log").open("wb") as log:
            descriptors = [0, log.fileno(), log.fileno()]
            process = start_forked(arguments, os.environ | variables, descriptors)
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(PATIENCE) == 0, (self.folder / f"{name}.log").read_text()

    async def probe(self, session: aiohttp.ClientSession, name: str, kind: str) -> int:
        """The status of a probe. 0: nothing listens."""
        (container,) = self.chart.pods[name]["spec"]["containers"]
        request = container[kind]["httpGet"]
        assert request["port"] in {one["name"] for one in container["ports"]}
        url = f"http://127.0.0.1:{self.ports[name]}{request['path']}"
        try:
            async with session.get(url) as response:
                return response.status
        except aiohttp.ClientConnectionError:
            return 0


async def test_the_roles_start_as_rendered(database_url: str, tmp_path: Path) -> None:
    """Probes succeed, the Job of an upgrade finds the processes, and the command of the notes works."""
    secrets = SECRETS | {"headgate-database": {"url": database_url.encode()}}
    node = Node(tmp_path, secrets, minimal())
    names = [f"headgate-{role}" for role in ROLES]
    async with aiohttp.ClientSession() as session:

        async def ready() -> bool:
            kinds = ("startupProbe", "livenessProbe", "readinessProbe")
            probes = [node.probe(session, name, kind) for name in names for kind in kinds]
            return set(await asyncio.gather(*probes)) == {200}

        async with node.run(names[0]), node.run(names[1]), node.run(names[2]), node.run(names[3]):
            await eventually(ready)
            await check_metrics(session, node, names)
            arguments, variables = node.prepare("headgate-upgrade-check")
            done = await asyncio.to_thread(forks.run, arguments, os.environ | variables)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "may start beside the running processes" in done.stdout
            await check_notes(session, node)


async def check_metrics(session: aiohttp.ClientSession, node: Node, names: list[str]) -> None:
    """The API shows its metrics only with a token."""
    statuses = {}
    for name in names:
        async with session.get(f"http://127.0.0.1:{node.ports[name]}/metrics") as response:
            statuses[name] = response.status
    assert statuses.pop("headgate-api") == 401 and set(statuses.values()) == {200}


async def check_notes(session: aiohttp.ClientSession, node: Node) -> None:
    """Run the command of the notes in the container that they name."""
    (command,) = re.findall(
        r"exec deployment/headgate-api -- \\\n +headgate (.*)$", node.chart.notes, re.MULTILINE
    )
    arguments, variables = node.commands["headgate-api"]
    words = shlex.split(command)
    words[words.index("--config") + 1] = arguments[arguments.index("--config") + 1]
    done = await asyncio.to_thread(forks.run, words, os.environ | variables)
    assert done.returncode == 0, done.stderr
    url = f"http://127.0.0.1:{node.ports['headgate-api']}/v1/p/stacks"
    headers = {"X-Auth-Token": done.stdout.strip()}
    async with session.get(url, headers=headers) as response:
        assert response.status == 200
