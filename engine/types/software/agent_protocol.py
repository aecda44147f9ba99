"""The data that a server's agent receives and sends: the derived config of a deployment (the source
config with input values and the signal URL), and the signals with its result. Pure.

The names of inputs, outputs and transports are Heat's, which agents expect.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from engine.hot.syntax.keyed_names import plain_name
from engine.types.contract import Call
from engine.types.object_signals import TEMP_URL, ZAQAR, SignalObject
from engine.types.software.software_store import UNGROUPED, DeploymentResult, NewConfig
from engine.words import Json, Status

CFN, HEAT, NO_SIGNAL = "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL"
TRANSPORTS = (CFN, TEMP_URL, HEAT, NO_SIGNAL, ZAQAR)
#: The input with the signal URL of a deployment. It is a secret.
SIGNAL_ID = "deploy_signal_id"
#: The inputs that are secrets.
SECRET_INPUTS = frozenset({SIGNAL_ID, "deploy_password"})
#: The credentials of a queue that are inputs, with their descriptions.
_CREDENTIALS: Mapping[str, str] = {
    "auth_url": "URL of Keystone",
    "username": "Name of the user with whom the server reports the result",
    "user_id": "ID of this user",
    "password": "Password of this user",
    "project_id": "ID of the project of this user",
    "region_name": "Region of Zaqar",
    "queue_id": "Queue to which the server reports the result",
}
#: The input with the action that a deployment runs.
ACTION = "deploy_action"


class MissingInput(Exception):
    """The config refers to an input without a value; the text is its name."""


def derive_config(
    call: Call, action: str, source: NewConfig, target: SignalObject | None = None
) -> NewConfig:
    """The source config with the values of its inputs. target: where the server sends its signals,
    if not to Headgate."""
    properties = call.properties
    inputs = [
        *_inputs_with_values(source, properties.get("input_values") or {}),
        *_of_deployment(call, action, target),
    ]
    name = properties.get("name") or source.name or call.own_name
    return replace(source, name=name, group=source.group or UNGROUPED, inputs=inputs)


def _inputs_with_values(source: NewConfig, values: Mapping[str, Json]) -> Iterator[dict[str, Json]]:
    """The inputs of the config, followed by values without a declared input."""
    for one in source.inputs:
        yield {**one, "value": values.get(one["name"], one.get("default"))}
    known = {one["name"] for one in source.inputs}
    for name, value in values.items():
        if name not in known:
            yield {"name": name, "type": "String", "value": value}


def _of_deployment(
    call: Call, action: str, target: SignalObject | None
) -> Iterator[dict[str, Json]]:
    transport = call.properties["signal_transport"]
    yield _input("deploy_server_id", call.properties["server"], "ID of the server")
    yield _input(ACTION, action, "Action of the deployment")
    stack = f"{call.stack_name}/{call.stack_id}"
    yield _input("deploy_stack_id", stack, "Stack of the deployment")
    name = plain_name(call.resource_name)
    yield _input("deploy_resource_name", name, "Name of the deployment in the stack")
    yield _input("deploy_signal_transport", transport, "How the server reports the result")
    if target is not None and target.credentials:
        for name, text in _CREDENTIALS.items():
            if name in target.credentials:
                yield _input(f"deploy_{name}", target.credentials[name], text)
    elif transport != NO_SIGNAL:
        url = target.url if target is not None else call.signal_url.signed_url
        yield _input(SIGNAL_ID, url, "URL to which the server reports the result")
        verb = "POST" if target is None else "PUT"
        yield _input("deploy_signal_verb", verb, "HTTP method of the report")


def _input(name: str, value: Json, description: str) -> dict[str, Json]:
    return {"name": name, "type": "String", "description": description, "value": value}


def values_of(config: NewConfig) -> dict[str, Json]:
    """The values of a config's inputs, by name."""
    return {one["name"]: one.get("value") for one in config.inputs}


def action_of(config: NewConfig) -> str | None:
    """The action that a published config runs."""
    return values_of(config).get(ACTION)


def insert_inputs(config: Json, key: str, values: Mapping[str, Json], *, strict: bool) -> Json:
    """A map with ``{key: name}`` replaced by that input's value. Raises MissingInput if strict."""
    if isinstance(config, list):
        return [insert_inputs(one, key, values, strict=strict) for one in config]
    if not isinstance(config, dict):
        return config
    name = config.get(key) if len(config) == 1 else None
    if isinstance(name, str):
        if strict and values.get(name) is None:
            raise MissingInput(name)
        return values.get(name)
    return {one: insert_inputs(below, key, values, strict=strict) for one, below in config.items()}


STDOUT, STDERR, STATUS_CODE = "deploy_stdout", "deploy_stderr", "deploy_status_code"
#: The outputs of every deployment, in addition to those of its config.
COMMON_OUTPUTS = (STDOUT, STDERR, STATUS_CODE)
#: The fields of a progress signal: the status, and an optional reason.
PROGRESS, PROGRESS_REASON = "deploy_status", "deploy_status_reason"
_BEGAN = "Deployment started"
#: Maximum characters of a reason: error outputs may be long.
MAX_REASON_LENGTH = 4_000


def progress_of(signal: Mapping[str, Json]) -> str | None:
    """The reason in a progress signal; None for a final signal."""
    if signal.get(PROGRESS) != Status.IN_PROGRESS:
        return None
    return str(signal.get(PROGRESS_REASON) or _BEGAN)[:MAX_REASON_LENGTH]


def result_of_signal(
    signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]], before: Mapping[str, Json]
) -> DeploymentResult:
    """The result in a final signal. outputs: of the config. before: earlier output values, which
    stay unless the signal has new ones."""
    declared = {one["name"]: signal[one["name"]] for one in outputs if one["name"] in signal}
    common = {name: signal.get(name) for name in COMMON_OUTPUTS}
    wrong = _wrong(signal, outputs)
    values = {**before, **declared, **common}
    if wrong:
        reason = ", ".join(f"{name} : {why}" for name, why in wrong.items())
        return DeploymentResult(Status.FAILED, reason[:MAX_REASON_LENGTH], values)
    return DeploymentResult(Status.COMPLETE, "Outputs received", values)


def _wrong(signal: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]]) -> dict[str, str]:
    """The reasons of a failure, by output."""
    code = signal.get(STATUS_CODE)
    wrong: dict[str, str] = {}
    if code is not None and str(code) not in ("", "0"):
        wrong[STATUS_CODE] = f"Deployment exited with non-zero status code: {code}"
    for one in outputs:
        value = signal.get(one["name"])
        if one.get("error_output") and value not in (None, ""):
            wrong[one["name"]] = str(value)
    return wrong


def attributes_of(
    outputs: Sequence[Mapping[str, Json]], values: Mapping[str, Json]
) -> dict[str, Json]:
    """The attributes; null for outputs without a value."""
    names = [*COMMON_OUTPUTS, *(str(one["name"]) for one in outputs)]
    return {name: values.get(name) for name in names} | dict(values)
