"""Certificates as settings name them, read."""

import ssl
from typing import Protocol

from engine.errors import Unavailable


class Certificates(Protocol):
    """PEM files: an authority, a certificate of our own, and its key; "" for none."""

    @property
    def ca_file(self) -> str: ...
    @property
    def cert_file(self) -> str: ...
    @property
    def key_file(self) -> str: ...


def tls_context(said: Certificates, place: str) -> ssl.SSLContext | None:
    """None: the system's authorities, and no certificate of our own. Raises Unavailable."""
    if not (said.ca_file or said.cert_file):
        return None
    try:
        context = ssl.create_default_context(cafile=said.ca_file or None)
        if said.cert_file:
            context.load_cert_chain(said.cert_file, said.key_file or None)
    except OSError as error:  # ssl.SSLError is one
        raise Unavailable(
            f"cannot use the certificates: {error.strerror or error}",
            place=place,
            remedy="Name files in PEM form that the server may read.",
        ) from error
    return context
