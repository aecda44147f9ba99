"""Every setting of headgate: its name, type, bounds and default. config.example.toml explains them.

`load_settings` reads a TOML file, then variables ``HEADGATE_SECTION__NAME``, then what the command
line says, each over the one before. Whatever is unknown or wrong is refused by name.
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
from engine.hooks.rule import Limits
from hub.setting_access import OPEN_MODES, Auth, Server
from hub.setting_language import Language
from hub.setting_operations import Log, Metrics, Retention, Tracing
from hub.setting_resource_types import ResourceTypes
from hub.setting_sources import finding, merged, nested, read_environment, read_file
from hub.setting_templates import Environment, TemplateUrls
from hub.setting_types import (
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
)

#: Where to look for what is wrong between two sections.
PLACES = {
    "open_door": ("server", "listen"),
    "no_certificate": ("server", "key_file"),
    "keystone": ("auth", "mode"),
}


class DatabaseSettings(Section):
    url: SecretStr = SecretStr("")
    data_dir: Path = Path("./headgate-data")
    binaries: str = ""
    pool: Annotated[Count, Field(ge=2, le=500)] = 10

    @property
    def programs(self) -> Path | None:
        """Where PostgreSQL's programs are; None: those that come with headgate."""
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
    """A breakpoint of the operator's own; see docs/how-to/guard-every-stack.md."""

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
        said = {"on": list(self.on), "mode": self.mode, "on_timeout": self.on_timeout}
        optional = {
            "timeout": self.timeout, "answer_by": list(self.answer_by), "exclude": self.exclude,
            "remind": self.remind, "at_most": self.at_most,
            "approvals": self.approvals if self.approvals > 1 else None, "when": self.when,
        }  # fmt: skip
        item = said | {name: value for name, value in optional.items() if value}
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
            said = rule.as_rule(f"[[hooks.rules]] {number}")
            read_operator_rule(said, findings, limits, None, always)
        for one in findings.all:
            raise PydanticCustomError("rule", f"{one.place}: {one.reason}. {one.remedy}")
        return self


class Webhook(Section):
    allow: Networks = ()
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
    """What is not said is as for every project."""

    template_bytes: Bytes | None = None
    resources_per_stack: Count | None = None
    stacks_per_project: Count | None = None
    resources_per_project: CountOrAny | None = None
    waiting_hooks_per_project: CountOrAny | None = None
    subscriptions_per_project: CountOrAny | None = None
    checks_per_day: CountOrAny | None = None
    snapshots_per_stack: Count | None = None


class Quotas(Section):
    template_bytes: Bytes = 524_288
    resources_per_stack: Count = 10_000
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
        """Those of a project, where it has its own."""
        own = self.projects.get(project)
        if own is None:
            return self
        return self.model_copy(update=own.model_dump(exclude_none=True))


class Credentials(Section):
    key_file: str = ""

    def path(self, data_dir: Path) -> Path:
        """Where the key is that credentials are sealed with."""
        return Path(self.key_file) if self.key_file else data_dir / "credentials.key"


class Settings(Section):
    """All settings, frozen. ``Settings()`` is the defaults; use `load_settings` for the rest."""

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
    credentials: Credentials = Credentials()
    template_urls: TemplateUrls = TemplateUrls()
    environment: Environment = Environment()
    metrics: Metrics = Metrics()
    log: Log = Log()
    tracing: Tracing = Tracing()

    @model_validator(mode="after")
    def _closed(self) -> Self:
        if self.auth.mode in OPEN_MODES and not self.server.on_loopback:
            raise PydanticCustomError(
                "open_door",
                "with [auth] mode none everybody may do everything, so it is refused on an address"
                " that is not loopback; listen on 127.0.0.1 or [::1]",
            )
        return self


def load_settings(
    path: Path | None,
    overrides: Mapping[str, Any],
    *,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the settings of a file (None: no file), of the environment, and of the command line.

    overrides: ``{"server.listen": "127.0.0.1:0"}``; None as a value says nothing.
    Raises Invalid with a finding for each unknown or wrong setting; never shows a value.
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
