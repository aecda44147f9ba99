"""Settings of operations: retention, audit log, log, metrics and tracing."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from hub.log import Style
from hub.settings.types import Count, Duration, DurationOrNone, ListenOrNowhere, Section, Url


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


class Metrics(Section):
    needs: Literal["nothing", "monitor", "operate"] = "monitor"
    address: ListenOrNowhere = ""

    @property
    def is_open_to_all(self) -> bool:
        return self.needs == "nothing"


class Tracing(Section):
    endpoint: Url = ""
    service: Annotated[str, Field(min_length=1)] = "headgate"
    ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    every: Duration = timedelta(seconds=5)
