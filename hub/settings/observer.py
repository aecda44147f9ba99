"""Settings of the observer: how many requests it sends to providers, and where they send
notifications about their objects."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from hub.settings.types import Brokers, Count, Duration, JsonPointers, Rate, Section, Texts


class NotificationRuleSection(Section):
    """Where notifications of some event types have the ID of the object that has changed."""

    events: Annotated[Texts, Field(min_length=1)]
    ids: Annotated[JsonPointers, Field(min_length=1)]
    types: Texts = ()


class NotificationBroker(Section):
    url: Brokers = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    exchanges: Texts = ("nova", "neutron", "cinder", "openstack")
    topics: Texts = ("notifications", "versioned_notifications")
    queue: Annotated[str, Field(min_length=1, max_length=200)] = "headgate.observations"
    kept: Count = 10_000
    prefetch: Annotated[Count, Field(le=10_000)] = 200
    rate: Rate = 200.0
    connect_timeout: Duration = timedelta(seconds=5)
    rules: tuple[NotificationRuleSection, ...] = ()


class EndpointSection(Section):
    """The requests per minute to some endpoints."""

    endpoints: Annotated[Texts, Field(min_length=1)]
    requests_per_minute: Rate


class ObserverSection(Section):
    requests_per_minute: Rate = 0.0
    endpoints: tuple[EndpointSection, ...] = ()
    amqp: NotificationBroker = NotificationBroker()
