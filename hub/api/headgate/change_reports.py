"""Reports that physical resources have changed, from the events of providers. A report only causes
an observation; it never says what the state is."""

from time import monotonic
from typing import Annotated

from aiohttp import web
from pydantic import Field

from hub.api.admission import LIMITS
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.client_limits import client_of
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.request_validation import Body, read_model
from hub.api.routes import Route, json_response
from hub.auth.gatekeeper import RequestLimits
from hub.auth.roles import Right
from hub.auth.throttle import TooManyRequests

_REMEDY = (
    "Report changes of resources of this project only. Wait for the time in Retry-After; the limit"
    " is [server] unknown_ids_per_user."
)
#: Resources of one report.
MAX_REPORTED = 1_000
Text = Annotated[str, Field(min_length=1, max_length=1_000)]


class ReportedChange(Body):
    physical_resource_id: Text
    type: Text | None = None


class ChangeReport(Body):
    observations: Annotated[list[ReportedChange], Field(min_length=1, max_length=MAX_REPORTED)]


async def report(request: web.Request) -> web.Response:
    """Raises TooManyRequests if the client reports too many unknown IDs of the project, or has done
    so before: each unknown ID counts, whether its report is refused or not. Which IDs are unknown
    shows when they are looked up, so resources with the other IDs of that report are observed; a
    later report is refused without a look."""
    context, project = context_of(request), project_of(request)
    limits = request.app[LIMITS]
    unknown_ids = limits.unknown_ids
    client = f"{client_of(request, identity_of(request))} {project}"
    _check_earlier_reports(limits, client)
    body = await read_model(
        request, ChangeReport, 'Send {"observations": [{"physical_resource_id": "ID"}]}.'
    )
    changes = [(one.physical_resource_id, one.type) for one in body.observations]
    async with limits.reports.turn(client):
        _check_earlier_reports(limits, client)
        reported = await context.engine.observations.report(project, changes)
        wait = unknown_ids.spend_many(client, monotonic(), reported.unknown)
    context.metrics.record_reported_changes("observed", reported.resources)
    context.metrics.record_reported_changes("unknown", reported.unknown)
    if wait > 0:
        raise TooManyRequests(
            f"the report has {reported.unknown} IDs that no resource of the project has, and this"
            f" client may report at most {unknown_ids.at_once} of them at once; the other IDs were"
            f" taken: {reported.resources} resources of {reported.stacks} stacks will be observed",
            _REMEDY,
            wait,
        )
    return json_response(document_of(responses.ReportedChanges, reported), status=202)


def _check_earlier_reports(limits: RequestLimits, client: str) -> None:
    """Raises TooManyRequests if earlier reports of a client had too many unknown IDs."""
    if (wait := limits.unknown_ids.wait(client, monotonic())) > 0:
        raise TooManyRequests(
            "this client has reported too many IDs that no resource of the project has; no ID of"
            " this report was looked up",
            _REMEDY,
            wait,
        )


ROUTES = (
    Route("POST", "/v1/{project}/observations", report,
          "Report that physical resources may have changed, so that they are observed", "stacks",
          body=ChangeReport, takes_body=True, status=202, response=responses.ReportedChanges,
          needs=Right.REPORT),
)  # fmt: skip
