"""Settings of template URLs and of the operator's environment."""

from datetime import timedelta

from hub.settings.types import Duration, Reachables, Section


class TemplateUrls(Section):
    allow: Reachables = ()
    timeout: Duration = timedelta(seconds=10)


class Environment(Section):
    directory: str = ""
