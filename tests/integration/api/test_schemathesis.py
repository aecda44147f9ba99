"""Requests that Schemathesis generates from /openapi.json."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from hub.api.request_validation import UNAUTHENTICATED_BODY
from tests.support.populated_project import PopulatedProject, populate_project
from tests.support.program import PATIENCE, Json, program

ALWAYS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


#: The only operation that reads the body of a client that is not authenticated.
SIGN_IN = "POST /v1/{project}/session"


def is_refused(ctx: Any, response: Any, case: Any) -> bool | None:
    """Invalid data is refused; at sign-in, a body that is too large is refused unread."""
    body = response.request.body or b""
    if not body.strip():
        return None  # white space is no body, which some operations allow
    size = len(body)
    if case.operation.label == SIGN_IN and size > UNAUTHENTICATED_BODY:
        assert response.status_code == 413, response.status_code
        return None
    return negative_data_rejection(ctx, response, case)


#: Positive requests may be refused, because most rules of stacks are not in a schema. Other tests
#: check methods and rights.
CHECKS = {
    GenerationMode.POSITIVE: ALWAYS,
    GenerationMode.NEGATIVE: [*ALWAYS, is_refused],
}
#: Reads first, deletions last.
ORDER = ("GET", "POST", "PATCH", "PUT", "DELETE")
EXAMPLES = 8
BOUNDS = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
#: A stream.
STREAM = "/v1/{project}/events/stream"


def operations(document: Json) -> Iterator[Any]:
    schema = schemathesis.openapi.from_dict(document)
    read = list(schema.get_all_operations())
    found = [one.ok() for one in read if isinstance(one, Ok)]
    assert len(found) == len(read), "some of the document cannot be read"
    wanted = [one for one in found if one.path != STREAM]
    yield from sorted(wanted, key=lambda one: (ORDER.index(one.method.upper()), one.path))


class RequestSequence:
    """Requests in sequence, most of them with names of existing objects.

    wrong: what is wrong with the answers, each kind of it once by operation. seen: by status.
    """

    def __init__(self, url: str, existing_names: PopulatedProject) -> None:
        self._url, self._there = url, existing_names
        self._session = requests.Session()
        # With the cookie of a session, requests without a CSRF header would be refused.
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self.wrong: dict[str, str] = {}
        self.seen: Counter[int] = Counter()

    def about(self, operation: Any, mode: GenerationMode) -> None:
        @BOUNDS
        @given(case=operation.as_strategy(generation_mode=mode), known=st.integers(0, 3))
        def ask(case: Any, known: int) -> None:
            if known:
                case.path_parameters = self._there.parameters(operation.path)
            self._ask(case, CHECKS[mode])

        ask()

    def _ask(self, case: Any, checks: list[Any]) -> None:
        answer = case.call(
            base_url=self._url, session=self._session, allow_redirects=False, timeout=PATIENCE
        )
        self.seen[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=checks)
        except FailureGroup as error:
            for one in error.exceptions:
                what = f"{case.operation.label}: {type(one).__name__}"
                self.wrong.setdefault(what, f"{one}\n{case.as_curl_command()[:1000]}")

    def everything(self, document: Json) -> None:
        with self._session:
            for operation in operations(document):
                self.about(operation, GenerationMode.POSITIVE)
                if operation.body:  # any string is a valid name or query
                    self.about(operation, GenerationMode.NEGATIVE)


async def test_every_response_is_documented(
    database_url: str,
) -> None:
    async with program(database_url) as run:
        asking = RequestSequence(run.url, await populate_project(run))
        _, document = await run.call("GET", "//openapi.json")
        await asyncio.to_thread(asking.everything, document)
        assert not asking.wrong, "\n".join(f"{what}: {why}" for what, why in asking.wrong.items())
        well = sum(count for status, count in asking.seen.items() if status < 400)
        assert well > 150 and asking.seen[400] > 100 and asking.seen[404] > 100, asking.seen
        print(asking.seen)
