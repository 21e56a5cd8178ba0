"""Makes the secrets of a cluster in a folder: passwords, an authority and certificates, settings. Changes nothing that
is there, so that it may run at every start. `python setup.py FOLDER`; SITE names the host that clients ask for.

Each service gets a folder of its own, readable by the user that it runs as. Nothing leaves this folder.
"""

import base64
import datetime as dt
import ipaddress
import json
import os
import secrets
import shutil
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USERS = {
    "yard": 10001,
    "postgres": 999,
    "valkey": 999,
    "seaweedfs": 1000,
    "caddy": 0,
    "prometheus": 10001,  # `keys` puts its key there; nothing else in it is secret
    "grafana": 472,
}
NAMES = {
    "yard": ("gateway-1", "gateway-2", "localhost"),
    "postgres": ("postgres",),
    "valkey": ("valkey",),
    "seaweedfs": ("seaweedfs",),
    "caddy": (os.environ.get("SITE") or "localhost",),
    "grafana": ("localhost",),
}
YEARS = 10
BUCKET = "scrapeyard"
_SETTINGS = """\
database_url = "postgresql://scrapeyard:{postgres}@postgres/scrapeyard?sslmode=verify-full&sslrootcert={at}/ca.pem"
redis_url = "rediss://:{valkey}@valkey:6379/0?ssl_ca_certs={at}/ca.pem"

[gateway]
tls_cert_file = "{at}/cert.pem"
tls_key_file = "{at}/key.pem"
hosts = [{hosts}]

[auth]
pepper = "{pepper}"

[secrets]
master_key_file = "{at}/master.key"

[blobs]
url = "s3://{bucket}/blobs"
endpoint = "https://seaweedfs:8333"
region = "us-east-1"
access_key = "{access}"
secret_key = "{secret}"
ca_file = "{at}/ca.pem"
"""
_VALKEY = """\
port 0
tls-port 6379
tls-cert-file {at}/cert.pem
tls-key-file {at}/key.pem
tls-ca-cert-file {at}/ca.pem
tls-auth-clients no
requirepass {password}
maxmemory-policy noeviction
save ""
appendonly no
dir /data
"""
_HBA = """\
local all all trust
hostssl all all all scram-sha-256
"""


class Authority:
    """Signs the certificates of the services. Its key is thrown away: who needs another certificate starts anew."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Scrapeyard cluster")])
        limits = x509.BasicConstraints(ca=True, path_length=0)
        self.certificate = (
            _begun(self._name, self._name, self._key.public_key())
            .add_extension(limits, critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def pair(self, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        """A certificate for these names, and its key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
        made = (
            _begun(subject, self._name, key.public_key())
            .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _pem(made), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=365 * YEARS))
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def contents() -> dict[str, dict[str, bytes]]:
    """Every file of every service."""
    authority = Authority()
    files: dict[str, dict[str, bytes]] = {name: {"ca.pem": _pem(authority.certificate)} for name in USERS}
    for service, names in NAMES.items():
        files[service]["cert.pem"], files[service]["key.pem"] = authority.pair(names)
    made = {name: secrets.token_urlsafe(24) for name in ("postgres", "valkey", "access", "secret", "grafana")}
    site = NAMES["caddy"][0]
    hosts = json.dumps(site) if "." in site else ""
    files["yard"] |= {
        "scrapeyard.toml": _SETTINGS.format(
            at="/run/scrapeyard", bucket=BUCKET, pepper=secrets.token_hex(32), hosts=hosts, **made
        ).encode(),
        "master.key": base64.b64encode(secrets.token_bytes(32)) + b"\n",
        "healthy.py": Path(__file__).with_name("healthy.py").read_bytes(),
    }
    files["postgres"] |= {"password": made["postgres"].encode(), "pg_hba.conf": _HBA.encode()}
    files["valkey"] |= {
        "password": made["valkey"].encode(),
        "valkey.conf": _VALKEY.format(at="/run/valkey", password=made["valkey"]).encode(),
    }
    files["seaweedfs"]["s3.json"] = json.dumps(_s3(made["access"], made["secret"])).encode()
    files["grafana"]["password"] = made["grafana"].encode()
    return files


def _s3(access: str, secret: str) -> dict[str, object]:
    """One user, who may make and use buckets. Without it the server would let everybody in."""
    credentials = [{"accessKey": access, "secretKey": secret}]
    return {
        "identities": [
            {"name": "scrapeyard", "credentials": credentials, "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
        ]
    }


def make(folder: Path) -> bool:
    """Write everything, whole or not at all; False if it is there already."""
    mark = folder / "yard" / ".made"
    if mark.exists():
        return False
    for service, files in contents().items():
        place = folder / service
        place.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            _write(place / name, data, USERS[service])
        if os.geteuid() == 0:
            shutil.chown(place, USERS[service], USERS[service])
        place.chmod(0o755 if service == "prometheus" else 0o700)
    mark.touch()
    return True


def _write(path: Path, data: bytes, user: int) -> None:
    path.unlink(missing_ok=True)
    path.touch(0o600)
    path.write_bytes(data)
    if os.geteuid() == 0:
        shutil.chown(path, user, user)
    path.chmod(0o444 if path.name == "ca.pem" else 0o400)


if __name__ == "__main__":
    sys.stdout.write("made\n" if make(Path(sys.argv[1])) else "already there\n")
