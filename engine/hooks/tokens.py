"""The token made for one hook: derived from the instance's key, so that it is stored nowhere."""

import base64
import hashlib
import hmac
from uuid import UUID


def hook_token(key: bytes, hook_id: UUID) -> str:
    """43 letters of URL-safe base64; whoever shows it may answer this hook and nothing else."""
    digest = hmac.digest(key, b"headgate hook " + hook_id.bytes, hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
