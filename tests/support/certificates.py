"""A certificate authority for tests, and certificates that it signs, as files."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


@dataclass(frozen=True)
class CertificateFiles:
    """Paths of PEM files."""

    certificate: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._root = self._sign(self._name, self._key, authority=True)
        self.file = self._write_certificate(f"{name}.pem", self._root)

    def issue(self, name: str, *addresses: str, expired: bool = False) -> CertificateFiles:
        """A certificate for a server with these addresses, or for a client with this name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._sign(subject, key, *addresses, expired=expired)
        return self._save_pair(name, certificate, key)

    def self_signed(self, *addresses: str) -> CertificateFiles:
        """A self-signed certificate."""
        name = "self_signed"
        return self._save_pair(name, self._sign(self._name, self._key, *addresses), self._key)

    def _save_pair(
        self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
    ) -> CertificateFiles:
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        key_file = self._folder / f"{name}.key"
        key_file.write_bytes(private)
        return CertificateFiles(self._write_certificate(f"{name}.pem", certificate), key_file)

    def _write_certificate(self, name: str, certificate: x509.Certificate) -> Path:
        path = self._folder / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *addresses: str,
        authority: bool = False,
        expired: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        end = now - DAY / 2 if expired else now + DAY
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if addresses:
            names = [x509.IPAddress(ip_address(one)) for one in addresses]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())
