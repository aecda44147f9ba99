"""The settings of OpenStack clients for each mode of authentication."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ClientSettings:
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


def without_authentication(url: str, project: str) -> ClientSettings:
    """Mode none: no authentication."""
    settings = {"auth_type": "none", "endpoint": endpoint(url, project)}
    options = ["--os-auth-type", "none", "--os-endpoint", settings["endpoint"]]
    return ClientSettings(url, project, options, sdk=settings)


def by_token(url: str, project: str, token: str) -> ClientSettings:
    """A token of the server or of Keystone."""
    url_of_project = endpoint(url, project)
    return ClientSettings(
        url,
        project,
        ["--os-auth-type", "admin_token", "--os-endpoint", url_of_project, "--os-token", token],
        sdk={"auth_type": "admin_token", "auth": {"endpoint": url_of_project, "token": token}},
        headers={"X-Auth-Token": token},
    )


def by_password(url: str, project: str, name: str, password: str) -> ClientSettings:
    """HTTP basic authentication."""
    url_of_project = endpoint(url, project)
    encoded = base64.b64encode(f"{name}:{password}".encode()).decode()
    auth = {"endpoint": url_of_project, "username": name, "password": password}
    return ClientSettings(
        url,
        project,
        ["--os-auth-type", "http_basic", "--os-endpoint", url_of_project],
        environment={"OS_USERNAME": name, "OS_PASSWORD": password},
        sdk={"auth_type": "http_basic", "auth": auth},
        headers={"Authorization": f"Basic {encoded}"},
    )


def by_catalogue(url: str, project: str, name: str, at: Mapping[str, str]) -> ClientSettings:
    """Keystone's catalog has the server's URL. at: ``auth_url``, ``username``, ``password``.

    project: its ID; name: its name.
    """
    auth = {
        **at,
        "project_name": name,
        "user_domain_name": "Default",
        "project_domain_name": "Default",
    }
    environment = {f"OS_{key.upper()}": value for key, value in auth.items()}
    return ClientSettings(
        url,
        project,
        [],
        environment={**environment, "OS_IDENTITY_API_VERSION": "3"},
        sdk={"auth_type": "password", "auth": auth},
    )
