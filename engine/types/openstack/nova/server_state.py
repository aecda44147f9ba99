"""What the document of a server says about an operation on it. Pure functions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engine.types.contract import Confirmation
from engine.types.openstack.cloud_operation import ObjectProgress
from engine.words import Json

ACTIVE, SHUTOFF, SUSPENDED = "ACTIVE", "SHUTOFF", "SUSPENDED"
ERROR, VERIFY_RESIZE = "ERROR", "VERIFY_RESIZE"
DELETED, SOFT_DELETED = "DELETED", "SOFT_DELETED"
_TASK: Final = "OS-EXT-STS:task_state"
#: Statuses in which Nova works on a server.
_IN_PROGRESS = frozenset(
    {"BUILD", "HARD_REBOOT", "MIGRATING", "PASSWORD", "REBOOT", "REBUILD", "RESIZE",
     "REVERT_RESIZE"}
)  # fmt: skip
#: What to do about faults, by a part of Nova's message.
_REMEDIES: Final = {
    "No valid host was found": (
        "no host has room for the flavor, or fits the availability zone, the scheduler hints and"
        " the properties of the image: use a smaller flavor, relax these, or ask the operator"
    ),
    "Exceeded maximum number of retries": (
        "every host that could take the server failed: the operator finds the cause in the logs of"
        " nova-compute; often a port could not be bound or a volume not be attached"
    ),
}


@dataclass(frozen=True, slots=True)
class ServerProgress:
    """reason: of PENDING and BROKEN. public: the part of it without text of the service."""

    progress: ObjectProgress
    reason: str = ""
    public: str = ""


def status_of(server: Mapping[str, Json]) -> str:
    return str(server.get("status") or "").upper()


def task_of(server: Mapping[str, Json]) -> str:
    """What Nova does with the server; "" for nothing."""
    return str(server.get(_TASK) or "")


def progress_fields(server: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of a server that `judge` reads to tell whether Nova works on it."""
    return {name: server.get(name) for name in ("status", _TASK)}


def in_progress(server: Mapping[str, Json]) -> bool:
    return bool(task_of(server)) or status_of(server) in _IN_PROGRESS


def is_gone(server: Mapping[str, Json] | None) -> bool:
    """Whether a delete has ended. SOFT_DELETED: Nova keeps the server for a time that the operator
    of the cloud has set."""
    return server is None or status_of(server) == SOFT_DELETED


def is_deleting(server: Mapping[str, Json]) -> bool:
    """Whether Nova deletes the server. DELETED: it is still in Nova's lists."""
    return task_of(server) == "deleting" or status_of(server) == DELETED


def judge(server: Mapping[str, Json], wanted: Collection[str], doing: str) -> ServerProgress:
    """Whether a server has reached one of the wanted statuses. doing: for messages: `suspend`."""
    status = status_of(server)
    if status == ERROR:
        return ServerProgress(ObjectProgress.BROKEN, fault_reason(server), "Went to status ERROR")
    if in_progress(server):
        return ServerProgress(ObjectProgress.PENDING, pending_reason(server))
    if status in wanted:
        return ServerProgress(ObjectProgress.READY)
    expected = " or ".join(sorted(wanted))
    reason = f"cannot {doing} the server: its status is {status}, not {expected}"
    return ServerProgress(ObjectProgress.BROKEN, reason, reason)


def pending_reason(server: Mapping[str, Json]) -> str:
    task = task_of(server)
    return f"the server is {status_of(server)}{f' ({task})' if task else ''}"


def fault_reason(server: Mapping[str, Json]) -> str:
    """The reason of the status ERROR, in Heat's words, and a remedy for known faults."""
    fault = server.get("fault") or {}
    message, code = fault.get("message") or "Unknown", fault.get("code") or "Unknown"
    reason = f'Went to status ERROR due to "Message: {message}, Code: {code}"'
    remedies = [remedy for part, remedy in _REMEDIES.items() if part in str(message)]
    return f"{reason}: {remedies[0]}" if remedies else reason


def lacks_fault(server: Mapping[str, Json]) -> bool:
    """Whether a server has the status ERROR without a reason: Nova records it after the status."""
    return status_of(server) == ERROR and not (server.get("fault") or {}).get("message")


def flavor_name(server: Mapping[str, Json]) -> str:
    return str((server.get("flavor") or {}).get("original_name") or "")


def image_id(server: Mapping[str, Json]) -> str:
    """The ID of the image; "" for a server that boots from a volume."""
    image = server.get("image")
    return str(image.get("id") or "") if isinstance(image, Mapping) else ""


class ResizePhase(StrEnum):
    """How far a resize has come. UNDOING: an earlier resize to another flavor is reverted."""

    BEGIN = "begin"
    RESIZING = "resizing"
    ASKED = "asked"
    CONFIRMING = "confirming"
    REVERTING = "reverting"
    UNDOING = "undoing"


class ResizeMove(StrEnum):
    """What an operation does next."""

    RESIZE = "resize"
    WAIT = "wait"
    ASK = "ask"
    CONFIRM = "confirm"
    REVERT = "revert"
    UNDO = "undo"
    DONE = "done"
    REJECTED = "rejected"
    FAIL = "fail"


def next_resize_move(
    phase: ResizePhase,
    server: Mapping[str, Json],
    wanted: str,
    confirmation: Confirmation | None,
) -> ResizeMove:
    """wanted: the name of the flavor. It follows from the server's state, so that an operation
    continues after a crash, an unanswered hook, or a resize that another client confirmed."""
    status, fits = status_of(server), flavor_name(server) == wanted
    if status == ERROR:
        return ResizeMove.FAIL
    if in_progress(server):
        return ResizeMove.WAIT
    if status == VERIFY_RESIZE:
        return _verify_move(phase, fits, confirmation)
    if phase is ResizePhase.REVERTING:
        return ResizeMove.REJECTED
    if fits:
        return ResizeMove.DONE
    if phase in (ResizePhase.BEGIN, ResizePhase.UNDOING) and status in (ACTIVE, SHUTOFF):
        return ResizeMove.RESIZE
    return ResizeMove.FAIL


def _verify_move(phase: ResizePhase, fits: bool, confirmation: Confirmation | None) -> ResizeMove:
    if phase in (ResizePhase.CONFIRMING, ResizePhase.REVERTING, ResizePhase.UNDOING):
        return ResizeMove.WAIT  # Nova has accepted the request and not begun yet
    if not fits:
        return ResizeMove.UNDO
    if phase is not ResizePhase.ASKED:
        return ResizeMove.ASK
    accepted = confirmation is None or confirmation.accepted  # None: no rule asks for an answer
    return ResizeMove.CONFIRM if accepted else ResizeMove.REVERT


def addresses_with_ports(
    server: Mapping[str, Json], ports: Collection[Mapping[str, Json]]
) -> dict[str, list[Json]]:
    """The addresses by network, each with the ID of its port."""
    by_mac = {str(one.get("mac_address")): one for one in ports}
    found: dict[str, list[Json]] = {}
    for network, addresses in (server.get("addresses") or {}).items():
        found[network] = [
            {**one, "port": by_mac.get(str(one.get("OS-EXT-IPS-MAC:mac_addr")), {}).get("id")}
            for one in addresses
        ]
    return found


def first_address(server: Mapping[str, Json]) -> str:
    """The first address of the last network by name that has one, as Heat chooses it."""
    found: Mapping[str, Json] = server.get("addresses") or {}
    used = [name for name in sorted(found, reverse=True) if found[name]]
    return str(found[used[0]][0].get("addr")) if used else ""


def networks_attribute(
    server: Mapping[str, Json], ports: Collection[Mapping[str, Json]]
) -> dict[str, list[str]]:
    """The IP addresses by name and by ID of the network."""
    found: dict[str, list[str]] = {}
    ids = {str(one.get("mac_address")): str(one.get("network_id")) for one in ports}
    for network, addresses in (server.get("addresses") or {}).items():
        texts = [str(one.get("addr")) for one in addresses]
        found[network] = texts
        macs = {str(one.get("OS-EXT-IPS-MAC:mac_addr")) for one in addresses}
        for network_id in sorted({ids[mac] for mac in macs if mac in ids}):
            found[network_id] = texts
    return found
