"""OS::Heat::MultipartMime: a MIME document with several parts, for cloud-init."""

import re
from collections.abc import Mapping
from email import message_from_string
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from uuid import UUID

from engine.errors import Findings
from engine.hot.schema.type_schema import Attribute, Constraint, Kind, Property, TypeSchema
from engine.types.contract import Call, Failed
from engine.types.software.configs import NO_CONFIG, Config, no_config
from engine.types.software.schema import GROUP
from engine.types.software.software_store import UNGROUPED, NewConfig
from engine.words import Json, uuid_or_none

#: A valid text subtype in a Content-Type.
SUBTYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*")
_MULTIPART = "multipart"
_NO_MULTIPART = "is not a multipart message"


class MultipartMime(Config):
    schema = TypeSchema(
        "OS::Heat::MultipartMime",
        description="A MIME document with several parts, stored as a software config.",
        properties={
            "group": GROUP,
            "parts": Property(
                Kind.LIST,
                "The parts, in order.",
                default=[],
                items=Property(
                    Kind.MAP,
                    fields={
                        "config": Property(
                            Kind.STRING, "Text, or the id of a software config.", required=True
                        ),
                        "filename": Property(Kind.STRING, "Name of the part."),
                        "type": Property(
                            Kind.STRING,
                            "multipart: the parts of the config become parts of this document.",
                            default="text",
                            constraints=(
                                Constraint("allowed_values", allowed=("text", _MULTIPART)),
                            ),
                        ),
                        "subtype": Property(
                            Kind.STRING,
                            "Text subtype, such as cloud-config; the default is derived from the"
                            " filename.",
                        ),
                    },
                ),
            ),
        },
        attributes={"config": Attribute(Kind.STRING, "The document.")},
    )

    async def build(self, call: Call) -> NewConfig | Failed:
        parts: list[Message] = []
        for number, one in enumerate(call.properties.get("parts") or ()):
            text = await self._text(call.project, one["config"])
            created = text if isinstance(text, Failed) else _parts(one, text)
            if isinstance(created, Failed):
                public = f"parts[{number}]: {created.public_reason}"
                return Failed(f"parts[{number}]: {created.reason}", public_reason=public)
            parts += created
        group = call.properties.get("group") or UNGROUPED
        return NewConfig(call.own_name, group, document(parts, call.operation_key))

    async def _text(self, project: str, text_or_id: str) -> str | Failed:
        if not is_config_id(text_or_id):
            return text_or_id
        kept = await self._software_store.config(project, text_or_id)
        if kept is None:
            return Failed(no_config(text_or_id), public_reason=NO_CONFIG)
        if not isinstance(kept.config, str):
            reason = f"the software config {text_or_id} is a map, not text"
            return Failed(reason, public_reason="the software config is a map, not text")
        return kept.config

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        for number, one in enumerate(properties.get("parts") or ()):
            if isinstance(one, dict):
                _check_part(one, f"{place}.parts[{number}]", findings)


def _check_part(one: Mapping[str, Json], place: str, findings: Findings) -> None:
    text, subtype, filename = (one.get(name) for name in ("config", "subtype", "filename"))
    if isinstance(subtype, str) and subtype and not SUBTYPE.fullmatch(subtype):
        findings.add(
            f"{place}.subtype", "is not a text type", "Use a subtype such as cloud-config."
        )
    if isinstance(filename, str) and not filename.isprintable():
        findings.add(
            f"{place}.filename", "contains a character that is invalid in a header", "Remove it."
        )
    multipart = one.get("type") == _MULTIPART and isinstance(text, str) and not is_config_id(text)
    if multipart and not message_from_string(str(text)).is_multipart():
        findings.add(f"{place}.config", _NO_MULTIPART, "Set `type: text`, or remove type.")


def document(parts: list[Message], key: UUID) -> str:
    """The document with these parts, the same in all calls of an operation."""
    return MIMEMultipart(boundary=f"==============={key.hex}==", _subparts=parts).as_string()


def _parts(one: Mapping[str, Json], text: str) -> list[Message] | Failed:
    if one.get("type") != _MULTIPART:
        return [text_part(text, one.get("subtype") or "", one.get("filename") or "")]
    read = message_from_string(text)
    inner = read.get_payload()
    if not isinstance(inner, list):
        return Failed(_NO_MULTIPART, public_reason=_NO_MULTIPART)
    return [part for part in inner if isinstance(part, Message)]


def text_part(text: str, subtype: str, filename: str) -> Message:
    """A part of a document. subtype: "" to derive it from the file name."""
    by_name = filename.rpartition(".")[0] or filename
    kind = subtype or (by_name if SUBTYPE.fullmatch(by_name) else "")
    part = MIMEText(text, kind or "plain", "us-ascii" if text.isascii() else "utf-8")
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part


def is_config_id(text: str) -> bool:
    """Whether the text can be the ID of a software config."""
    return uuid_or_none(text) is not None
