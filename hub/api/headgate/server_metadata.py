"""The metadata of a server for its agent, over CloudFormation's DescribeStackResource."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit
from uuid import UUID
from xml.etree import ElementTree

from aiohttp import web

from engine.errors import Finding, HeadgateError, Invalid
from engine.store.software.deployment_resources import ServerRecord
from engine.types.software.deployed_server import PATH, owner_of
from hub.api.admission import count_wrong_tokens
from hub.api.app_context import AppContext, context_of
from hub.api.cells import read_in_any_cell
from hub.api.orchestration import documents
from hub.api.orchestration.software_configs import server_metadata
from hub.api.routes import QueryParameter, Route

#: Parameters of the query; all but the signature itself are signed.
ACCESS_KEY, SIGNATURE = "AWSAccessKeyId", "Signature"
VERSION, METHOD = "SignatureVersion", "SignatureMethod"


def is_signed(secret: str, verb: str, host: str, path: str, query: Mapping[str, str]) -> bool:
    """Whether the query was signed with the secret. host: as in the request, with its port."""
    if query.get(VERSION) != "2" or query.get(METHOD) != "HmacSHA256":
        return False
    expected = sign(secret, verb, host, path, query)
    return hmac.compare_digest(expected.encode(), query.get(SIGNATURE, "").encode())


def sign(secret: str, verb: str, host: str, path: str, query: Mapping[str, str]) -> str:
    """The signature of a query, in base64."""
    pairs = sorted((name, value) for name, value in query.items() if name != SIGNATURE)
    parameters = "&".join(f"{_quote(name)}={_quote(value)}" for name, value in pairs)
    text = f"{verb}\n{host.lower()}\n{path}\n{parameters}"
    digest = hmac.digest(secret.encode(), text.encode(), hashlib.sha256)
    return base64.b64encode(digest).decode()


def _quote(text: str) -> str:
    return quote(text, safe="-_.~")


ACTION = "DescribeStackResource"
XML = "text/xml"


async def describe(request: web.Request, server: ServerRecord) -> web.Response:
    """The access key identifies the server, whose names can have changed."""
    action = request.query.get("Action", "")
    if action != ACTION:
        reason = f'the action "{action}" is not supported'
        raise Invalid([Finding("Action", reason, f"Ask for {ACTION}.", "InvalidAction")])
    metadata = await server_metadata(context_of(request).engine, server.project, server)
    text = json.dumps(metadata)  # in ASCII, because XML cannot contain all characters
    return web.Response(text=_document(server, text), content_type=XML, charset="utf-8")


@dataclass(frozen=True, slots=True)
class _SignedRequest:
    """owner: the stack and the resource of the access key."""

    request: web.Request
    owner: tuple[UUID, UUID]


def _read_key(request: web.Request) -> _SignedRequest:
    """Raises HeadgateError."""
    query = request.query
    owner = owner_of(query.get(ACCESS_KEY, ""))
    if owner is None or not query.get(SIGNATURE) or len(query) != len(set(query)):
        raise _refusal()
    return _SignedRequest(request, owner)


async def _authenticate(signed: _SignedRequest, context: AppContext) -> ServerRecord:
    """The response to a wrong signature does not reveal whether the server exists."""
    request, owner, query = signed.request, signed.owner, signed.request.query
    public = urlsplit(context.servers.url)
    addresses = ((request.host, request.rel_url.raw_path), (public.netloc, public.path))

    def accepts_signature() -> bool:
        return any(
            is_signed(secret, request.method, *address, query)
            for secret in context.servers.accepted_secrets(*owner)
            for address in addresses
        )

    if not await context.token_keys.check_refreshed(accepts_signature):
        raise _refusal()
    server = await context.engine.software.server(*owner)
    if server is None:
        raise _refusal()
    return server


def _document(server: ServerRecord, metadata: str) -> str:
    """XML without a declaration, which the agent does not accept."""
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
        ("LastUpdatedTimestamp", documents.time(server.updated_at)),
        ("Metadata", metadata),
    ):
        ElementTree.SubElement(detail, name).text = text
    return ElementTree.tostring(response, encoding="unicode")


def _refusal() -> HeadgateError:
    return HeadgateError(
        "this is not signed with the server's own key",
        place=ACCESS_KEY,
        remedy="Sign with access_key_id and secret_access_key of the server's os_collect_config.",
        code="Unauthorized",
    )


#: The handler refuses what is missing, with the same error as a wrong signature.
QUERY = {
    "Action": QueryParameter(ACTION, required=True),
    "StackName": QueryParameter("of the server; ignored, because the key identifies the server"),
    "LogicalResourceId": QueryParameter("of the server; ignored"),
    ACCESS_KEY: QueryParameter("the access key of the server", required=True),
    VERSION: QueryParameter("2", required=True),
    METHOD: QueryParameter("HmacSHA256", required=True),
    SIGNATURE: QueryParameter(
        "of the other parameters, with the secret key of the server", required=True
    ),
}
ROUTES = (
    Route("GET", PATH, count_wrong_tokens(read_in_any_cell(_read_key, _authenticate, describe)),
          "The metadata of a server, for its agent",
          "software", query=QUERY, content_type=XML),
)  # fmt: skip
