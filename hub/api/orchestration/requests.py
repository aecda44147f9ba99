"""Bodies of the Orchestration API, read into requests. Pure; wrong types are refused by name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.errors import Findings
from engine.principal import Principal
from engine.service import Move, StackRequest
from engine.words import Json

#: Of a number of minutes: some two centuries.
MOST_DIGITS = 8
_DIGEST = re.compile("[0-9a-f]{64}")
_KINDS: Mapping[type, str] = {
    str: "a string",
    dict: "a map",
    list: "a list",
    bool: "true or false",
}


class _Body:
    """Takes typed values out of a body; what is wrong goes to findings."""

    def __init__(self, body: Mapping[str, Json]) -> None:
        self._body = body
        self.findings = Findings()

    def take(self, name: str, default: Any, *kinds: type) -> Any:
        value = self._body.get(name)
        if value is None:
            return default
        if not isinstance(value, kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            self.findings.add(name, f"must be {wanted}", f"Send {wanted}.")
            return default
        return value

    def texts(self, name: str) -> list[str]:
        values = self.take(name, [], list)
        if not all(isinstance(value, str) for value in values):
            self.findings.add(name, "must be a list of strings", "Send a list of strings.")
            return []
        return list(values)

    def flag(self, name: str) -> bool | None:
        value = self._body.get(name)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        flag: bool | None = self.take(name, None, bool)
        return flag

    def minutes(self, name: str) -> int | None:
        value = self._body.get(name)
        text = str(value).strip()
        if value is None or isinstance(value, bool) or not text.isascii() or not text.isdigit():
            if value is not None:
                self.findings.add(name, f'"{value}" is not a number of minutes', "Send 1 or more.")
            return None
        if len(text) > MOST_DIGITS:
            self.findings.add(name, "is too large", "Leave it out for no limit.")
            return None
        minutes = int(text)
        if minutes < 1:
            self.findings.add(name, "must be 1 or more", "Leave it out for none.")
        return minutes


def stack_request(
    body: Mapping[str, Json],
    *,
    existing: bool,
    requested_by: Principal,
    idempotency_key: str = "",
    credential: str = "",
) -> StackRequest:
    """Read the body of POST, PUT (existing False) or PATCH (True). Raises Invalid."""
    said = _Body(body)
    if body.get("files_container"):
        reason, remedy = (
            "this server has no object store to read files from",
            "Send them in `files`.",
        )
        said.findings.add("files_container", reason, remedy, "NotSupported")
    clear, add = _hooks(said)
    files = said.take("files", {}, dict)
    for name, text in files.items():
        if not isinstance(text, str):
            said.findings.add(f"files.{name}", "must be a string", "Send the file's content.")
    request = StackRequest(
        name=said.take("stack_name", "", str),
        template=said.take("template", None, dict, str),
        environment=said.take("environment", None, dict, str),
        environment_files=said.texts("environment_files"),
        files=files,
        parameters=said.take("parameters", {}, dict),
        clear_parameters=said.texts("clear_parameters"),
        tags=_tags(said),
        timeout_mins=said.minutes("timeout_mins"),
        disable_rollback=said.flag("disable_rollback"),
        existing=existing,
        keep_hidden=said.flag("keep_hidden") is True,
        only=said.texts("only"),
        except_=said.texts("except"),
        moved=_moved(said),
        plan_digest=_plan_digest(said),
        hooks_clear=clear,
        hooks_add=add,
        requested_by=requested_by,
        idempotency_key=idempotency_key,
        credential=credential,
    )
    said.findings.raise_if_any()
    return request


def _tags(said: _Body) -> Sequence[str] | None:
    tags = said.take("tags", None, str, list)
    if tags is None:
        return None
    split = tags.split(",") if isinstance(tags, str) else said.texts("tags")
    for tag in split:
        if len(tag) > 80:
            said.findings.add("tags", f'"{tag[:20]}..." is longer than 80', "Shorten it.")
    return split


def _plan_digest(said: _Body) -> str:
    digest: str = said.take("plan_digest", "", str)
    if digest and not _DIGEST.fullmatch(digest):
        reason = "is not a plan digest, which has 64 hexadecimal digits"
        said.findings.add("plan_digest", reason, "Send the plan_digest of a dry run, whole.")
    return digest


def _moved(said: _Body) -> list[Move]:
    """Read ``moved: [{"from": "a" or {"stack": "s", "resource": "a"}, "to": "b"}]``."""
    moves: list[Move] = []
    for index, item in enumerate(said.take("moved", [], list)):
        place = f"moved[{index}]"
        source = item.get("from") if isinstance(item, dict) else None
        to = item.get("to") if isinstance(item, dict) else None
        stack: Json = ""
        name = source
        if isinstance(source, dict):
            stack, name = source.get("stack"), source.get("resource")
        if all(isinstance(text, str) for text in (stack, name, to)) and name and to:
            moves.append(Move(str(name), str(to), str(stack)))
        else:
            remedy = 'Write {"from": "a", "to": "b"}; from another stack, "from" is {"stack": ' + (
                '"s", "resource": "a"}.'
            )
            said.findings.add(place, "is not a valid move", remedy)
    return moves


def _hooks(said: _Body) -> tuple[list[str], list[Json]]:
    hooks = said.take("hooks", {}, dict)
    for key in hooks:
        if key not in ("clear", "add"):
            said.findings.add(f"hooks.{key}", "is not a known key", "Send `clear` and `add`.")
    clear, add = hooks.get("clear", []), hooks.get("add", [])
    if not isinstance(clear, list) or not all(isinstance(one, str) for one in clear):
        said.findings.add(
            "hooks.clear", "must be a list of strings", 'Send "resource:point" or "*".'
        )
        clear = []
    if not isinstance(add, list):
        said.findings.add("hooks.add", "must be a list", "Send a list of rules.")
        add = []
    return clear, add
