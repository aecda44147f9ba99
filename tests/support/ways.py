"""Ways in: what each kind of client has to be told, by mode of authentication."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Way:
    """options, environment: for `openstack`. sdk: for ``openstack.connect``. headers: for HTTP."""

    url: str
    project: str
    options: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    sdk: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        return endpoint(self.url, self.project)


def endpoint(url: str, project: str) -> str:
    return f"{url}/v1/{project}"


def unasked(url: str, project: str) -> Way:
    """Mode none: nobody is asked who they are."""
    said = {"auth_type": "none", "endpoint": endpoint(url, project)}
    options = ["--os-auth-type", "none", "--os-endpoint", said["endpoint"]]
    return Way(url, project, options, sdk=said)
