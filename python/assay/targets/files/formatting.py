"""Formatting an NVMe namespace: the purge that forgets everything, whatever the drive does with a discard.

The command is Format NVM with a user data erase (NVM Express Base Specification 2.0, section 5.14), sent by the
descriptor of the hold and not by a name. The block size, metadata and protection information stay as they are.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.base.errors import IoFailed, NotSupported, RefusedTarget
from assay.base.paths import printable
from assay.targets.files.hold import Hold
from assay.targets.kernel import Kernel, device_number
from assay.targets.nvme import Ioctl, admin_command, namespace_id

_IDENTIFY, _FORMAT_NVM = 0x06, 0x80
_OF_NAMESPACE, _OF_CONTROLLER, _ACTIVE_NAMESPACES = 0x00, 0x01, 0x02
"""What Identify returns (CNS)."""
_PAGE_BYTES = 4096
_CAN_FORMAT = 1 << 1
"""Bit of OACS, bytes 256 and 257 of Identify Controller."""
_FORMATS_ALL = 0b11
"""Bits of FNA, byte 524: a format, or its erase, concerns all namespaces."""
_USER_DATA_ERASE = 1
"""Secure Erase Settings, bits 9 to 11 of command word 10."""
_ASK_TIMEOUT_MS = 5_000
_FORMAT_TIMEOUT_MS = 3_600_000
"""After it the kernel resets the controller; nvme-cli waits ten minutes, which large drives have exceeded."""


@dataclass(frozen=True)
class _Namespace:
    """What Identify says of a namespace that shall be formatted."""

    number: int
    can_format: bool
    others: int
    """Namespaces that a format of this one would erase, too."""
    format_word: int
    """Command word 10 of a format that keeps block size, metadata and protection information."""


def refuse_format(hold: Hold | None, name: str, *, kernel: Kernel | None = None, ioctl: Ioctl = fcntl.ioctl) -> None:
    """Refuse what cannot be formatted, before anything is written.

    Raises
    ------
    NotSupported
        It is no whole NVMe namespace, or its controller cannot format.
    RefusedTarget
        The format would erase other namespaces.
    """
    folder = _folder(hold, kernel or Kernel())
    if hold is None or folder is None or not re.fullmatch(r"nvme\d+n\d+", folder.name):
        raise NotSupported(
            f"--purge format: {name} is no whole NVMe namespace; name the disk and no partition, or give --purge"
            " discard"
        )
    with _opened(hold, os.O_RDONLY) as descriptor:
        _formattable(descriptor, name, ioctl)


def _folder(hold: Hold | None, kernel: Kernel) -> Path | None:
    if hold is None or not hold.is_device:
        return None
    return kernel.directory(device_number(os.fstat(hold.descriptor).st_rdev))


def format_namespace(hold: Hold, *, ioctl: Ioctl = fcntl.ioctl) -> None:
    """Format the namespace that a run holds, all of it.

    Parameters
    ----------
    ioctl
        The call, for tests.

    Raises
    ------
    NotSupported, RefusedTarget
        The controller refuses; see `refuse_format`.
    IoFailed
        Another device has its place.
    """
    hold.check()
    hold.begin_writing()
    name = printable(hold.path)
    with _opened(hold, os.O_RDWR) as descriptor:
        namespace = _formattable(descriptor, name, ioctl)
        try:
            admin_command(
                descriptor,
                _FORMAT_NVM,
                namespace=namespace.number,
                words=(namespace.format_word,),
                timeout_ms=_FORMAT_TIMEOUT_MS,
                ioctl=ioctl,
            )
        except OSError as error:
            raise NotSupported(f"{name}: refuses to be formatted: {_why(error)}; give --purge discard") from error


@contextmanager
def _opened(hold: Hold, access: int) -> Iterator[int]:
    """The descriptor of the hold claims the device; what sends commands is opened through it."""
    try:
        descriptor = os.open(f"/proc/self/fd/{hold.descriptor}", access | os.O_CLOEXEC)
    except OSError as error:
        raise IoFailed(f"{printable(hold.path)}: cannot be opened for its purge: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _formattable(descriptor: int, name: str, ioctl: Ioctl) -> _Namespace:
    try:
        namespace = _identified(descriptor, ioctl)
    except OSError as error:
        raise NotSupported(
            f"--purge format: {name} does not answer Identify ({_why(error)}); run as root, or give --purge discard"
        ) from error
    if not namespace.can_format:
        raise NotSupported(f"--purge format: the controller of {name} cannot format; give --purge discard")
    if namespace.others:
        raise RefusedTarget(
            f"--purge format: {name} is one of {namespace.others + 1} namespaces that its controller formats together;"
            " give --purge discard"
        )
    return namespace


def _identified(descriptor: int, ioctl: Ioctl) -> _Namespace:
    number = namespace_id(descriptor, ioctl=ioctl)

    def identify(of: int, namespace: int) -> bytes:
        return admin_command(
            descriptor,
            _IDENTIFY,
            namespace=namespace,
            words=(of,),
            timeout_ms=_ASK_TIMEOUT_MS,
            answer_bytes=_PAGE_BYTES,
            ioctl=ioctl,
        )

    controller, own = identify(_OF_CONTROLLER, 0), identify(_OF_NAMESPACE, number)
    others = 0
    if controller[524] & _FORMATS_ALL:
        active = struct.unpack(f"<{_PAGE_BYTES // 4}I", identify(_ACTIVE_NAMESPACES, 0))
        others = sum(1 for one in active if one not in (0, number))
    (abilities,) = struct.unpack_from("<H", controller, 256)
    size, protection = own[26], own[29]
    # FLBAS has the number of the format in bits 0 to 3, 5 and 6, and where metadata lie in bit 4; DPS the kind of
    # protection information in bits 0 to 2, and where it lies in bit 3.
    word = (
        size & 0xF | (size >> 4 & 1) << 4 | (protection & 7) << 5 | (protection >> 3 & 1) << 8
        | _USER_DATA_ERASE << 9 | (size >> 5 & 3) << 12
    )  # fmt: skip
    return _Namespace(number=number, can_format=bool(abilities & _CAN_FORMAT), others=others, format_word=word)


def _why(error: OSError) -> str:
    return error.strerror or str(error)
