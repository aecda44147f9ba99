"""The user data of a server: what its cloud-init gets from the properties. Pure."""

import base64
import json
import shlex
from collections.abc import Mapping
from email import message_from_string
from email.message import Message
from uuid import UUID

from engine.types.software.multipart import document, text_part
from engine.words import Json

RAW, SOFTWARE_CONFIG, CFN_TOOLS = "RAW", "SOFTWARE_CONFIG", "HEAT_CFNTOOLS"
#: Nova's limit, in bytes of base64.
MAX_ENCODED = 65_535
#: The directory in which heat-cfntools and os-collect-config look for their first data.
_DIRECTORY = "/var/lib/heat-cfntools"


def build_user_data(
    form: str,
    text: str,
    key: UUID,
    settings: Mapping[str, Json],
    metadata_url: str,
    metadata: Mapping[str, Json] | None = None,
) -> str:
    """The user data, as text; "" for none.

    form: the property `user_data_format`. text: of the property or of the software config that it
    names. settings: of the server's agent, for SOFTWARE_CONFIG. key: of the operation, so that all
    its calls return the same text. metadata: of the resource, which cfn-init reads from a file.
    """
    if form == RAW:
        return text
    files, initial = {"cfn-metadata-server": f"{metadata_url}\n"}, dict(metadata or {})
    if form == SOFTWARE_CONFIG:
        files, initial = {}, {**initial, "os-collect-config": settings}
    if initial:
        files["cfn-init-data"] = json.dumps(initial, sort_keys=True)
    return document([*_parts_of(text), _file_writer(files)], key)


def encode(user_data: str) -> str:
    """As Nova expects it."""
    return base64.b64encode(user_data.encode()).decode()


def size_error(user_data: str) -> str | None:
    """The reason why Nova would refuse the user data, or None."""
    size = len(encode(user_data))
    if size <= MAX_ENCODED:
        return None
    return (
        f"user_data has {size} bytes in base64, and Nova accepts {MAX_ENCODED}: let it fetch the"
        " rest, or use software deployments"
    )


def _parts_of(text: str) -> list[Message]:
    """The parts of a multipart document, or the text as one part: cloud-init derives its type from
    its first line."""
    if not text:
        return []
    inner = message_from_string(text).get_payload() if text.startswith(("Content-", "MIME-")) else 0
    if isinstance(inner, list):
        return [part for part in inner if isinstance(part, Message)]
    return [text_part(text, "plain", "user-data")]


def _file_writer(files: Mapping[str, str]) -> Message:
    """A part that writes the files before everything else, at the first boot."""
    lines = ["#cloud-boothook", "#!/bin/sh", f"mkdir -p {_DIRECTORY}"]
    for name, content in files.items():
        path = f"{_DIRECTORY}/{name}"
        encoded = shlex.quote(base64.b64encode(content.encode()).decode())
        lines.append(f"[ -e {path} ] || (umask 077; echo {encoded} | base64 -d > {path})")
    return text_part("\n".join([*lines, ""]), "cloud-boothook", "headgate-files.sh")
