"""The schemas of the types of Barbican, as Heat has them."""

from typing import Final

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.openstack.neutron.lookups import between, custom, one_of

TEXT, BINARY = "text/plain", "application/octet-stream"

_NAME: Final = Property(Kind.STRING, "Name; several objects may have the same one.")
_EXPIRATION: Final = Property(
    Kind.STRING, "When the secret ends, as in 2030-01-31T12:00:00Z.",
    constraints=custom("expiration"),
)  # fmt: skip
_MODE: Final = Property(Kind.STRING, "Mode of the algorithm, as cbc.")
_STATUS: Final = Attribute(Kind.STRING, "Its status.", public=True)

SECRET: Final = TypeSchema(
    "OS::Barbican::Secret",
    description="A secret, such as a key or a password.",
    public_reference=True,
    properties={
        "name": _NAME,
        "payload": Property(
            Kind.STRING, "The secret itself. Spaces around it are removed.", hidden=True
        ),
        "payload_content_type": Property(
            Kind.STRING, "Media type of the payload.", constraints=one_of(TEXT, BINARY)
        ),
        "payload_content_encoding": Property(
            Kind.STRING, "How the template encodes the payload.", constraints=one_of("base64")
        ),
        "mode": _MODE,
        "expiration": _EXPIRATION,
        "algorithm": Property(Kind.STRING, "Algorithm that the secret is for, as aes."),
        "bit_length": Property(Kind.INTEGER, "Length in bits.", constraints=between(0)),
        "secret_type": Property(
            Kind.STRING,
            "What the secret is.",
            default="opaque",
            constraints=one_of(
                "symmetric", "public", "private", "certificate", "passphrase", "opaque"
            ),
        ),
    },
    attributes={
        "status": _STATUS,
        "decrypted_payload": Attribute(
            Kind.STRING, "The payload; bytes that are not text are in Base64.", secret=True
        ),
    },
)

ORDER: Final = TypeSchema(
    "OS::Barbican::Order",
    description="An order to generate a key, or a pair of keys.",
    public_reference=True,
    properties={
        "name": Property(Kind.STRING, "Name of what is generated."),
        "payload_content_type": Property(Kind.STRING, "Media type of the payload."),
        "mode": _MODE,
        "expiration": _EXPIRATION,
        "algorithm": Property(Kind.STRING, "Algorithm; required for the types key and asymmetric."),
        "bit_length": Property(
            Kind.INTEGER, "Length in bits; required for the types key and asymmetric."
        ),
        "type": Property(
            Kind.STRING,
            "What is generated.",
            required=True,
            constraints=one_of("key", "asymmetric", "certificate"),
        ),
        "request_type": Property(
            Kind.STRING,
            "Type of the request for a certificate.",
            constraints=one_of("stored-key", "simple-cmc", "custom"),
        ),
        "subject_dn": Property(Kind.STRING, "Subject of the certificate."),
        "source_container_ref": Property(
            Kind.STRING,
            "URL of the container with the keys of the certificate.",
            constraints=custom("barbican.container"),
        ),
        "ca_id": Property(Kind.STRING, "ID of the certification authority."),
        "profile": Property(Kind.STRING, "Profile of the certificate."),
        "request_data": Property(Kind.STRING, "The certificate signing request."),
        "pass_phrase": Property(
            Kind.STRING, "Passphrase of the private key; for the type asymmetric.", hidden=True
        ),
    },
    attributes={
        "status": _STATUS,
        "order_ref": Attribute(Kind.STRING, "URL of the order.", public=True),
        "secret_ref": Attribute(Kind.STRING, "URL of the generated secret.", public=True),
        "container_ref": Attribute(
            Kind.STRING, "URL of the container with the generated keys.", public=True
        ),
        "public_key": Attribute(Kind.STRING, "The generated public key."),
        "private_key": Attribute(Kind.STRING, "The generated private key.", secret=True),
        "certificate": Attribute(Kind.STRING, "The certificate."),
        "intermediates": Attribute(Kind.STRING, "The intermediate certificates."),
    },
)


def _reference(what: str) -> Property:
    return Property(
        Kind.STRING, f"URL of the secret with the {what}.", constraints=custom("barbican.secret")
    )


def _container(name: str, description: str, **properties: Property) -> TypeSchema:
    return TypeSchema(
        name,
        description=description,
        properties={"name": _NAME, **properties},
        attributes={
            "status": _STATUS,
            "container_ref": Attribute(Kind.STRING, "URL of the container.", public=True),
            "secret_refs": Attribute(Kind.MAP, "URLs of the secrets by name.", public=True),
            "consumers": Attribute(Kind.LIST, "What has registered as user of the container."),
        },
    )


GENERIC_CONTAINER: Final = _container(
    "OS::Barbican::GenericContainer",
    "A group of secrets of any kind.",
    secrets=Property(
        Kind.LIST,
        "The secrets.",
        items=Property(
            Kind.MAP,
            fields={
                "name": Property(Kind.STRING, "Name in the container.", required=True),
                "ref": Property(
                    Kind.STRING,
                    "URL of the secret.",
                    required=True,
                    constraints=custom("barbican.secret"),
                ),
            },
        ),
    ),
)
RSA_CONTAINER: Final = _container(
    "OS::Barbican::RSAContainer",
    "A pair of RSA keys.",
    private_key_ref=_reference("private key"),
    private_key_passphrase_ref=_reference("passphrase of the private key"),
    public_key_ref=_reference("public key"),
)
CERTIFICATE_CONTAINER: Final = _container(
    "OS::Barbican::CertificateContainer",
    "A certificate, with its private key.",
    certificate_ref=_reference("certificate"),
    private_key_ref=_reference("private key"),
    private_key_passphrase_ref=_reference("passphrase of the private key"),
    intermediates_ref=_reference("intermediate certificates"),
)
