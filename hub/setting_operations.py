"""Settings of whoever keeps a server running: what is kept, what is told, and to whom."""

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from hub.log import Style
from hub.setting_types import Count, Duration, DurationOrNone, ListenOrNowhere, Section, Url


class Retention(Section):
    versions: Count = 20
    events: Duration = timedelta(days=90)
    deliveries: Duration = timedelta(days=90)
    hooks: Duration = timedelta(days=365)
    traversals: Duration = timedelta(days=365)
    idempotency_keys: Duration = timedelta(days=1)
    tokens: Duration = timedelta(days=90)
    deleted_stacks: Duration = timedelta(days=90)
    trails: DurationOrNone = None
    every: Duration = timedelta(hours=1)


class Log(Section):
    style: Style = "auto"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Metrics(Section):
    needs: Literal["nothing", "operate"] = "nothing"
    address: ListenOrNowhere = ""


class Tracing(Section):
    endpoint: Url = ""
    service: Annotated[str, Field(min_length=1)] = "headgate"
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    every: Duration = timedelta(seconds=5)
