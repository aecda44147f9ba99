"""The certificate authority of an identity service, from a file that a setting names."""

import ssl

from engine.errors import Unavailable


def read_authority(ca_file: str, setting: str) -> ssl.SSLContext | bool:
    """For the connections of aiohttp. ca_file: "": the system's authorities. setting: the place in
    errors. Raises Unavailable."""
    if not ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Unavailable(
            f"cannot use the authority {ca_file}: {error.strerror or error}",
            place=setting,
            remedy="Name a file in PEM form that the server may read.",
        ) from error
