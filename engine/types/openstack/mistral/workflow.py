"""OS::Mistral::Workflow: a workflow, whose name is its ID.

Mistral gets its definition, in which it finds the name. A create marks its own workflow by a tag.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import orjson

from engine.errors import Findings
from engine.types.contract import Call
from engine.types.observation import PRESENT, Difference, Observation
from engine.types.openstack.cloud import Cloud, Session
from engine.types.openstack.mistral.named_type import NamedType
from engine.types.openstack.mistral.schema import WORKFLOW_TYPE
from engine.types.openstack.object_type import (
    NAME,
    Mark,
    ObjectRow,
    RepairedType,
    existing_error,
)
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import WORKFLOW
from engine.words import Json, ObservedState

#: What a definition has of the workflow; the rest is of its executions.
DEFINED: Final = ("type", "description", "output")
#: What is compared: properties, and their entries in a definition.
COMPARED: Final[Mapping[str, str]] = {
    **{name: name for name in (*DEFINED, "input", "tags", "tasks")},
    "task_defaults": "task-defaults",
}
#: The tag of a workflow that a create has made, before the key of its operation.
TAG: Final = "headgate:"
TAGS, TASKS, DEFINITION = "tags", "tasks", "definition"
TEXT: Final = "text/plain"
#: Executions that an attribute has.
MAX_EXECUTIONS: Final = 100
_SHOWN: Final = ("id", "workflow_name", "created_at", "updated_at", "state")
#: The kinds of `type`.
DIRECT, REVERSE = "direct", "reverse"


class Workflow(NamedType, RepairedType):
    def __init__(self, cloud: Cloud) -> None:
        row = ObjectRow(
            "workflow", WORKFLOW, "/workflows", "", "workflows", named=False, marked=False
        )
        super().__init__(WORKFLOW_TYPE, row, cloud)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        kind, params = properties.get("type"), properties.get("params")
        if kind == REVERSE and (
            params is None or (isinstance(params, Mapping) and not params.get("task_name"))
        ):
            reason = "has no task_name, which a workflow of the type reverse requires"
            findings.add(f"{place}.params", reason, "Name the task at which it ends.")
        tasks = properties.get(TASKS)
        for number, task in enumerate(tasks if isinstance(tasks, list) else ()):
            if isinstance(task, Mapping):
                _check_task(task, kind, f"{place}.{TASKS}[{number}]", findings)

    def mark(self, call: Call) -> Mark:
        return Mark({TAG: str(call.operation_key)}, {})

    def read_object(self, found: Mapping[str, Json]) -> Mapping[str, Json]:
        return _workflow(found)

    async def fields_for_create(self, call: Call, session: Session) -> dict[str, Json]:
        return {NAME: self.name_of(call), DEFINITION: definition_of(call.properties)}

    async def fields_for_update(
        self, call: Call, session: Session, names: Collection[str]
    ) -> dict[str, Json]:
        return {DEFINITION: definition_of(call.properties)} if names else {}

    async def post(
        self, call: Call, session: Session, path: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        name, mark = str(fields[NAME]), str(fields[TAG])
        text = _text(name, fields[DEFINITION], mark)
        doing = "create the workflow"
        try:
            await _send(session, "POST", path, doing, text)
        except CloudError as error:
            if error.status != CONFLICT:
                raise
            if (found := await self.find(session, path, name)) is None:
                raise
            if found.get(TAG) != mark:
                raise existing_error(self.row.what, name) from None
            return found
        return await self.get(session, path, name)

    async def put(
        self, session: Session, path: str, object_id: str, fields: Mapping[str, Json]
    ) -> Mapping[str, Json]:
        found = await self.get(session, path, object_id)
        text = _text(object_id, fields[DEFINITION], str(found.get(TAG) or ""))
        await _send(session, "PUT", path, "update the workflow", text)
        return await self.get(session, path, object_id)

    async def find_created(
        self, call: Call, session: Session, path: str, mark: Mark
    ) -> Mapping[str, Json] | None:
        found = await self.find(session, path, self.name_of(call))
        return found if found is not None and mark.is_on(found) else None

    async def attributes_of(self, session: Session, found: Mapping[str, Json]) -> dict[str, Json]:
        name, doing = str(found.get(NAME)), "list the executions of the workflow"
        query = {"workflow_name": name, "limit": str(MAX_EXECUTIONS)}
        answer = await session.request(WORKFLOW, "GET", "/executions", doing, query=query)
        listed = answer.get("executions") if isinstance(answer, Mapping) else None
        shown = {key: one for key, one in found.items() if key != TAG}
        return {
            "data": {NAME: name, "input": found.get("input")},
            "executions": [_execution(one) for one in listed or () if isinstance(one, Mapping)],
            "show": shown,
        }

    # ---- observation

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        return [name for name in COMPARED if name in properties]

    def compare(self, call: Call, found: Mapping[str, Json]) -> Observation:
        """Compare the definition, which Mistral shows as it got it."""
        recorded = call.attributes.get("show")
        if not isinstance(recorded, Mapping) or DEFINITION not in recorded:
            return PRESENT
        if DEFINITION not in found:
            return Observation.lacking(f"the response about the {self.row.what} lacks {DEFINITION}")
        document = decode(found.get(DEFINITION))
        live = document.get(str(call.physical_id)) if isinstance(document, Mapping) else None
        wanted = definition_of(call.properties)
        if not isinstance(live, Mapping):  # written by another client
            return Observation(ObservedState.CHANGED, [Difference(TASKS, wanted[TASKS], None)])
        tags = [one for one in live.get(TAGS) or () if not str(one).startswith(TAG)]
        known = {**live, **({TAGS: tags} if tags else {})}
        if not tags:
            known.pop(TAGS, None)
        differences = [
            Difference.shorten(name, call.properties.get(name), known.get(field))
            for name, field in COMPARED.items()
            if wanted.get(field) != known.get(field)
        ]
        return Observation(ObservedState.CHANGED, differences) if differences else PRESENT


def definition_of(properties: Mapping[str, Json]) -> dict[str, Json]:
    """The workflow in the language of Mistral, without the mark."""
    found = {key: one for key in DEFINED if (one := properties.get(key)) is not None}
    if (given := properties.get("input")) is not None:
        found["input"] = [name if one is None else {name: one} for name, one in given.items()]
    if tags := properties.get(TAGS):
        found[TAGS] = tags
    found[TASKS] = {str(task[NAME]): _with_dashes(task, (NAME,)) for task in properties[TASKS]}
    if (defaults := properties.get("task_defaults")) is not None:
        found["task-defaults"] = _with_dashes(defaults)
    return found


def _with_dashes(fields: Mapping[str, Json], without: Sequence[str] = ()) -> dict[str, Json]:
    return {
        name.replace("_", "-"): one
        for name, one in fields.items()
        if one is not None and name not in without
    }


def _text(name: str, definition: Mapping[str, Json], mark: str) -> bytes:
    """The body of a request: JSON is YAML."""
    tags = [*definition.get(TAGS, ()), *([f"{TAG}{mark}"] if mark else [])]
    marked = {**definition, **({TAGS: tags} if tags else {})}
    return orjson.dumps({"version": "2.0", name: marked})


async def _send(session: Session, method: str, path: str, doing: str, text: bytes) -> None:
    """Send a definition. Mistral answers with text, too, and refuses to answer with JSON."""
    accepted = {"Accept": "*/*"}
    await session.send(WORKFLOW, method, path, doing, text, media_type=TEXT, headers=accepted)


def _workflow(found: Mapping[str, Json]) -> Mapping[str, Json]:
    """With the tags of the template, and the mark."""
    known = found.get(TAGS)
    tags = known if isinstance(known, list) else []
    marks = [str(one).removeprefix(TAG) for one in tags if str(one).startswith(TAG)]
    own = [one for one in tags if not str(one).startswith(TAG)]
    return {**found, TAGS: own, TAG: next(iter(marks), None)}


def _execution(found: Mapping[str, Json]) -> Json:
    decoded = {name: decode(found.get(name)) for name in ("input", "output")}
    return {**{name: found.get(name) for name in _SHOWN}, **decoded}


def decode(text: Json) -> Json:
    """A document that Mistral shows as text."""
    try:
        return orjson.loads(text) if isinstance(text, str) else text
    except orjson.JSONDecodeError:
        return text


def _check_task(task: Mapping[str, Json], kind: Json, place: str, findings: Findings) -> None:
    action, workflow = task.get("action"), task.get("workflow")
    if action and workflow:
        findings.add(place, "has both action and workflow", "Remove one of them.")
    if "action" not in task and "workflow" not in task:
        findings.add(place, "has neither action nor workflow", "Set one of them.")
    if task.get("requires") is not None and kind == DIRECT:
        reason = "is for workflows of the type reverse only"
        findings.add(f"{place}.requires", reason, "Remove it.")
    if task.get("concurrency") is not None and "with_items" not in task:
        findings.add(f"{place}.concurrency", "needs with_items", "Set with_items, or remove it.")
