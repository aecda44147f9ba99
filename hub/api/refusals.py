"""Errors on their way out: in the form that the route's clients know."""

import structlog
from aiohttp import web
from structlog.typing import FilteringBoundLogger

from engine.errors import Conflict, HeadgateError, LimitReached, NotFound
from hub.api import well_formed
from hub.api.addresses import PREFIXES
from hub.api.admission import ADMISSION
from hub.api.parts import ID, PARTS, Handler, answer, invalid
from hub.api.problems import heat_document, heat_form, own_form, status_of
from hub.auth.throttle import TooMany

log: FilteringBoundLogger = structlog.get_logger()


@web.middleware
async def error_middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors in the form the route's clients know; what is unforeseen is logged, not shown."""
    try:
        well_formed.check(request)
        return await handler(request)
    except HeadgateError as error:
        return _problem(request, error)
    except web.HTTPRequestEntityTooLarge:
        most = request.app[PARTS].settings.server.max_body
        remedy = f"Send at most {most} bytes; the limit is [server] max_body."
        return _problem(
            request,
            LimitReached("the request is too large", remedy=remedy, code="RequestTooLarge"),
        )
    except web.HTTPMethodNotAllowed as error:
        return _wrong_method(request, sorted(error.allowed_methods))
    except web.HTTPNotFound:
        reason = f"no resource at {request.path}"
        return _problem(
            request,
            NotFound(reason, remedy="See /openapi.json for what there is.", code="NotFound"),
        )
    except web.RequestPayloadError:
        reason = (
            "the body cannot be read: it is incomplete, or not encoded as Content-Encoding says"
        )
        refused = _problem(request, invalid("", reason, "Send it again, whole."))
        refused.force_close()  # where the next request would begin is not known
        return refused
    except web.HTTPException:
        raise
    except Exception as error:
        log.error("request.bug", id=request[ID], path=request.path, exc_info=error)
        return _fault(request)


def _problem(request: web.Request, error: HeadgateError) -> web.Response:
    form = own_form if _is_own(request) else heat_form
    return answer(form(error), status_of(error), _headers(request, error))


def _headers(request: web.Request, error: HeadgateError) -> dict[str, str]:
    """What a client needs to come again: when, or with what."""
    if isinstance(error, TooMany):
        return {"Retry-After": str(error.wait)}
    challenge = request.app[ADMISSION].gatekeeper.authenticator.challenge
    # A browser would ask for a password by itself, behind the back of the page.
    by_script = request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate"
    if status_of(error) == 401 and challenge and not by_script:
        return {"WWW-Authenticate": challenge}
    return {}


def _fault(request: web.Request) -> web.Response:
    """Tells the id under which the log has the rest, and nothing more."""
    request_id = request[ID]
    error = HeadgateError(
        "this is a fault of the server",
        remedy=f"Its log has more under {request_id}.",
        code="InternalError",
    )
    return _problem(request, error)


def _is_own(request: web.Request) -> bool:
    """Whether the path is one of Headgate's own; stacks and resources may have any name."""
    parts = request.rel_url.raw_path.strip("/").split("/")
    if parts[0] not in PREFIXES:
        return True
    if len(parts) > 2 and parts[2] in OWN_THINGS:
        return True
    if len(parts) < 6 or parts[2] != "stacks":
        return False
    return parts[5] in OWN_PARTS or (parts[5] == "resources" and parts[7:] == ["inspect"])


#: What a project has here that it has not in the Orchestration API.
OWN_THINGS = frozenset({
    "hooks", "subscriptions", "events", "webhook-key", "tokens", "session", "quotas", "overview",
    "decisions",
})  # fmt: skip
#: Parts of a stack's path that are not of the Orchestration API.
OWN_PARTS = frozenset({
    "graph", "why", "breakpoints", "run-to", "decisions", "history", "versions",
    "resource_snapshots", "pin",
})  # fmt: skip


def _wrong_method(request: web.Request, allowed: list[str]) -> web.Response:
    headers = {"Allow": ", ".join(allowed)}
    if request.method == "OPTIONS":
        return web.Response(status=204, headers=headers)
    error = Conflict(
        f"{request.method} is not possible here",
        remedy=f"Possible are: {headers['Allow']}.",
        code="MethodNotAllowed",
    )
    form = own_form(error) if _is_own(request) else heat_document(405, error.code, str(error))
    return answer(form, 405, headers)
