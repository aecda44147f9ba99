"""What the document of a volume says, and the request that creates one."""

from typing import Any

import pytest

from engine.types.openstack.cinder.volume_state import (
    USABLE,
    attributes_of,
    create_request,
    judge,
    message_of,
    own_metadata,
)
from engine.types.openstack.cloud_operation import ObjectProgress
from engine.types.openstack.operation_marker import MARKER

Json = Any


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("available", ObjectProgress.READY),
        ("in-use", ObjectProgress.READY),
        ("creating", ObjectProgress.PENDING),
        ("downloading", ObjectProgress.PENDING),
        ("restoring-backup", ObjectProgress.PENDING),
        ("error", ObjectProgress.BROKEN),
        ("error_extending", ObjectProgress.BROKEN),
    ],
)
def test_the_progress_of_a_volume(status: str, expected: ObjectProgress) -> None:
    assert judge({"status": status}, USABLE) is expected


def test_the_newest_message_is_the_reason() -> None:
    messages = [{"user_message": "create volume: no space."}, {"user_message": "older"}]
    assert message_of(messages) == "create volume: no space"
    assert message_of([]) == "Unknown"


def test_a_request() -> None:
    properties = {
        "description": "d",
        "metadata": {"a": 1},
        "snapshot_id": "S",
        "volume_type": None,
        "scheduler_hints": {"same_host": ["v"]},
    }
    assert create_request("v", properties, image_id="I", size=None, marker="m") == {
        "volume": {
            "name": "v",
            "description": "d",
            "imageRef": "I",
            "snapshot_id": "S",
            "metadata": {"a": "1", MARKER: "m"},
        },
        "OS-SCH-HNT:scheduler_hints": {"same_host": ["v"]},
    }


def test_attributes_have_no_entries_of_others() -> None:
    metadata = {"a": "1", MARKER: "m", "readonly": "True"}
    found = attributes_of({"metadata": metadata, "size": 1, "status": "available", "name": "v"})
    assert own_metadata({"metadata": metadata}) == {"a": "1"}
    assert (found["metadata_values"], found["metadata"]) == ({"a": "1"}, '{"a":"1"}')
    assert (found["size"], found["status"], found["display_name"]) == ("1", "available", "v")
