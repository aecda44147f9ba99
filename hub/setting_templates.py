"""Settings of what templates and environments may draw on besides what is sent."""

from datetime import timedelta

from hub.setting_types import Duration, Reachables, Section


class TemplateUrls(Section):
    allow: Reachables = ()
    timeout: Duration = timedelta(seconds=10)


class Environment(Section):
    directory: str = ""
