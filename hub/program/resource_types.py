"""The resource types of this program, and what they reach the outside with."""

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
from engine.types.credentials import Credential, Credentials
from engine.types.http import Http, HttpSettings
from engine.types.placement import Placer
from engine.types.registry import Registry, built_in
from engine.types.remote_stack import Endpoint, Endpoints, RemoteStack
from hub.http.certificates import tls_context
from hub.http.outbound import ANYWHERE, Outbound, OutboundSettings
from hub.program.command_account import find_run_as
from hub.settings.resource_types import Http as HttpSection
from hub.settings.resource_types import HttpCredential, ResourceTypes
from hub.settings.resource_types import RemoteStack as RemoteStackSection

_HTTP = "[resource_types.http]"
_REMEDY = f"The operator can allow its network in {_HTTP} allow."


class TypesAtHand:
    """The resource types, and the connections that they need. An async context manager.

    Raises Unavailable for certificates and secrets that cannot be read.
    """

    def __init__(
        self,
        settings: ResourceTypes,
        *types: ResourceType,
        gate: ResourceType | None = None,
        placer: Placer | None = None,
    ) -> None:
        """types: besides those that come with headgate and its plug-ins. gate: the stack's own.
        placer: says where new members of groups go."""
        self._web = Outbound(outbound_settings(settings.http))
        usual = outbound_settings(settings.http)
        self._trusted_web = Outbound(replace(usual, allow=ANYWHERE, tls=None))
        self._open = AsyncExitStack()
        credentials = Credentials(lent(settings.http.credentials))
        self.registry: Registry = built_in(
            random.SystemRandom(),
            _command(settings),
            Http(
                HttpSettings(settings.http.enabled, settings.http.max_timeout),
                self._web,
                credentials,
            ),
            RemoteStack(
                Endpoints(endpoints(settings.remote_stack)), self._trusted_web, credentials
            ),
            *types,
            gate=gate,
            placer=placer,
        )

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._web)
        await self._open.enter_async_context(self._trusted_web)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()


def _command(settings: ResourceTypes) -> Command:
    said = settings.command
    return Command(
        CommandSettings(
            enabled=said.enabled,
            programs=tuple(
                AllowedProgram(
                    str(one.path),
                    tuple(one.projects),
                    tuple(one.arguments),
                    tuple(map(str, one.folders)),
                )
                for one in said.programs
            ),
            variables=tuple(said.variables),
            run_as=find_run_as(said),
            max_output=said.max_output,
            max_timeout=said.max_timeout,
        )
    )


def outbound_settings(http: HttpSection) -> OutboundSettings:
    """Raises Unavailable."""
    return OutboundSettings(
        allow=tuple(http.allow),
        remedy=_REMEDY,
        connect_timeout=http.connect_timeout.total_seconds(),
        timeout=http.timeout.total_seconds(),
        max_answer=http.max_answer,
        tls=tls_context(http, _HTTP),
    )


def endpoints(said: Mapping[str, RemoteStackSection]) -> dict[str, Endpoint]:
    """Raises Unavailable."""
    return {name: _endpoint(name, one) for name, one in said.items()}


def _endpoint(name: str, said: RemoteStackSection) -> Endpoint:
    place = f"[resource_types.remote_stack.{name}] ca_file"
    return Endpoint(
        name,
        said.url,
        said.projects,
        said.credential,
        _read(said.ca_file, place) if said.ca_file else "",
        said.interval.total_seconds(),
        said.patience.total_seconds(),
    )


def lent(credentials: Mapping[str, HttpCredential]) -> dict[str, Credential]:
    """Raises Unavailable."""
    return {name: _credential(name, one) for name, one in credentials.items()}


def _credential(name: str, said: HttpCredential) -> Credential:
    place = f"[resource_types.http.credentials.{name}] secret_file"
    secret = said.secret.get_secret_value() or _read(said.secret_file, place)
    if not secret.isprintable() or not secret:
        reason = f"{said.secret_file or 'what is given'} must contain the secret on a single line"
        raise Unavailable(reason, place=place, remedy="Write only the secret into the file.")
    header, value = {
        "basic": ("Authorization", f"Basic {_basic(said.username, secret)}"),
        "bearer": ("Authorization", f"Bearer {secret}"),
        "header": (said.header, secret),
    }[said.kind]
    return Credential(header, value, secret, said.origins, said.projects)


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
