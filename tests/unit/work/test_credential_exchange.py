"""The credential of a change is exchanged only for calls that use it."""

import os
from collections.abc import Mapping

import pytest

from engine.plan.resource_change import ResourceChange
from engine.store.encryption.secret_values import Keyring
from engine.store.traversals.traversal_credentials import scope
from engine.types.contract import Done, Failed
from engine.types.object_signals import SignalServices
from engine.types.wait_conditions import wait_types
from engine.words import Json, Operation
from engine.work.nodes.operation_call import start
from engine.work.nodes.prepare import PreparedNode
from tests.unit.types.calls import SIGNAL_URLS
from tests.unit.types.test_object_signals import HANDLE, InMemoryObjects
from tests.unit.work.test_internal_error import ID, running

KEYRING = Keyring(os.urandom(32), random_bytes=os.urandom)


def prepared(properties: Mapping[str, Json]) -> PreparedNode:
    """A handle that is to be created by a change with a credential."""
    (handle,) = (
        one for one in wait_types(SignalServices(InMemoryObjects())) if one.schema.name == HANDLE
    )
    credential = KEYRING.encrypt(scope("p", ID), "trust")
    work = running(Operation.CREATE, "execute", type=HANDLE, credential=credential)
    return PreparedNode(work, handle, properties, ResourceChange(Operation.CREATE))


@pytest.mark.parametrize("transport", ["TOKEN_SIGNAL", "TEMP_URL_SIGNAL"])
async def test_a_handle_without_swift_does_not_depend_on_keystone(transport: str) -> None:
    exchanged: list[str] = []

    def exchange(kept: str) -> str:
        exchanged.append(kept)
        raise OSError("Keystone is down")

    node = prepared({"signal_transport": transport})
    outcome = start(node, KEYRING, exchange, signal_urls=SIGNAL_URLS)
    uses_swift = transport == "TEMP_URL_SIGNAL"
    assert isinstance(outcome, Failed if uses_swift else Done)
    assert exchanged == ["trust"] * uses_swift
