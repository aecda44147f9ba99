"""The reasons for which a request got no response, for messages."""

import ssl

import aiohttp

#: What OpenSSL says of a response that is not TLS.
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG")


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
        case aiohttp.ServerDisconnectedError() | ConnectionError():
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
        case _:
            return "TLS error"
