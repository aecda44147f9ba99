"""OS::Mistral::ExternalResource: an object that workflows create, update and delete.

The ID of an execution is derived from the operation, and Mistral starts one of an ID once: so no
workflow runs twice for one operation.
"""

from collections.abc import Mapping
from typing import Final
from uuid import uuid5

import orjson

from engine.types.contract import Call, Done, Outcome
from engine.types.openstack.cloud import Session, object_in, segment
from engine.types.openstack.cloud_operation import CloudType, cancellation, poll, run_guarded
from engine.types.openstack.mistral.lookups import workflow_fields
from engine.types.openstack.mistral.schema import EXTERNAL_RESOURCE
from engine.types.openstack.mistral.workflow import decode
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import WORKFLOW
from engine.words import Json

EXECUTIONS: Final = "/executions"
#: The entry of the environment of an execution with the output of the ones before it, as in Heat.
OUTPUT_BEFORE: Final = "heat_extresource_data"
#: Characters of a physical ID.
MAX_ID: Final = 255
OUTPUTS, EXECUTION = "outputs", "execution"
CREATE, UPDATE, DELETE, SUSPEND, RESUME = "CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"
_RUNNING: Final = ("IDLE", "RUNNING", "PAUSED", "DELAYED")
_SUCCESS: Final = "SUCCESS"
#: Responses to the cancellation of an execution that has ended.
_ENDED: Final = (400, 409)


class ExternalResource(CloudType):
    schema = EXTERNAL_RESOURCE
    cancellable = True

    def needs_replace(self, call: Call) -> bool:
        was, now = (call.previous or {}).get("input") or {}, call.properties.get("input") or {}
        names = call.properties.get("replace_on_change_inputs") or ()
        return any(was.get(name) != now.get(name) for name in names)

    async def create(self, call: Call) -> Outcome:
        return await self._act(call, CREATE)

    async def update(self, call: Call) -> Outcome:
        return await self._act(call, UPDATE)

    async def suspend(self, call: Call) -> Outcome:
        return await self._act(call, SUSPEND)

    async def resume(self, call: Call) -> Outcome:
        return await self._act(call, RESUME)

    async def _act(self, call: Call, action: str) -> Outcome:
        known = call.physical_id or _execution_id(call, action)
        if call.cancelled and _workflow(call, action):
            return await run_guarded(call, lambda: self._cancel(call, action, known), known)
        return await run_guarded(call, lambda: self._run(call, action), known)

    async def _cancel(self, call: Call, action: str, known: str) -> Outcome:
        """Cancel the workflow, so that it does not run beside that of a delete, which gets its
        output. A workflow that has succeeded keeps its result."""
        session = self._cloud.session(call)
        execution = _execution_id(call, action)
        path = f"{EXECUTIONS}/{segment(execution)}"
        try:
            await session.request(
                WORKFLOW, "PUT", path, "cancel the workflow", {"state": "CANCELLED"}
            )
        except CloudError as error:
            if error.status == 404:  # It has not started.
                return cancellation(known, call.data)
            if error.status not in _ENDED:
                raise
        found = await _read(session, execution)
        if found.get("state") == _SUCCESS:
            return _success(call, execution, found)
        output = _output_with(call, found)
        object_id = str(output.get("resource_id") or known)[:MAX_ID]
        return cancellation(object_id, {**call.data, OUTPUTS: output})

    async def _delete(self, call: Call) -> Outcome:
        outcome = await self._run(call, DELETE)
        return Done(None) if isinstance(outcome, Done) else outcome

    async def _check(self, call: Call) -> Outcome:
        """No workflow reads the object."""
        return Done(call.physical_id, call.attributes, call.data)

    async def _run(self, call: Call, action: str) -> Outcome:
        before = call.data.get(OUTPUTS) or {}
        wanted = _workflow(call, action)
        if not wanted:
            object_id = call.physical_id or call.own_name
            return Done(object_id, {"output": before}, {**call.data, OUTPUTS: before})
        session = self._cloud.session(call)
        execution = (call.progress or {}).get(EXECUTION)
        if execution is None:
            execution = _execution_id(call, action)
            found = await _start(session, call, wanted, execution, before)
        else:
            found = await _read(session, execution)
        state = str(found.get("state"))
        if state in _RUNNING:
            public = "the workflow has not ended"
            return poll(call, {EXECUTION: execution}, f"{public}: {state}", public)
        if state != _SUCCESS:
            public = f"the workflow has ended with {state}"
            raise CloudError(f"{public}: {found.get('state_info') or 'no reason'}", public=public)
        return _success(call, execution, found)


def _workflow(call: Call, action: str) -> Mapping[str, Json] | None:
    """The workflow of an action, if it has one."""
    found: Mapping[str, Json] | None = (call.properties.get("actions") or {}).get(action)
    return found


def _success(call: Call, execution: str, found: Mapping[str, Json]) -> Done:
    """The result of an execution that has succeeded."""
    output = _output_with(call, found)
    object_id = str(output.get("resource_id") or call.physical_id or execution)[:MAX_ID]
    return Done(object_id, {"output": output}, {**call.data, OUTPUTS: output})


def _output_with(call: Call, found: Mapping[str, Json]) -> dict[str, Json]:
    """The output of earlier executions, with that of this one."""
    output = decode(found.get("output"))
    return {**(call.data.get(OUTPUTS) or {}), **(output if isinstance(output, Mapping) else {})}


def _execution_id(call: Call, action: str) -> str:
    """The same in all calls of an operation."""
    return str(uuid5(call.operation_key, action))


async def _read(session: Session, execution: str) -> Mapping[str, Json]:
    doing = "read the execution of the workflow"
    path = f"{EXECUTIONS}/{segment(execution)}"
    answer = await session.request(WORKFLOW, "GET", path, doing)
    return object_in(WORKFLOW, doing, answer, "")


async def _start(
    session: Session, call: Call, wanted: Mapping[str, Json], execution: str, before: Json
) -> Mapping[str, Json]:
    params = dict(wanted.get("params") or {})
    if call.physical_id:
        params["env"] = {**(params.get("env") or {}), OUTPUT_BEFORE: before}
    body = {
        "id": execution,
        **workflow_fields(wanted["workflow"]),
        "input": orjson.dumps(call.properties.get("input") or {}).decode(),
        "description": call.properties.get("description") or "",
        "params": orjson.dumps(params).decode(),
    }
    doing = "run the workflow"
    answer = await session.request(WORKFLOW, "POST", EXECUTIONS, doing, body)
    return object_in(WORKFLOW, doing, answer, "")
