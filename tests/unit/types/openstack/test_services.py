"""Endpoints of services in a catalog."""

import pytest

from engine.types.openstack.services import (
    COMPUTE,
    IMAGE,
    NETWORK,
    VOLUME,
    Service,
    find_endpoint,
)
from engine.words import Json


def entry(
    type_: str, url: str, region: str = "one", interface: str = "public"
) -> dict[str, object]:
    return {
        "type": type_,
        "endpoints": [{"interface": interface, "region_id": region, "region": region, "url": url}],
    }


CATALOG: list[dict[str, Json]] = [
    entry("volumev3", "http://v/v3/p"),
    entry("block-storage", "http://v/v3"),
    entry("network", "http://n/"),
    entry("network", "http://n2", "two"),
    entry("network", "http://inner", "one", "internal"),
    entry("image", "http://i/v2/"),
    {"type": "compute", "endpoints": None},
]


@pytest.mark.parametrize(
    ("service", "region", "interface", "url"),
    [
        (NETWORK, "", "public", "http://n/v2.0"),
        (NETWORK, "two", "public", "http://n2/v2.0"),
        (NETWORK, "one", "internal", "http://inner/v2.0"),
        (NETWORK, "three", "public", None),
        (IMAGE, "one", "public", "http://i/v2"),
        (VOLUME, "one", "public", "http://v/v3"),
        (COMPUTE, "one", "public", None),
    ],
)
def test_endpoint(service: Service, region: str, interface: str, url: str | None) -> None:
    assert find_endpoint(CATALOG, service, region, interface) == url


def test_an_older_type_of_a_service() -> None:
    assert find_endpoint(CATALOG[:1], VOLUME, "", "public") == "http://v/v3/p"
