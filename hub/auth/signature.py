"""Version 2 of the signatures of AWS, with which agents on servers sign what they ask. Pure."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

#: What else of the query counts is in these; the signature itself is not signed.
ACCESS_KEY, SIGNATURE = "AWSAccessKeyId", "Signature"
VERSION, METHOD = "SignatureVersion", "SignatureMethod"


def is_signed(secret: str, verb: str, host: str, path: str, query: Mapping[str, str]) -> bool:
    """Whether the query was signed with the secret. host: with its port, as the client knows it."""
    if query.get(VERSION) != "2" or query.get(METHOD) != "HmacSHA256":
        return False
    right = signed(secret, verb, host, path, query)
    return hmac.compare_digest(right.encode(), query.get(SIGNATURE, "").encode())


def signed(secret: str, verb: str, host: str, path: str, query: Mapping[str, str]) -> str:
    """The signature of a query, in base64."""
    pairs = sorted((name, value) for name, value in query.items() if name != SIGNATURE)
    written = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)
    text = f"{verb}\n{host.lower()}\n{path}\n{written}"
    digest = hmac.digest(secret.encode(), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
