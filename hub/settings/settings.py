"""All settings: names, types, bounds and defaults. config.example.toml explains them.

`load_settings` reads a TOML file, environment variables ``HEADGATE_SECTION__NAME`` and command-line
options; later sources override earlier ones. It rejects unknown and invalid settings by name.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from engine import errors
from engine.errors import Findings
from engine.hooks.operator import OperatorRule, always, read_operator_rule
from engine.hooks.rule import SUBSCRIPTION, Limits
from hub.auth.account_names import AT_EVERYWHERE, is_reissuable
from hub.settings.access import OPEN_MODES, Auth, Server
from hub.settings.language import Language
from hub.settings.operations import Audit, Log, Metrics, Retention, Tracing
from hub.settings.resource_types import ResourceTypes
from hub.settings.sources import finding, merged, nested, read_environment, read_file
from hub.settings.templates import Environment, TemplateUrls
from hub.settings.types import (
    Brokers,
    Bytes,
    Count,
    CountOrAny,
    Duration,
    Networks,
    ProxyUrl,
    Rate,
    Section,
    Texts,
    not_longer,
    on_loopback,
)

#: The place to report for each error that concerns two sections.
PLACES = {
    "open_door": ("server", "listen"),
    "open_proxy": ("server", "trusted_proxies"),
    "open_metrics": ("metrics", "address"),
    "no_certificate": ("server", "key_file"),
    "keystone": ("auth", "mode"),
    "subscription_name": ("subscriptions",),
    "reissuable_user": ("hooks", "rules"),
}


class DatabaseSettings(Section):
    url: SecretStr = SecretStr("")
    data_dir: Path = Path("./headgate-data")
    binaries: str = ""
    account: str = ""
    pool: Annotated[Count, Field(ge=2, le=500)] = 10

    @property
    def programs(self) -> Path | None:
        """The directory of the PostgreSQL programs; None: those that come with Headgate."""
        return Path(self.binaries) if self.binaries else None


class EngineSettings(Section):
    batch: Count = 250
    lanes: Count = 2
    lease: Duration = timedelta(seconds=30)
    poll: Duration = timedelta(seconds=5)
    operations: Count = 50
    drain: Duration = timedelta(seconds=20)
    action_retry_limit: Annotated[int, Field(ge=0, le=1000)] = 5
    first_retry: Duration = timedelta(seconds=1)
    max_retry: Duration = timedelta(minutes=1)
    constraint_timeout: Duration = timedelta(seconds=10)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        not_longer(self, "first_retry", "max_retry")
        return self


class GuardRule(Section):
    """An operator rule; see docs/how-to/guard-every-stack.md."""

    on: Texts
    at: str = ""
    projects: Texts = ("*",)
    types: Texts = ()
    mode: Literal["wait", "notify", "stop"] = "wait"
    timeout: str = ""
    on_timeout: Literal["stop", "continue", "reject"] = "stop"
    approvals: Annotated[int, Field(ge=1, le=100)] = 1
    answer_by: Texts = ()
    exclude: Literal["", "requester"] = ""
    remind: str = ""
    at_most: str = ""
    when: Any = None
    dry: bool = False

    def as_rule(self, place: str) -> OperatorRule:
        required = {"on": list(self.on), "mode": self.mode, "on_timeout": self.on_timeout}
        optional = {
            "timeout": self.timeout, "answer_by": list(self.answer_by), "exclude": self.exclude,
            "remind": self.remind, "at_most": self.at_most,
            "approvals": self.approvals if self.approvals > 1 else None, "when": self.when,
        }  # fmt: skip
        item = required | {name: value for name, value in optional.items() if value}
        return OperatorRule(self.projects, self.at, self.types, item, place, self.dry)


class Hooks(Section):
    rules: tuple[GuardRule, ...] = ()
    default_timeout: Duration = timedelta(hours=24)
    max_timeout: Duration = timedelta(days=90)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        not_longer(self, "default_timeout", "max_timeout")
        findings, limits = Findings(), Limits(self.default_timeout, self.max_timeout)
        for number, rule in enumerate(self.rules, start=1):
            read = rule.as_rule(f"[[hooks.rules]] {number}")
            read_operator_rule(read, findings, limits, None, always)
        for one in findings.all:
            raise PydanticCustomError("rule", f"{one.place}: {one.reason}. {one.remedy}")
        return self


class Webhook(Section):
    allow: Networks = ()
    operator_allow: Networks = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    proxy: ProxyUrl = SecretStr("")
    signing_key_file: str = ""
    connect_timeout: Duration = timedelta(seconds=5)
    timeout: Duration = timedelta(seconds=15)
    max_answer: Bytes = 65_536
    attempts: Count = 12
    first_retry: Duration = timedelta(seconds=1)
    max_retry: Duration = timedelta(minutes=15)
    concurrency: Count = 20
    rate: Rate = 0.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        not_longer(self, "connect_timeout", "timeout")
        not_longer(self, "first_retry", "max_retry")
        return self


class Amqp(Section):
    url: Brokers = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    exchanges: Texts = ("headgate", "headgate.*")
    heat_exchanges: Texts = ("heat",)
    answers: Annotated[str, Field(min_length=1, max_length=200)] = "headgate.answers"
    unrouted: Annotated[str, Field(min_length=1, max_length=200)] = "headgate.unrouted"
    unrouted_kept: Count = 10_000
    connect_timeout: Duration = timedelta(seconds=5)
    publish_timeout: Duration = timedelta(seconds=10)
    attempts: Count = 1500
    first_retry: Duration = timedelta(seconds=1)
    max_retry: Duration = timedelta(minutes=1)
    rate: Rate = 0.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        not_longer(self, "first_retry", "max_retry")
        return self


class Channels(Section):
    webhook: Webhook = Webhook()
    amqp: Amqp = Amqp()


class Subscription(Section):
    """name: for `answer_by` in rules, as ``subscription:NAME``."""

    name: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]{0,99})?$")] = ""
    project: Annotated[str, Field(min_length=1)]
    target: Annotated[str, Field(min_length=1)]
    channel: Annotated[str, Field(min_length=1)] = "webhook"
    events: Texts = ()
    stacks: Texts = ()
    resources: Texts = ()
    types: Texts = ()
    points: Texts = ()
    tags: Texts = ()
    nested: bool = True
    ordered: bool = True
    secret: SecretStr = SecretStr("")


class ProjectQuotas(Section):
    """Quotas of one project. None: the quota of all projects."""

    template_bytes: Bytes | None = None
    resources_per_stack: Count | None = None
    stacks_per_project: Count | None = None
    resources_per_project: CountOrAny | None = None
    waiting_hooks_per_project: CountOrAny | None = None
    subscriptions_per_project: CountOrAny | None = None
    checks_per_day: CountOrAny | None = None
    snapshots_per_stack: Count | None = None
    resource_bytes: Bytes | None = None


class Quotas(Section):
    template_bytes: Bytes = 524_288
    resources_per_stack: Count = 10_000
    resource_bytes: Bytes = 4_194_304
    stacks_per_project: Count = 512
    resources_per_project: CountOrAny = 0
    waiting_hooks_per_project: CountOrAny = 10_000
    subscriptions_per_project: CountOrAny = 200
    deliveries_per_subscription: CountOrAny = 100_000
    checks_per_day: CountOrAny = 0
    document_depth: Count = 64
    snapshots_per_stack: Count = 32
    signals_per_resource: Count = 1000
    signal_bytes: Bytes = 65_536
    projects: Mapping[str, ProjectQuotas] = {}

    def of(self, project: str) -> Self:
        """Return the quotas of a project, including its own."""
        own = self.projects.get(project)
        if own is None:
            return self
        return self.model_copy(update=own.model_dump(exclude_none=True))


class Credentials(Section):
    key_file: str = ""
    fallback_key_files: tuple[str, ...] = ()

    def path(self, data_dir: Path) -> Path:
        """The file of the encryption key."""
        return Path(self.key_file) if self.key_file else data_dir / "credentials.key"


class Settings(Section):
    """All settings, frozen. ``Settings()`` has the defaults; otherwise use `load_settings`."""

    server: Server = Server()
    database: DatabaseSettings = DatabaseSettings()
    auth: Auth = Auth()
    engine: EngineSettings = EngineSettings()
    hooks: Hooks = Hooks()
    channels: Channels = Channels()
    subscriptions: tuple[Subscription, ...] = ()
    resource_types: ResourceTypes = ResourceTypes()
    quotas: Quotas = Quotas()
    language: Language = Language()
    retention: Retention = Retention()
    audit: Audit = Audit()
    credentials: Credentials = Credentials()
    template_urls: TemplateUrls = TemplateUrls()
    environment: Environment = Environment()
    metrics: Metrics = Metrics()
    log: Log = Log()
    tracing: Tracing = Tracing()

    @model_validator(mode="after")
    def _names_known(self) -> Self:
        """Names of subscriptions are unique, and rules refer to existing ones."""
        names = [one.name for one in self.subscriptions if one.name]
        if len(set(names)) < len(names):
            twice = next(one for one in names if names.count(one) > 1)
            reason = f'[[subscriptions]] name "{twice}" is used twice'
            raise PydanticCustomError("subscription_name", "{reason}", {"reason": reason})
        for rule in self.hooks.rules:
            for entry in rule.answer_by:
                kind, _, name = entry.partition(":")
                if kind == SUBSCRIPTION and name not in names:
                    reason = f'[[hooks.rules]] answer_by names "{entry}", and no [[subscriptions]]'
                    reason += f' has the name "{name}"'
                    raise PydanticCustomError("subscription_name", "{reason}", {"reason": reason})
        return self

    @model_validator(mode="after")
    def _users_stay_the_same(self) -> Self:
        """Rules do not contain a user that an admin of a project can issue again."""
        if self.auth.mode != "tokens":
            return self
        for number, rule in enumerate(self.hooks.rules, start=1):
            for entry in rule.answer_by:
                kind, _, name = entry.partition(":")
                if kind == "user" and is_reissuable(name):
                    reason = (
                        f'[[hooks.rules]] {number} names "{entry}", a name that an admin of a'
                        " project can revoke and issue again in mode tokens; name"
                        f' "{entry}{AT_EVERYWHERE}", an account of every project, or "user:ID", a'
                        " token or password, by the ID that `headgate token list` shows"
                    )
                    raise PydanticCustomError("reissuable_user", "{reason}", {"reason": reason})
        return self

    @model_validator(mode="after")
    def _closed(self) -> Self:
        if self.auth.mode in OPEN_MODES and not self.server.on_loopback:
            raise PydanticCustomError(
                "open_door",
                "[auth] mode none gives every client full access and is allowed on loopback"
                " addresses only; listen on 127.0.0.1 or [::1], or use another mode",
            )
        if self.auth.mode in OPEN_MODES and self.server.trusted_proxies:
            raise PydanticCustomError(
                "open_proxy",
                "[auth] mode none gives every client full access and is not allowed behind a proxy,"
                " which forwards requests from other machines; set [auth] mode to tokens or"
                " keystone, or remove trusted_proxies",
            )
        if (
            self.metrics.address
            and not self.metrics.is_open_to_all
            and not on_loopback(self.metrics.address)
        ):
            raise PydanticCustomError(
                "open_metrics",
                "this address serves metrics without authentication and must be a loopback address;"
                " listen on 127.0.0.1 or [::1], or set [metrics] needs to"
                " nothing",
            )
        return self


def load_settings(
    path: Path | None,
    overrides: Mapping[str, Any],
    *,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the settings of a file (None: no file), the environment and the command line.

    overrides: ``{"server.listen": "127.0.0.1:0"}``; None values are ignored.
    Raises Invalid with a finding for each unknown or invalid setting. Findings contain no values.
    """
    layers = [
        *([read_file(path)] if path else []),
        read_environment(environment),
        nested(overrides),
    ]
    tree: Mapping[str, Any] = {}
    for layer in layers:
        tree = merged(tree, layer.tree)
    try:
        return Settings(**tree)
    except ValidationError as error:
        details = error.errors(include_url=False, include_context=False, include_input=False)
        for detail in details:
            detail["loc"] = PLACES.get(detail["type"], detail["loc"])
        raise errors.Invalid([finding(detail, layers, Settings) for detail in details]) from None
