"""An answer to a hook as it is sent, through whichever door: read, and refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from aiohttp import web
from pydantic import BaseModel, ConfigDict

from engine.errors import Findings, nearest
from engine.hooks.automation import Automation
from engine.hooks.durations import parse_span
from engine.principal import Principal
from engine.service import Answer
from engine.words import Decision, Door, How, Json
from hub.api.admission import SESSION
from hub.api.parts import identity_of

LONGEST_REASON = 4000


class Signal(BaseModel):
    """An answer to a hook. digest: of what its author saw; a different one is refused.

    data: what the hook's `ask` asks for. properties: of a patch. extend: of a progress, such as
    30m. how: of a step; over, when not said.
    """

    model_config = ConfigDict(extra="forbid")

    decision: Decision
    reason: str = ""
    data: Json = None
    properties: dict[str, Any] | None = None
    digest: str = ""
    extend: str = ""
    how: How = How.OVER


@dataclass(frozen=True, slots=True)
class AnswerBody:
    """What was said, whoever said it."""

    decision: Decision
    reason: str = ""
    digest: str = ""
    data: Json = None
    properties: Mapping[str, Json] | None = None
    extend: timedelta | None = None
    how: How = How.OVER

    def by(
        self,
        who: Principal,
        door: Door,
        *,
        automation: Automation | None = None,
        address: str = "",
    ) -> Answer:
        return Answer(
            self.decision, who, door, self.reason, self.digest, self.data, self.properties,
            self.extend, automation, address, how=self.how,
        )  # fmt: skip


def read_signal(body: Mapping[str, Json]) -> AnswerBody:
    """Raises Invalid, by name."""
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
    _check_texts(body, findings)
    if not isinstance(body.get("properties"), dict | None):
        findings.add("properties", "must be a map", "Send the properties by name.", "Invalid")
    extend, how = _extend(body, findings), _how(body, findings)
    findings.raise_if_any()
    return AnswerBody(
        Decision(str(decision)), body.get("reason", ""), body.get("digest", ""), body.get("data"),
        body.get("properties"), extend, how,
    )  # fmt: skip


def _check_texts(body: Mapping[str, Json], findings: Findings) -> None:
    for name in ("reason", "digest", "extend"):
        if not isinstance(body.get(name, ""), str):
            findings.add(name, "must be a text", "Send a text.", "Invalid")
    if len(str(body.get("reason", ""))) > LONGEST_REASON:
        findings.add("reason", "is longer than 4,000 characters", "Shorten it.", "Invalid")


def _extend(body: Mapping[str, Json], findings: Findings) -> timedelta | None:
    said = body.get("extend")
    extend = parse_span(said) if said else None
    if said and extend is None:
        findings.add("extend", f'"{said}" is not a valid time', "Send 30m or the like.", "Invalid")
    if said and body.get("decision") != Decision.PROGRESS:
        findings.add("extend", "goes with the decision progress only", "Leave it out.", "Invalid")
    return extend


def _how(body: Mapping[str, Json], findings: Findings) -> How:
    said, known = body.get("how", How.OVER), [one.value for one in How]
    if said not in known:
        near = nearest(said, known) if isinstance(said, str) else ""
        remedy = near or f"Send one of {', '.join(known)}."
        findings.add("how", f'"{said}" is not a step mode', remedy, "Invalid")
        return How.OVER
    if "how" in body and body.get("decision") != Decision.STEP:
        findings.add("how", "goes with the decision step only", "Leave it out.", "Invalid")
    return How(said)


def answer_from(
    request: web.Request, said: AnswerBody | None = None, *, door: Door | None = None
) -> Answer:
    """An answer by right of one's role; `said` None: to continue. door: None: the API, or the
    dashboard where a session's cookie came with the request."""
    who, said = identity_of(request), said or AnswerBody(Decision.CONTINUE)
    door = door or (Door.DASHBOARD if SESSION in request else Door.API)
    given = said.by(who.principal, door, address=request.remote or "")
    return replace(given, credential=who.credential)
