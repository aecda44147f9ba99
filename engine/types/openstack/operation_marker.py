"""The entry in the metadata of servers and volumes by which a repeated create finds its object."""

from collections.abc import Mapping
from typing import Final

from engine.errors import Findings
from engine.types.text_cleaning import as_text
from engine.words import Json

#: Its value is the key of the operation that created the object.
MARKER: Final = "headgate_operation"


def metadata_of(properties: Mapping[str, Json]) -> dict[str, str]:
    """The property `metadata` as Nova and Cinder accept it: texts. It never sets the marker."""
    given = properties.get("metadata") or {}
    return {
        str(name): "" if one is None else as_text(one)
        for name, one in given.items()
        if name != MARKER
    }


def check_metadata(properties: Mapping[str, Json], place: str, findings: Findings) -> None:
    """Report the marker in the property `metadata`. place: of the properties."""
    given = properties.get("metadata")
    if isinstance(given, Mapping) and MARKER in given:
        reason = "is reserved: Headgate writes it to find the object of an interrupted create"
        findings.add(f"{place}.metadata.{MARKER}", reason, "Remove it.")
