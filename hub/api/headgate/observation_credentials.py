"""The credential that the owner of a project has handed over for observations and repairs."""

from typing import Annotated

from aiohttp import web
from pydantic import Field

from engine.errors import NotFound
from engine.store.observer import observation_credentials as store
from engine.store.observer.observation_credentials import ObservationCredential
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.headgate import responses
from hub.api.openapi_components import document_of
from hub.api.request_validation import Body, invalid, read_model
from hub.api.routes import Route, json_response
from hub.settings.settings import Settings

PATH = "/v1/{project}/observation-credential"
#: Keystone's IDs have at most 64 characters, and its secrets at most 255.
CredentialId = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
CredentialSecret = Annotated[
    str, Field(min_length=1, max_length=255, json_schema_extra={"writeOnly": True})
]


class SetObservationCredential(Body):
    """An application credential of Keystone, of the project of the URL. repairs: repairs of drift
    may act with it."""

    application_credential_id: CredentialId
    application_credential_secret: CredentialSecret
    repairs: bool = False


def document(
    credential: ObservationCredential, settings: Settings
) -> responses.ObservationCredential:
    openstack = settings.resource_types.openstack
    uses = openstack.enabled and not openstack.reader.application_credential_id
    return document_of(
        responses.ObservationCredential,
        credential,
        state=credential.state,
        used_by_observer=uses,
    )


async def set_credential(request: web.Request) -> web.Response:
    body, who = await read_model(request, SetObservationCredential), identity_of(request)
    credentials = context_of(request).observation_credentials
    if credentials is None:
        raise invalid(
            "",
            "this server has no observation credentials, because users do not authenticate with"
            " Keystone",
            "Resources that are not of OpenStack are observed without one.",
        )
    await credentials.accept(
        project_of(request),
        body.application_credential_id,
        body.application_credential_secret,
        who.principal,
        repairs=body.repairs,
    )
    return await show(request)


async def show(request: web.Request) -> web.Response:
    context, project = context_of(request), project_of(request)
    async with context.database.connection() as conn:
        found = await store.read(conn, project)
    if found is None:
        raise no_credential()
    return json_response(document(found, context.settings))


async def delete(request: web.Request) -> web.Response:
    async with context_of(request).database.transaction() as conn:
        by = identity_of(request).principal
        if not await store.delete(conn, project_of(request), by):
            raise no_credential()
    return web.Response(status=204)


def no_credential() -> NotFound:
    return NotFound(
        "The project has no observation credential.",
        place="observation-credential",
        remedy="PUT .../observation-credential sets one.",
        code="EntityNotFound",
    )


ROUTES = (
    Route("GET", PATH, show, "Show the observation credential of a project, without its secret",
          "access", response=responses.ObservationCredential),
    Route("PUT", PATH, set_credential,
          "Hand over an application credential of Keystone for observations and repairs", "access",
          body=SetObservationCredential, takes_body=True,
          response=responses.ObservationCredential),
    Route("DELETE", PATH, delete, "Delete the observation credential of a project", "access",
          status=204),
)  # fmt: skip
