"""Reads the bodies of requests that create, update, preview and validate stacks."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

from aiohttp import web

from channels.digest import read_digest
from channels.quiet_hours import read_quiet_hours
from engine.errors import (
    BODY,
    MAX_WARNINGS,
    Finding,
    Findings,
    HeadgateError,
    Invalid,
    one_of,
)
from engine.hot.environment.event_sinks import DIGEST, QUIET_HOURS, EventSink, read_event_sinks
from engine.hot.syntax.document import DocumentLimits, read_document
from engine.plan.drift import ConvergeRound
from engine.principal import Principal
from engine.service import Move, StackRequest, check_tags
from engine.words import MAX_ROUNDS, Json
from hub.api.app_context import AppContext, context_of, identity_of, project_of
from hub.api.request_validation import body_of, channel_of, invalid, number_error

#: Of a number of minutes.
MAX_DIGITS = 8
#: Of an adoption, which only a create can be.
ADOPT = "adopt_stack_data"
#: The code of a warning about a key of the body that nothing reads.
UNKNOWN_KEY = "UnknownKey"
SINKS = "event_sinks"
_DIGEST = re.compile("[0-9a-f]{64}")
_KINDS: Mapping[type, str] = {
    str: "a string",
    dict: "a map",
    list: "a list",
    bool: "true or false",
}


class _Body:
    """Gets typed values from a body, and collects findings about the others."""

    def __init__(self, body: Mapping[str, Json]) -> None:
        self._body = body
        self._read: dict[str, None] = {}
        self.findings = Findings()

    def unread(self) -> tuple[Finding, ...]:
        """Warnings about the keys that were not read."""
        known, unread = [*self._read, "template_url"], Findings()
        names = (name for name in self._body if name not in self._read)
        # One more than is shown, for the warning that there are more.
        for name in islice(names, MAX_WARNINGS + 1):
            remedy, reason = one_of(name, known, "Known"), f'"{name}" is not a known key here'
            unread.warn_all([Finding(name, reason, remedy, UNKNOWN_KEY, BODY)])
        return unread.warnings

    def value(self, name: str) -> Json:
        self._read[name] = None
        return self._body.get(name)

    def get(self, name: str, default: Any, *kinds: type) -> Any:
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, kinds):
            expected = " or ".join(_KINDS[kind] for kind in kinds)
            self.findings.add(name, f"must be {expected}", f"Send {expected}.")
            return default
        return value

    def name(self) -> str:
        value = self.value("stack_name")
        if value is None or isinstance(value, str):
            return value or ""
        reason = f"Invalid stack name {value}, must be a string"
        self.findings.add("stack_name", reason, "Send a string.")
        return ""

    def texts(self, name: str) -> list[str]:
        values = self.get(name, [], list)
        if not all(isinstance(value, str) for value in values):
            self.findings.add(name, "must be a list of strings", "Send a list of strings.")
            return []
        return list(values)

    def flag(self, name: str) -> bool | None:
        value = self.value(name)
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if value is None or isinstance(value, bool):
            return value
        reason = f'Unrecognized value "{value}" for "{name}", acceptable values are: true, false.'
        self.findings.add(name, reason, "Send true or false.")
        return None

    def minutes(self, name: str) -> int | None:
        value = self.value(name)
        text = str(value).strip()
        if value is None or isinstance(value, bool) or not text.isascii() or not text.isdigit():
            if value is not None:
                reason, _ = number_error(name, str(value))
                self.findings.add(name, reason, "Send 1 or more.", "Invalid")
            return None
        if len(text) > MAX_DIGITS:
            self.findings.add(name, "is too large", "Leave it out for no limit.")
            return None
        minutes = int(text)
        if minutes < 1:
            self.findings.add(name, "must be 1 or more", "Leave it out for none.")
        return minutes


async def read_stack_request(
    request: web.Request,
    *,
    existing: bool = False,
    adopt: bool = False,
    idempotency_key: str = "",
    credential: str = "",
) -> StackRequest:
    """Read the body of POST, PUT or PATCH (`existing`), and check its event sinks. Raises Invalid.

    A PUT or POST without tags sets none, as in Heat; a PATCH keeps them.

    adopt: accept `adopt_stack_data`. credential: of the change; previews have none.
    """
    context, project, body = context_of(request), project_of(request), await _read_body(request)
    parsed = stack_request(
        body,
        existing=existing,
        adopt=adopt,
        requested_by=identity_of(request).principal,
        idempotency_key=idempotency_key,
        credential=credential,
    )
    if adopt and body.get(ADOPT):
        parsed = context.engine.exports.adoption(project, parsed, body[ADOPT])
    await _check_sinks(context, project, parsed)
    return parsed if existing or parsed.tags is not None else replace(parsed, tags=())


def stack_request(
    body: Mapping[str, Json],
    *,
    existing: bool,
    requested_by: Principal,
    adopt: bool = False,
    idempotency_key: str = "",
    credential: str = "",
) -> StackRequest:
    """Parse a body. existing: it changes the current template (PATCH). adopt: it may be an
    adoption. Raises Invalid."""
    values = _Body(body)
    if values.value("files_container"):
        reason = "this server has no object store to read files from"
        values.findings.add("files_container", reason, "Send them in `files`.", "NotSupported")
    clear, add = _hooks(values)
    converge, rounds = _converge(values)
    files = values.get("files", {}, dict)
    for name, text in files.items():
        if not isinstance(text, str):
            values.findings.add(f"files.{name}", "must be a string", "Send the file's content.")
    request = StackRequest(
        name=values.name(),
        template=values.get("template", None, dict, str),
        environment=values.get("environment", None, dict, str),
        environment_files=values.texts("environment_files"),
        files=files,
        parameters=values.get("parameters", {}, dict),
        clear_parameters=values.texts("clear_parameters"),
        tags=_tags(values),
        timeout_mins=values.minutes("timeout_mins"),
        disable_rollback=values.flag("disable_rollback"),
        existing=existing,
        keep_hidden=values.flag("keep_hidden") is True,
        only=values.texts("only"),
        except_=values.texts("except"),
        moved=_read_moves(values),
        plan_digest=_plan_digest(values),
        hooks_clear=clear,
        hooks_add=add,
        requested_by=requested_by,
        idempotency_key=idempotency_key,
        strict=values.flag("strict") is True,
        converge=converge,
        round=ConvergeRound(1, rounds) if rounds > 1 else None,
        credential=credential,
    )
    if adopt:
        values.value(ADOPT)
    warnings = values.unread()
    values.findings.warn_all(warnings)
    values.findings.raise_if_any()
    return replace(request, warnings=warnings)


def _converge(values: _Body) -> tuple[bool, int]:
    """Whether an update repairs drift, and in how many rounds: `converge` is a boolean or a map."""
    options = values.value("converge")
    if not isinstance(options, dict):
        return values.flag("converge") is True, 1
    for key in options:
        if key != "rounds":
            remedy = one_of(str(key), ("rounds",), "Known")
            values.findings.add(f"converge.{key}", "is not a known key here", remedy)
    rounds = options.get("rounds", 1)
    if not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= MAX_ROUNDS:
        reason = f"must be an integer from 1 to {MAX_ROUNDS}"
        values.findings.add("converge.rounds", reason, f"Send a number from 1 to {MAX_ROUNDS}.")
        return True, 1
    if rounds > 1 and values.value("plan_digest"):
        remedy = "Leave out `plan_digest`, or `rounds`."
        values.findings.add("converge.rounds", "a plan digest is of one round only", remedy)
    return True, rounds


def converge_request(
    options: Mapping[str, Json], requested_by: Principal, credential: str = ""
) -> StackRequest:
    """The update that repairs drift. options: keys of an update, and `rounds`. Raises Invalid."""
    body = {**options, "converge": True}
    if "rounds" in body:
        body["converge"] = {"rounds": body.pop("rounds")}
    return stack_request(body, existing=True, requested_by=requested_by, credential=credential)


def _tags(values: _Body) -> Sequence[str] | None:
    tags = values.get("tags", None, str, list)
    if tags is None:
        return None
    split = tags.split(",") if isinstance(tags, str) else values.texts("tags")
    check_tags(split, values.findings)
    return split


def _plan_digest(values: _Body) -> str:
    digest: str = values.get("plan_digest", "", str)
    if digest and not _DIGEST.fullmatch(digest):
        reason = "is not a plan digest, which has 64 hexadecimal digits"
        values.findings.add("plan_digest", reason, "Send the complete plan_digest of a dry run.")
    return digest


def _read_moves(values: _Body) -> list[Move]:
    """Read ``moved: [{"from": "a" or {"stack": "s", "resource": "a"}, "to": "b"}]``."""
    moves: list[Move] = []
    for index, item in enumerate(values.get("moved", [], list)):
        place = f"moved[{index}]"
        source = item.get("from") if isinstance(item, dict) else None
        to = item.get("to") if isinstance(item, dict) else None
        stack: Json = ""
        name = source
        unknown = _unknown_keys(item, ("from", "to"))
        if isinstance(source, dict):
            stack, name = source.get("stack"), source.get("resource")
            unknown += [f"from.{key}" for key in _unknown_keys(source, ("stack", "resource"))]
        for key in unknown:
            values.findings.add(f"{place}.{key}", "is not a known key", "Leave it out.")
        if all(isinstance(text, str) for text in (stack, name, to)) and name and to:
            moves.append(Move(str(name), str(to), str(stack)))
        else:
            remedy = 'Write {"from": "a", "to": "b"}; from another stack, "from" is {"stack": ' + (
                '"s", "resource": "a"}.'
            )
            values.findings.add(place, "is not a valid move", remedy)
    return moves


def _unknown_keys(item: Json, known: Collection[str]) -> list[str]:
    return [key for key in item if key not in known] if isinstance(item, dict) else []


def _hooks(values: _Body) -> tuple[list[str], list[Json]]:
    hooks = values.get("hooks", {}, dict)
    for key in hooks:
        if key not in ("clear", "add"):
            values.findings.add(f"hooks.{key}", "is not a known key", "Send `clear` and `add`.")
    clear, add = hooks.get("clear", []), hooks.get("add", [])
    if not isinstance(clear, list) or not all(isinstance(one, str) for one in clear):
        values.findings.add(
            "hooks.clear", "must be a list of strings", 'Send "resource:point" or "*".'
        )
        clear = []
    if not isinstance(add, list):
        values.findings.add("hooks.add", "must be a list", "Send a list of rules.")
        add = []
    return clear, add


async def _read_body(request: web.Request) -> dict[str, Json]:
    """The body, with the template at `template_url` unless it has a template. Raises Invalid."""
    body = await body_of(request)
    url = body.pop("template_url", None)
    if not url or body.get("template"):
        return body
    if not isinstance(url, str):
        raise invalid("template_url", "must be a string", "Send a URL.")
    context = context_of(request)
    max_bytes = context.settings.quotas.for_project(project_of(request)).template_bytes
    return body | {"template": await context.fetch_template(url, max_bytes)}


async def _check_sinks(context: AppContext, project: str, stack_request: StackRequest) -> None:
    """Check the targets of all event sinks in the request. Raises Invalid with all findings.

    Event sinks that are already stored are checked at each delivery.
    """
    quotas = context.settings.quotas.for_project(project)
    limits = DocumentLimits(quotas.template_bytes, quotas.document_depth)
    findings = Findings()
    findings.warn_all(stack_request.warnings)
    for environment in _environments(stack_request, limits):
        # The engine reports invalid sinks when it reads the environment.
        for sink in read_event_sinks(environment.get(SINKS), Findings()):
            await _check_sink(context, sink, findings)
    findings.raise_if_any()


async def _check_sink(context: AppContext, sink: EventSink, findings: Findings) -> None:
    try:
        channel = channel_of(context, sink.type, f"{sink.place}.type")
        await channel.check_target(sink.target)
        place = f"{sink.place}.{QUIET_HOURS}"
        read_quiet_hours(sink.quiet_hours, place, sink.type, findings, ordered=sink.ordered)
        place = f"{sink.place}.{DIGEST}"
        read_digest(sink.digest, place, sink.type, findings, ordered=sink.ordered)
    except Invalid as error:
        findings.all += [
            replace(one, place=f"{sink.place}.target") if one.place == "target" else one
            for one in error.findings
        ]


def _environments(stack_request: StackRequest, limits: DocumentLimits) -> Iterator[dict[str, Json]]:
    """The readable environments of a request that may have event sinks."""
    names = dict.fromkeys(stack_request.environment_files)
    for sent in [stack_request.files.get(name) for name in names] or [stack_request.environment]:
        if isinstance(sent, dict):
            yield sent
        elif isinstance(sent, str) and SINKS in sent:
            # The engine reports documents that cannot be read.
            with suppress(HeadgateError):
                yield read_document(sent, "environment", limits, Findings())
