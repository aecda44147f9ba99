"""All settings: names, types, bounds and defaults. config.example.toml explains them.

`load_settings` reads a TOML file, environment variables ``HEADGATE_SECTION__NAME`` and command-line
options; later sources override earlier ones. It rejects unknown and invalid settings by name.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from channels.digest import read_digest
from channels.email.relay import Encryption, is_email_address
from channels.quiet_hours import read_quiet_hours
from engine import errors
from engine.digest import Digest
from engine.errors import Findings
from engine.hooks.operator import OperatorRule, always, read_operator_rule
from engine.hooks.rule import SUBSCRIPTION, HookLimits
from engine.hot.functions.cost_budget import CostLimits
from engine.plan.convergence import (
    EVERY,
    HOLD,
    IGNORE,
    NEVER,
    OBSERVE,
    ON_DRIFT,
    REACTIONS,
    REPAIRS_PER_DAY,
    TOLERATE,
    WINDOW,
    OperatorPolicy,
    PolicyRules,
    read_section,
)
from engine.plan.labels import LabelRule
from engine.store.traversals.advance import UNLABELLED
from engine.weekly_window import WeeklyWindow
from hub.auth.identity import AT_EVERYWHERE, AT_OIDC, LOOKS_LIKE_ID, is_reissuable
from hub.auth.roles import Role
from hub.log import Style
from hub.settings.access import OPEN_MODES, Auth, ServerSection
from hub.settings.cells import CellDatabase, CellsSection
from hub.settings.database_urls import check_pooler, check_primary, check_replicas
from hub.settings.observer import ObserverSection
from hub.settings.resource_types import ResourceTypes
from hub.settings.sources import (
    Layer,
    check_regular,
    finding,
    merge,
    nest,
    read_environment,
    read_file,
)
from hub.settings.types import (
    Brokers,
    Bytes,
    Count,
    CountOrAny,
    Duration,
    DurationOrNone,
    LabelOrNone,
    Labels,
    Networks,
    OptionalListen,
    ProxyUrl,
    Rate,
    Reachables,
    Section,
    SlackUserId,
    SubscriptionName,
    Texts,
    Url,
    invalid,
    not_longer,
    on_loopback,
)


class Retention(Section):
    versions: Count = 20
    events: Duration = timedelta(days=90)
    deliveries: Duration = timedelta(days=90)
    hooks: Duration = timedelta(days=365)
    traversals: Duration = timedelta(days=365)
    idempotency_keys: Duration = timedelta(days=1)
    tokens: Duration = timedelta(days=90)
    deleted_stacks: Duration = timedelta(days=90)
    audit_logs: DurationOrNone = None
    usage: DurationOrNone = None
    every: Duration = timedelta(hours=1)


class Audit(Section):
    key_file: str = ""
    checkpoints_file: str = ""
    sign_every: Duration = timedelta(hours=1)

    def key_path(self, data_dir: Path) -> Path:
        """The file of the key that signs the audit log."""
        return Path(self.key_file) if self.key_file else data_dir / "audit.key"

    def checkpoints_path(self, data_dir: Path) -> Path:
        """The append-only file of signed checkpoints."""
        return Path(self.checkpoints_file or data_dir / "audit-checkpoints.jsonl")


class Log(Section):
    style: Style = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class MetricsSection(Section):
    needs: Literal["nothing", "monitor", "operate"] = "monitor"
    address: OptionalListen = ""

    @property
    def is_open_to_all(self) -> bool:
        return self.needs == "nothing"


class Tracing(Section):
    endpoint: Url = ""
    service: Annotated[str, Field(min_length=1)] = "headgate"
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    every: Duration = timedelta(seconds=5)


class Language(Section):
    """The cost budget of one template, and the maximum levels of nested stacks. strict: warnings
    about templates are errors.
    """

    strict: bool = False
    size: Annotated[Bytes, Field(ge=65_536, le=1_000_000_000)] = 16_777_216
    steps: Annotated[Count, Field(ge=1_000, le=10_000_000)] = 100_000
    yaql_elements: Annotated[Count, Field(le=100_000)] = 200
    yaql_bytes: Annotated[Bytes, Field(ge=1_000, le=1_000_000)] = 10_000
    nesting_depth: Annotated[Count, Field(le=32)] = 7

    def limits(self) -> CostLimits:
        return CostLimits(self.size, self.steps, self.yaql_elements, self.yaql_bytes)


class TemplateUrls(Section):
    allow: Reachables = ()
    timeout: Duration = timedelta(seconds=10)


class EnvironmentSection(Section):
    directory: str = ""


#: The command-line options that override settings.
OPTIONS = {
    "server.listen": "--listen",
    "server.processes": "--processes",
    "database.data_dir": "--data-dir",
}


def _beside_server(url: SecretStr, what: str, server: str, others: ValidationInfo) -> SecretStr:
    """The URL of what stands beside the server of [database] url. Raises an error of pydantic if
    there is no such server."""
    named = others.data.get("url")  # None: it is invalid
    if url.get_secret_value() and named is not None and not named.get_secret_value():
        raise invalid(
            f"names {what} of an embedded database, which has none",
            f"Name the {server} in [database] url, or leave {others.field_name} empty",
        )
    return url


class DatabaseSettings(Section):
    url: SecretStr = SecretStr("")
    pooler_url: SecretStr = SecretStr("")
    read_url: SecretStr = SecretStr("")
    read_lag: Duration = timedelta(seconds=1)
    data_dir: Path = Path("./headgate-data")
    binaries: str = ""
    account: str = ""
    pool: Annotated[Count, Field(ge=2, le=500)] = 10

    @field_validator("url")
    @classmethod
    def _check_primary(cls, url: SecretStr) -> SecretStr:
        return check_primary(url)

    @field_validator("pooler_url")
    @classmethod
    def _check_pooler(cls, url: SecretStr, others: ValidationInfo) -> SecretStr:
        return _beside_server(check_pooler(url), "a pooler", "PostgreSQL server", others)

    @field_validator("read_url")
    @classmethod
    def _check_replicas(cls, url: SecretStr, others: ValidationInfo) -> SecretStr:
        return _beside_server(check_replicas(url), "replicas", "primary", others)

    @property
    def programs(self) -> Path | None:
        """The directory of the PostgreSQL programs; None: those that come with Headgate."""
        return Path(self.binaries) if self.binaries else None


class LabelRuleSection(Section):
    """Which resources have a label; see docs/how-to/run-at-scale.md. label: "": they have none.
    on_request: only those for which the environment of the stack requests it."""

    label: LabelOrNone
    projects: Texts = ("*",)
    types: Texts = ()
    resources: Texts = ()
    on_request: bool = False

    @model_validator(mode="after")
    def _check_request(self) -> Self:
        if self.on_request and not self.label:
            reason = "has no effect without a label: an environment requests it by its name"
            raise invalid(reason, "Set label, or remove it", "on_request")
        return self

    def as_rule(self) -> LabelRule:
        return LabelRule(self.label, self.projects, self.types, self.resources, self.on_request)


class EngineSettings(Section):
    batch: Count = 250
    workers: Count = 2
    lease: Duration = timedelta(seconds=30)
    poll: Duration = timedelta(seconds=5)
    operations: Count = 50
    drain: Duration = timedelta(seconds=20)
    action_retry_limit: Annotated[int, Field(ge=0, le=1000)] = 5
    first_retry: Duration = timedelta(seconds=1)
    max_retry: Duration = timedelta(minutes=1)
    constraint_timeout: Duration = timedelta(seconds=10)
    labels: Labels = ()
    unlabelled: bool = False
    label_rules: tuple[LabelRuleSection, ...] = ()

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        not_longer(self, "first_retry", "max_retry")
        return self

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        if self.unlabelled and not self.labels:
            reason = "has no effect without labels: such workers execute what has no label"
            raise invalid(reason, "Set labels, or remove it", "unlabelled")
        return self

    @property
    def worker_labels(self) -> Sequence[str]:
        """The labels of the workers of this process, as the store has them."""
        if not self.labels:
            return UNLABELLED
        return [*UNLABELLED, *self.labels] if self.unlabelled else self.labels


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
    patch: bool = False
    watch: bool = False
    when: Any = None
    dry: bool = False
    nested: bool = False

    @model_validator(mode="after")
    def _check_nested(self) -> Self:
        if self.nested and self.at:
            reason = "is for rules of the whole stack: a rule with `at` applies on every level"
            raise invalid(reason, "Leave out `nested`, or `at`", "nested")
        return self

    def as_rule(self, place: str) -> OperatorRule:
        required = {"on": list(self.on), "mode": self.mode, "on_timeout": self.on_timeout}
        optional = {
            "timeout": self.timeout, "answer_by": list(self.answer_by), "exclude": self.exclude,
            "remind": self.remind, "at_most": self.at_most,
            "approvals": self.approvals if self.approvals > 1 else None, "when": self.when,
            "patch": self.patch, "watch": self.watch,
        }  # fmt: skip
        item = required | {name: value for name, value in optional.items() if value}
        return OperatorRule(self.projects, self.at, self.types, item, place, self.dry, self.nested)


class HooksSection(Section):
    rules: tuple[GuardRule, ...] = ()
    default_timeout: Duration = timedelta(hours=24)
    max_timeout: Duration = timedelta(days=90)
    watch_every: Duration = timedelta(minutes=1)

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        not_longer(self, "default_timeout", "max_timeout")
        findings, limits = Findings(), HookLimits(self.default_timeout, self.max_timeout)
        for number, rule in enumerate(self.rules):
            read_operator_rule(rule.as_rule(f"{number}"), findings, limits, None, always)
        for one in findings.all:
            index, _, key = one.place.partition(".")
            raise invalid(one.reason, one.remedy, "rules", int(index), *filter(None, [key]))
        return self

    def operator_rules(self) -> list[OperatorRule]:
        return [
            rule.as_rule(f"[[hooks.rules]] {number}")
            for number, rule in enumerate(self.rules, start=1)
        ]


class PolicyRule(Section):
    """A rule of convergence policies. None: the rule does not set it."""

    projects: Texts = ("*",)
    observe: str | None = None
    on_drift: Literal["ignore", "notify", "hold", "repair"] | None = None
    ignore: Mapping[str, Texts] | None = None
    tolerate: str | None = None
    repairs_per_day: Count | None = None
    window: Mapping[str, Any] | None = None
    hold: Mapping[str, Any] | None = None

    def as_policy(self, place: str) -> OperatorPolicy:
        section: dict[str, Any] = {}
        if self.observe is not None:
            section[OBSERVE] = NEVER if self.observe == NEVER else {EVERY: self.observe}
        if self.ignore is not None:
            section[IGNORE] = {name: list(paths) for name, paths in self.ignore.items()}
        for key in (ON_DRIFT, TOLERATE, REPAIRS_PER_DAY, WINDOW, HOLD):
            if getattr(self, key) is not None:
                section[key] = getattr(self, key)
        return OperatorPolicy(self.projects, section, place)


class Convergence(Section):
    min_interval: Duration = timedelta(minutes=1)
    rules: tuple[PolicyRule, ...] = ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        findings = Findings()
        for number, rule in enumerate(self.rules):
            section = rule.as_policy("").section
            if not section:
                raise invalid(
                    "is missing", "Set observe, on_drift or ignore", "rules", number, OBSERVE
                )
            read_section(section, f"{number}", findings)
            if section.get(OBSERVE) == NEVER and rule.on_drift in REACTIONS:
                reason = f"is {rule.on_drift}, but observe is never"
                findings.add(f"{number}.{ON_DRIFT}", reason, "Set an interval, or remove it")
        for one in findings.all:
            index, key, *_ = one.place.split(".")
            raise invalid(one.reason, one.remedy, "rules", int(index), key)
        return self

    def policies(self) -> PolicyRules:
        rules = [
            rule.as_policy(f"[[convergence.rules]] {number}")
            for number, rule in enumerate(self.rules, start=1)
        ]
        return PolicyRules(rules, self.min_interval)


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
    max_response: Bytes = 65_536
    attempts: Count = 12
    first_retry: Duration = timedelta(seconds=1)
    max_retry: Duration = timedelta(minutes=15)
    concurrency: Count = 20
    rate: Rate = 0.0

    @model_validator(mode="after")
    def _check_order(self) -> Self:
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
    def _check_order(self) -> Self:
        not_longer(self, "first_retry", "max_retry")
        return self


class Email(Section):
    """The SMTP relay of the channel "email". host: empty: the server has no such channel."""

    host: str = ""
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    encryption: Encryption = Encryption.STARTTLS
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    username: str = ""
    password_file: str = ""
    sender: str = ""
    recipients: Texts = ()
    timeout: Duration = timedelta(seconds=15)
    attempts: Count = 12
    first_retry: Duration = timedelta(seconds=10)
    max_retry: Duration = timedelta(minutes=15)
    rate: Rate = 0.0

    @model_validator(mode="after")
    def _check_relay(self) -> Self:
        not_longer(self, "first_retry", "max_retry")
        if self.host and not is_email_address(self.sender):
            remedy = "Write the address from which e-mails come, such as headgate@example.org"
            raise invalid("must be an e-mail address if host is set", remedy, "sender")
        if bool(self.username) != bool(self.password_file):
            reason = "username and password_file belong together"
            raise invalid(reason, "Set both, or none", "username")
        if self.username and self.encryption is Encryption.NONE:
            reason = "would send the password of the relay without encryption"
            raise invalid(
                reason, "Use starttls or tls, or a relay without a password", "encryption"
            )
        return self


class SlackUserSection(Section):
    """A user of Slack, and the user of Headgate for whom that user answers hooks."""

    id: SlackUserId
    user: Annotated[str, Field(min_length=1)]
    domain: str = "default"
    roles: Texts = ()
    projects: Texts = ("*",)


class Slack(Section):
    """Answers by buttons in Slack. signing_secret_file: empty: messages have no such buttons."""

    signing_secret_file: str = ""
    team: str = ""
    hosts: Texts = ("hooks.slack.com",)
    users: tuple[SlackUserSection, ...] = ()

    @model_validator(mode="after")
    def _check_app(self) -> Self:
        if self.signing_secret_file and not self.team:
            remedy = "Write the ID of the workspace whose users answer hooks, such as T0123456789"
            raise invalid("is missing, because signing_secret_file is set", remedy, "team")
        if self.signing_secret_file and not self.users:
            remedy = "Add a section [[channels.slack.users]], or leave signing_secret_file empty"
            raise invalid("is missing, so that no user of Slack may answer", remedy, "users")
        if self.users and not self.signing_secret_file:
            remedy = "Write the signing secret of the app into a file, or remove the users"
            reason = "is missing, so that these users cannot answer"
            raise invalid(reason, remedy, "signing_secret_file")
        known: set[str] = set()
        for number, one in enumerate(self.users):
            if one.id in known:
                reason = f"{one.id} is used twice"
                raise invalid(reason, "Remove one of them", "users", number, "id")
            known.add(one.id)
        return self


class AppriseSection(Section):
    """The services of the channel "apprise". services_file: empty: the server has no such channel.
    targets: globs on the names that subscriptions of projects may use."""

    services_file: str = ""
    targets: Texts = ()


class Channels(Section):
    webhook: Webhook = Webhook()
    apprise: AppriseSection = AppriseSection()
    slack: Slack = Slack()
    amqp: Amqp = Amqp()
    email: Email = Email()


class Subscription(Section):
    """A subscription of the operator. name: for `answer_by` in rules, as ``subscription:NAME``."""

    name: SubscriptionName = ""
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
    quiet_hours: Mapping[str, Any] = {}
    digest: Any = ""
    secret: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _check_quiet_hours(self) -> Self:
        findings = Findings()
        self.quiet_window(findings)
        self.parsed_digest(findings)
        for one in findings.all:
            raise invalid(one.reason, one.remedy, *one.place.split("."))
        return self

    def quiet_window(self, findings: Findings) -> WeeklyWindow | None:
        value = self.quiet_hours or None
        return read_quiet_hours(value, "quiet_hours", self.channel, findings, ordered=self.ordered)

    def parsed_digest(self, findings: Findings) -> Digest | None:
        value = self.digest or None
        return read_digest(value, "digest", self.channel, findings, ordered=self.ordered)


class ProjectQuotas(Section):
    """Quotas of one project. None: the quota of all projects."""

    template_bytes: Bytes | None = None
    resources_per_stack: Count | None = None
    stacks_per_project: Count | None = None
    resources_per_project: CountOrAny | None = None
    waiting_hooks_per_project: CountOrAny | None = None
    subscriptions_per_project: CountOrAny | None = None
    checks_per_day: CountOrAny | None = None
    observations_per_day: CountOrAny | None = None
    repairs_per_day: CountOrAny | None = None
    snapshots_per_stack: Count | None = None
    resource_bytes: Bytes | None = None


class QuotasSection(Section):
    template_bytes: Bytes = 524_288
    resources_per_stack: Count = 10_000
    resource_bytes: Bytes = 4_194_304
    stacks_per_project: Count = 512
    resources_per_project: CountOrAny = 0
    waiting_hooks_per_project: CountOrAny = 10_000
    subscriptions_per_project: CountOrAny = 200
    deliveries_per_subscription: CountOrAny = 100_000
    checks_per_day: CountOrAny = 0
    observations_per_day: CountOrAny = 0
    repairs_per_day: CountOrAny = 0
    document_depth: Count = 64
    snapshots_per_stack: Count = 32
    signals_per_resource: Count = 1000
    signal_bytes: Bytes = 65_536
    projects: Mapping[str, ProjectQuotas] = {}

    def for_project(self, project: str) -> Self:
        """Return the quotas of a project, including its own."""
        own = self.projects.get(project)
        if own is None:
            return self
        return self.model_copy(update=own.model_dump(exclude_none=True))


class CredentialsSection(Section):
    key_file: str = ""
    fallback_key_files: Texts = ()

    def path(self, data_dir: Path) -> Path:
        """The file of the encryption key."""
        return Path(self.key_file) if self.key_file else data_dir / "credentials.key"


class Settings(Section):
    """All settings, frozen. ``Settings()`` has the defaults; otherwise use `load_settings`."""

    server: ServerSection = ServerSection()
    database: DatabaseSettings = DatabaseSettings()
    cells: CellsSection = CellsSection()
    auth: Auth = Auth()
    engine: EngineSettings = EngineSettings()
    hooks: HooksSection = HooksSection()
    convergence: Convergence = Convergence()
    observer: ObserverSection = ObserverSection()
    channels: Channels = Channels()
    subscriptions: tuple[Subscription, ...] = ()
    resource_types: ResourceTypes = ResourceTypes()
    quotas: QuotasSection = QuotasSection()
    language: Language = Language()
    retention: Retention = Retention()
    audit: Audit = Audit()
    credentials: CredentialsSection = CredentialsSection()
    template_urls: TemplateUrls = TemplateUrls()
    environment: EnvironmentSection = EnvironmentSection()
    metrics: MetricsSection = MetricsSection()
    log: Log = Log()
    tracing: Tracing = Tracing()

    @property
    def key_files(self) -> list[Path]:
        """Files with keys and secrets: of the server, then those that a setting names."""
        webhook, amqp, http = self.channels.webhook, self.channels.amqp, self.resource_types.http
        named = [webhook.signing_key_file, webhook.key_file, amqp.key_file, self.server.key_file]
        named += [self.observer.amqp.key_file, http.key_file]
        email = self.channels.email
        named += [email.password_file, email.key_file, self.channels.slack.signing_secret_file]
        named += [one.secret_file for one in http.credentials.values()]
        named.append(self.resource_types.openstack.reader.secret_file)
        named += self.credentials.fallback_key_files
        directory = self.database.data_dir
        own = [self.credentials.path(directory), self.audit.key_path(directory)]
        return [*own, *map(Path, filter(None, named))]

    def of_cell(self, cell: CellDatabase) -> Self:
        """The settings with the database of a cell."""
        urls = {"url": cell.url, "pooler_url": cell.pooler_url, "read_url": cell.read_url}
        return self.model_copy(update={"database": self.database.model_copy(update=urls)})

    @model_validator(mode="after")
    def _check_cells(self) -> Self:
        """What processes that serve cells cannot have."""
        if not self.cells.databases:
            return self
        if self.database.url.get_secret_value():
            raise invalid(
                "is set together with [cells]",
                "Leave it empty for processes that serve cells; engines and dispatchers of a cell"
                " have it, and no [cells]",
                *("database", "url"),
            )
        return self

    @model_validator(mode="after")
    def _check_subscription_names(self) -> Self:
        """Names of subscriptions are unique, and rules refer to existing ones."""
        names: set[str] = set()
        for number, one in enumerate(self.subscriptions):
            if one.name in names:
                reason = f'"{one.name}" is used twice'
                raise invalid(reason, "Choose another name", "subscriptions", number, "name")
            names |= {one.name} - {""}
        for kind, name, place in self._approvers():
            if kind == SUBSCRIPTION and name not in names:
                reason = f'no [[subscriptions]] has the name "{name}"'
                raise invalid(reason, "Correct the name, or add the subscription", *place)
        return self

    @model_validator(mode="after")
    def _check_openstack(self) -> Self:
        """The types of OpenStack act with the tokens of Keystone."""
        if self.resource_types.openstack.enabled and self.auth.mode != "keystone":
            raise invalid(
                f"needs [auth] mode keystone, and the mode is {self.auth.mode}",
                "Set [auth] mode = \"keystone\", or enabled = false",
                "resource_types", "openstack", "enabled",
            )  # fmt: skip
        return self

    @model_validator(mode="after")
    def _check_reissuable_users(self) -> Self:
        """Rules do not contain a user that an admin of a project can issue again."""
        for kind, name, place in self._approvers() if self.auth.mode == "tokens" else ():
            if kind == "user" and is_reissuable(name):
                raise invalid(
                    f'in mode tokens, an admin of a project can revoke "user:{name}" and issue the'
                    " name again",
                    f'Write "user:{name}{AT_EVERYWHERE}", an account of every project, or'
                    ' "user:ID", a token or password by the ID that `headgate token list` shows',
                    *place,
                )
        return self

    @model_validator(mode="after")
    def _check_slack_users(self) -> Self:
        """Headgate knows the roles of users in mode tokens; otherwise, the settings have them."""
        for number, one in enumerate(self.channels.slack.users):
            place = ("channels", "slack", "users", number)
            roles = set(one.roles) & set(Role)
            if self.auth.mode != "tokens":
                if not roles:
                    reason = f"needs a role of Headgate in mode {self.auth.mode}"
                    raise invalid(reason, 'Write ["approver"]', *place, "roles")
                if self.auth.mode == "keystone" and not LOOKS_LIKE_ID.fullmatch(one.user):
                    reason = f'must be the ID of a user of Keystone, not "{one.user}"'
                    remedy = "Write the ID that `openstack user show NAME` shows"
                    raise invalid(reason, remedy, *place, "user")
                continue
            if one.roles:
                reason = "is not possible in mode tokens: the roles of the user apply"
                raise invalid(reason, "Remove it", *place, "roles")
            if is_reissuable(one.user):
                raise invalid(
                    f'in mode tokens, an admin of a project can revoke "{one.user}" and issue the'
                    " name again",
                    f'Write "{one.user}{AT_EVERYWHERE}", an account of every project,'
                    f' "{one.user}{AT_OIDC}", or the ID that `headgate token list` shows',
                    *place, "user",
                )  # fmt: skip
        return self

    def _approvers(self) -> Iterator[tuple[str, str, tuple[str | int, ...]]]:
        """Kind, name and place of each entry of `answer_by` in rules."""
        for number, rule in enumerate(self.hooks.rules):
            for entry in rule.answer_by:
                kind, _, name = entry.partition(":")
                yield kind, name, ("hooks", "rules", number, "answer_by")

    @model_validator(mode="after")
    def _check_sign_in_address(self) -> Self:
        """The OpenID provider sends browsers back to a URL that is registered there."""
        if self.auth.oidc.issuer and not (self.server.public_url or self.server.on_loopback):
            raise invalid(
                "is missing; [auth.oidc] needs the URL at which browsers reach this server",
                'Set it, for example "https://headgate.example.org"',
                *("server", "public_url"),
            )
        return self

    @model_validator(mode="after")
    def _check_open_addresses(self) -> Self:
        """Without authentication, only this machine can connect."""
        if self.auth.mode in OPEN_MODES and not self.server.on_loopback:
            raise invalid(
                "[auth] mode none gives every client full access and is allowed on loopback"
                " addresses only",
                "Listen on 127.0.0.1 or [::1], or use another mode",
                *("server", "listen"),
            )
        if self.auth.mode in OPEN_MODES and self.server.trusted_proxies:
            raise invalid(
                "[auth] mode none gives every client full access and is not allowed behind a proxy,"
                " which forwards requests from other machines",
                "Set [auth] mode to tokens or keystone, or remove trusted_proxies",
                *("server", "trusted_proxies"),
            )
        address = self.metrics.address
        if address and not self.metrics.is_open_to_all and not on_loopback(address):
            raise invalid(
                "this address serves metrics without authentication and must be a loopback address",
                "Listen on 127.0.0.1 or [::1], or set [metrics] needs to nothing",
                *("metrics", "address"),
            )
        return self


def with_sections(settings: Settings, sections: Mapping[str, Section]) -> Settings:
    """Settings with other valid sections, by name. Raises Invalid if what sections require of each
    other is not so."""
    values = {name: getattr(settings, name) for name in Settings.model_fields}
    try:
        return Settings(**{**values, **sections})
    except ValidationError as error:
        raise _invalid(error, []) from None


def load_settings(
    path: Path | None,
    overrides: Mapping[str, Any],
    *,
    environment: Mapping[str, str] = os.environ,
) -> Settings:
    """Read the settings of a file (None: no file), the environment and the command line.

    overrides: ``{"server.listen": "127.0.0.1:0"}``; None values are ignored.
    Raises Invalid with a finding for each unknown or invalid setting. Findings contain no secrets.
    """
    layers = [
        *([read_file(path)] if path else []),
        read_environment(environment),
        Layer(nest(overrides), options=OPTIONS),
    ]
    tree: Mapping[str, Any] = {}
    for layer in layers:
        tree = merge(tree, layer.tree)
    try:
        return Settings(**tree)
    except ValidationError as error:
        raise _invalid(error, layers) from None


def reload_settings(path: Path | None, overrides: Mapping[str, Any]) -> Settings:
    """As `load_settings`, in a server that works. Raises Invalid also if the file is no regular one
    any more, because reading it could block the server."""
    if path is not None:
        check_regular(path)
    return load_settings(path, overrides)


def _invalid(error: ValidationError, layers: Sequence[Layer]) -> errors.Invalid:
    details = error.errors(include_url=False, include_input=False)
    return errors.Invalid([finding(one, layers, Settings) for one in details])
