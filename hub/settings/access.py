"""Settings of access: listening address, authentication and client limits."""

from datetime import timedelta
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator

from hub.listen_address import host_and_port
from hub.settings.types import (
    Bytes,
    Count,
    CountOrAny,
    Duration,
    ExactUrl,
    Listen,
    Networks,
    Origins,
    Processes,
    Rate,
    RoleMap,
    RoleNames,
    Section,
    Texts,
    Url,
    invalid,
    on_loopback,
)

#: Modes in which every client has every right.
OPEN_MODES = ("none",)


class ServerSection(Section):
    listen: Listen = "127.0.0.1:8004"
    processes: Processes = 0
    public_url: Url = ""
    cert_file: str = ""
    key_file: str = ""
    trusted_proxies: Networks = ()
    cors_origins: Origins = ()
    max_body: Bytes = 2_097_152
    request_timeout: Duration = timedelta(seconds=60)
    idle_timeout: Duration = timedelta(seconds=75)
    requests_per_address: Rate = 0.0
    requests_per_token: Rate = 0.0
    waiting_per_user: CountOrAny = 64
    connections_per_address: CountOrAny = 500
    bodies_per_user: CountOrAny = 64
    streams_per_user: CountOrAny = 100
    unknown_ids_per_user: Rate = 10.0
    hidden_stack_tags: Texts = ("data-processing-cluster",)
    delete_nested_stacks: bool = False

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if self.key_file and not self.cert_file:
            raise invalid("needs a certificate", "Set [server] cert_file", "key_file")
        return self

    @property
    def host(self) -> str:
        """The host to listen on, without brackets."""
        return host_and_port(self.listen)[0]

    @property
    def port(self) -> int:
        """The port to listen on. 0: the system chooses one."""
        return int(host_and_port(self.listen)[1])

    @property
    def on_loopback(self) -> bool:
        return on_loopback(self.listen)

    @property
    def in_clear(self) -> bool:
        """Whether clients may send requests unencrypted over a network."""
        return not (self.on_loopback or self.cert_file or self.trusted_proxies)

    def base_url(self, port: int | None = None) -> str:
        """The URL at which clients reach this server. port: the one that the system chose."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "https" if self.cert_file else "http"
        return self.public_url or f"{scheme}://{host}:{port or self.port}"


class KeystoneSection(Section):
    url: Url = ""
    username: str = ""
    password: SecretStr = SecretStr("")
    project: str = ""
    user_domain: str = "Default"
    project_domain: str = "Default"
    ca_file: str = ""
    timeout: Duration = timedelta(seconds=10)
    roles: RoleMap = {  # noqa: RUF012 - the section is frozen
        "reader": ("reader",),
        "member": ("author", "approver"),
        "admin": ("admin",),
    }
    operator_project: str = ""
    default_domain: str = "Default"
    trusts: bool = False


class OidcGrant(Section):
    group: str
    project: str = "*"
    roles: RoleNames


class OidcSection(Section):
    issuer: ExactUrl = ""
    name: str = "single sign-on"
    client_id: str = ""
    client_secret: SecretStr = SecretStr("")
    scopes: Texts = ("openid", "profile", "email")
    user_claim: str = "preferred_username"
    groups_claim: str = "groups"
    grants: tuple[OidcGrant, ...] = ()
    ca_file: str = ""
    timeout: Duration = timedelta(seconds=10)
    clock_skew: Duration = timedelta(minutes=1)

    @model_validator(mode="after")
    def _check_client(self) -> Self:
        if not self.issuer:
            return self
        parts = urlsplit(self.issuer)
        if parts.scheme != "https" and not on_loopback(f"{parts.hostname}:0"):
            raise invalid("must be an https URL, except on loopback", "Use TLS", "issuer")
        if parts.query or parts.fragment:
            raise invalid("must have no query and no fragment", "Remove them", "issuer")
        if not self.client_id:
            raise invalid("is missing", "Write the client ID of the provider", "client_id")
        if "openid" not in self.scopes:
            raise invalid('must contain "openid"', 'Add "openid"', "scopes")
        if not self.grants:
            raise invalid(
                "is empty, so that no user has a role",
                "Add a section [[auth.oidc.grants]] with group, project and roles",
                "grants",
            )
        return self


class Auth(Section):
    mode: Literal["none", "tokens", "keystone"] = "none"
    cache_ttl: Duration = timedelta(seconds=30)
    failures: Count = 20
    lockout: Duration = timedelta(minutes=1)
    session: Duration = timedelta(hours=12)
    keystone: KeystoneSection = KeystoneSection()
    oidc: OidcSection = OidcSection()

    @model_validator(mode="after")
    def _check_oidc(self) -> Self:
        if self.oidc.issuer and self.mode != "tokens":
            raise invalid(
                f"needs [auth] mode tokens, and the mode is {self.mode}",
                'Set [auth] mode = "tokens", or remove [auth.oidc]',
                *("oidc", "issuer"),
            )
        return self

    @model_validator(mode="after")
    def _check_keystone(self) -> Self:
        if self.mode == "keystone":
            keystone = self.keystone
            values = {
                "url": keystone.url,
                "username": keystone.username,
                "password": keystone.password.get_secret_value(),
                "project": keystone.project,
            }
            missing = ", ".join(name for name, value in values.items() if not value)
            if missing:
                raise invalid(
                    f"mode keystone needs [auth.keystone] {missing}",
                    "Set them, or choose mode tokens or none",
                    "mode",
                )
        return self
