"""The command line against servers with another scheme, or with a certificate that it refuses."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.bad_receivers import Fault, faulty_receiver, never_respond, respond
from tests.support.certificates import Authority, CertificateFiles
from tests.support.command_line import command, completed
from tests.support.program import ServerProcess

OK = respond("200 OK", "Content-Type: application/json", body=b'{"stacks": []}')
HTTPS_PORT = respond("400 Bad Request", body=b"The plain HTTP request was sent to HTTPS port")
SET_URL = "Set --url, HEADGATE_URL or the URL of the context to {}."


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


async def error_of(
    behavior: Fault,
    scheme: str = "",
    certificate: CertificateFiles | None = None,
    environment: dict[str, str] | None = None,
) -> tuple[str, str]:
    """What `headgate stack list` says, and the URL that it was given. scheme: instead of the right
    one."""
    async with faulty_receiver(behavior, certificate) as url:
        base = url.removesuffix("/hook")
        given = f"{scheme}://{base.partition('://')[2]}" if scheme else base
        words = ("stack", "list", "--url", given, "-o", "name")
        if environment is None:
            done = await asyncio.to_thread(completed, *words)
        else:  # a forked process has read its authorities already
            done = await asyncio.to_thread(
                subprocess.run, command(*words), capture_output=True, text=True, timeout=60,
                env=os.environ | environment,
            )  # fmt: skip
        assert done.returncode == 1, done
        assert "Traceback" not in done.stderr and "headgate serve" not in done.stderr
        return done.stderr.strip(), given


def test_a_server_without_tls(server: ServerProcess) -> None:
    url = server.url.replace("http", "https")
    done = completed("stack", "list", "--url", url)
    assert (done.returncode, done.stderr) == (
        1,
        f"headgate: no response from {url}: the server does not use TLS there."
        f" {SET_URL.format(server.url)}\n",
    )


@pytest.mark.parametrize("behavior", [never_respond, HTTPS_PORT], ids=["closed", "answered"])
async def test_a_server_that_expects_tls(behavior: Fault, authority: Authority) -> None:
    error, url = await error_of(behavior, "http", authority.issue("expects", "127.0.0.1"))
    secure = url.replace("http", "https")
    assert error == (
        f"headgate: no response from {url}: the server expects TLS there. {SET_URL.format(secure)}"
    )


async def test_a_proxy_that_redirects_to_https() -> None:
    location = "https://headgate.test/v1/default/stacks"
    error, url = await error_of(respond("301 Moved Permanently", f"Location: {location}"))
    assert error.startswith(f"headgate: no response from {url}: the server expects TLS there.")


async def test_certificates_of_unknown_authorities(authority: Authority, tmp_path: Path) -> None:
    remedy = "Set SSL_CERT_FILE to a file with the certificate of its authority, in PEM."
    own = authority.self_signed("127.0.0.1")
    error, _ = await error_of(OK, certificate=own, environment={"SSL_CERT_FILE": ""})
    assert "TLS error: self-signed certificate" in error and error.endswith(remedy)
    issued = authority.issue("trusted", "127.0.0.1")
    error, _ = await error_of(OK, certificate=issued, environment={"SSL_CERT_FILE": ""})
    assert "unable to get local issuer certificate" in error and error.endswith(remedy)

    missing = tmp_path / "missing.pem"
    error, _ = await error_of(OK, certificate=issued, environment={"SSL_CERT_FILE": str(missing)})
    assert error.endswith(f"SSL_CERT_FILE names {missing}, which cannot be read: correct it.")
    trust = {"SSL_CERT_FILE": str(authority.file)}
    error, _ = await error_of(respond("503 Away"), certificate=issued, environment=trust)
    assert "the server responded with 503" in error


async def test_certificates_for_others_and_for_another_time(authority: Authority) -> None:
    trust = {"SSL_CERT_FILE": str(authority.file)}
    other = authority.issue("other", "127.0.0.2")
    error, _ = await error_of(OK, certificate=other, environment=trust)
    assert "certificate is not valid for '127.0.0.1'. Use a name of the certificate" in error
    old = authority.issue("old", "127.0.0.1", expired=True)
    error, _ = await error_of(OK, certificate=old, environment=trust)
    assert "certificate has expired. Renew the certificate of the server" in error
