"""Templates that a request names by their URLs, fetched for it as far as the operator lets us.

Addresses are judged as those of webhooks are: as they are written, as they resolve, and once more
when a connection is made, which goes where was judged.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from ipaddress import ip_address

import aiohttp
from yarl import URL

from channels.webhook.client import read_whole, why_not
from channels.webhook.guard import (
    GuardedResolver,
    Lookup,
    Refused,
    guarded_connector,
    is_address,
    parse_target,
)
from engine.errors import Finding, Invalid
from hub.http.outbound import plain_session, system_lookup
from hub.settings.templates import TemplateUrls

PLACE = "template_url"
REMEDY = "Send the template itself; the operator lists hosts and networks in [template_urls] allow."


class TemplateFetcher:
    """lookup: gives a host's addresses."""

    def __init__(self, settings: TemplateUrls, *, lookup: Lookup = system_lookup) -> None:
        self._hosts = [one for one in settings.allow if isinstance(one, str)]
        self._networks = tuple(one for one in settings.allow if not isinstance(one, str))
        self._seconds = settings.timeout.total_seconds()
        self._lookup = lookup

    async def fetch(self, said: str, most: int) -> str:
        """The text at a URL, of at most so many bytes.

        Raises Invalid (codes NotSupported, InvalidTarget, Invalid).
        """
        url = self._judged(said)
        try:
            async with asyncio.timeout(self._seconds), self._session(url) as session:
                raw = await self._read(session, url, most)
        except TimeoutError:
            reason = f"no whole template within {self._seconds:g} s"
            raise _wrong(reason, "Try again, or send the template itself.") from None
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            raise _wrong(why_not(error), "Send the template itself.") from error
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise _wrong("the file is not text", "Name a template.") from None

    def _judged(self, said: str) -> URL:
        if not (self._hosts or self._networks):
            raise _wrong("this server fetches no templates", REMEDY, "NotSupported")
        url, found = parse_target(said, self._networks, remedy=REMEDY)
        if url is None:
            raise Invalid([replace(one, place=PLACE) for one in found])
        host = url.raw_host or ""
        if is_address(host) and not self._is_listed(host) and not self._is_inside(host):
            raise _wrong(f"may not be reached: {_outside(host)}", REMEDY, "InvalidTarget")
        return url

    def _is_listed(self, host: str) -> bool:
        name = host.lower().rstrip(".")
        return any(fnmatchcase(name, pattern) for pattern in self._hosts)

    def _is_inside(self, address: str) -> bool:
        return any(ip_address(address) in network for network in self._networks)

    def _session(self, url: URL) -> aiohttp.ClientSession:
        """One for each template: what may be reached depends on its host."""
        lookup = self._lookup if self._is_listed(url.raw_host or "") else self._inside
        resolver = GuardedResolver(lookup, self._networks, remedy=REMEDY)
        return plain_session(guarded_connector(resolver, self._networks, remedy=REMEDY))

    async def _inside(self, host: str, port: int) -> Sequence[str]:
        """Of a host that is not listed: its addresses, all in the listed networks."""
        addresses = await self._lookup(host, port)
        if not all(self._is_inside(one) for one in addresses):
            raise Refused(f"{_outside(host)} {REMEDY}")
        return addresses

    async def _read(self, session: aiohttp.ClientSession, url: URL, most: int) -> bytes:
        async with session.get(url, allow_redirects=False) as response:
            if 300 <= response.status < 400:
                raise _wrong("it redirects, which is not followed", "Name where it leads.")
            if response.status != 200:
                raise _wrong(f"it answered {response.status}", "Name a template that is there.")
            raw = await read_whole(response.content, most)
        if raw is None:
            reason = f"the template is larger than {most} bytes"
            raise _wrong(reason, "The limit is [quotas] template_bytes.")
        return raw


def _outside(host: str) -> str:
    return f"{host} is neither a listed host nor in a listed network."


def _wrong(reason: str, remedy: str, code: str = "Invalid") -> Invalid:
    return Invalid([Finding(PLACE, reason, remedy, code)])
