"""Settings: defaults, sources, and how wrong settings are reported."""

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any, get_args, get_origin
from urllib.parse import quote

import pytest
from pydantic import BaseModel, ValidationError

from engine import errors
from hub.settings.resource_types import HttpCredential, RemoteStackSection
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
    """The names of all settings: ``server.listen`` and so on."""
    found: set[str] = set()
    for name, field in model.model_fields.items():
        if place + name in BY_NAME:
            continue
        below = model_of(field.annotation)
        found |= names(below, f"{place}{name}.") if below else {place + name}
    return found


def flatten(tree: dict[str, Any], place: str = "") -> set[str]:
    found: set[str] = set()
    for name, value in tree.items():
        below = value[0] if isinstance(value, list) and value and name in SECTIONS else value
        nested = isinstance(below, dict) and bool(below) and place + name not in TABLES
        found |= flatten(below, f"{place}{name}.") if nested else {place + name}
    return found


#: Settings that are tables themselves: the operator chooses their keys, or the engine reads them.
TABLES = (
    "auth.keystone.roles",
    "convergence.rules.ignore",
    "convergence.rules.window",
    "convergence.rules.hold",
)
#: Sections that exist once for each name that the operator chooses; see the example's comment.
BY_NAME = (
    "quotas.projects",
    "resource_types.http.credentials",
    "resource_types.remote_stack",
)
#: Sections that can be repeated.
SECTIONS = (
    "databases", "grants", "subscriptions", "rules", "programs", "endpoints", "label_rules",
    "users",
)  # fmt: skip


def example_with_subscription() -> str:
    """The example with those sections uncommented."""
    lines, inside = [], False
    for line in EXAMPLE.read_text().splitlines():
        inside = line.startswith("# [[") or (inside and line.startswith("#"))
        lines.append(line.removeprefix("# ") if inside else line)
    return "\n".join(lines)


def test_the_example_has_exactly_the_settings() -> None:
    assert flatten(tomllib.loads(example_with_subscription())) == names(Settings)


def test_the_example_has_the_defaults() -> None:
    loaded = load_settings(EXAMPLE, {}, environment={})
    for section in Settings.model_fields:
        assert getattr(loaded, section) == getattr(Settings(), section), section


@pytest.mark.parametrize(
    ("section", "model"),
    [("http.credentials.rabbit", HttpCredential), ("remote_stack.west", RemoteStackSection)],
)
def test_sections_by_name_are_complete_in_the_example(section: str, model: type[BaseModel]) -> None:
    text = EXAMPLE.read_text().partition(f"# [resource_types.{section}]\n")[2]
    shown = re.findall(r"^# (\w+) = ", text.partition("\n\n")[0], re.M)
    assert sorted(shown) == sorted(model.model_fields)


def test_the_subscription_of_the_example_has_the_defaults(tmp_path: Path) -> None:
    before, _, rest = example_with_subscription().partition("[[channels.slack.users]]")
    # Without the users of Slack, who need a signing secret.
    text = before + rest[rest.index("\n\n") :]
    (shown,) = load(text, tmp_path).subscriptions
    assert shown == Subscription(project=shown.project, target=shown.target)


def test_every_setting_of_the_example_is_explained() -> None:
    lines = EXAMPLE.read_text().splitlines()
    unexplained = {"timeout", "max_retry", "stacks", "resources", "project", "target", "channel"}
    unexplained |= {"resources_per_stack", "stacks_per_project"}  # their names suffice
    for before, line in itertools.pairwise(lines):
        name = line.removeprefix("# ").partition(" = ")[0]
        if " = " in line and name.isidentifier() and name not in unexplained:
            assert before.startswith("#"), line


def test_without_a_file_settings_have_their_defaults() -> None:
    assert load_settings(None, {}, environment={}) == Settings()
    assert Settings().server.listen == "127.0.0.1:8004"
    assert Settings().hooks.default_timeout == timedelta(hours=24)


def test_the_environment_overrides_the_file_and_options_override_both(tmp_path: Path) -> None:
    path = tmp_path / "headgate.toml"
    path.write_text('[server]\nlisten = "127.0.0.1:1"\nmax_body = 1\n[engine]\nbatch = 1\n')
    loaded = load_settings(
        path,
        {"server.listen": "127.0.0.1:3", "engine.workers": None},
        environment={"HEADGATE_SERVER__LISTEN": "127.0.0.1:2", "HEADGATE_SERVER__MAX_BODY": "2"},
    )
    assert (loaded.server.listen, loaded.server.max_body) == ("127.0.0.1:3", 2)
    assert (loaded.engine.batch, loaded.engine.workers) == (1, 2)


def test_variables_can_be_lists_times_and_booleans() -> None:
    loaded = load_settings(
        None,
        {},
        environment={
            "HEADGATE_CHANNELS__WEBHOOK__ALLOW": "10.0.0.0/8, ::1/128",
            "HEADGATE_RESOURCE_TYPES__COMMAND__ENABLED": "true",
            "HEADGATE_HOOKS__DEFAULT_TIMEOUT": "90s",
            "HEADGATE_CREDENTIALS__FALLBACK_KEY_FILES": "/etc/a.key, /etc/b.key",
            "HEADGATE_URL": "not a setting, and none of our business",
        },
    )
    assert loaded.channels.webhook.allow == (ip_network("10.0.0.0/8"), ip_network("::1/128"))
    assert loaded.resource_types.command.enabled
    assert loaded.credentials.fallback_key_files == ("/etc/a.key", "/etc/b.key")
    assert loaded.hooks.default_timeout == timedelta(seconds=90)


CHAT = "[[subscriptions]]\nproject = 'a'\ntarget = 'b'\nchannel = 'slack'\n"
OIDC = "[auth.oidc]\nissuer = 'https://login.example.org'\n"
OIDC_GRANT = "[[auth.oidc.grants]]\ngroup = 'g'\n"
SLACK = "[channels.slack]\n"
KEYSTONE = "[auth]\nmode = 'keystone'\n[auth.keystone]\nurl = 'http://k:5000'\nproject = 's'\n"
CREDENTIAL = "[resource_types.http.credentials.r]\nprojects = []\norigins = ['http://r']\n"
RULE = "[[hooks.rules]]\non = ['pre-create']\n"


@pytest.mark.parametrize(
    ("text", "line", "place", "reason", "remedy"),
    [
        # Unknown names.
        ("[server]\nlistn = 'x'", 2, "[server] listn", "unknown setting", '"listen"'),
        ("[servr]\nx = 1", 1, "[servr]", "unknown setting", '"server"'),
        ("listen = 'x'", 1, "listen", "unknown setting", "under [server]"),
        ("[channels.webhook]\natempts = 1", 2, "[channels.webhook] atempts", "unknown",
         '"attempts"'),
        ("[channels.ampq]\nurl = []", 1, "[channels.ampq]", "unknown setting", "amqp"),
        ("[auth]\ncolour = 1", 2, "[auth] colour", "unknown setting", "Known here: mode"),
        (f"{CREDENTIAL}kind = 'bearer'\nsecret = 's'\ncolour = 1", 6,
         "[resource_types.http.credentials.r] colour", "unknown setting", "Known here: kind"),
        ("[quotas.projects.demo]\ncolour = 1", 2, "[quotas.projects.demo] colour", "unknown",
         "Known here: template_bytes"),
        ("[[subscriptions]]\nproject = 'a'\ntarget = 'b'\nevnts = []", 4,
         "[[subscriptions]] 1, evnts", "unknown setting", '"events"'),
        # Types of TOML.
        ("[server]\ncert_file = 1", 2, "[server] cert_file", "must be a string",
         'cert_file = "TEXT"'),
        ("[database]\nurl = 1", 2, "[database] url", "must be a string", 'url = "TEXT"'),
        ("[database]\ndata_dir = 1", 2, "[database] data_dir", "must be a string",
         'data_dir = "headgate-data"'),
        ("[engine]\nbatch = 'x'", 2, "[engine] batch", "must be an integer", "batch = 250"),
        ("[engine]\nbatch = 1.5", 2, "[engine] batch", "must be an integer", "batch = 250"),
        ("[engine]\nbatch = nan", 2, "[engine] batch", "must be a finite number", "batch = 250"),
        ("[engine]\nbatch = true", 2, "[engine] batch", "must be an integer such as 10", ""),
        (f"[engine]\nbatch = '{'9' * 5000}'", 2, "[engine] batch", "must be an integer",
         "batch = 250"),
        ("[tracing]\nratio = 'x'", 2, "[tracing] ratio", "must be a number", "ratio = 1.0"),
        ("[tracing]\nratio = []", 2, "[tracing] ratio", "must be a number", "ratio = 1.0"),
        ("[auth.keystone]\ntrusts = 'x'", 2, "[auth.keystone] trusts", "must be true or false",
         "trusts = false"),
        ("[auth.keystone]\ntrusts = []", 2, "[auth.keystone] trusts", "must be true or false",
         "trusts = false"),
        ("[channels.amqp]\nexchanges = 5", 2, "[channels.amqp] exchanges", "must be a list",
         'exchanges = ["headgate", "headgate.*"]'),
        ("[hooks]\nrules = 5", 2, "[hooks] rules", "must be a list", "sections [[hooks.rules]]"),
        ("[auth.keystone]\nroles = 5", 2, "[auth.keystone] roles", "must be a map",
         'member = ["author", "approver"]'),
        ("[auth.keystone]\nroles = {a = 5}", 2, "[auth.keystone.roles] a", "must be a list",
         'a = ["TEXT"]'),
        ("[quotas]\nprojects = 5", 2, "[quotas] projects", "must be a map",
         "[quotas.projects.NAME]"),
        ("server = 1", 1, "server", "a section", "Write [server]"),
        ("[channels]\nwebhook = 1", 2, "[channels] webhook", "a section", "[channels.webhook]"),
        ("subscriptions = [5]", 1, "subscriptions, item 1", "a section", "[[subscriptions]]"),
        # Choices, bounds and lengths.
        ("[auth]\nmode = 'basic'", 2, "[auth] mode", 'must be "none", "tokens" or "keystone"',
         "Write one of these values"),
        ("[auth]\nmode = 'token'", 2, "[auth] mode", 'must be "none", "tokens" or "keystone"',
         'Did you mean "tokens"?'),
        ("[engine]\nbatch = 0", 2, "[engine] batch", "greater than 0", "batch = 250"),
        ("[database]\npool = 1", 2, "[database] pool", "at least 2", "pool = 10"),
        ("[language]\nsteps = 99999999", 2, "[language] steps", "at most 10000000",
         "steps = 100000"),
        ("[tracing]\nservice = ''", 2, "[tracing] service", "at least 1 character",
         'service = "headgate"'),
        (f"[channels.amqp]\nanswers = '{'x' * 201}'", 2, "[channels.amqp] answers",
         "at most 200 characters", 'answers = "headgate.answers"'),
        ("[[subscriptions]]\nproject = 'demo'", 1, "[[subscriptions]] 1, target",
         "this setting is required", "Add target"),
        # Headgate's own types.
        ("[server]\ncors_origins = ['https://a/']", 2, "[server] cors_origins",
         "origins such as https://", ""),
        ("[server]\ncors_origins = ['http://[::1']", 2, "[server] cors_origins",
         "origins such as https://", ""),
        ("[server]\ntrusted_proxies = ['10.0.0.1/8']", 2, "[server] trusted_proxies, item 1",
         "a network such as", ""),
        ("[server]\nlisten = 'here'", 2, "[server] listen", "must be HOST:PORT", ""),
        ("[server]\nlisten = '127.0.0.1:70000'", 2, "[server] listen", "must be HOST:PORT", ""),
        (f"[server]\nlisten = 'h:{'9' * 5000}'", 2, "[server] listen", "must be HOST:PORT", ""),
        ("[metrics]\naddress = 'here'", 2, "[metrics] address", "must be HOST:PORT", ""),
        ("[server]\npublic_url = 'ftp://x'", 2, "[server] public_url", "such as https://", ""),
        ("[server]\npublic_url = 'http://[::1'", 2, "[server] public_url", "such as https://", ""),
        ("[server]\npublic_url = 'http://x:y'", 2, "[server] public_url", "such as https://", ""),
        ("[server]\nrequest_timeout = 90", 2, "[server] request_timeout", "such as 90s", ""),
        ("[server]\nrequest_timeout = '0s'", 2, "[server] request_timeout", "such as 90s", ""),
        ("[server]\nrequest_timeout = 'PT2H'", 2, "[server] request_timeout", "such as 90s", ""),
        ("[retention]\naudit_logs = 'x'", 2, "[retention] audit_logs", "such as 90s", ""),
        ("[channels.webhook]\nallow = [\n 'x',\n]", 2, "[channels.webhook] allow, item 1",
         "a network such as", ""),
        ("[channels.webhook]\nallow = ['::1/128', '10.0.0.1/8']", 2,
         "[channels.webhook] allow, item 2", "a network such as", ""),
        ("[template_urls]\nallow = ['a b']", 2, "[template_urls] allow, item 1",
         "a network such as 10.0.0.0/8 or a host", ""),
        ("[channels.webhook]\nproxy = 'socks://x'", 2, "[channels.webhook] proxy",
         "such as http://", ""),
        ("[channels.amqp]\nurl = ['http://x']", 2, "[channels.amqp] url", "such as amqp://", ""),
        ("[[resource_types.command.programs]]\npath = 'bin/x'\nprojects = []", 2,
         "[[resource_types.command.programs]] 1, path", "an absolute path, such as", ""),
        ("[[resource_types.command.programs]]\npath = '/x'\nprojects = []\nfolders = ['x']", 4,
         "[[resource_types.command.programs]] 1, folders", "absolute paths, such as", ""),
        ("[resource_types.command]\nvariables = ['*']", 2, "[resource_types.command] variables",
         "such as DEPLOY_*", ""),
        ("[[subscriptions]]\nproject = 'a'\ntarget = 'b'\nname = 'a b'", 4,
         "[[subscriptions]] 1, name", "must be a name such as deploy-bot", ""),
        (f"{CHAT}ordered = false\ndigest = '20m'", 6,
         "[[subscriptions]] 1, digest", "is not a period", "15m, 1h, daily"),
        (f"{CHAT}ordered = false\nquiet_hours = {{from = '22:00', to = '7'}}", 6,
         "[[subscriptions.quiet_hours]] 1, to", "is not a time of day", ""),
        (f"{CHAT}ordered = false\nquiet_hours = {{from = '22:00', to = '07:00', day = 'mon'}}", 6,
         "[[subscriptions.quiet_hours]] 1, day", "is not a known key", "days"),
        (f"{CHAT}quiet_hours = {{from = '22:00', to = '07:00'}}", 5,
         "[[subscriptions.quiet_hours]]", "ordered deliveries", "Set ordered to false"),
        (f"{CHAT}ordered = false\nquiet_hours = {{from = '22:00', to = '07:00'}}".replace(
            "slack", "webhook"), 6,
         "[[subscriptions.quiet_hours]]", 'for the channel "webhook"', "Remove it"),
        ("[auth.keystone]\nroles = {member = ['boss']}", 2, "[auth.keystone.roles]",
         "must map to Headgate roles, such as", ""),
        ("[server]\nprocesses = 99999999", 2, "[server] processes", "1024", ""),
        # Rules over several settings.
        (f"{SLACK}users = [{{id = 'U0123456789', user = '{'a' * 32}'}}]\nteam = 'T1'", 1,
         "[channels.slack] signing_secret_file", "these users cannot answer", "remove the users"),
        (f"{SLACK}signing_secret_file = '/s'\nteam = 'T1'", 1,
         "[channels.slack] users", "no user of Slack may answer", "[[channels.slack.users]]"),
        (f"{SLACK}signing_secret_file = '/s'\nteam = 'T1'\n{KEYSTONE}username = 'x'\n"
         "password = 'y'\n[[channels.slack.users]]\nid = 'U0123456789'\nuser = 'ada'\n"
         "roles = ['approver']", 13, "[[channels.slack.users]] 1, user",
         'the ID of a user of Keystone, not "ada"', "openstack user show"),
        ("[auth]\nmode = 'keystone'", 2, "[auth] mode", "needs [auth.keystone] url, us",
         "Set them"),
        ("[auth.oidc]\nissuer = 'http://login.example.org'", 2, "[auth.oidc] issuer",
         "must be an https URL, except on loopback", "Use TLS"),
        (f"{OIDC}", 1, "[auth.oidc] client_id", "is missing", "Write the client ID"),
        (f"{OIDC}client_id = 'x'\nscopes = ['email']", 4, "[auth.oidc] scopes",
         'must contain "openid"', "Add"),
        (f"{OIDC}client_id = 'x'", 1, "[auth.oidc] grants", "no user has a role",
         "[[auth.oidc.grants]]"),
        (f"{OIDC}client_id = 'x'\n{OIDC_GRANT}roles = ['dba']", 6, "[[auth.oidc.grants]] 1, roles",
         "must contain a role of Headgate", ""),
        (f"{OIDC}client_id = 'x'\n{OIDC_GRANT}roles = ['reader']", 2, "[auth.oidc] issuer",
         "needs [auth] mode tokens, and the mode is none", "or remove [auth.oidc]"),
        (f"{OIDC}client_id = 'x'\n{OIDC_GRANT}roles = ['reader']\n[auth]\nmode = 'tokens'\n"
         "[server]\nlisten = '0.0.0.0:8004'", 9, "[server] public_url",
         "needs the URL at which browsers reach this server", "Set it"),
        ("[resource_types.openstack]\nenabled = true", 2, "[resource_types.openstack] enabled",
         "needs [auth] mode keystone, and the mode is none", "or enabled = false"),
        ("[resource_types.openstack.reader]\nsecret_file = '/s'", 1,
         "[resource_types.openstack.reader]", "belong together", "Set both of them, or none"),
        ("[resource_types.openstack.stack_users]\nusername = 'a'\ndomain_id = 'd'", 1,
         "[resource_types.openstack.stack_users]", "belong together", "Set all of them, or none"),
        (f"{KEYSTONE}username = 'headgate'", 2, "[auth] mode", "needs [auth.keystone] password",
         "Set them"),
        ("[server]\nkey_file = 'k.pem'", 2, "[server] key_file", "needs a certificate",
         "cert_file"),
        ("[hooks]\ndefault_timeout = '91d'", 2, "[hooks] default_timeout",
         "must not be longer than max_timeout", "at most 90d"),
        ("[hooks]\nmax_timeout = '1h'", 2, "[hooks] max_timeout",
         "must not be shorter than default_timeout", "at least 1d"),
        ("[channels.amqp]\nfirst_retry = '2m'", 2, "[channels.amqp] first_retry",
         "must not be longer than max_retry", "at most 1m"),
        (f"{CREDENTIAL}kind = 'basic'\nsecret = 's'", 1, "[resource_types.http.credentials.r]",
         "kind basic needs username", "Add"),
        (f"{CREDENTIAL}kind = 'bearer'", 1, "[resource_types.http.credentials.r]",
         "needs either secret or secret_file", "Add"),
        ("[resource_types.remote_stack.west]\nurl = 'http://x'\ncredential = 'c'", 3,
         "[resource_types.remote_stack.west] credential", "not in [resource_types.http.", "Add"),
        ("[[hooks.rules]]\non = ['pre-creat']", 2, "[[hooks.rules]] 1, on", '"pre-creat"',
         '"pre-create"'),
        (f"{RULE}at = 'a'\n{RULE}at = 'b'\nremind = 'x'", 7, "[[hooks.rules]] 2, remind",
         "not a valid time", "90s"),
        ("[[convergence.rules]]\nobserve = '10'", 2, "[[convergence.rules]] 1, observe",
         '"10" is not a duration', "10m"),
        ("[[convergence.rules]]\nwindow = { from = '1:00', to = '02:00' }", 2,
         "[[convergence.rules.window]]", '"1:00" is not a time of day', "22:00"),
        ("[[convergence.rules]]\nprojects = ['a']", 1, "[[convergence.rules]] 1, observe",
         "is missing", "Set observe, on_drift or ignore"),
        (f"{RULE}at = 'a'\nanswer_by = ['subscription:s']", 4, "[[hooks.rules]] 1, answer_by",
         'no [[subscriptions]] has the name "s"', "Correct the name"),
        ("[[subscriptions]]\nname = 's'\nproject = 'a'\ntarget = 'b'\n"
         "[[subscriptions]]\nname = 's'\nproject = 'a'\ntarget = 'b'", 6,
         "[[subscriptions]] 2, name", '"s" is used twice', "another name"),
        ("[engine]\nlabels = ['region=eu', 'eu']", 2, "[engine] labels", '"eu" is not a label',
         "such as region=eu"),
        ("[[engine.label_rules]]\nlabel = 'region'", 2, "[[engine.label_rules]] 1, label",
         "it has no =", "such as region=eu"),
        ("[engine]\nunlabelled = true", 2, "[engine] unlabelled", "no effect without labels",
         "Set labels"),
        ("[server]\nlisten = '0.0.0.0:80'", 2, "[server] listen", "loopback", "127.0.0.1"),
        ("[server]\ntrusted_proxies = ['127.0.0.1/32']", 2, "[server] trusted_proxies",
         "not allowed behind a proxy", "tokens"),
        ("[auth]\nmode = 'tokens'\n[metrics]\naddress = '10.0.0.1:9464'", 4, "[metrics] address",
         "without authentication", "127.0.0.1"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_reported_with_line_name_reason_and_remedy(
    tmp_path: Path, text: str, line: int, place: str, reason: str, remedy: str
) -> None:
    (finding,) = refused(text, tmp_path)
    assert finding.place == f"{tmp_path / 'headgate.toml'}, line {line}: {place}"
    assert reason in finding.reason
    assert remedy in finding.remedy
    assert finding.code == "InvalidSettings"


def sections(model: type[BaseModel], header: str = "") -> Iterator[tuple[str, type[BaseModel]]]:
    """Each section that has a header in a file, with its model."""
    for name, field in model.model_fields.items():
        below, origin = model_of(field.annotation), get_origin(field.annotation)
        if below is not None:
            named = f"{name}.NAME" if origin is Mapping else name
            text = f"{header}{named}"
            yield (f"[[{text}]]" if origin is tuple else f"[{text}]"), below
            yield from sections(below, f"{text}.")


INVALID_VALUES = (
    "0", "-1", "1.5", "inf", "nan", "true", "''", "'x'", "'\\t'", "'http://[::1'", "[]", "[5]",
    "['x']", "{}", "{ a = 5 }", "2026-01-01", f"'{'9' * 5000}'",
)  # fmt: skip


@pytest.mark.parametrize(
    ("header", "model"), dict(sections(Settings)).items(), ids=dict(sections(Settings))
)
def test_every_error_of_every_setting_has_a_line_and_a_remedy(
    tmp_path: Path, header: str, model: type[BaseModel]
) -> None:
    for name, value in itertools.product(model.model_fields, INVALID_VALUES):
        try:
            load(f"{header}\n{name} = {value}\n", tmp_path)
        except errors.Invalid as error:
            for one in error.findings:
                assert re.search(r"headgate\.toml, line [12]: \[", one.place), one
                assert one.remedy or "such as" in one.reason, one
                assert not re.match("Input|String|Value|is not valid", one.reason), one


@pytest.mark.parametrize(
    ("name", "value", "place", "reason", "remedy"),
    [
        ("SERVER__LISTN", "x", "SERVER__LISTN", "unknown setting", '"listen"'),
        ("SERVR__LISTEN", "x", "SERVR", "unknown setting", '"server"'),
        ("SERVER__LISTEN", "0.0.0.0:80", "SERVER__LISTEN", "loopback", "127.0.0.1"),
        ("ENGINE__BATCH", "geheim", "ENGINE__BATCH", "integer", "HEADGATE_ENGINE__BATCH=250"),
        ("ENGINE__LEASE", "geheim", "ENGINE__LEASE", "such as 90s", ""),
        ("AUTH__KEYSTONE__TRUSTS", "geheim", "AUTH__KEYSTONE__TRUSTS", "true or false",
         "HEADGATE_AUTH__KEYSTONE__TRUSTS=false"),
        ("CHANNELS__AMQP__ANSWERS", "", "CHANNELS__AMQP__ANSWERS", "1 character",
         "HEADGATE_CHANNELS__AMQP__ANSWERS=headgate.answers"),
        ("CHANNELS__WEBHOOK__ALLOW", "::1/128,geheim", "CHANNELS__WEBHOOK__ALLOW, item 2",
         "a network such as", ""),
        ("CHANNELS__WEBHOOK", "geheim", "CHANNELS__WEBHOOK", "a section",
         "HEADGATE_CHANNELS__WEBHOOK__NAME"),
        ("HOOKS__RULES", "geheim", "HOOKS__RULES", "must be a list", "[[hooks.rules]]"),
    ],
)  # fmt: skip
def test_an_invalid_variable_is_reported_by_its_name(
    tmp_path: Path, name: str, value: str, place: str, reason: str, remedy: str
) -> None:
    (finding,) = refused("", tmp_path, **{f"HEADGATE_{name}": value})
    assert finding.place == f"HEADGATE_{place}"
    assert reason in finding.reason
    assert remedy in finding.remedy
    assert "geheim" not in str(finding)


def test_an_invalid_option_is_reported_by_its_name() -> None:
    with pytest.raises(errors.Invalid) as caught:
        load_settings(None, {"server.listen": "here"}, environment={})
    assert str(caught.value) == "--listen: must be HOST:PORT, such as 127.0.0.1:8004"


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
    found = refused('[server]\nlistn = "x"\n[engine]\nbatch = 0\n', tmp_path)
    names = [finding.place.partition(": ")[2] for finding in found]
    assert sorted(names) == ["[engine] batch", "[server] listn"]


def test_invalid_toml_is_reported_with_file_and_line(tmp_path: Path) -> None:
    (finding,) = refused('[server]\nlisten = "127.0.0.1:1\n', tmp_path)
    assert finding.place.endswith("headgate.toml")
    assert "line 2" in finding.reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [("9" * 5_000, "digits"), ("[" * 2_000 + "]" * 2_000, "nested too deeply")],
    ids=["a long number", "nested lists"],
)
def test_toml_that_python_cannot_read_is_refused(tmp_path: Path, value: str, reason: str) -> None:
    (finding,) = refused(f"[server]\nprocesses = {value}\n", tmp_path)
    assert finding.place.endswith("headgate.toml") and reason in finding.reason
    assert len(finding.reason) < 300


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.Invalid, match=r"nowhere\.toml"):
        load_settings(tmp_path / "nowhere.toml", {}, environment={})


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "127.8.8.8:80", "[::1]:8004", "localhost:8004"])
def test_mode_none_is_accepted_on_loopback(listen: str) -> None:
    loaded = load_settings(None, {"server.listen": listen}, environment={})
    assert loaded.server.on_loopback


@pytest.mark.parametrize("listen", ["0.0.0.0:8004", "[::]:8004", "10.0.0.1:80", "example.org:80"])
def test_mode_none_is_refused_on_any_other_address(listen: str) -> None:
    with pytest.raises(errors.Invalid, match="loopback") as caught:
        load_settings(None, {"server.listen": listen}, environment={})
    assert caught.value.finding.place == "--listen"


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
def test_rules_cannot_name_users_whose_names_can_be_reissued(
    user: str, mode: str, refused: bool
) -> None:
    rule = {"on": ["pre-stack-create"], "answer_by": ["role:operator", f"user:{user}"]}
    overrides = {"auth.mode": mode, "hooks.rules": [rule]}
    if not refused:
        load_settings(None, overrides, environment={})
        return
    with pytest.raises(errors.Invalid, match=r"\[\[hooks.rules\]\] 1, answer_by") as caught:
        load_settings(None, overrides, environment={})
    assert f'"user:{user}@*"' in str(caught.value) and "headgate token list" in str(caught.value)


def test_public_metrics_need_loopback_or_an_explicit_setting() -> None:
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
def test_the_public_url_is_derived_unless_set(overrides: dict[str, str], url: str) -> None:
    assert load_settings(None, overrides, environment={}).server.base_url() == url


def test_the_url_contains_the_port_that_the_system_chose() -> None:
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


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgresql://a:geheim@h1,h2:x/db", "hosts or ports that cannot be read"),
        ("postgresql://a:geheim@h1,h2/db?port=1,2,3", "hosts or ports that cannot be read"),
        (
            "postgresql://a:geheim@h1,h2/db?target_session_attrs=standby",
            'target_session_attrs="standby", and Headgate writes to its database',
        ),
    ],
)
def test_a_database_url_without_a_primary_is_refused(url: str, reason: str) -> None:
    with pytest.raises(errors.Invalid, match=reason) as refused:
        load_settings(None, {"database.url": url}, environment={})
    assert refused.value.finding.place.startswith("[database] url")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "read_url", "reason"),
    [
        ("postgresql://h/db", "postgresql://a:geheim@h1,h2:x/db", "hosts or ports that cannot"),
        (
            "postgresql://h/db",
            "postgresql://a:geheim@h1/db?target_session_attrs=standby",
            "has target_session_attrs, and Headgate chooses the replicas itself",
        ),
        ("", "postgresql://a:geheim@h/db", "names replicas of an embedded database"),
    ],
)
def test_wrong_replicas_are_refused(url: str, read_url: str, reason: str) -> None:
    values = {"database.url": url, "database.read_url": read_url}
    with pytest.raises(errors.Invalid, match=reason) as refused:
        load_settings(None, values, environment={})
    assert refused.value.finding.place.startswith("[database] read_url")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"url": "postgresql://h/db", "pooler_url": "postgresql://a:geheim@h1:x/db"}, "ports that"),
        (
            {"url": "postgresql://h/db", "pooler_url": "postgresql://a:geheim@h1,h2/db"},
            "has several hosts, and Headgate connects to one pooler",
        ),
        ({"pooler_url": "postgresql://a:geheim@h/db"}, "names a pooler of an embedded database"),
    ],
)
def test_wrong_poolers_are_refused(values: dict[str, str], reason: str) -> None:
    named = {f"database.{name}": value for name, value in values.items()}
    with pytest.raises(errors.Invalid, match=reason) as refused:
        load_settings(None, named, environment={})
    assert refused.value.finding.place.startswith("[database] pooler_url")
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("password", ["geheim[", "geheim]", "geheim#", "geheim/", "geheim?"])
def test_a_password_with_a_special_character_is_to_be_percent_encoded(password: str) -> None:
    with pytest.raises(errors.Invalid, match="cannot be read") as refused:
        load_settings(None, {"database.url": f"postgresql://a:{password}@h/db"}, environment={})
    assert "percent-encode special characters" in refused.value.finding.remedy
    assert "geheim" not in str(refused.value)
    encoded = f"postgresql://a:{quote(password, safe='')}@h/db"
    loaded = load_settings(None, {"database.url": encoded}, environment={})
    assert loaded.database.url.get_secret_value() == encoded
