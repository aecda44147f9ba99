"""Temporary URLs of Swift: each allows one kind of request for one object, without login. Pure."""

import hashlib
import hmac
from typing import Final
from urllib.parse import urlencode, urlsplit

#: The last second of the URLs: they are valid until the key is deleted with its container. Later
#: ones do not fit in 32 bits.
MAX_EPOCH: Final = 2_147_483_647
#: The header of a container with the key of its temporary URLs.
KEY_HEADER: Final = "X-Container-Meta-Temp-URL-Key"


def derive_key(secret: str, purpose: str) -> str:
    """The key of a container, from a secret of its resource. All calls of an operation get the same
    one, so that it is stored nowhere but in Swift."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def sign_url(method: str, url: str, key: str, expires: int = MAX_EPOCH) -> str:
    """The temporary URL of an object. url: its own, whose path begins with the API version."""
    path = urlsplit(url).path
    signed = f"{method}\n{expires}\n{path}"
    signature = hmac.new(key.encode(), signed.encode(), hashlib.sha256).hexdigest()
    return f"{url}?{urlencode({'temp_url_sig': signature, 'temp_url_expires': expires})}"
