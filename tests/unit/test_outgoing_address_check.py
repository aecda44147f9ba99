"""Refused addresses and targets, in every known notation."""

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest

from engine.outgoing_address_check import (
    GuardedResolver,
    RefusedTarget,
    check,
    guarded_socket_factory,
    parse_target,
)

REFUSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255",
    "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8",
    "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "::8.8.8.8",
    "64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "2001::1", "2001:db8::1", "2001:10::1",
    "2002:7f00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "100::1", "fc00::1", "fd12::1",
    "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "4000::1", "8000::1",
    "::ffff:0:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
]  # fmt: skip
#: The metadata services of clouds.
METADATA = [
    "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe", "::ffff:168.63.129.16",
]  # fmt: skip
ALLOWED = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "223.255.255.255",
    "2001:4860:4860::8888", "2606:4700::1111", "2a00::1",
]  # fmt: skip


@pytest.mark.parametrize("text", [*REFUSED, *METADATA])
def test_internal_addresses_are_refused(text: str) -> None:
    assert check(ip_address(text), ()) is not None


@pytest.mark.parametrize("text", ALLOWED)
def test_public_addresses_are_allowed(text: str) -> None:
    assert check(ip_address(text), ()) is None


def test_addresses_that_ipaddress_considers_private_are_refused() -> None:
    for text in ALLOWED:
        assert ip_address(text).is_global


@pytest.mark.parametrize(
    ("text", "allow", "passes"),
    [
        ("10.1.2.3", "10.1.0.0/16", True),
        ("10.2.2.3", "10.1.0.0/16", False),
        ("::ffff:10.1.2.3", "10.1.0.0/16", True),
        ("::ffff:10.2.2.3", "10.1.0.0/16", False),
        ("2002:0a01:0203::1", "10.1.0.0/16", True),
        ("64:ff9b::a01:203", "10.1.0.0/16", True),
        ("64:ff9b::808:808", "64:ff9b::/96", True),
        ("fd00::1", "fd00::/8", True),
        ("fe80::1%eth0", "fe80::/10", False),
        ("127.0.0.1", "::/0", False),
    ],
)
def test_networks_that_the_operator_allows(text: str, allow: str, passes: bool) -> None:
    assert (check(ip_address(text), [ip_network(allow)]) is None) is passes


@pytest.mark.parametrize(
    "target",
    [
        "https://example.org", "https://example.org/", "http://example.org:8080/a?b=c",
        "https://EXAMPLE.org/", "https://example.org./", "https://bücher.example/",
        "https://8.8.8.8/", "https://[2606:4700::1111]/", "https://under_score.example/",
        "https://1.example/", "https://x0x/",
    ],
)  # fmt: skip
def test_good_targets(target: str) -> None:
    url, found = parse_target(target, ())
    assert found == []
    assert url is not None


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("", "scheme"),
        ("example.org", "scheme"),
        ("//example.org/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://example.org/", "scheme"),
        ("unix:///run/x.sock", "scheme"),
        ("http:", "no valid host"),
        ("http:///path", "no valid host"),
        ("http://example.org:0/", "no valid host"),
        ("http://example.org:99999/", "not a valid URL"),
        ("http://[::1", "not a valid URL"),
        ("http://me@example.org/", "user"),
        ("http://:pw@example.org/", "user"),
        ("http://8.8.8.8@127.0.0.1/", "user"),
        ("http://exa mple.org/", "blanks"),
        ("http://example.org/\r\nX: y", "blanks"),
        ("http://127.0.0.1\t/", "blanks"),
        ("http://127.0.0.1/", "loopback"),
        ("http://127.1/", "ambiguous"),
        ("http://127.0.1/", "ambiguous"),
        ("http://2130706433/", "ambiguous"),
        ("http://0x7f000001/", "ambiguous"),
        ("http://0x7f.0.0.1/", "ambiguous"),
        ("http://0X7F.1/", "ambiguous"),
        ("http://0177.0.0.1/", "ambiguous"),
        ("http://017700000001/", "ambiguous"),
        ("http://127.0.0.1./", "ambiguous"),
        ("http://127.0.0.1../", "ambiguous"),
        ("http://00000127.0.0.1/", "ambiguous"),
        ("http://256.0.0.1/", "ambiguous"),
        ("http://1.2.3.4.5/", "ambiguous"),
        ("http://example.1/", "ambiguous"),
        ("http://①②⑦.⓪.⓪.①/", "loopback"),
        ("http://127。0。0。1/", "loopback"),
        ("http://%31%32%37.0.0.1/", "ambiguous"),
        ("http://%6c.example/", "not a valid host name"),
        ("http://example..org/", "not a valid host name"),
        ("http://example.org../", "not a valid host name"),
        ("http://[::1]/", "loopback"),
        ("http://[0:0:0:0:0:0:0:1]/", "loopback"),
        ("http://[::ffff:127.0.0.1]/", "mapped"),
        ("http://[::ffff:7f00:1]/", "mapped"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://[fd00::1]/", "private"),
        ("http://169.254.169.254/latest/meta-data", "metadata"),
        ("http://168.63.129.16/machine", "metadata"),
        ("http://0/", "ambiguous"),
        ("http://0xA9FEA9FE/", "ambiguous"),
        ("http://2852039166/", "ambiguous"),
        ("http://0251.0376.0251.0376/", "ambiguous"),
        ("http://0o177.0.0.1/", "ambiguous"),
        ("http://4294967296/", "ambiguous"),
        ("http://0x7f\u30021/", "ambiguous"),
        ("http://127.0.0.1\u3002/", "ambiguous"),
        ("http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/", "loopback"),
        ("http://\U0001d7cf\U0001d7d0\U0001d7d5.0.0.1/", "loopback"),
        ("http://\u0967\u0968\u096d.0.0.1/", "ambiguous"),
        ("http://example.org:80@127.0.0.1/", "user"),
        ("http://127.0.0.1#@example.org/", "loopback"),
        ("http://127.0.0.1?@example.org/", "loopback"),
        ("http://good.example\\@127.0.0.1/", "not a valid URL"),
        ("http://127.0.0.1\\.example.org/", "not a valid URL"),
        ("http://example.org\uff20127.0.0.1/", "not a valid URL"),
        ("http://localhost%23@example.org/", "user"),
        ("http:\\\\127.0.0.1/", "no valid host"),
        ("http:/127.0.0.1/", "no valid host"),
        ("http://example.org%40127.0.0.1/", "ambiguous"),
        ("http://127%2e0%2e0%2e1/", "not a valid host name"),
        ("http://127.0.0.1%2eexample.org/", "not a valid host name"),
        ("http://127.0.0.1%00.example.org/", "not a valid host name"),
        ("http://%6c%6f%63alhost/", "not a valid host name"),
        ("http://[::ffff:169.254.169.254]/", "mapped"),
        ("http://[::127.0.0.1]/", "mapped"),
        ("http://[64:ff9b::7f00:1]/", "NAT64"),
        ("http://[2002:7f00:1::]/", "6to4"),
        ("http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", "Teredo"),
        ("http://[::1%25lo]/", "zone"),
        ("http://[fe80::1%eth0]/", "zone"),
        ("http://[127.0.0.1]/", "not a valid URL"),
        ("http://100.64.0.1/", "CGNAT"),
        ("http://0.0.0.0/", "this host"),
        ("http://255.255.255.255/", "broadcast"),
        ("http://224.0.0.1/", "multicast"),
        ("https://example.org/" + "a" * 3000, "longer"),
    ],
)
def test_bad_targets(target: str, reason: str) -> None:
    url, found = parse_target(target, ())
    assert url is None
    assert any(reason in str(finding) for finding in found), found


def resolve(addresses: Sequence[str], allow: Sequence[str] = ()) -> list[str]:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return addresses

    resolver = GuardedResolver(lookup, [ip_network(network) for network in allow])
    return [one["host"] for one in asyncio.run(resolver.resolve("a.test", 80))]


def test_every_address_of_a_name_is_checked() -> None:
    assert resolve(["8.8.8.8", "2606:4700::1111"]) == ["8.8.8.8", "2606:4700::1111"]
    for inner in ("127.0.0.1", "::1", "10.0.0.1", "nonsense"):
        for addresses in ([inner], ["8.8.8.8", inner], [inner, "8.8.8.8"]):
            with pytest.raises(RefusedTarget):
                resolve(addresses)
    assert resolve(["10.0.0.1"], ["10.0.0.0/8"]) == ["10.0.0.1"]
    with pytest.raises(OSError, match="no address"):
        resolve([])


#: Names at the end of CNAMEs, and names in other scripts.
LEADS = {
    "localhost": "127.0.0.1", "localhost.": "::1", "127.0.0.1.nip.example": "127.0.0.1",
    "alias.example.org": "169.254.169.254", "xn--nxasmq6b.example": "10.0.0.1",
}  # fmt: skip


@pytest.mark.parametrize(
    "host",
    [
        "localhost", "LOCALHOST", "\uff2c\uff2f\uff23\uff21\uff2c\uff28\uff2f\uff33\uff34",
        "\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3", "localhost.", "localhost\u3002",
        "127.0.0.1.nip.example", "alias.example.org", "\u03b2\u03cc\u03bb\u03bf\u03c2.example",
    ],
)  # fmt: skip
def test_a_name_is_checked_by_its_addresses(host: str) -> None:
    lookups = []

    async def lookup(name: str, port: int) -> Sequence[str]:
        lookups.append(name)
        return [LEADS.get(name, "10.0.0.2")]

    url, _ = parse_target(f"http://{host}/", ())
    assert url is not None
    with pytest.raises(RefusedTarget):
        asyncio.run(GuardedResolver(lookup, ()).resolve(url.raw_host or "", 80))
    assert lookups == [url.raw_host]


def test_the_checked_address_is_not_resolved_again() -> None:
    """The result is a numeric address, so a later DNS response has no effect."""

    async def lookup(name: str, port: int) -> Sequence[str]:
        return ["8.8.8.8", "2606:4700::1111"]

    found = asyncio.run(GuardedResolver(lookup, ()).resolve("a.test", 80))
    assert [one["host"] for one in found] == ["8.8.8.8", "2606:4700::1111"]
    assert all(one["flags"] & socket.AI_NUMERICHOST for one in found)
    assert [one["family"] for one in found] == [socket.AF_INET, socket.AF_INET6]


def test_the_socket_factory_checks_the_address() -> None:
    make = guarded_socket_factory([ip_network("127.0.0.0/8")])
    info = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
    created = make((*info, ("127.0.0.1", 1)))
    assert created.getblocking() is False
    created.close()
    with pytest.raises(RefusedTarget, match="not allowed"):
        make((*info, ("10.0.0.1", 1)))
