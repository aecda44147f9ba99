"""The pair that Headgate makes for a key pair without a public key."""

from dataclasses import replace

from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_ssh_private_key,
)

from engine.types.openstack.nova.key_pair import new_pair
from engine.types.openstack.nova.schema import KEY_PAIR


def test_the_keys_of_a_new_pair_belong_together() -> None:
    pair = new_pair("my key\nü")
    private = load_ssh_private_key(pair["private"].encode(), None)
    public = private.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert pair["public"].startswith(f"{public} ") and "\n" not in pair["public"]
    assert new_pair("my key")["public"] != pair["public"]


def test_the_private_key_is_secret_and_the_name_is_not() -> None:
    assert KEY_PAIR.is_secret("private_key") and not KEY_PAIR.is_secret("public_key")
    assert KEY_PAIR.has_secrets() and not KEY_PAIR.has_secret_reference()
    assert replace(KEY_PAIR, public_reference=False).has_secret_reference()
