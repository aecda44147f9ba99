"""Password hashes at their real cost."""

import base64
import hashlib

from hub.auth import secrets

#: "correct horse", as version 0.1.0 stored it.
OLD_HASH = "scrypt$16384$8$1$YWFhYWFhYWFhYWFhYWFhYQ$"


def test_a_hash_with_other_parameters_is_accepted_and_reported_as_weak() -> None:
    digest = hashlib.scrypt(b"correct horse", salt=b"a" * 16, n=2**14, r=8, p=1, dklen=32)
    old = OLD_HASH + base64.urlsafe_b64encode(digest).decode().rstrip("=")
    assert secrets.is_password("correct horse", old) and not secrets.is_password("other", old)
    now = secrets.hash_password("correct horse", b"a" * 16)
    assert now.startswith("scrypt$131072$8$1$")  # the parameters that OWASP recommends
    assert (secrets.is_weak(old), secrets.is_weak(now)) == (True, False)
    assert not secrets.is_weak(secrets.NO_PASSWORD)
    assert not secrets.is_password("", secrets.NO_PASSWORD)
