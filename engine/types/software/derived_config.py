"""The derived config for a server: the source config with input values and the signal URL. Pure.

The names of inputs and transports are Heat's, which agents on servers expect.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from engine.types.contract import Call
from engine.types.signal_urls import SignalUrl
from engine.types.software.software_store import UNGROUPED, NewConfig
from engine.words import Json

CFN, HEAT, NO_SIGNAL = "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL"
#: Transports of services that Headgate does not use.
REFUSED = ("TEMP_URL_SIGNAL", "ZAQAR_SIGNAL")
TRANSPORTS = (CFN, REFUSED[0], HEAT, NO_SIGNAL, REFUSED[1])
#: The input with the signal URL of a deployment. It is a secret.
SIGNAL_ID = "deploy_signal_id"


class MissingInput(Exception):
    """The config refers to an input without a value; the text is its name."""


def derived(call: Call, action: str, source: NewConfig) -> NewConfig:
    """The source config with the values of its inputs."""
    given = call.properties
    inputs = [*_valued(source, given.get("input_values") or {}), *_of_deployment(call, action)]
    name = given.get("name") or source.name or call.own_name
    return replace(source, name=name, group=source.group or UNGROUPED, inputs=inputs)


def _valued(source: NewConfig, values: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The inputs of the config, followed by values without a declared input."""
    for one in source.inputs:
        yield {**one, "value": values.get(one["name"], one.get("default"))}
    known = {one["name"] for one in source.inputs}
    for name, value in values.items():
        if name not in known:
            yield {"name": name, "type": "String", "value": value}


def _of_deployment(call: Call, action: str) -> Iterator[dict[str, Json]]:
    transport = call.properties["signal_transport"]
    yield _input("deploy_server_id", call.properties["server"], "ID of the server")
    yield _input("deploy_action", action, "Action of the deployment")
    stack = f"{call.stack_name}/{call.stack_id}"
    yield _input("deploy_stack_id", stack, "Stack of the deployment")
    yield _input("deploy_resource_name", call.resource_name, "Name of the deployment in the stack")
    yield _input("deploy_signal_transport", transport, "How the server reports the result")
    if transport != NO_SIGNAL:
        yield from _signalled(call.signal_url)


def _signalled(signal_url: SignalUrl) -> Iterator[dict[str, Json]]:
    yield _input(SIGNAL_ID, signal_url.signed_url, "Where the server reports the result")
    yield _input("deploy_signal_verb", "POST", "HTTP method of the report")


def _input(name: str, value: Json, description: str) -> dict[str, Json]:
    return {"name": name, "type": "String", "description": description, "value": value}


def values_of(config: NewConfig) -> dict[str, Json]:
    """The values of a config's inputs, by name."""
    return {one["name"]: one.get("value") for one in config.inputs}


def filled_in(config: Json, key: str, values: Mapping[str, Json], *, strict: bool) -> Json:
    """A map with ``{key: name}`` replaced by that input's value. Raises MissingInput if strict."""
    if isinstance(config, list):
        return [filled_in(one, key, values, strict=strict) for one in config]
    if not isinstance(config, dict):
        return config
    name = config.get(key) if len(config) == 1 else None
    if isinstance(name, str):
        if strict and values.get(name) is None:
            raise MissingInput(name)
        return values.get(name)
    return {one: filled_in(below, key, values, strict=strict) for one, below in config.items()}
