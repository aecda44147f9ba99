"""Types of settings: durations, counts, sizes in bytes, lists, addresses."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Self
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

from engine.hooks.durations import format_duration, parse_duration
from engine.hot.environment.label_syntax import LABEL_REMEDY, label_problem
from hub.auth.roles import Role
from hub.listen_address import host_and_port, is_address

#: The type of the errors that `invalid` makes.
INVALID = "invalid_setting"
#: More than a machine has cores: a number that is a mistake.
MAX_PROCESSES = 1_024


class Section(BaseModel):
    """One table of the settings. It is frozen and rejects unknown names."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself, because it is frozen: pydantic copies the defaults of each section."""
        return self


def invalid(reason: str, remedy: str = "", *place: str | int) -> PydanticCustomError:
    """An error in a setting. place: below the section or setting whose validator raises it.

    The texts must not contain values that may be secret.
    """
    context = {"reason": reason, "remedy": remedy, "place": place}
    return PydanticCustomError(INVALID, "{reason}", context)


def not_longer(section: Section, shorter: str, longer: str) -> None:
    """Raise an error at the one of two durations that is set, if they are in the wrong order."""
    if getattr(section, shorter) <= getattr(section, longer):
        return
    if shorter in section.model_fields_set:
        maximum = format_duration(getattr(section, longer))
        raise invalid(
            f"must not be longer than {longer}",
            f"Write at most {maximum}, or raise {longer}",
            shorter,
        )
    minimum = format_duration(getattr(section, shorter))
    raise invalid(
        f"must not be shorter than {shorter}",
        f"Write at least {minimum}, or lower {shorter}",
        longer,
    )


def _duration(value: object) -> timedelta:
    read = value if isinstance(value, timedelta) else parse_duration(value)
    if not read:
        raise invalid("must be a duration such as 90s, 30m, 2h or 1d")
    return read


def _duration_or_none(value: object) -> timedelta | None:
    return None if value in (None, "") else _duration(value)


def _number(value: object) -> object:
    if isinstance(value, bool):  # true is 1 to Python
        raise invalid("must be an integer such as 10")
    return value


def _list(value: object) -> object:
    """Split the list in an environment variable: ``a,b``."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _listen(value: str) -> str:
    if not is_address(value):
        raise invalid("must be HOST:PORT, such as 127.0.0.1:8004")
    return value


def on_loopback(listen: str) -> bool:
    """Whether only this machine can connect to ``HOST:PORT``."""
    host = host_and_port(listen)[0]
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_url(text: str, *schemes: str) -> bool:
    """Whether the text is a URL of one of these schemes, with a host and a valid port, if any."""
    try:
        parts = urlsplit(text)
        return parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid IPv6 address or port
        return False


def _exact_url(value: str) -> str:
    """With a slash at the end if it has one: issuers are compared as text."""
    return value if _url(value) == value else f"{_url(value)}/"


def _url(value: str) -> str:
    if value and not _is_url(value, "http", "https"):
        raise invalid("must be a URL such as https://headgate.example.org")
    return value.rstrip("/")


#: A host name, which may contain globs.
_HOSTS = re.compile(r"[A-Za-z0-9*_-]+(\.[A-Za-z0-9*_-]+)*")


def _network(value: object) -> IPv4Network | IPv6Network:
    try:
        return ip_network(value if isinstance(value, str | IPv4Network | IPv6Network) else "")
    except ValueError:
        raise invalid(
            "must be a network such as 10.0.0.0/8 or ::1/128, with no bits set after the prefix",
        ) from None


def _reachable(value: object) -> IPv4Network | IPv6Network | str:
    try:
        return _network(value)
    except PydanticCustomError:
        if isinstance(value, str) and _HOSTS.fullmatch(value):
            return value.lower()
    raise invalid("must be a network such as 10.0.0.0/8 or a host such as *.example.org")


def _absolute(paths: Sequence[Path]) -> Sequence[Path]:
    if not all(path.is_absolute() for path in paths):
        raise invalid("must contain absolute paths, such as /srv/deploy")
    return paths


def _absolute_one(path: Path) -> Path:
    if not path.is_absolute():
        raise invalid("must be an absolute path, such as /opt/deploy/bin/deploy")
    return path


#: An environment variable, or a prefix followed by *.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_SLACK_USER_ID = re.compile(r"[UW][A-Z0-9]{2,40}")
_SUBSCRIPTION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def _label(text: str) -> str:
    if reason := label_problem(text):
        raise invalid(reason, LABEL_REMEDY)
    return text


def _labels(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_label, texts)))


def _label_or_none(text: str) -> str:
    return _label(text) if text else text


def _variables(names: Sequence[str]) -> Sequence[str]:
    if not all(_VARIABLE.fullmatch(name) for name in names):
        raise invalid("must contain variables such as RELEASE, or prefixes such as DEPLOY_*")
    return names


def _brokers(urls: Sequence[SecretStr]) -> Sequence[SecretStr]:
    for url in urls:
        if not _is_url(url.get_secret_value(), "amqp", "amqps"):
            raise invalid("must contain brokers such as amqp://USER:PASSWORD@HOST:5672/VHOST")
    return urls


def _json_pointers(pointers: Sequence[str]) -> Sequence[str]:
    if not all(pointer.startswith("/") for pointer in pointers):
        raise invalid("must contain JSON Pointers such as /port/id")
    return pointers


def _proxy(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if text and not _is_url(text, "http", "https"):
        raise invalid("must be a URL such as http://proxy.example.org:3128")
    return url


def _origins(origins: Sequence[str]) -> Sequence[str]:
    for one in origins:
        parts = urlsplit(one) if _is_url(one, "http", "https") else None
        if parts is None or one != f"{parts.scheme}://{parts.netloc}":
            raise invalid(
                "must contain origins such as https://console.example.org, without a path"
            )
    return origins


def _roles(roles: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    known = [role.value for role in Role]
    for names in roles.values():
        if not set(names) & set(known):
            raise invalid(
                'must map to Headgate roles, such as { member = ["author"] }: ' + ", ".join(known),
            )
    return roles


def _role_names(names: Sequence[str]) -> Sequence[str]:
    known = [role.value for role in Role]
    if not set(names) & set(known):
        raise invalid('must contain a role of Headgate, such as "author": ' + ", ".join(known))
    return names


def _subscription_name(name: str) -> str:
    if name and not _SUBSCRIPTION_NAME.fullmatch(name):
        raise invalid(
            "must be a name such as deploy-bot: 1 to 100 letters, digits, dots, hyphens and"
            " underscores, the first one a letter or digit"
        )
    return name


def _slack_user_id(text: str) -> str:
    if not _SLACK_USER_ID.fullmatch(text):
        raise invalid("must be the ID of a user of Slack such as U0123456789")
    return text


#: "": do not listen.
OptionalListen = Annotated[str, AfterValidator(lambda value: _listen(value) if value else value)]
Listen = Annotated[str, AfterValidator(_listen)]
Url = Annotated[str, AfterValidator(_url)]
ExactUrl = Annotated[str, AfterValidator(_exact_url)]
Duration = Annotated[timedelta, BeforeValidator(_duration)]
DurationOrNone = Annotated[timedelta | None, BeforeValidator(_duration_or_none)]
Count = Annotated[int, BeforeValidator(_number), Field(gt=0)]
#: 0: as many as the machine has cores.
Processes = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MAX_PROCESSES)]
#: 0 means unlimited.
CountOrAny = Annotated[int, BeforeValidator(_number), Field(ge=0)]
Bytes = Count
Texts = Annotated[tuple[str, ...], BeforeValidator(_list)]
ProxyUrl = Annotated[SecretStr, AfterValidator(_proxy)]
JsonPointers = Annotated[Texts, AfterValidator(_json_pointers)]
Brokers = Annotated[tuple[SecretStr, ...], BeforeValidator(_list), AfterValidator(_brokers)]
Network = Annotated[IPv4Network | IPv6Network, PlainValidator(_network)]
Reachable = Annotated[IPv4Network | IPv6Network | str, PlainValidator(_reachable)]
Reachables = Annotated[tuple[Reachable, ...], BeforeValidator(_list)]
Networks = Annotated[tuple[Network, ...], BeforeValidator(_list)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_list), AfterValidator(_absolute)]
AbsolutePath = Annotated[Path, AfterValidator(_absolute_one)]
Labels = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_labels)]
LabelOrNone = Annotated[str, AfterValidator(_label_or_none)]
Variables = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_variables)]
Origins = Annotated[tuple[str, ...], BeforeValidator(_list), AfterValidator(_origins)]
Rate = Annotated[float, Field(ge=0, le=100_000)]
SlackUserId = Annotated[str, AfterValidator(_slack_user_id)]
SubscriptionName = Annotated[str, AfterValidator(_subscription_name)]
RoleNames = Annotated[Texts, AfterValidator(_role_names)]
RoleMap = Annotated[Mapping[str, Texts], AfterValidator(_roles)]
