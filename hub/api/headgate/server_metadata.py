"""What is deployed to a server, asked in the manner of CloudFormation by the server's own agent."""

import json
from urllib.parse import urlsplit
from xml.etree import ElementTree

from aiohttp import web

from engine.errors import Finding, HeadgateError, Invalid
from engine.store.deployment_resources import ServerRecord
from engine.types.software.server_metadata_urls import PATH, owner_of
from hub.api.admission import guarded
from hub.api.orchestration import show
from hub.api.orchestration.server_metadata import of_server
from hub.api.parts import Route, parts_of
from hub.auth.signature import ACCESS_KEY, is_signed

ACTION = "DescribeStackResource"
XML = "text/xml"


async def describe(request: web.Request) -> web.Response:
    """A wrong signature learns nothing, not even whether the server is. The key says which server
    asks: it may have another name by now.
    """
    server = await _admitted(request)
    asked = request.query
    if asked.get("Action") != ACTION:
        reason = f'the action "{asked.get("Action", "")}" is not supported'
        raise Invalid([Finding("Action", reason, f"Ask for {ACTION}.", "InvalidAction")])
    metadata = await of_server(parts_of(request).engine, server.project, server)
    text = json.dumps(metadata)  # in ASCII: no XML can hold all that JSON can
    return web.Response(text=_document(server, text), content_type=XML, charset="utf-8")


async def _admitted(request: web.Request) -> ServerRecord:
    parts, query = parts_of(request), request.query
    owner = owner_of(query.get(ACCESS_KEY, ""))
    if owner is None or len(query) != len(set(query)):
        raise _refused()
    public = urlsplit(parts.servers.url)
    ways = ((request.host, request.rel_url.raw_path), (public.netloc, public.path))

    def signed() -> bool:
        return any(
            is_signed(secret, request.method, *way, query)
            for secret in parts.servers.accepted_secrets(*owner)
            for way in ways
        )

    if not await parts.token_keys.checked(signed):
        raise _refused()
    server = await parts.engine.software.server(*owner)
    if server is None:
        raise _refused()
    return server


def _document(server: ServerRecord, metadata: str) -> str:
    """Without a declaration: the agent reads it as text, and would refuse one."""
    response = ElementTree.Element(f"{ACTION}Response")
    result = ElementTree.SubElement(response, f"{ACTION}Result")
    detail = ElementTree.SubElement(result, "StackResourceDetail")
    for name, text in (
        ("StackId", str(server.stack_id)),
        ("StackName", server.stack_name),
        ("LogicalResourceId", server.name),
        ("PhysicalResourceId", server.physical_id or ""),
        ("ResourceType", server.type),
        ("ResourceStatus", f"{server.action}_{server.status}"),
        ("ResourceStatusReason", server.reason),
        ("LastUpdatedTimestamp", show.time(server.updated_at)),
        ("Metadata", metadata),
    ):
        ElementTree.SubElement(detail, name).text = text
    return ElementTree.tostring(response, encoding="unicode")


def _refused() -> HeadgateError:
    return HeadgateError(
        "this is not signed with the server's own key",
        place=ACCESS_KEY,
        remedy="Sign with access_key_id and secret_access_key of the server's os_collect_config.",
        code="Unauthorized",
    )


QUERY = {
    "Action": f"{ACTION}, nothing else",
    "StackName": "of the server; only its key is looked at",
    "LogicalResourceId": "likewise",
    ACCESS_KEY: "the server's own",
    "SignatureVersion": "2",
    "SignatureMethod": "HmacSHA256",
    "Signature": "of all the others, with the server's secret",
}
ROUTES = (
    Route("GET", PATH, guarded(describe), "What is deployed to a server, for its agent",
          "software", query=QUERY, answer=XML),
)  # fmt: skip
