"""Tokens made for one thing: derived from the instance's key, so that they are stored nowhere."""

import base64
import hashlib
import hmac
from uuid import UUID


def hook_token(key: bytes, hook_id: UUID) -> str:
    """43 letters of URL-safe base64; whoever shows it may answer this hook and nothing else."""
    return _token(key, b"headgate hook " + hook_id.bytes)


def signal_token(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """In the same form; whoever shows it may send data to this resource and nothing else."""
    return _token(key, b"headgate signal " + stack_id.bytes + resource_id.bytes)


def server_secret(key: bytes, stack_id: UUID, resource_id: UUID) -> str:
    """In the same form; whoever signs with it may read what is deployed to this server."""
    return _token(key, b"headgate server " + stack_id.bytes + resource_id.bytes)


def _token(key: bytes, what: bytes) -> str:
    digest = hmac.digest(key, what, hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
