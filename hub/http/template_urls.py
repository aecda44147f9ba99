"""Fetches templates from URLs in requests, if the operator allows their hosts.

As for webhooks, an address is checked when the URL is parsed, after name resolution, and again for
the actual address of the connection.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from ipaddress import ip_address

import aiohttp
from yarl import URL

from channels.webhook.client import failure_reason, read_whole
from engine.errors import Finding, Invalid
from engine.outgoing_address_check import (
    GuardedResolver,
    Lookup,
    RefusedTarget,
    guarded_connector,
    is_address,
    parse_target,
)
from hub.http.outbound import plain_session, system_lookup
from hub.settings.settings import TemplateUrls

PLACE = "template_url"
REMEDY = "Send the template itself; the operator lists hosts and networks in [template_urls] allow."


class TemplateFetcher:
    """Fetches templates from allowed hosts. lookup: returns the addresses of a host."""

    def __init__(self, settings: TemplateUrls, *, lookup: Lookup = system_lookup) -> None:
        self._hosts = [one for one in settings.allow if isinstance(one, str)]
        self._networks = tuple(one for one in settings.allow if not isinstance(one, str))
        self._seconds = settings.timeout.total_seconds()
        self._lookup = lookup

    async def fetch(self, url_text: str, max_bytes: int) -> str:
        """The text at a URL. max_bytes: maximum bytes.

        Raises Invalid (codes NotSupported, InvalidTarget, Invalid).
        """
        url = self._checked_url(url_text)
        try:
            async with asyncio.timeout(self._seconds), self._session(url) as session:
                raw = await self._read(session, url, max_bytes)
        except TimeoutError:
            reason = f"the template was not complete within {self._seconds:g} s"
            raise _wrong(reason, "Try again, or send the template itself.") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise _wrong(failure_reason(error), "Send the template itself.") from error
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _wrong("the file is not text", "Send the URL of a template.") from None

    def _checked_url(self, url_text: str) -> URL:
        if not (self._hosts or self._networks):
            raise _wrong("this server fetches no templates", REMEDY, "NotSupported")
        url, found = parse_target(url_text, self._networks, remedy=REMEDY)
        if url is None:
            raise Invalid([replace(one, place=PLACE) for one in found])
        host = url.raw_host or ""
        if is_address(host) and not self._is_listed(host) and not self._is_in_listed_network(host):
            raise _wrong(f"may not be reached: {_not_listed(host)}", REMEDY, "InvalidTarget")
        return url

    def _is_listed(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        return any(fnmatchcase(name, pattern) for pattern in self._hosts)

    def _is_in_listed_network(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self._networks)

    def _session(self, url: URL) -> aiohttp.ClientSession:
        """A session for one template, because the allowed addresses depend on its host."""
        lookup = (
            self._lookup
            if self._is_listed(url.raw_host or "")
            else self._addresses_of_unlisted_host
        )
        resolver = GuardedResolver(lookup, self._networks, remedy=REMEDY)
        return plain_session(guarded_connector(resolver, self._networks, remedy=REMEDY))

    async def _addresses_of_unlisted_host(self, host: str, port: int) -> Sequence[str]:
        """The addresses of an unlisted host. Raises RefusedTarget unless all are in listed
        networks."""
        addresses = await self._lookup(host, port)
        if not all(self._is_in_listed_network(one) for one in addresses):
            raise RefusedTarget(f"{_not_listed(host)} {REMEDY}")
        return addresses

    async def _read(self, session: aiohttp.ClientSession, url: URL, max_bytes: int) -> bytes:
        async with session.get(url, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise _wrong(
                    "it redirects; redirects are not followed", "Use the URL that it redirects to."
                )
            if response.status != 200:
                raise _wrong(
                    f"it answered {response.status}", "Send the URL of an existing template."
                )
            raw = await read_whole(response.content, max_bytes)
        if raw is None:
            reason = f"the template is larger than {max_bytes} bytes"
            raise _wrong(reason, "The limit is [quotas] template_bytes.")
        return raw


def _not_listed(host: str) -> str:
    return f"{host} is neither a listed host nor in a listed network."


def _wrong(reason: str, remedy: str, code: str = "Invalid") -> Invalid:
    return Invalid([Finding(PLACE, reason, remedy, code)])
