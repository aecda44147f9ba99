"""Answers to hooks in request bodies, from every answer channel."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from engine.errors import Findings, nearest
from engine.hooks.answer_rights import Automation
from engine.hooks.durations import parse_span
from engine.principal import Principal
from engine.service import Answer
from engine.words import AnswerChannel, Decision, Json, StepKind
from hub.api.admission import SESSION
from hub.api.app_context import identity_of
from hub.api.request_validation import nul_in

MAX_REASON = 4000
CONTINUE: Mapping[str, Json] = {"decision": Decision.CONTINUE}


class Signal(BaseModel):
    """An answer to a hook. digest: of the hook that the approver saw; another digest is refused.

    data: answer data, which the hook's `ask` requires. properties: of a patch. extend: of
    progress, such as 30m. how: of a step; over by default.
    """

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    reason: str = ""
    data: Json = None
    properties: dict[str, Any] | None = None
    digest: str = ""
    extend: str = ""
    how: StepKind = StepKind.OVER


def read_signal(
    body: Mapping[str, Json],
    by: Principal,
    channel: AnswerChannel,
    *,
    automation: Automation | None = None,
    address: str = "",
) -> Answer:
    """Raises Invalid with all findings."""
    findings = Findings()
    decision = body.get("decision")
    decisions = [one.value for one in Decision]
    if decision not in decisions:
        near = nearest(decision, decisions) if isinstance(decision, str) else ""
        remedy = near or f"Answer one of {', '.join(decisions)}."
        why = "is missing" if decision is None else f'"{decision}" is not a decision'
        findings.add("decision", why, remedy, "Invalid")
    for name in body:
        if name not in Signal.model_fields:
            known = list(Signal.model_fields)
            remedy = nearest(name, known) or f"Known: {', '.join(known)}."
            findings.add(name, "is not a known key", remedy, "Invalid")
    if (place := nul_in(body)) is not None:
        reason = "text with a NUL character cannot be stored"
        findings.add(place, reason, "Leave it out.", "Invalid")
    _check_texts(body, findings)
    if not isinstance(body.get("properties"), dict | None):
        findings.add("properties", "must be a map", "Send the properties by name.", "Invalid")
    extend, how = _extend(body, findings), _how(body, findings)
    findings.raise_if_any()
    return Answer(
        Decision(str(decision)), by, channel, body.get("reason", ""), body.get("digest", ""),
        body.get("data"), body.get("properties"), extend, automation, address, how=how,
    )  # fmt: skip


def _check_texts(body: Mapping[str, Json], findings: Findings) -> None:
    for name in ("reason", "digest", "extend"):
        if not isinstance(body.get(name, ""), str):
            findings.add(name, "must be a text", "Send a text.", "Invalid")
    if len(str(body.get("reason", ""))) > MAX_REASON:
        findings.add("reason", "is longer than 4,000 characters", "Shorten it.", "Invalid")


def _extend(body: Mapping[str, Json], findings: Findings) -> timedelta | None:
    text = body.get("extend")
    extend = parse_span(text) if text else None
    if text and extend is None:
        findings.add(
            "extend", f'"{text}" is not a valid time', "Send a duration such as 30m.", "Invalid"
        )
    if text and body.get("decision") != Decision.PROGRESS:
        findings.add(
            "extend", "is valid with the decision progress only", "Leave it out.", "Invalid"
        )
    return extend


def _how(body: Mapping[str, Json], findings: Findings) -> StepKind:
    how, known = body.get("how", StepKind.OVER), [one.value for one in StepKind]
    if how not in known:
        near = nearest(how, known) if isinstance(how, str) else ""
        remedy = near or f"Send one of {', '.join(known)}."
        findings.add("how", f'"{how}" is not a step mode', remedy, "Invalid")
        return StepKind.OVER
    if "how" in body and body.get("decision") != Decision.STEP:
        findings.add("how", "is valid with the decision step only", "Leave it out.", "Invalid")
    return StepKind(how)


def answer_from(
    request: web.Request,
    body: Mapping[str, Json] = CONTINUE,
    *,
    channel: AnswerChannel | None = None,
) -> Answer:
    """An answer of the authenticated caller.

    channel: by default the API, or the dashboard for a session.
    """
    identity = identity_of(request)
    channel = channel or (AnswerChannel.DASHBOARD if SESSION in request else AnswerChannel.API)
    answer = read_signal(body, identity.principal, channel, address=request.remote or "")
    return replace(answer, credential=identity.credential)
