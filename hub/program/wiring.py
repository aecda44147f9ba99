"""Converts the settings to the parameters of the program's parts."""

import base64
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid5

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from channels.amqp.broker import BrokerSettings
from channels.amqp.connection import ConnectionSettings
from channels.amqp.notification_listener import ListenerSettings
from channels.amqp.provider_notifications import OPENSTACK, NotificationRule
from channels.apprise.services import Service, read_services
from channels.chat.channel import FORMS
from channels.dispatcher import DispatcherSettings
from channels.email.relay import EmailSettings
from channels.retry import RetryPolicy
from channels.selection import Selection
from channels.store.records import NewSubscription, Origin
from channels.webhook.client import WebhookSettings
from engine.errors import Findings, Unavailable
from engine.hooks.rule import HookLimits
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.hot.syntax.document import max_nodes_for
from engine.plan.labels import LabelRules
from engine.service import Limits
from engine.service.requests.quotas import Quotas
from engine.store.access.password_lockout import PLACE_KNOWN
from engine.store.database import Database
from engine.store.encryption.secret_values import KEY_BYTES, Keyring
from engine.store.maintenance.retention import KINDS
from engine.work.nodes.operation_call import OperationRetries
from engine.work.nodes.worker import WorkerSettings
from engine.work.observer.provider_endpoints import RequestRates
from engine.work.purge import Ages
from hub.auth.gatekeeper import RequestLimits
from hub.auth.request_counts import RequestCounts
from hub.auth.sessions import Sessions
from hub.http.outbound import tls_context
from hub.keys.key_files import read_fallback_key, read_key
from hub.program.operator_environment import read_operator_environment
from hub.program.process_slot import ProcessSlot
from hub.settings.observer import NotificationBroker, ObserverSection
from hub.settings.settings import Amqp, AppriseSection, Email, Retention, Settings, Webhook
from hub.settings.settings import QuotasSection as QuotaSettings

#: The namespace of the IDs of configured subscriptions, which are derived from their settings.
_CONFIGURED = UUID("6f1f4a0e-51b7-4a3c-9d0c-1f2f5a8f7a10")


def new_secret() -> str:
    """A secret in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def make_keyring(settings: Settings) -> Keyring:
    """Raises Unavailable."""
    key_file = settings.credentials.path(settings.database.data_dir)
    key = read_key(key_file, secrets.token_bytes(KEY_BYTES))
    fallbacks = [read_fallback_key(Path(one)) for one in settings.credentials.fallback_key_files]
    return Keyring(key, random_bytes=secrets.token_bytes, fallbacks=fallbacks)


def make_request_limits(
    settings: Settings,
    slot: ProcessSlot = ProcessSlot(),  # noqa: B008  frozen
) -> RequestLimits:
    auth, server = settings.auth, settings.server
    return RequestLimits(
        by_address=server.requests_per_address,
        by_token=server.requests_per_token,
        unknown_ids=server.unknown_ids_per_user,
        failures=auth.failures,
        lockout=auth.lockout.total_seconds(),
        counts=slot.counts or RequestCounts(),
    )


def make_sessions(settings: Settings, database: Database) -> Sessions:
    return Sessions(
        database,
        mode=settings.auth.mode,
        lasts=settings.auth.session,
        random_bytes=secrets.token_bytes,
    )


def make_limits(settings: Settings) -> Limits:
    """Raises Invalid if the operator's environment is invalid."""
    usual = _limits(settings, settings.quotas)
    environment = read_operator_environment(settings.environment.directory, usual.source)
    own = {
        name: replace(_limits(settings, settings.quotas.for_project(name)), environment=environment)
        for name in settings.quotas.projects
    }
    return replace(usual, environment=environment, projects=own)


def _limits(settings: Settings, quotas: QuotaSettings) -> Limits:
    return Limits(
        source=SourceLimits(
            max_bytes=quotas.template_bytes,
            max_depth=quotas.document_depth,
            max_nodes=max_nodes_for(quotas.resources_per_stack),
        ),
        hooks=HookLimits(settings.hooks.default_timeout, settings.hooks.max_timeout),
        language=settings.language.limits(),
        nesting_depth=settings.language.nesting_depth,
        deletes_nested=settings.server.delete_nested_stacks,
        strict=settings.language.strict,
        resources=quotas.resources_per_stack,
        versions=settings.retention.versions,
        snapshots=quotas.snapshots_per_stack,
        signals=quotas.signals_per_resource,
        signal_bytes=quotas.signal_bytes,
        resource_bytes=quotas.resource_bytes,
        constraint_timeout=settings.engine.constraint_timeout,
        operator=settings.hooks.operator_rules(),
        convergence=settings.convergence.policies(),
        region=settings.resource_types.openstack.region,
        labels=LabelRules([one.as_rule() for one in settings.engine.label_rules]),
        quotas=Quotas(
            stacks_per_project=quotas.stacks_per_project,
            resources_per_project=quotas.resources_per_project,
            waiting_hooks_per_project=quotas.waiting_hooks_per_project,
            checks_per_day=quotas.checks_per_day,
            observations_per_day=quotas.observations_per_day,
            repairs_per_day=quotas.repairs_per_day,
            subscriptions_per_project=quotas.subscriptions_per_project,
        ),
    )


def ages(retention: Retention, older_than: timedelta | None = None) -> Ages:
    """The maximum age of records by kind; expired credentials for observations are kept as long as
    tokens. older_than: overrides the settings, except those of audit logs and usage."""
    kept_forever = {"audit_logs": retention.audit_logs, "usage": retention.usage}
    configured = retention.model_dump(include=set(KINDS), exclude=set(kept_forever))
    kept = {kind: older_than or age for kind, age in configured.items()}
    over = {
        "sessions": timedelta(0),
        "sign_in_places": PLACE_KNOWN,
        "observation_credentials": kept["tokens"],
    }
    return kept | over | {kind: age for kind, age in kept_forever.items() if age}


def worker_settings(settings: Settings) -> WorkerSettings:
    engine = settings.engine
    return WorkerSettings(
        batch=engine.batch,
        workers=engine.workers,
        lease=engine.lease,
        poll=engine.poll,
        operations=engine.operations,
        drain=engine.drain,
        default_timeout=settings.hooks.default_timeout,
        retrying=OperationRetries(
            limit=engine.action_retry_limit,
            first=engine.first_retry,
            max_pause=engine.max_retry,
            random=random.SystemRandom().random,
        ),
        labels=engine.worker_labels,
    )


def signing_key(file: str) -> Ed25519PrivateKey | None:
    """None: no key is configured. Raises Unavailable."""
    if not file:
        return None
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _no_key(file, str(error)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(file, "it is a key of another type")
    return key


def _no_key(file: str, why: str) -> Unavailable:
    return Unavailable(
        f"{file} contains no signing key: {why}",
        place="[channels.webhook] signing_key_file",
        remedy="Create one with `openssl genpkey -algorithm ed25519`, without a passphrase.",
    )


def webhook_settings(webhook: Webhook) -> WebhookSettings:
    return WebhookSettings(
        allow=tuple(webhook.allow),
        operator_allow=tuple(webhook.operator_allow),
        connect_timeout=webhook.connect_timeout.total_seconds(),
        timeout=webhook.timeout.total_seconds(),
        max_response=webhook.max_response,
        tls=tls_context(webhook, "[channels.webhook]"),
        proxy=webhook.proxy.get_secret_value(),
        key=signing_key(webhook.signing_key_file),
    )


def email_settings(email: Email) -> EmailSettings | None:
    """None: no relay is configured. Raises Unavailable."""
    if not email.host:
        return None
    return EmailSettings(
        host=email.host,
        port=email.port,
        sender=email.sender,
        encryption=email.encryption,
        username=email.username,
        password=secret_in(
            email.password_file,
            "[channels.email] password_file",
            "Write the password of the relay into it, readable by the server.",
        ),
        recipients=email.recipients,
        timeout=email.timeout.total_seconds(),
        tls=tls_context(email, "[channels.email]"),
    )


def apprise_services(apprise: AppriseSection) -> Mapping[str, Service] | None:
    """None: no services are configured. Raises Unavailable."""
    if not apprise.services_file:
        return None
    place = "[channels.apprise] services_file"
    text = secret_in(apprise.services_file, place, "Write lines NAME = URL into it.")
    findings = Findings()
    try:
        services = read_services(text, findings)
    except ImportError as error:
        raise Unavailable(
            f"Apprise is not installed: {error}",
            place=place,
            remedy="Run pip install --require-hashes -r requirements/apprise.lock,"
            " or remove the setting.",
        ) from error
    for one in findings.all:
        reason = f"{apprise.services_file}, {one.place} {one.reason}"
        raise Unavailable(reason, place=place, remedy=one.remedy)
    return services


def secret_in(file: str, place: str, remedy: str) -> str:
    """file: "": there is none. Raises Unavailable."""
    try:
        return Path(file).read_text().strip() if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{file} cannot be read: {error}", place=place, remedy=remedy) from error


def broker_settings(amqp: Amqp) -> BrokerSettings | None:
    """None: no broker is configured."""
    if not amqp.url:
        return None
    return BrokerSettings(
        urls=[one.get_secret_value() for one in amqp.url],
        exchanges=[one for one in amqp.exchanges if not set("*?[") & set(one)],
        answers=amqp.answers,
        unrouted=amqp.unrouted,
        kept=amqp.unrouted_kept,
        tls=tls_context(amqp, "[channels.amqp]"),
        connect_timeout=amqp.connect_timeout.total_seconds(),
        publish_timeout=amqp.publish_timeout.total_seconds(),
    )


def notification_connection(amqp: NotificationBroker) -> ConnectionSettings | None:
    """None: no broker of providers is configured. Raises Unavailable."""
    if not amqp.url:
        return None
    return ConnectionSettings(
        urls=[one.get_secret_value() for one in amqp.url],
        tls=tls_context(amqp, "[observer.amqp]"),
        connect_timeout=amqp.connect_timeout.total_seconds(),
    )


def listener_settings(amqp: NotificationBroker, slot: ProcessSlot) -> ListenerSettings:
    own = [NotificationRule(one.events, one.ids, one.types) for one in amqp.rules]
    return ListenerSettings(
        exchanges=amqp.exchanges,
        topics=amqp.topics,
        rules=(*own, *OPENSTACK),
        queue=amqp.queue,
        kept=amqp.kept,
        prefetch=amqp.prefetch,
        rate=amqp.rate / slot.count,
    )


def request_rates(section: ObserverSection) -> RequestRates:
    rates = [(one.endpoints, one.requests_per_minute) for one in section.endpoints]
    return RequestRates(section.requests_per_minute, rates)


def retry_policies(settings: Settings) -> Mapping[str, RetryPolicy]:
    """Retry policies by channel."""
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    email = settings.channels.email
    by_broker = RetryPolicy(
        attempts=amqp.attempts,
        first=amqp.first_retry.total_seconds(),
        max_pause=amqp.max_retry.total_seconds(),
        attempt_timeout=amqp.publish_timeout.total_seconds(),
    )
    by_http = RetryPolicy(
        attempts=webhook.attempts,
        first=webhook.first_retry.total_seconds(),
        max_pause=webhook.max_retry.total_seconds(),
        attempt_timeout=webhook.timeout.total_seconds(),
    )
    return {
        "webhook": by_http,
        **dict.fromkeys(FORMS, by_http),
        "email": RetryPolicy(
            attempts=email.attempts,
            first=email.first_retry.total_seconds(),
            max_pause=email.max_retry.total_seconds(),
            # A session has several steps.
            attempt_timeout=4 * email.timeout.total_seconds(),
        ),
        "amqp": by_broker,
        "heat": by_broker,
    }


def dispatcher_settings(settings: Settings, slot: ProcessSlot) -> DispatcherSettings:
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    rates = {"webhook": webhook.rate, "amqp": amqp.rate, "heat": amqp.rate}
    rates |= {"email": settings.channels.email.rate, **dict.fromkeys(FORMS, webhook.rate)}
    return DispatcherSettings(
        retries=retry_policies(settings),
        backlog=settings.quotas.deliveries_per_subscription,
        each=slot.share(webhook.concurrency),
        rates={name: rate / slot.count for name, rate in rates.items()},
    )


def configured_subscriptions(settings: Settings) -> Sequence[NewSubscription]:
    return [
        NewSubscription(
            id=uuid5(_CONFIGURED, repr((one.project, one.channel, one.target, one.events))),
            project=one.project,
            channel=one.channel,
            target=one.target,
            selection=Selection(
                list(one.events), list(one.stacks), list(one.resources), list(one.types),
                list(one.points), list(one.tags), nested=one.nested,
            ),
            ordered=one.ordered,
            quiet_hours=window.as_section() if (window := one.quiet_window(Findings())) else None,
            digest=digest.as_section() if (digest := one.parsed_digest(Findings())) else None,
            secret=one.secret.get_secret_value() or new_secret(),
            origin=Origin.CONFIGURATION,
            keeps_secret=not one.secret.get_secret_value(),
            name=one.name,
        )
        for one in settings.subscriptions
    ]  # fmt: skip
