"""What the parts of the program are made with, as the settings say it."""

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
from channels.dispatcher import DispatcherSettings
from channels.retry import RetryPolicy
from channels.selection import Selection
from channels.store.records import NewSubscription, Origin
from channels.webhook.client import WebhookSettings
from engine.errors import Unavailable
from engine.hooks.rule import Limits as HookLimits
from engine.hot.syntax.document import DocumentLimits as SourceLimits
from engine.hot.syntax.document import max_nodes_for
from engine.service import Limits
from engine.service.requests.quotas import Quotas
from engine.store.database import Database
from engine.store.encryption import KEY_BYTES, Sealer
from engine.store.key_files import read_fallback_key, read_key
from engine.store.retention import OLD
from engine.store.sign_in_attempts import PLACE_KNOWN
from engine.work.purge import Ages
from engine.work.retries import Retrying
from engine.work.worker import WorkerSettings
from hub.api.admission import Admission
from hub.auth.gatekeeper import Gatekeeper
from hub.auth.identity import Authenticator
from hub.auth.sessions import Sessions
from hub.http.certificates import tls_context
from hub.program.operator_environment import read_operator_environment
from hub.settings.operations import Retention
from hub.settings.settings import Amqp, Settings, Webhook
from hub.settings.settings import Quotas as QuotaSettings

#: Names of configured subscriptions are made from what they say.
_CONFIGURED = UUID("6f1f4a0e-51b7-4a3c-9d0c-1f2f5a8f7a10")


def new_secret() -> str:
    """A secret in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


def make_sealer(settings: Settings) -> Sealer:
    """Raises Unavailable."""
    key_file = settings.credentials.path(settings.database.data_dir)
    key = read_key(key_file, secrets.token_bytes(KEY_BYTES))
    fallbacks = [read_fallback_key(Path(one)) for one in settings.credentials.fallback_key_files]
    return Sealer(key, random_bytes=secrets.token_bytes, fallbacks=fallbacks)


def make_admission(settings: Settings, asked: Authenticator, database: Database) -> Admission:
    auth, server = settings.auth, settings.server
    return Admission(
        Gatekeeper(
            asked,
            by_address=server.requests_per_address,
            by_token=server.requests_per_token,
            failures=auth.failures,
            lockout=auth.lockout.total_seconds(),
        ),
        Sessions(
            database,
            mode=auth.mode,
            lasts=auth.session,
            random_bytes=secrets.token_bytes,
        ),
    )


def make_limits(settings: Settings) -> Limits:
    """Raises Invalid when something is wrong with the operator's environment."""
    usual = _limits(settings, settings.quotas)
    environment = read_operator_environment(settings.environment.directory, usual.source)
    own = {
        name: replace(_limits(settings, settings.quotas.of(name)), environment=environment)
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
        resources=quotas.resources_per_stack,
        versions=settings.retention.versions,
        snapshots=quotas.snapshots_per_stack,
        signals=quotas.signals_per_resource,
        signal_bytes=quotas.signal_bytes,
        resource_bytes=quotas.resource_bytes,
        constraint_timeout=settings.engine.constraint_timeout,
        operator=[
            one.as_rule(f"[[hooks.rules]] {place}")
            for place, one in enumerate(settings.hooks.rules, start=1)
        ],
        quotas=Quotas(
            stacks_per_project=quotas.stacks_per_project,
            resources_per_project=quotas.resources_per_project,
            waiting_hooks_per_project=quotas.waiting_hooks_per_project,
            checks_per_day=quotas.checks_per_day,
            subscriptions_per_project=quotas.subscriptions_per_project,
        ),
    )


def ages(retention: Retention, older_than: timedelta | None = None) -> Ages:
    """How old things may become. older_than: in place of what the settings say, but for trails."""
    said = retention.model_dump(include=set(OLD), exclude={"trails"})
    kept = {kind: older_than or age for kind, age in said.items()}
    over = {"sessions": timedelta(0), "sign_in_places": PLACE_KNOWN}
    return kept | over | ({"trails": retention.trails} if retention.trails else {})


def worker_settings(settings: Settings) -> WorkerSettings:
    engine = settings.engine
    return WorkerSettings(
        batch=engine.batch,
        lanes=engine.lanes,
        lease=engine.lease,
        poll=engine.poll,
        operations=engine.operations,
        drain=engine.drain,
        default_timeout=settings.hooks.default_timeout,
        retrying=Retrying(
            limit=engine.action_retry_limit,
            first=engine.first_retry,
            longest=engine.max_retry,
            random=random.SystemRandom().random,
        ),
    )


def signing_key(file: str) -> Ed25519PrivateKey | None:
    """None: none was named. Raises Unavailable."""
    if not file:
        return None
    try:
        key = load_pem_private_key(Path(file).read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _no_key(file, str(error)) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(file, "it is of another kind")
    return key


def _no_key(file: str, why: str) -> Unavailable:
    return Unavailable(
        f"{file} holds no key to sign with: {why}",
        place="[channels.webhook] signing_key_file",
        remedy="Create one with `openssl genpkey -algorithm ed25519`, without a passphrase.",
    )


def webhook_settings(webhook: Webhook) -> WebhookSettings:
    return WebhookSettings(
        allow=tuple(webhook.allow),
        operator_allow=tuple(webhook.operator_allow),
        connect_timeout=webhook.connect_timeout.total_seconds(),
        timeout=webhook.timeout.total_seconds(),
        max_answer=webhook.max_answer,
        tls=tls_context(webhook, "[channels.webhook]"),
        proxy=webhook.proxy.get_secret_value(),
        key=signing_key(webhook.signing_key_file),
    )


def broker_settings(amqp: Amqp) -> BrokerSettings | None:
    """None: there is no broker to use."""
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


def retry_policies(settings: Settings) -> Mapping[str, RetryPolicy]:
    """By channel."""
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    by_broker = RetryPolicy(
        attempts=amqp.attempts,
        first=amqp.first_retry.total_seconds(),
        longest=amqp.max_retry.total_seconds(),
        attempt_timeout=amqp.publish_timeout.total_seconds(),
    )
    return {
        "webhook": RetryPolicy(
            attempts=webhook.attempts,
            first=webhook.first_retry.total_seconds(),
            longest=webhook.max_retry.total_seconds(),
            attempt_timeout=webhook.timeout.total_seconds(),
        ),
        "amqp": by_broker,
        "heat": by_broker,
    }


def dispatcher_settings(settings: Settings) -> DispatcherSettings:
    webhook, amqp = settings.channels.webhook, settings.channels.amqp
    return DispatcherSettings(
        retries=retry_policies(settings),
        backlog=settings.quotas.deliveries_per_subscription,
        each=webhook.concurrency,
        rates={"webhook": webhook.rate, "amqp": amqp.rate, "heat": amqp.rate},
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
            secret=one.secret.get_secret_value() or new_secret(),
            origin=Origin.CONFIGURATION,
            keeps_secret=not one.secret.get_secret_value(),
            name=one.name,
        )
        for one in settings.subscriptions
    ]  # fmt: skip
