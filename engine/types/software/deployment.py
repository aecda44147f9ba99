"""OS::Heat::SoftwareDeployment and StructuredDeployment: apply a config to a server and wait for
the result.

An operation publishes the config with its input values. It is called again when a signal arrives or
the API changes the status of the deployment; meanwhile the deployment is only a row. The data of a
failed deployment contains its properties, so that its deletion can be sent to the server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from engine.errors import Findings
from engine.hot.schema.type_schema import TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, Replace, Wait
from engine.types.http_client import ServiceError
from engine.types.object_signals import (
    LEFT_BEHIND,
    NO_SERVICES,
    POLL_PAUSE,
    ZAQAR,
    ObjectSignals,
    ReceivesObjects,
    SignalObject,
    SignalServices,
    object_name,
    parse_body,
)
from engine.types.operation_outcomes import next_poll
from engine.types.software.agent_protocol import (
    NO_SIGNAL,
    MissingInput,
    action_of,
    attributes_of,
    derive_config,
    insert_inputs,
    progress_of,
    result_of_signal,
    values_of,
)
from engine.types.software.configs import COMPONENT, NO_CONFIG, no_config
from engine.types.software.schema import (
    ATTRIBUTES,
    DEFAULT_ACTIONS,
    PROPERTIES,
    STRUCTURED,
    TRANSPORT_REMEDY,
    check_transport,
)
from engine.types.software.software_store import (
    UNGROUPED,
    Deployment,
    DeploymentResult,
    NewConfig,
    Publication,
    SoftwareStore,
)
from engine.words import Json, Status

_FAILED = "Deployment to server failed"
_NO_DEPLOYMENT = "Deployment not found"
_WAITING = "The server has not answered yet"
_NO_OBJECT = (
    "Swift does not accept the temporary URL of the server's metadata any more. Mark the server as"
    " unhealthy, and update the stack."
)
#: The progress of an operation after publication, and of a delete after the end of the deployment.
_PUBLISHED: Json = {"published": True}
_WITHDRAWN = "withdrawn"
#: In the data of a failed deployment: its properties, and their key in data of earlier releases.
_PROPERTIES, _OLD_PROPERTIES = "properties", "said"
#: A signal ends the wait earlier. The stack's timeout counts only waits that have an end.
_POLL = timedelta(days=1)


class SoftwareDeployment(ReceivesObjects):
    supersedable = True
    schema = TypeSchema(
        "OS::Heat::SoftwareDeployment",
        description="A software config for a server, with input values; waits for the result.",
        properties=PROPERTIES,
        attributes=ATTRIBUTES,
        any_attribute=True,
        signals=True,
    )

    def __init__(
        self, software_store: SoftwareStore, services: SignalServices = NO_SERVICES
    ) -> None:
        self._software_store = software_store
        self.services = services
        self.uses_credential = services.swift is not None

    def needs_credential(self, call: Call) -> bool:
        service = self._uploads_to(_with_kept_properties(call))
        return service is not None and service.needs_credential

    async def create(self, call: Call) -> Outcome:
        return await self._deploy(call, "CREATE")

    async def update(self, call: Call) -> Outcome:
        return await self._deploy(call, "UPDATE")

    async def suspend(self, call: Call) -> Outcome:
        return await self._deploy(call, "SUSPEND")

    async def resume(self, call: Call) -> Outcome:
        return await self._deploy(call, "RESUME")

    async def delete(self, call: Call) -> Outcome:
        if _WITHDRAWN in (call.progress or {}):
            return await self._withdraw(call)
        call = _with_kept_properties(call)
        zaqar = call.properties.get("signal_transport") == ZAQAR
        if zaqar and self.services.zaqar is None:
            return Failed(LEFT_BEHIND, call.physical_id, call.data, public_reason=LEFT_BEHIND)
        outcome = await self._deploy(call, "DELETE") if call.properties else Done(None)
        if not isinstance(outcome, Done):
            return outcome
        try:
            await self._remove_objects(call)
        except ServiceError as error:
            return _failed(call, error)
        # Last: until then, the deployment shows a repeated delete that its config was run.
        await self._software_store.unpublish(call.project, _id_of(call))
        return await self._withdraw(call)

    async def _withdraw(self, call: Call) -> Outcome:
        """Write the metadata of the server without the deployment. A server without its object has
        none that are out of date."""
        progress = call.progress or {}
        server = progress.get(_WITHDRAWN) or call.properties.get("server")
        if not server or call.superseded or call.cancelled:
            return Done(None)
        try:
            await self._software_store.push(call.project, server)
        except ServiceError as error:
            tries = progress.get("tries", 0)
            until = next_poll(call.now, tries, POLL_PAUSE)
            waits = {_WITHDRAWN: server, "tries": tries + 1}
            return Wait(until, waits, str(error), public_reason=error.public)
        return Done(None)

    async def check(self, call: Call) -> Outcome:
        found = await self._software_store.deployment(call.project, _id_of(call))
        if found is None:
            reason = "nothing is deployed yet"
            return Done(call.physical_id, call.attributes, call.data, reason, public_reason=reason)
        return Done(call.physical_id, attributes_of(found.config.outputs, found.output_values))

    async def adopt(self, call: Call) -> Outcome:
        if await self._software_store.deployment(call.project, _id_of(call)) is None:
            return Failed(_no_deployment(call), call.physical_id, public_reason=_NO_DEPLOYMENT)
        return await self.check(call)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_transport(properties, place, findings, self.services.transports)

    def apply_inputs(self, call: Call, source: NewConfig, inputs: NewConfig) -> Json:
        """The config for the server. inputs: with their values. Raises MissingInput."""
        return source.config

    async def _deploy(self, call: Call, action: str) -> Outcome:
        if call.progress is not None:
            return await self._poll(call, action)
        source = await self._source(call)
        if source is None and action == "DELETE":
            return Done(None)
        if source is None:
            reason = no_config(call.properties["config"])
            return Failed(reason, call.physical_id, public_reason=NO_CONFIG)
        found = await self._software_store.deployment(call.project, _id_of(call))
        if action not in _actions(call, source) or (action == "DELETE" and _ran_delete(found)):
            return _done(call, source, found)
        try:
            target = await self._create_object(call)
            if target is not None and found is not None:
                await self._remove_objects(call, keep=target.name)
        except ServiceError as error:
            return _failed(call, error)
        try:
            config = derive_config(call, action, source, target)
            config = replace(config, config=self.apply_inputs(call, source, config))
        except MissingInput as missing:
            reason = f"The Parameter ({missing}) was not provided."
            return Failed(reason, call.physical_id, public_reason="A parameter was not provided.")
        if action == "UPDATE" and found is not None and _requires_replacement(found.config, config):
            return Replace()
        return await self._publish(call, action, config, found)

    async def _source(self, call: Call) -> NewConfig | None:
        """The config; None if it does not exist."""
        config_id = call.properties.get("config")
        if not config_id:
            return NewConfig("", UNGROUPED, "")
        return await self._software_store.config(call.project, config_id)

    async def _publish(
        self, call: Call, action: str, config: NewConfig, deployment: Deployment | None
    ) -> Outcome:
        silent = call.properties["signal_transport"] == NO_SIGNAL
        published = Publication(
            deployment_id=_id_of(call),
            key=call.operation_key,
            stack_id=call.stack_id,
            resource_id=call.resource_id,
            server_id=call.properties["server"],
            config=config,
            input_values=call.properties.get("input_values") or {},
            action=action,
            status=Status.COMPLETE if silent else Status.IN_PROGRESS,
            reason="Not waiting for outputs signal" if silent else "Deploy data available",
        )
        await self._software_store.publish(call.project, published)
        try:
            written = await self._software_store.push(call.project, published.server_id)
        except ServiceError as error:
            return _failed(call, error)
        if not written and action != "DELETE":
            data = {_PROPERTIES: dict(call.properties)}
            return Failed(_NO_OBJECT, _id_of(call), data, public_reason=_NO_OBJECT)
        if silent:
            return _done(call, config, deployment)
        if self._uploads_to(call) is not None:
            return Wait(call.now, _PUBLISHED, published.reason, public_reason=_WAITING)
        return _wait(call, published.reason)

    async def _poll(self, call: Call, action: str) -> Outcome:
        """The state of the deployment, from signals and from the API."""
        found = await self._software_store.deployment(call.project, _id_of(call))
        if found is None and action == "DELETE":
            return Done(None)
        if found is None:
            return Failed(_no_deployment(call), call.physical_id, public_reason=_NO_DEPLOYMENT)
        if found.status == Status.IN_PROGRESS:
            found = await self._apply_signals(call, found, call.signals)
        if found.status == Status.IN_PROGRESS and self._uploads_to(call) is not None:
            uploaded = await self._receive(call, found)
            if isinstance(uploaded, Wait):
                return uploaded
            found = uploaded
        if found.status == Status.IN_PROGRESS and call.superseded:
            found = await self._complete(call, found, _cancelled_result(found))
        match found.status:
            case Status.COMPLETE:
                return _done(call, found.config, found)
            case Status.FAILED:
                reason = f"{_FAILED}: {found.reason}"
                data = {_PROPERTIES: dict(call.properties)}
                return Failed(reason, _id_of(call), data, public_reason=_FAILED)
            case _:
                return _wait(call, found.reason)

    def _uploads_to(self, call: Call) -> ObjectSignals | None:
        """Where the server uploads its signals; None: it sends them to Headgate."""
        return self.services.by_transport(call.properties.get("signal_transport"))

    async def _create_object(self, call: Call) -> SignalObject | None:
        """Raises ServiceError."""
        objects = self._uploads_to(call)
        if objects is None:
            return None
        if not await objects.is_available(call):
            transport = call.properties["signal_transport"]
            reason = f"{transport} needs {objects.service}, which the service catalog does not have"
            reason = f"{reason}. {TRANSPORT_REMEDY}"
            raise ServiceError(reason, public=reason)
        return await objects.create(call)

    async def _remove_objects(self, call: Call, *, keep: str = "") -> None:
        """Raises ServiceError."""
        if (objects := self._uploads_to(call)) is not None:
            await objects.remove(call, keep=keep)

    async def _receive(self, call: Call, deployment: Deployment) -> Deployment | Wait:
        """The deployment with the signals that were uploaded; Wait if it is still in progress. A
        service that is away only delays them. Messages that expire need not be kept: the first one
        that ends the deployment is stored when it is read."""
        objects = self._uploads_to(call)
        name = object_name(call, call.properties["signal_transport"])
        reason = _reason_of(call, deployment.reason)
        waits = await self.next_wait(call, name, None, reason)
        if waits is not None or objects is None:
            return waits or deployment
        known = None
        try:
            uploaded = await objects.read(call, name)
        except ServiceError as error:
            reason = error.public
        else:
            known = len(uploaded.contents)
            fields = [_fields_of(one) for one in uploaded.contents]
            if uploaded.excess:
                fields.append(uploaded.excess)
            deployment = await self._apply_signals(call, deployment, fields)
        if deployment.status != Status.IN_PROGRESS or call.superseded:
            return deployment
        waits = await self.wait_for_object(call, name, known, _PUBLISHED, None, reason)
        return replace(waits, public_reason=_WAITING)

    async def _apply_signals(
        self, call: Call, deployment: Deployment, signals: Sequence[Mapping[str, Json] | str]
    ) -> Deployment:
        """Apply the signals; a text is the reason of a failure. The first final signal
        counts; later ones have no effect."""
        began = ""
        for signal in signals:
            if isinstance(signal, str):
                values = deployment.output_values
                ended = DeploymentResult(Status.FAILED, signal, values)
                return await self._complete(call, deployment, ended)
            reason = progress_of(signal)
            if reason is None:
                ended = result_of_signal(
                    signal, deployment.config.outputs, deployment.output_values
                )
                return await self._complete(call, deployment, ended)
            began = reason
        if began and began != deployment.reason:
            await self._software_store.report_progress(call.project, _id_of(call), began)
            return replace(deployment, reason=began)
        return deployment

    async def _complete(
        self, call: Call, deployment: Deployment, ended: DeploymentResult
    ) -> Deployment:
        await self._software_store.complete(call.project, _id_of(call), ended)
        return replace(
            deployment, status=ended.status, reason=ended.reason, output_values=ended.output_values
        )


def _with_kept_properties(call: Call) -> Call:
    """The call of a delete, with the properties that a failed operation has kept."""
    kept = call.data.get(_PROPERTIES) or call.data.get(_OLD_PROPERTIES) or {}
    return replace(call, properties=call.properties or kept)


def _fields_of(body: bytes | None) -> Mapping[str, Json] | str:
    """The fields of an uploaded signal, or the failure that an invalid one is."""
    fields = parse_body(body)
    return f"The signal of the server is invalid: {fields}" if isinstance(fields, str) else fields


def _wait(call: Call, progress: str) -> Wait:
    until = call.now if call.superseded else call.now + _POLL
    return Wait(until, _PUBLISHED, _reason_of(call, progress), public_reason=_WAITING)


def _reason_of(call: Call, progress: str) -> str:
    return f"{progress} (server {call.properties['server']})"


def _failed(call: Call, error: ServiceError) -> Failed:
    """The failure of an operation whose object may exist."""
    data = {_PROPERTIES: dict(call.properties)}
    return Failed(str(error), _id_of(call), data, error.retry, public_reason=error.public)


def _cancelled_result(deployment: Deployment) -> DeploymentResult:
    """The result when the change has ended early."""
    return DeploymentResult(Status.FAILED, "Deployment cancelled.", deployment.output_values)


def _id_of(call: Call) -> str:
    """The ID of the deployment, constant for the lifetime of the resource."""
    return call.physical_id or str(call.operation_key)


def _no_deployment(call: Call) -> str:
    return f"Deployment with id {_id_of(call)} not found"


def _done(call: Call, config: NewConfig, deployment: Deployment | None) -> Done:
    values = deployment.output_values if deployment else {}
    return Done(_id_of(call), attributes_of(config.outputs, values))


def _actions(call: Call, source: NewConfig) -> set[str]:
    """The actions that are sent to the server; a component defines its own."""
    if source.group == COMPONENT and isinstance(source.config, dict):
        configs = source.config.get("configs") or ()
        return {action for one in configs for action in one.get("actions") or DEFAULT_ACTIONS}
    return set(call.properties["actions"])


def _ran_delete(deployment: Deployment | None) -> bool:
    """Whether an earlier delete has run its config, and failed after that."""
    if deployment is None or deployment.status != Status.COMPLETE:
        return False
    return action_of(deployment.config) == "DELETE"


def _requires_replacement(before: NewConfig, after: NewConfig) -> bool:
    """Whether an input with `replace_on_change` has changed."""
    old = values_of(before)
    return any(
        one.get("replace_on_change") and one["name"] in old and old[one["name"]] != one["value"]
        for one in after.inputs
    )


class StructuredDeployment(SoftwareDeployment):
    schema = TypeSchema(
        "OS::Heat::StructuredDeployment",
        description="A config that is a map, with input values inserted; waits for the result.",
        properties=STRUCTURED,
        attributes=ATTRIBUTES,
        any_attribute=True,
        signals=True,
    )

    def apply_inputs(self, call: Call, source: NewConfig, inputs: NewConfig) -> Json:
        strict = call.properties["input_values_validate"] == "STRICT"
        key = call.properties["input_key"]
        return insert_inputs(source.config or {}, key, values_of(inputs), strict=strict)
