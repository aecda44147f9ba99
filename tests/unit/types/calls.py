"""Calls of operations, as a worker makes them: properties checked, defaults filled in."""

import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from typing import Any
from uuid import UUID

from engine.errors import Finding, Findings
from engine.hooks.derived_tokens import TokenKeys
from engine.hot.definition.stack import check_resolved, fill_defaults
from engine.types.command import AllowedProgram, Command, CommandSettings, RunAs
from engine.types.contract import Call, Outcome, ResourceType, RunNested, Wait
from engine.types.http import Http, HttpSettings
from engine.types.operator_credentials import Credentials
from engine.types.registry import TypeRegistry, built_in
from engine.types.remote_stack import Endpoints, RemoteEndpoint, RemoteStack
from engine.types.signal_urls import SignalUrls
from engine.types.software import ServerUrls, SoftwareStore, software_types
from engine.words import Json, ResourceId, StackId
from tests.support.in_memory_heat import URL, InMemoryHeat
from tests.support.in_memory_service import InMemoryService
from tests.unit.types.child_stacks import run_command
from tests.unit.types.software.in_memory import InMemoryStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = UUID("11111111-2222-4333-8444-555555555555")
STACK = StackId(UUID(int=1))
SIGNAL_URLS = SignalUrls(TokenKeys.single(b"key"), "http://hub.test")
SIGNAL_URL = SIGNAL_URLS.make_url("p", ("s", STACK), UUID(int=2))
PYTHON = sys.executable
ON = CommandSettings(
    enabled=True,
    programs=tuple(AllowedProgram(one, ("*",), ("**",), ("/",)) for one in (PYTHON, "/bin/sh")),
    variables=("A", "B", "C", "NONE", "SECRET", "PASSWORD", "HEADGATE_*"),
    run_as=RunAs("server"),
    max_timeout=timedelta(minutes=1),
)
SERVERS = ServerUrls(TokenKeys.single(b"k" * 32), "http://h")


def registry(
    settings: CommandSettings = ON, software_store: SoftwareStore | None = None
) -> TypeRegistry:
    shelf = Http(HttpSettings(enabled=True), InMemoryService(), Credentials({}))
    endpoints = Endpoints({"west": RemoteEndpoint("west", URL, ["*"])})
    remote_stack = RemoteStack(endpoints, InMemoryHeat(at_once=True), Credentials({}))
    software = software_types(
        InMemoryStore() if software_store is None else software_store, SERVERS
    )
    return built_in(random.Random(1), Command(settings), shelf, remote_stack, *software)


def a_call(type_: ResourceType, properties: Mapping[str, Json], **more: Any) -> Call:
    """A call with resolved properties. Fails if they violate the schema."""
    findings = Findings()
    checked = check_resolved(type_.schema, properties, "resources.r.properties", findings)
    findings.raise_if_any()
    known: dict[str, Any] = {
        "project": "p",
        "stack_id": STACK,
        "stack_name": "s",
        "resource_id": ResourceId(UUID(int=2)),
        "resource_name": "r",
        "operation_key": KEY,
        "now": NOW,
        "signal_url": SIGNAL_URL,
        "referenced": {},
        "properties": fill_defaults(type_.schema, checked),
    }
    return Call(**(known | more))


async def run(type_: ResourceType, operation: str, call: Call) -> Outcome:
    """One call of one operation."""
    outcome: Any = getattr(type_, operation)(call)
    if isawaitable(outcome):
        outcome = await outcome
    assert isinstance(outcome, Outcome)
    return outcome


async def ended(type_: ResourceType, operation: str, call: Call) -> Outcome:
    """Run an operation to its end, at the times of its waits."""
    for _ in range(200):
        outcome = await run(type_, operation, call)
        if isinstance(outcome, RunNested):
            key = call.operation_key
            child = run_command(call.child, outcome.step, outcome.goal, id_=key)
            call = replace(call, progress=outcome.progress, child=child)
            continue
        if not isinstance(outcome, Wait):
            return outcome
        assert outcome.until is not None
        call = replace(call, now=max(outcome.until, call.now), progress=outcome.progress)
    raise AssertionError("the operation does not end")


def findings_of(type_: ResourceType, properties: Mapping[str, Json]) -> list[Finding]:
    """The findings of the validation of these properties."""
    findings = Findings()
    place = "resources.r.properties"
    checked = check_resolved(type_.schema, properties, place, findings)
    if not findings.all:
        type_.check_properties(checked, place, findings)
    return findings.all
