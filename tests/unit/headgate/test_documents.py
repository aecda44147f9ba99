"""headgate/documents.py describes the responses of this server."""

from tools import client_documents


def test_the_types_are_generated_from_the_api() -> None:
    assert client_documents.normalized(client_documents.TARGET.read_text()) == (
        client_documents.normalized(client_documents.text())
    ), "run `make client-documents`"
