"""Ed25519 keys of seals, read from PEM or from files of OpenSSH; the library is `cryptography`, of the extra `seal`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from assay.base.errors import UsageError
from assay.base.extras import require
from assay.base.paths import open_regular, printable

if TYPE_CHECKING:
    from assay.record.seal import Sign

KEY_BYTES_MAX = 64 << 10


def _read(path: Path, option: str) -> bytes:
    import os

    try:
        with os.fdopen(open_regular(path), "rb") as file:
            data = file.read(KEY_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"{option} {printable(path)}: cannot be read: {error.strerror}") from None
    if len(data) > KEY_BYTES_MAX:
        raise UsageError(f"{option} {printable(path)}: is too large for a key")
    return data


def signer(path: Path) -> Sign:
    """What signs with a private key.

    Raises
    ------
    NotSupported
        The library is not installed.
    UsageError
        The file cannot be read, or holds no Ed25519 key that is free of a passphrase.
    """
    require("--sign", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    data, shown = _read(path, "--sign"), f"--sign {printable(path)}"
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        key = load(data, password=None)
    except TypeError:
        raise UsageError(f"{shown}: the key has a passphrase; give a key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(f"{shown}: holds no private key; ssh-keygen -t ed25519 -N '' -f KEY makes one") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{shown}: is no Ed25519 key; ssh-keygen -t ed25519 -N '' -f KEY makes one")
    private = key
    public = private.public_key().public_bytes_raw().hex()
    return lambda data: (public, private.sign(data).hex())


def is_signed(key: str, signature: str, data: bytes) -> bool:
    """Whether a signature is of a key and bytes.

    Raises
    ------
    NotSupported
        The library is not installed.
    """
    require("a signature of the seal", "cryptography")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), data)
    except (InvalidSignature, ValueError):
        return False
    return True


def public_key(path: Path) -> str:
    """A public key in hexadecimal.

    Raises
    ------
    NotSupported
        The library is not installed.
    UsageError
        The file cannot be read, or holds no Ed25519 public key.
    """
    require("--key", "cryptography")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    data, shown = _read(path, "--key"), f"--key {printable(path)}"
    load = load_ssh_public_key if data.startswith(b"ssh-") else load_pem_public_key
    try:
        key = load(data)
    except (ValueError, UnsupportedAlgorithm):
        raise UsageError(f"{shown}: holds no public key; give KEY.pub of ssh-keygen, or PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{shown}: is no Ed25519 key; give KEY.pub of ssh-keygen -t ed25519")
    return key.public_bytes_raw().hex()


def fingerprint(key: str) -> str:
    """A short name of a public key, as ssh-keygen -l prints it.

    Examples
    --------
    >>> fingerprint("00" * 32)[:10]
    'SHA256:kmY'
    """
    import base64

    blob = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20" + bytes.fromhex(key)
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
