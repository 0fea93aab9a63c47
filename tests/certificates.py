"""Mutual TLS on loopback: an authority, its certificates, and a door that only they open."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from queue import Queue

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

LOOPBACK = "127.0.0.1"


class Certificate(Struct, frozen=True, kw_only=True):
    """Files of a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; its own is at `certificate`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._own = self._signed(self._name, self._key, is_authority=True)
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(self._own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Certificate:
        """A certificate for whoever is at the loopback address."""
        key = ec.generate_private_key(ec.SECP256R1())
        files = Certificate(
            certificate=self._folder / f"{name}.pem", key=self._folder / f"{name}.key"
        )
        signed = self._signed(_named(name), key, is_authority=False)
        files.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        files.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return files

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address(LOOPBACK))]), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@contextmanager
def door(behind_port: int, authority: Authority) -> Iterator[str]:
    """An address before the one behind it, open to who has a certificate of the authority."""
    own = authority.issue("door")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["h2"])

    opened: Queue[int] = Queue()
    closing = threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_keep(context, behind_port, opened, closing))
    )
    thread.start()
    try:
        yield f"{LOOPBACK}:{opened.get()}"
    finally:
        closing.set()
        thread.join()


async def _keep(
    context: ssl.SSLContext, behind_port: int, opened: "Queue[int]", closing: threading.Event
) -> None:
    """Hold the door open; the end of the loop ends what goes through it."""

    async def let_in(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = await asyncio.open_connection(LOOPBACK, behind_port)
        await asyncio.gather(_pass_on(reader, behind[1]), _pass_on(behind[0], writer))

    server = await asyncio.start_server(let_in, LOOPBACK, 0, ssl=context)
    opened.put(server.sockets[0].getsockname()[1])
    async with server:
        await asyncio.to_thread(closing.wait)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        pass
    finally:
        writer.transport.abort()
