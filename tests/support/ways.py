"""Ways in: what each kind of client has to be told, by mode of authentication."""

import base64
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


def by_token(url: str, project: str, token: str) -> Way:
    """A token that the server itself gave out, or that a Keystone did."""
    where = endpoint(url, project)
    return Way(
        url,
        project,
        ["--os-auth-type", "admin_token", "--os-endpoint", where, "--os-token", token],
        sdk={"auth_type": "admin_token", "auth": {"endpoint": where, "token": token}},
        headers={"X-Auth-Token": token},
    )


def by_password(url: str, project: str, name: str, password: str) -> Way:
    """HTTP basic."""
    where = endpoint(url, project)
    encoded = base64.b64encode(f"{name}:{password}".encode()).decode()
    auth = {"endpoint": where, "username": name, "password": password}
    return Way(
        url,
        project,
        ["--os-auth-type", "http_basic", "--os-endpoint", where],
        environment={"OS_USERNAME": name, "OS_PASSWORD": password},
        sdk={"auth_type": "http_basic", "auth": auth},
        headers={"Authorization": f"Basic {encoded}"},
    )


def by_catalogue(url: str, project: str, name: str, at: Mapping[str, str]) -> Way:
    """A Keystone tells where the server is. at: ``auth_url``, ``username``, ``password``.

    project: its id; name: its name.
    """
    auth = {
        **at,
        "project_name": name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    environment = {f"OS_{key.upper()}": value for key, value in auth.items()}
    return Way(
        url,
        project,
        [],
        environment={**environment, "OS_IDENTITY_API_VERSION": "3"},
        sdk={"auth_type": "password", "auth": auth},
    )
