"""Objects by the beginning of their ID."""

from typing import cast

from aiohttp import web

from engine.store.projects.id_prefixes import MIN_PREFIX, STATEMENTS, range_of_ids
from hub.api.app_context import context_of, project_of
from hub.api.headgate import responses
from hub.api.query_parameters import choice
from hub.api.routes import QueryParameter, Refusal, Route, json_response


async def show(request: web.Request) -> web.Response:
    """Of the kind in the query; by default, of all."""
    project, reads = project_of(request), context_of(request).engine.reads
    ids = range_of_ids(request.query["prefix"])
    kinds = [request.query["kind"]] if request.query.get("kind") else [*STATEMENTS]
    matches = {
        kind: await reads.ids_with_prefix(project, kind, ids) if ids else [] for kind in kinds
    }
    return json_response(
        responses.IdMatches(
            ids=[
                responses.IdMatch(kind=cast(responses.IdKind, kind), id=str(one.id), name=one.name)
                for kind, found in matches.items()
                for one in found
            ]
        )
    )


def _invalid_prefix(value: str) -> Refusal | None:
    if range_of_ids(value) is not None:
        return None
    reason = f'"{value[:50]}" is not the beginning of an ID'
    return reason, f"Send at least {MIN_PREFIX} characters of it, such as 3f2a."


ROUTES = (
    Route("GET", "/v1/{project}/ids", show,
          "Objects whose ID has a prefix, at most 10 of each kind", "stacks",
          query={
              "prefix": QueryParameter(
                  f"at least {MIN_PREFIX} characters of the ID", _invalid_prefix, required=True
              ),
              "kind": choice("only of this kind", [*STATEMENTS]),
          },
          response=responses.IdMatches),
)  # fmt: skip
