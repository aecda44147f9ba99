"""The resource types of a process, with their HTTP clients and credentials."""

import base64
import random
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from engine.errors import Unavailable
from engine.types.command import AllowedProgram, Command, CommandSettings
from engine.types.contract import ResourceType
from engine.types.http import Http, HttpSettings
from engine.types.object_signals import NO_SERVICES, SignalServices
from engine.types.openstack import openstack_types
from engine.types.openstack.cloud import Cloud, CloudAccess, CloudIdentity, StackDomain
from engine.types.openstack.swift.server_objects import SwiftServerObjects
from engine.types.openstack.swift.signal_objects import MAX_SIGNALS, SwiftSignals
from engine.types.openstack.zaqar.server_queues import ZaqarServerQueues
from engine.types.openstack.zaqar.signal_queues import ZaqarSignals
from engine.types.operator_credentials import Credential, Credentials
from engine.types.placement import Placer
from engine.types.registry import TypeRegistry, built_in
from engine.types.remote_stack import Catalog, Endpoints, RemoteEndpoint, RemoteStack
from engine.types.software import ServerUrls, SoftwareStore, software_types
from engine.types.software.metadata_objects import NO_METADATA_SERVICES, MetadataServices
from hub.http.outbound import ALL_NETWORKS, Outbound, OutboundSettings, tls_context
from hub.program.command_account import find_run_as
from hub.settings.resource_types import (
    HttpCredential,
    HttpSection,
    OpenStackStackUsers,
    RemoteStackSection,
    ResourceTypes,
)
from hub.settings.resource_types import OpenStack as OpenStackSection

#: Bytes of the longest response of an OpenStack service: a page of 500 ports has some 0.6 MB.
MAX_CLOUD_RESPONSE = 8_388_608
_HTTP = "[resource_types.http]"
_REMEDY = f"The operator can allow its network in {_HTTP} allow."


class ProcessTypes:
    """An async context manager: the resource types of a process, with their connections.

    Raises Unavailable for certificates and secrets that cannot be read.
    """

    def __init__(
        self,
        settings: ResourceTypes,
        software_store: SoftwareStore,
        servers: ServerUrls,
        *types: ResourceType,
        gate: ResourceType | None = None,
        placer: Placer | None = None,
        catalog: Catalog | None = None,
        cloud: CloudIdentity | None = None,
        max_signals: int = MAX_SIGNALS,
    ) -> None:
        """servers: the metadata URLs of servers. types: in addition to built-in types and plug-ins.
        gate: the type of the nodes that carry the hooks of whole stacks. placer: chooses where new
        members of groups are placed. catalog: of the users' services, if the mode of
        authentication has one. cloud: the identity service of the users' cloud, if there is one.
        max_signals: of one resource.
        """
        outbound = outbound_settings(settings.http)
        self._web = Outbound(outbound)
        self._trusted_web = Outbound(replace(outbound, allow=ALL_NETWORKS, tls=None))
        self._cloud_web = Outbound(
            replace(outbound, allow=ALL_NETWORKS, tls=None, max_response=MAX_CLOUD_RESPONSE)
        )
        self._open = AsyncExitStack()
        used = None
        if settings.openstack.enabled and cloud is not None:
            used = Cloud(self._cloud_web, cloud)
        services, self.metadata_services = NO_SERVICES, NO_METADATA_SERVICES
        if used is not None:
            domain, keystone = used.identity.access.stack_domain, servers.keystone
            services = SignalServices(
                SwiftSignals(used, max_signals),
                ZaqarSignals(used, domain, keystone, max_signals) if domain else None,
            )
            self.metadata_services = MetadataServices(
                SwiftServerObjects(used, servers.container_key),
                ZaqarServerQueues(used, domain, keystone) if domain else None,
            )
        credentials = Credentials(read_credentials(settings.http.credentials))
        self.registry: TypeRegistry = built_in(
            random.SystemRandom(),
            _command(settings),
            Http(
                HttpSettings(settings.http.enabled, settings.http.max_timeout),
                self._web,
                credentials,
            ),
            RemoteStack(
                Endpoints(endpoints(settings.remote_stack), catalog),
                self._trusted_web,
                credentials,
            ),
            *software_types(software_store, servers, services, self.metadata_services),
            *(
                openstack_types(used, software_store, servers, self.metadata_services)
                if used is not None
                else ()
            ),
            *types,
            gate=gate,
            placer=placer,
            services=services,
        )

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._web)
        await self._open.enter_async_context(self._trusted_web)
        await self._open.enter_async_context(self._cloud_web)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()


def _command(settings: ResourceTypes) -> Command:
    section = settings.command
    return Command(
        CommandSettings(
            enabled=section.enabled,
            programs=tuple(
                AllowedProgram(
                    str(one.path),
                    tuple(one.projects),
                    tuple(one.arguments),
                    tuple(map(str, one.folders)),
                )
                for one in section.programs
            ),
            variables=tuple(section.variables),
            run_as=find_run_as(section),
            max_output=section.max_output,
            max_timeout=section.max_timeout,
        )
    )


def cloud_access(section: OpenStackSection) -> CloudAccess:
    """How resource types use Keystone. Raises Unavailable if a secret cannot be read."""
    file, users = section.reader.secret_file, section.stack_users
    return CloudAccess(
        section.region,
        section.interface,
        section.reader.application_credential_id,
        _read(file, "[resource_types.openstack.reader] secret_file") if file else "",
        _stack_domain(users) if users.domain_id else None,
    )


def _stack_domain(section: OpenStackStackUsers) -> StackDomain:
    place = "[resource_types.openstack.stack_users] password_file"
    password = _read(section.password_file, place)
    return StackDomain(section.domain_id, section.username, password, section.role)


def outbound_settings(http: HttpSection) -> OutboundSettings:
    """The settings of outgoing requests. Raises Unavailable if a certificate cannot be read."""
    return OutboundSettings(
        allow=tuple(http.allow),
        remedy=_REMEDY,
        connect_timeout=http.connect_timeout.total_seconds(),
        timeout=http.timeout.total_seconds(),
        max_response=http.max_response,
        tls=tls_context(http, _HTTP),
    )


def endpoints(section: Mapping[str, RemoteStackSection]) -> dict[str, RemoteEndpoint]:
    """Remote servers by name. Raises Unavailable if a certificate cannot be read."""
    return {name: _endpoint(name, one) for name, one in section.items()}


def _endpoint(name: str, section: RemoteStackSection) -> RemoteEndpoint:
    place = f"[resource_types.remote_stack.{name}] ca_file"
    return RemoteEndpoint(
        name,
        section.url,
        section.projects,
        section.credential,
        _read(section.ca_file, place) if section.ca_file else "",
        section.interval.total_seconds(),
        section.patience.total_seconds(),
    )


def read_credentials(credentials: Mapping[str, HttpCredential]) -> dict[str, Credential]:
    """Credentials by name. Raises Unavailable if a secret cannot be read or is invalid."""
    return {name: _credential(name, one) for name, one in credentials.items()}


def _credential(name: str, section: HttpCredential) -> Credential:
    place = f"[resource_types.http.credentials.{name}] secret_file"
    secret = section.secret.get_secret_value() or _read(section.secret_file, place)
    if not secret.isprintable() or not secret:
        reason = f"{section.secret_file or 'secret'} must contain the secret on a single line"
        raise Unavailable(reason, place=place, remedy="Write only the secret into the file.")
    header, value = {
        "basic": ("Authorization", f"Basic {_basic(section.username, secret)}"),
        "bearer": ("Authorization", f"Bearer {secret}"),
        "header": (section.header, secret),
    }[section.kind]
    return Credential(header, value, secret, section.origins, section.projects)


def _basic(username: str, secret: str) -> str:
    return base64.b64encode(f"{username}:{secret}".encode()).decode()


def _read(file: str, place: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise Unavailable(
            f"{file} cannot be read: {why}",
            place=place,
            remedy="Name a file that the server may read.",
        ) from error
