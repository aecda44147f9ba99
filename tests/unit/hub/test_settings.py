"""Settings: what is not said has its default, what is wrong is refused by name."""

import itertools
import re
import tomllib
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

from engine import errors
from hub.settings.resource_types import HttpCredential, RemoteStack
from hub.settings.settings import Settings, Subscription, load_settings

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config.example.toml"


def load(text: str, tmp_path: Path, **environment: str) -> Settings:
    path = tmp_path / "headgate.toml"
    path.write_text(text)
    return load_settings(path, {}, environment=environment)


def refused(text: str, tmp_path: Path, **environment: str) -> list[errors.Finding]:
    with pytest.raises(errors.Invalid) as caught:
        load(text, tmp_path, **environment)
    return list(caught.value.findings)


def model_of(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def names(model: type[BaseModel], place: str = "") -> set[str]:
    """Every setting there is: ``server.listen`` and so on."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        if place + name in BY_NAME:
            continue
        below = model_of(field.annotation)
        found |= names(below, f"{place}{name}.") if below else {place + name}
    return found


def written(tree: dict[str, Any], place: str = "") -> set[str]:
    found: set[str] = set()
    for name, value in tree.items():
        below = value[0] if isinstance(value, list) and value and name in SECTIONS else value
        nested = isinstance(below, dict) and bool(below) and place + name not in TABLES
        found |= written(below, f"{place}{name}.") if nested else {place + name}
    return found


#: Settings that are tables themselves: their keys are the operator's.
TABLES = ("auth.keystone.roles",)
#: Sections of which there is one for each name that the operator gives; see the example's comment.
BY_NAME = (
    "quotas.projects",
    "resource_types.http.credentials",
    "resource_types.remote_stack",
)
#: Those that may be there any number of times.
SECTIONS = ("subscriptions", "rules", "programs")


def example_with_subscription() -> str:
    """The example as it is once those sections are no longer commented out."""
    lines, inside = [], False
    for line in EXAMPLE.read_text().splitlines():
        inside = line.startswith("# [[") or (inside and line.startswith("#"))
        lines.append(line.removeprefix("# ") if inside else line)
    return "\n".join(lines)


def test_the_example_holds_every_setting_and_no_other() -> None:
    assert written(tomllib.loads(example_with_subscription())) == names(Settings)


def test_the_example_holds_the_defaults() -> None:
    loaded = load_settings(EXAMPLE, {}, environment={})
    for section in Settings.model_fields:
        assert getattr(loaded, section) == getattr(Settings(), section), section


@pytest.mark.parametrize(
    ("section", "model"),
    [("http.credentials.rabbit", HttpCredential), ("remote_stack.west", RemoteStack)],
)
def test_sections_by_name_are_shown_whole(section: str, model: type[BaseModel]) -> None:
    text = EXAMPLE.read_text().partition(f"# [resource_types.{section}]\n")[2]
    shown = re.findall(r"^# (\w+) = ", text.partition("\n\n")[0], re.M)
    assert sorted(shown) == sorted(model.model_fields)


def test_the_examples_subscription_holds_the_defaults(tmp_path: Path) -> None:
    (shown,) = load(example_with_subscription(), tmp_path).subscriptions
    assert shown == Subscription(project=shown.project, target=shown.target)


def test_every_setting_of_the_example_is_explained() -> None:
    lines = EXAMPLE.read_text().splitlines()
    unexplained = {"timeout", "max_retry", "stacks", "resources", "project", "target", "channel"}
    unexplained |= {"resources_per_stack", "stacks_per_project"}  # their names say it
    for before, line in itertools.pairwise(lines):
        name = line.removeprefix("# ").partition(" = ")[0]
        if " = " in line and name.isidentifier() and name not in unexplained:
            assert before.startswith("#"), line


def test_no_file_is_the_defaults() -> None:
    assert load_settings(None, {}, environment={}) == Settings()
    assert Settings().server.listen == "127.0.0.1:8004"
    assert Settings().hooks.default_timeout == timedelta(hours=24)


def test_environment_over_file_and_command_line_over_both(tmp_path: Path) -> None:
    path = tmp_path / "headgate.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:1"\nmax_body = 1\n[engine]\nbatch = 1\n')
    loaded = load_settings(
        path,
        {"server.listen": "127.0.0.1:3", "engine.lanes": None},
        environment={"HEADGATE_SERVER__LISTEN": "127.0.0.1:2", "HEADGATE_SERVER__MAX_BODY": "2"},
    )
    assert (loaded.server.listen, loaded.server.max_body) == ("127.0.0.1:3", 2)
    assert (loaded.engine.batch, loaded.engine.lanes) == (1, 2)


def test_the_environment_writes_lists_times_and_booleans() -> None:
    loaded = load_settings(
        None,
        {},
        environment={
            "HEADGATE_CHANNELS__WEBHOOK__ALLOW": "10.0.0.0/8, ::1/128",
            "HEADGATE_RESOURCE_TYPES__COMMAND__ENABLED": "true",
            "HEADGATE_HOOKS__DEFAULT_TIMEOUT": "90s",
            "HEADGATE_URL": "not a setting, and none of our business",
        },
    )
    assert loaded.channels.webhook.allow == (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert loaded.resource_types.command.enabled
    assert loaded.hooks.default_timeout == timedelta(seconds=90)


@pytest.mark.parametrize(
    ("text", "place", "reason", "remedy"),
    [
        ('[server]\nlistn = "x"', "[server] listn", "unknown setting", '"listen"'),
        ("[servr]\nx = 1", "[servr]", "unknown setting", '"server"'),
        ('listen = "x"', "listen", "unknown setting", "under [server]"),
        ("[channels.webhook]\natempts = 1", "[channels.webhook] atempts", "unknown", '"attempts"'),
        ("[channels.ampq]\nurl = []", "[channels.ampq]", "unknown setting", "amqp"),
        ("[auth]\ncolour = 1", "[auth] colour", "unknown setting", "mode"),
        ("[auth]\nmode = 'basic'", "[auth] mode", "'none'", ""),
        ("[auth]\nmode = 'keystone'", "[auth] mode", "needs [auth.keystone] url, us", ""),
        (
            "[auth]\nmode = 'keystone'\n[auth.keystone]\nurl = 'http://k:5000'\nproject = 's'\n"
            "username = 'headgate'",
            "[auth] mode",
            "needs [auth.keystone] password",
            "",
        ),
        ("[auth.keystone]\nroles = {member = ['boss']}", "[auth.keystone.roles]", "author", ""),
        ("[server]\nkey_file = 'k.pem'", "[server] key_file", "without a cert_file", ""),
        ("[server]\ncors_origins = ['https://a/']", "[server] cors_origins", "origins", ""),
        ("[server]\ntrusted_proxies = ['10.0.0.1/8']", "[server] trusted_proxies[0]", "net", ""),
        ("server = 1", "server", "a section", ""),
        ("[server]\nlisten = 'here'", "[server] listen", "HOST:PORT", ""),
        ("[server]\nlisten = '127.0.0.1:70000'", "[server] listen", "HOST:PORT", ""),
        ("[server]\npublic_url = 'ftp://x'", "[server] public_url", "https://", ""),
        ("[server]\nrequest_timeout = 90", "[server] request_timeout", "90s, 30m", ""),
        ("[server]\nrequest_timeout = '0s'", "[server] request_timeout", "90s, 30m", ""),
        ("[server]\nrequest_timeout = 'PT2H'", "[server] request_timeout", "90s, 30m", ""),
        ("[engine]\nbatch = 0", "[engine] batch", "greater than 0", ""),
        ("[engine]\nbatch = true", "[engine] batch", "integer", ""),
        ("[hooks]\ndefault_timeout = '91d'", "[hooks]", "default_timeout is longer", ""),
        ("[channels.webhook]\nallow = ['x']", "[channels.webhook] allow[0]", "a network", ""),
        ("[channels.webhook]\nallow = ['::1/128', '10.0.0.1/8']", "[channels.webhook] allow[1]",
         "a network", ""),
        ("[channels.webhook]\nproxy = 'socks://x'", "[channels.webhook] proxy", "http://", ""),
        ("[channels.amqp]\nurl = ['http://x']", "[channels.amqp] url", "amqp://", ""),
        ("[channels.amqp]\nfirst_retry = '2m'", "[channels.amqp]", "first_retry is longer", ""),
        ("[[resource_types.command.programs]]\npath = 'bin/x'\nprojects = []",
         "[resource_types.command.programs] path[0]", "absolute", ""),
        ("[resource_types.command]\nvariables = ['*']", "[resource_types.command] variables",
         "DEPLOY_*", ""),
        ("[[subscriptions]]\nproject = 'demo'", "[[subscriptions]] 1: target", "required", ""),
        ("[[subscriptions]]\nproject = 'a'\ntarget = 'b'\nevnts = []",
         "[[subscriptions]] 1: evnts", "unknown setting", '"events"'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_name(
    tmp_path: Path, text: str, place: str, reason: str, remedy: str
) -> None:
    (finding,) = refused(text, tmp_path)
    assert finding.place == place
    assert finding.reason.startswith("in headgate.toml: ")
    assert reason in finding.reason
    assert remedy in finding.remedy
    assert finding.code == "InvalidSettings"


@pytest.mark.parametrize(
    ("name", "value", "reason", "remedy"),
    [
        ("HEADGATE_SERVER__LISTN", "x", "unknown setting", '"listen"'),
        ("HEADGATE_SERVR__LISTEN", "x", "unknown setting", '"server"'),
        ("HEADGATE_ENGINE__BATCH", "geheim", "integer", ""),
        ("HEADGATE_ENGINE__LEASE", "geheim", "90s, 30m", ""),
        ("HEADGATE_CHANNELS__WEBHOOK__ALLOW", "geheim", "a network", ""),
    ],
)
def test_a_wrong_variable_is_refused_by_its_own_name(
    tmp_path: Path, name: str, value: str, reason: str, remedy: str
) -> None:
    (finding,) = refused("", tmp_path, **{name: value})
    assert name.startswith(finding.place)
    assert reason in finding.reason
    assert remedy in finding.remedy
    assert "geheim" not in str(finding)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    found = refused('[server]\nlistn = "x"\n[engine]\nbatch = 0\n', tmp_path)
    assert {finding.place for finding in found} == {"[server] listn", "[engine] batch"}


def test_broken_toml_names_file_and_line(tmp_path: Path) -> None:
    (finding,) = refused('[server]\nlisten = "127.0.0.1:1\n', tmp_path)
    assert finding.place.endswith("headgate.toml")
    assert "line 2" in finding.reason


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.Invalid, match=r"nowhere\.toml"):
        load_settings(tmp_path / "nowhere.toml", {}, environment={})


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:80", "[::1]:8004", "localhost:8004"])
def test_mode_none_is_fine_on_loopback(listen: str) -> None:
    loaded = load_settings(None, {"server.listen": listen}, environment={})
    assert loaded.server.on_loopback


@pytest.mark.parametrize("listen", ["0.0.0.0:8004", "[::]:8004", "10.0.0.1:80", "example.org:80"])
def test_mode_none_is_refused_on_any_other_address(listen: str) -> None:
    with pytest.raises(errors.Invalid, match="loopback") as caught:
        load_settings(None, {"server.listen": listen}, environment={})
    assert caught.value.finding.place == "[server] listen"


def test_mode_none_is_refused_behind_a_proxy() -> None:
    behind = {"server.trusted_proxies": ["127.0.0.1/32"]}
    with pytest.raises(errors.Invalid, match="not allowed behind a proxy") as caught:
        load_settings(None, behind, environment={})
    assert caught.value.finding.place == "[server] trusted_proxies"
    load_settings(None, behind | {"auth.mode": "tokens"}, environment={})


@pytest.mark.parametrize(
    ("user", "mode", "refused"),
    [
        ("ann", "tokens", True),
        ("ann@example.org", "tokens", True),
        ("6F9619FF-8B86-D011-B42D-00C04FC964FF", "tokens", True),
        ("6f9619ff8b86d011b42d00c04fc964ff", "tokens", True),
        ("ann@*", "tokens", False),
        ("6f9619ff-8b86-d011-b42d-00c04fc964ff", "tokens", False),
        ("ann", "none", False),
    ],
)
def test_rules_name_no_user_whose_name_can_be_issued_again(
    user: str, mode: str, refused: bool
) -> None:
    rule = {"on": ["pre-stack-create"], "answer_by": ["role:operator", f"user:{user}"]}
    said = {"auth.mode": mode, "hooks.rules": [rule]}
    if not refused:
        load_settings(None, said, environment={})
        return
    with pytest.raises(errors.Invalid, match=r"\[\[hooks.rules\]\] 1 names") as caught:
        load_settings(None, said, environment={})
    assert f'"user:{user}@*"' in str(caught.value) and "headgate token list" in str(caught.value)


def test_metrics_without_authentication_are_on_loopback_or_open_to_all() -> None:
    address = {"auth.mode": "tokens", "metrics.address": "10.0.0.1:9464"}
    with pytest.raises(errors.Invalid, match="without authentication") as caught:
        load_settings(None, address, environment={})
    assert caught.value.finding.place == "[metrics] address"
    load_settings(None, address | {"metrics.needs": "nothing"}, environment={})
    load_settings(None, address | {"metrics.address": "[::1]:9464"}, environment={})


@pytest.mark.parametrize(
    ("overrides", "url"),
    [
        ({}, "http://127.0.0.1:8004"),
        ({"server.listen": "[::1]:80"}, "http://[::1]:80"),
        ({"server.public_url": "https://example.org/x/"}, "https://example.org/x"),
    ],
)
def test_the_public_url_is_derived_unless_said(overrides: dict[str, str], url: str) -> None:
    assert load_settings(None, overrides, environment={}).server.base_url() == url


def test_the_port_the_system_chose_is_in_the_url() -> None:
    server = load_settings(None, {"server.listen": "127.0.0.1:0"}, environment={}).server
    assert server.base_url(4711) == "http://127.0.0.1:4711"


def test_settings_do_not_change() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.server.listen = "0.0.0.0:1"


def test_secrets_are_not_shown() -> None:
    loaded = load_settings(
        None, {}, environment={"HEADGATE_DATABASE__URL": "postgresql://a:geheim@db/x"}
    )
    assert "geheim" not in repr(loaded)
    assert loaded.database.url.get_secret_value().endswith("geheim@db/x")
