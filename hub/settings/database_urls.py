"""Checks of the URLs of databases in settings. Errors do not contain the URL, which can have a
password."""

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


def check_replicas(url: SecretStr) -> SecretStr:
    """Raises an error of pydantic if it cannot be the URL of replicas; "" is none."""
    text = url.get_secret_value()
    _check_hosts(text)
    if target_of(text):
        raise invalid(
            "has target_session_attrs, and Headgate chooses the replicas itself", "Leave it out"
        )
    return url


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
