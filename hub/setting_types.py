"""What a setting can be: times, counts, sizes in bytes, lists, addresses."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
)
from pydantic_core import PydanticCustomError

from engine.hooks.durations import parse_duration
from hub.auth.roles import Role


class Section(BaseModel):
    """One table of the settings: frozen, and closed to names that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def not_longer(section: Section, shorter: str, longer: str) -> None:
    if getattr(section, shorter) > getattr(section, longer):
        raise PydanticCustomError("order", f"{shorter} is longer than {longer}")


def _duration(value: object) -> timedelta:
    read = value if isinstance(value, timedelta) else parse_duration(value)
    if not read:
        raise PydanticCustomError("duration", "it is a time such as 90s, 30m, 2h or 1d")
    return read


def _duration_or_none(value: object) -> timedelta | None:
    return None if value in (None, "") else _duration(value)


def _number(value: object) -> object:
    if isinstance(value, bool):  # true is 1 to Python
        raise PydanticCustomError("number", "it is an integer, such as 10")
    return value


def _list(value: object) -> object:
    """Let a variable of the environment hold a list: ``a,b``."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _listen(value: str) -> str:
    host, port = host_and_port(value)
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise PydanticCustomError("listen", "it is HOST:PORT, such as 127.0.0.1:8004")
    return value


def host_and_port(listen: str) -> tuple[str, str]:
    """Take ``HOST:PORT`` or ``[HOST]:PORT`` apart."""
    host, _, port = listen.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def _url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise PydanticCustomError("url", "it is a URL such as https://headgate.example.org")
    return value.rstrip("/")


#: A host, or a pattern of some.
_HOSTS = re.compile(r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)*")


def _network(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value if isinstance(value, str | IPv4Network | IPv6Network) else "")
    except ValueError:
        raise PydanticCustomError(
            "network", "it is a network such as 10.0.0.0/8 or ::1/128, no bit set after its prefix"
        ) from None


def _reachable(value: object) -> IPv4Network | IPv6Network | str:
    try:
        return _network(value)
    except PydanticCustomError:
        if isinstance(value, str) and _HOSTS.fullmatch(value):
            return value.lower()
    raise PydanticCustomError(
        "reachable", "it lists networks such as 10.0.0.0/8, and hosts such as *.example.org"
    )


def _absolute(paths: Sequence[Path]) -> Sequence[Path]:
    if not all(path.is_absolute() for path in paths):
        raise PydanticCustomError("path", "it lists absolute paths, such as /usr/bin/install")
    return paths


def _brokers(urls: Sequence[SecretStr]) -> Sequence[SecretStr]:
    for url in urls:
        parts = urlsplit(url.get_secret_value())
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise PydanticCustomError(
                "broker", "it lists brokers, such as amqp://USER:PASSWORD@HOST:5672/VHOST"
            )
    return urls


def _proxy(url: SecretStr) -> SecretStr:
    said = url.get_secret_value()
    parts = urlsplit(said)
    if said and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise PydanticCustomError("proxy", "it is a URL such as http://proxy.example.org:3128")
    return url


def _origins(origins: Sequence[str]) -> Sequence[str]:
    for one in origins:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or one != f"{parts.scheme}://{parts.netloc}":
            raise PydanticCustomError(
                "origin", "it lists origins, such as https://console.example.org, without a path"
            )
    return origins


def _roles(roles: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    known = [role.value for role in Role]
    for given in roles.values():
        if not set(given) & set(known):
            raise PydanticCustomError(
                "roles", 'it gives roles of ours, as { member = ["author"] }: ' + ", ".join(known)
            )
    return roles


ListenOrNowhere = Annotated[str, AfterValidator(lambda said: _listen(said) if said else said)]
Listen = Annotated[str, AfterValidator(_listen)]
Url = Annotated[str, AfterValidator(_url)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
DurationOrNone = Annotated[timedelta | None, BeforeValidator(_duration_or_none)]
Count = Annotated[int, BeforeValidator(_number), Field(gt=0)]
#: 0: any number.
CountOrAny = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Bytes = Count
Texts = Annotated[tuple[str, ...], BeforeValidator(_list)]
ProxyUrl = Annotated[SecretStr, AfterValidator(_proxy)]
Brokers = Annotated[tuple[SecretStr, ...], BeforeValidator(_list), AfterValidator(_brokers)]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network)]
Reachable = Annotated[IPv4Network | IPv6Network | str, PlainValidator(_reachable)]
Reachables = Annotated[tuple[Reachable, ...], BeforeValidator(_list)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_list)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_list), AfterValidator(_absolute)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_origins)]
Rate = Annotated[float, Field(ge=0, le=100_000)]
RoleMap = Annotated[Mapping[str, Texts], AfterValidator(_roles)]
