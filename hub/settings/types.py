"""Types of settings: durations, counts, sizes in bytes, lists, addresses."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
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
    """One table of the settings. It is frozen and rejects unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def not_longer(section: Section, shorter: str, longer: str) -> None:
    if getattr(section, shorter) > getattr(section, longer):
        raise PydanticCustomError("order", f"{shorter} is longer than {longer}")


def _duration(value: object) -> timedelta:
    read = value if isinstance(value, timedelta) else parse_duration(value)
    if not read:
        raise PydanticCustomError("duration", "must be a duration such as 90s, 30m, 2h or 1d")
    return read


def _duration_or_none(value: object) -> timedelta | None:
    return None if value in (None, "") else _duration(value)


def _number(value: object) -> object:
    if isinstance(value, bool):  # true is 1 to Python
        raise PydanticCustomError("number", "must be an integer such as 10")
    return value


def _list(value: object) -> object:
    """Split the list in an environment variable: ``a,b``."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _listen(value: str) -> str:
    host, port = host_and_port(value)
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise PydanticCustomError("listen", "must be HOST:PORT, such as 127.0.0.1:8004")
    return value


def host_and_port(listen: str) -> tuple[str, str]:
    """Split ``HOST:PORT`` or ``[HOST]:PORT``."""
    host, _, port = listen.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port


def on_loopback(listen: str) -> bool:
    """Whether only this machine can connect to ``HOST:PORT``."""
    host = host_and_port(listen)[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise PydanticCustomError("url", "must be a URL such as https://headgate.example.org")
    return value.rstrip("/")


#: A host name, which may contain globs.
_HOSTS = re.compile(r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)*")


def _network(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value if isinstance(value, str | IPv4Network | IPv6Network) else "")
    except ValueError:
        raise PydanticCustomError(
            "network",
            "must be a network such as 10.0.0.0/8 or ::1/128, with no bits set after the prefix",
        ) from None


def _reachable(value: object) -> IPv4Network | IPv6Network | str:
    try:
        return _network(value)
    except PydanticCustomError:
        if isinstance(value, str) and _HOSTS.fullmatch(value):
            return value.lower()
    raise PydanticCustomError(
        "reachable", "must contain networks such as 10.0.0.0/8, or hosts such as *.example.org"
    )


def _absolute(paths: Sequence[Path]) -> Sequence[Path]:
    if not all(path.is_absolute() for path in paths):
        raise PydanticCustomError("path", "must contain absolute paths, such as /srv/deploy")
    return paths


def _absolute_one(path: Path) -> Path:
    if not path.is_absolute():
        raise PydanticCustomError(
            "path", "must be an absolute path, such as /opt/deploy/bin/deploy"
        )
    return path


#: An environment variable, or a prefix followed by *.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")


def _variables(names: Sequence[str]) -> Sequence[str]:
    if not all(_VARIABLE.fullmatch(name) for name in names):
        raise PydanticCustomError(
            "variables", "must contain variables such as RELEASE, or prefixes such as DEPLOY_*"
        )
    return names


def _brokers(urls: Sequence[SecretStr]) -> Sequence[SecretStr]:
    for url in urls:
        parts = urlsplit(url.get_secret_value())
        if parts.scheme not in ("amqp", "amqps") or not parts.hostname:
            raise PydanticCustomError(
                "broker", "must contain brokers such as amqp://USER:PASSWORD@HOST:5672/VHOST"
            )
    return urls


def _proxy(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise PydanticCustomError("proxy", "must be a URL such as http://proxy.example.org:3128")
    return url


def _origins(origins: Sequence[str]) -> Sequence[str]:
    for one in origins:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or one != f"{parts.scheme}://{parts.netloc}":
            raise PydanticCustomError(
                "origin", "must contain origins such as https://console.example.org, without a path"
            )
    return origins


def _roles(roles: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    known = [role.value for role in Role]
    for given in roles.values():
        if not set(given) & set(known):
            raise PydanticCustomError(
                "roles",
                'must map to Headgate roles, as { member = ["author"] }: ' + ", ".join(known),
            )
    return roles


ListenOrNowhere = Annotated[str, AfterValidator(lambda value: _listen(value) if value else value)]
Listen = Annotated[str, AfterValidator(_listen)]
Url = Annotated[str, AfterValidator(_url)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
DurationOrNone = Annotated[timedelta | None, BeforeValidator(_duration_or_none)]
Count = Annotated[int, BeforeValidator(_number), Field(gt=0)]
#: 0 means unlimited.
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
AbsolutePath = Annotated[Path, AfterValidator(_absolute_one)]
Variables = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_variables)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_origins)]
Rate = Annotated[float, Field(ge=0, le=100_000)]
RoleMap = Annotated[Mapping[str, Texts], AfterValidator(_roles)]
