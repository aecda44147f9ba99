"""The state of a nested stack outside of its server and at another time: exports and snapshots."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from engine.types.contract import (
    ActOnNested,
    Call,
    Child,
    Done,
    Failed,
    Outcome,
    ReconcileNested,
    RestoreNested,
    run_nested,
)
from engine.words import Json, Operation

#: In the data of a resource to adopt: its exported nested stack.
EXPORTED: Final = "exported_stack"
#: In the snapshot of a resource: {"stack": ID of its nested stack, "snapshot": ID of its snapshot}.
SNAPSHOT: Final = "nested_snapshot"
NO_CONTENT: Final = "The export has no resources of the nested stack."


@dataclass(frozen=True, slots=True)
class ExportedNested:
    """An exported nested stack. template, parameters: of it. resources: as in its export."""

    template: Mapping[str, Json]
    parameters: Mapping[str, Json]
    resources: Mapping[str, Json]

    def document(self) -> dict[str, Json]:
        return {name: dict(getattr(self, name)) for name in ("template", "parameters", "resources")}


def adopt_nested(
    call: Call,
    command: Callable[[ExportedNested], ReconcileNested],
    done: Callable[[Call], Callable[[Child], Outcome]],
) -> Outcome:
    """Adopt an exported nested stack: create it and adopt its resources. command: of the export,
    without its resources. done: gets the call without the export in its data."""
    document = call.data.get(EXPORTED)
    if document is None:
        return Failed(NO_CONTENT, call.physical_id, call.data, public_reason=NO_CONTENT)
    exported = ExportedNested(**document)
    own = {name: value for name, value in call.data.items() if name != EXPORTED}
    goal = replace(command(exported), adopts=exported.resources)
    return run_nested(call, "adopt", goal, done(replace(call, data=own)))


def snapshot_nested(call: Call) -> Outcome:
    """Take a snapshot of the nested stack, if there is one."""
    if call.child is None:
        return Done(call.physical_id, call.attributes)

    def done(child: Child) -> Done:
        known = {"stack": str(child.id), "snapshot": str(call.operation_key)}
        return Done(str(child.id), call.attributes, {SNAPSHOT: known})

    return run_nested(call, "snapshot", ActOnNested(Operation.SNAPSHOT), done)


def restore_nested(
    call: Call,
    parameters: Mapping[str, Json] | None,
    done: Callable[[Child], Outcome],
    file: str = "",
) -> Outcome | None:
    """Return the nested stack to the snapshot that is restored; None: none is restored, or the
    nested stack of that time is gone. parameters, file: as in `RestoreNested`."""
    known = (call.kept or {}).get(SNAPSHOT)
    if known is None or call.child is None or known["stack"] != str(call.child.id):
        return None
    return run_nested(
        call, "restore", RestoreNested(UUID(known["snapshot"]), parameters, file), done
    )
