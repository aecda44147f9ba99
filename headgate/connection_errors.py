"""The reasons for which a request got no response, for messages."""

import asyncio
import os
import ssl
from enum import StrEnum

import aiohttp

#: What OpenSSL says of a response that is not TLS.
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")

#: Verification errors of OpenSSL (X509_V_ERR_*): of an unknown authority, of the name, of the time.
UNKNOWN_AUTHORITY, OTHER_NAME, OTHER_TIME = (2, 18, 19, 20, 21), (62, 63, 64), (9, 10)
#: Variable of OpenSSL: a file with the certificates of the authorities to trust.
AUTHORITIES = "SSL_CERT_FILE"


class TlsMistake(StrEnum):
    """What is wrong with the TLS of a connection."""

    PLAIN_SERVER = "plain server"
    AUTHORITY = "authority"
    NAME = "name"
    TIME = "time"


def tls_mistake(error: BaseException) -> TlsMistake | None:
    """None: another reason, or none that is known."""
    match error:
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_code=int(code))
        ):
            kinds = {
                TlsMistake.AUTHORITY: UNKNOWN_AUTHORITY,
                TlsMistake.NAME: OTHER_NAME,
                TlsMistake.TIME: OTHER_TIME,
            }
            return next((kind for kind, codes in kinds.items() if code in codes), None)
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError(reason=reason)) if reason in NO_TLS:
            return TlsMistake.PLAIN_SERVER
        case _:
            return None


def authority_remedy() -> str:
    """How to trust the authority of a server's certificate."""
    path = os.environ.get(AUTHORITIES, "")
    if path and not os.access(path, os.R_OK):
        return f"{AUTHORITIES} names {path}, which cannot be read: correct it."
    if path:
        return f"Add the certificate of its authority to {path}, which {AUTHORITIES} names."
    return f"Set {AUTHORITIES} to a file with the certificate of its authority, in PEM."


def may_have_arrived(error: BaseException) -> bool:
    """Whether the server may have received the request: there was a connection."""
    return not isinstance(
        error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL
    )


def is_no_http(error: BaseException) -> bool:
    """Whether a server that expects TLS may have caused the error of a request without TLS."""
    return isinstance(
        error, aiohttp.ServerDisconnectedError | aiohttp.ClientResponseError | ConnectionError
    )


async def uses_tls(host: str, port: int, seconds: float) -> bool:
    """Whether a server completes a TLS handshake. Nothing is sent, and no certificate is
    checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


def describe(error: BaseException) -> str:
    """The reason without addresses and exception names, such as ``connection refused``."""
    match error:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError() | ssl.SSLError():
            return _tls_reason(error)
        case aiohttp.ClientConnectorDNSError():
            return "the host name cannot be resolved"
        case TimeoutError():
            return "timeout"
        case aiohttp.ClientConnectorError(os_error=ConnectionRefusedError()):
            return "connection refused"
        case aiohttp.ClientConnectorError(os_error=OSError(strerror=str(reason))):
            return f"no connection: {reason}"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError() | ConnectionError():
            return "the connection was closed"
        case aiohttp.InvalidURL():
            return "the URL is not valid"
        case aiohttp.ClientError() | OSError():
            return "the response is not valid HTTP"
        case _:
            return "the response has an unexpected form"


def _tls_reason(error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_message=reason)
        ):
            return f"TLS error: {reason.rstrip('.')}"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError(reason=reason)) if reason in NO_TLS:
            return "TLS error: the server does not use TLS there, so its URL begins with http://"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError(reason=str(reason))):
            return f"TLS error: {reason.replace('_', ' ').lower()}"
        case _:
            return "TLS error"
