"""What a request that adopts resources can set, and what it cannot."""

from engine.errors import Findings
from engine.service.requests.adoption import read_adopted

WRITABLE = [
    {"container": "c", "name": "n", "owner": "o", "read_url": "", "write_url": "http://10.0.0.5/"}
]


def test_urls_to_which_the_engine_writes_are_not_adopted() -> None:
    """The template's author would choose an address that only the engine reaches."""
    findings = Findings()
    exported = {
        "resource_id": "id",
        "resource_data": {"metadata_objects": WRITABLE, "name": "kept"},
    }
    adopted = read_adopted({"web": exported}, findings)
    findings.raise_if_any()
    assert adopted["web"].physical_id == "id"
    assert adopted["web"].data == {"name": "kept"}
