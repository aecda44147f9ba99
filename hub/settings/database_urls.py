"""Checks of the URLs of databases in settings. Errors do not contain the URL, which can have a
password."""

from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import SecretStr

from engine.store.hosts import WRITABLE, hosts_of, target_of
from hub.settings.types import invalid


def check_primary(url: SecretStr) -> SecretStr:
    """Raises an error of pydantic if it cannot be the URL of a primary; "" is none."""
    text = url.get_secret_value()
    _check_hosts(text)
    if (target := target_of(text)) and target not in WRITABLE:
        raise invalid(
            f'has target_session_attrs="{target}", and Headgate writes to its database',
            f"Leave it out, or write {' or '.join(WRITABLE)}",
        )
    return url


def check_pooler(url: SecretStr) -> SecretStr:
    """Raises an error of pydantic if it cannot be the URL of a pooler; "" is none."""
    text = url.get_secret_value()
    _check_hosts(text)
    if len(hosts_of(text)) > 1:
        raise invalid(
            "has several hosts, and Headgate connects to one pooler",
            "Name one address, behind which several poolers may take over",
        )
    return url


def check_replicas(url: SecretStr) -> SecretStr:
    """Raises an error of pydantic if it cannot be the URL of replicas; "" is none."""
    text = url.get_secret_value()
    _check_hosts(text)
    if target_of(text):
        raise invalid(
            "has target_session_attrs, and Headgate chooses the replicas itself", "Leave it out"
        )
    return url


def without_password(url: SecretStr) -> str:
    """A valid URL without the password, which can stand before the hosts and in the query."""
    parts = urlsplit(url.get_secret_value())
    account, at, hosts = parts.netloc.rpartition("@")
    query = [(name, value) for name, value in parse_qsl(parts.query) if name != "password"]
    netloc = f"{account.partition(':')[0]}{at}{hosts}"
    return parts._replace(netloc=netloc, query=urlencode(query)).geturl()


def _check_hosts(url: str) -> None:
    try:
        hosts_of(url)
    except ValueError:
        raise invalid(
            "has hosts or ports that cannot be read",
            "Write postgresql://USER@HOST1:PORT1,HOST2:PORT2/DATABASE with ports from 1 to"
            " 65535, and percent-encode special characters of the user and the password: # is"
            " %23, [ is %5B",
        ) from None
