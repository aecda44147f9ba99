"""Whether the event sinks that a request's environment names can be used here."""

from collections.abc import Iterator
from dataclasses import replace

from engine.errors import Findings, HeadgateError, Invalid
from engine.hot.environment.event_sinks import EventSink, read_event_sinks
from engine.hot.syntax.document import DocumentLimits, read_document
from engine.service.requests.requests import StackRequest
from engine.words import Json
from hub.api.parts import Parts, channel_of

SECTION = "event_sinks"


async def check_sinks(parts: Parts, project: str, wanted: StackRequest) -> None:
    """Ask each sink's channel about its target. Raises Invalid with all that is wrong.

    What was stored before is not asked about again; a channel judges at each delivery, too.
    """
    quotas = parts.settings.quotas.of(project)
    findings = Findings()
    for document in _documents(
        wanted, DocumentLimits(quotas.template_bytes, quotas.document_depth)
    ):
        # What is no sink at all, the reading of the environment tells.
        for sink in read_event_sinks(document.get(SECTION), Findings()):
            await _check(parts, sink, findings)
    findings.raise_if_any()


async def _check(parts: Parts, sink: EventSink, findings: Findings) -> None:
    try:
        channel = channel_of(parts, sink.type, f"{sink.place}.type")
        await channel.check_target(sink.target)
    except Invalid as error:
        findings.all += [
            replace(one, place=f"{sink.place}.target") if one.place == "target" else one
            for one in error.findings
        ]


def _documents(wanted: StackRequest, limits: DocumentLimits) -> Iterator[dict[str, Json]]:
    named = [wanted.files.get(name) for name in dict.fromkeys(wanted.environment_files)]
    for given in named or [wanted.environment]:
        if isinstance(given, dict):
            yield given
        elif isinstance(given, str) and SECTION in given:
            try:
                yield read_document(given, "environment", limits)
            except HeadgateError:
                continue  # told when it is read in earnest
