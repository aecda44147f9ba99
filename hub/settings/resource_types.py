"""Settings of resource types: programs, networks, credentials and endpoints."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, model_validator

from hub.settings.types import (
    AbsolutePath,
    Bytes,
    Duration,
    Networks,
    Origins,
    Paths,
    Section,
    Texts,
    Url,
    Variables,
    invalid,
    not_longer,
)


class CommandProgram(Section):
    """A program that templates may run, with its projects, arguments and directories."""

    path: AbsolutePath
    projects: Texts
    arguments: Texts = ()
    folders: Paths = ()


class CommandSection(Section):
    enabled: bool = False
    run_as: str = ""
    variables: Variables = ()
    programs: tuple[CommandProgram, ...] = ()
    max_output: Bytes = 65_536
    max_timeout: Duration = timedelta(hours=1)


class HttpCredential(Section):
    """A credential that templates can refer to by name."""

    kind: Literal["basic", "bearer", "header"]
    origins: Origins
    projects: Texts
    username: str = ""
    secret: SecretStr = SecretStr("")
    secret_file: str = ""
    header: str = ""

    @model_validator(mode="after")
    def _check_secret(self) -> Self:
        required = {"basic": ("username",), "bearer": (), "header": ("header",)}[self.kind]
        missing = [name for name in required if not getattr(self, name)]
        if bool(self.secret.get_secret_value()) == bool(self.secret_file):
            missing.append("either secret or secret_file")
        if missing:
            needs = " and ".join(missing)
            raise invalid(f"kind {self.kind} needs {needs}", "Add the missing settings")
        return self


class HttpSection(Section):
    enabled: bool = False
    allow: Networks = ()
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    connect_timeout: Duration = timedelta(seconds=5)
    timeout: Duration = timedelta(seconds=30)
    max_response: Bytes = 1_048_576
    max_timeout: Duration = timedelta(hours=1)
    credentials: Mapping[str, HttpCredential] = {}

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        not_longer(self, "connect_timeout", "timeout")
        return self


class RemoteStackSection(Section):
    """An endpoint of the Orchestration API. Templates select it by name (`region_name`)."""

    url: Annotated[Url, Field(min_length=1)]
    projects: Texts = ("*",)
    credential: str = ""
    ca_file: str = ""
    interval: Duration = timedelta(seconds=5)
    patience: Duration = timedelta(hours=1)


class OpenStackReader(Section):
    """An application credential that reads the objects of all projects, for observations."""

    application_credential_id: str = ""
    secret_file: str = ""

    @model_validator(mode="after")
    def _check_both(self) -> Self:
        if bool(self.application_credential_id) != bool(self.secret_file):
            raise invalid(
                "application_credential_id and secret_file belong together",
                "Set both of them, or none",
            )
        return self


class OpenStackStackUsers(Section):
    """The domain of Keystone for the users of servers, and its administrator."""

    domain_id: str = ""
    username: str = ""
    password_file: str = ""
    role: Annotated[str, Field(min_length=1)] = "heat_stack_user"

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        if len({bool(self.domain_id), bool(self.username), bool(self.password_file)}) > 1:
            raise invalid(
                "domain_id, username and password_file belong together",
                "Set all of them, or none",
            )
        return self


class OpenStack(Section):
    enabled: bool = False
    region: str = ""
    interface: Literal["public", "internal", "admin"] = "public"
    reader: OpenStackReader = OpenStackReader()
    stack_users: OpenStackStackUsers = OpenStackStackUsers()


class ResourceTypes(Section):
    command: CommandSection = CommandSection()
    http: HttpSection = HttpSection()
    openstack: OpenStack = OpenStack()
    remote_stack: Mapping[str, RemoteStackSection] = {}

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        for name, one in self.remote_stack.items():
            if one.credential and one.credential not in self.http.credentials:
                raise invalid(
                    f'"{one.credential}" is not in [resource_types.http.credentials]',
                    "Add the credential there, or correct the name",
                    "remote_stack",
                    name,
                    "credential",
                )
        return self
