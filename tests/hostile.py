"""Parts of files that are not what they say."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

LONG = {"time": "time", "feature": "feature"}


def npy(shape: str, kind: str = "'<f8'", numbers: bytes = b"") -> bytes:
    head = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + numbers


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return packed.getvalue()


def replaced(path: Path, **changed: bytes) -> Path:
    """An archive with other members."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    path.write_bytes(zipped(members | {f"{name}.npy": data for name, data in changed.items()}))
    return path


def with_parameters(path: Path, **parameters: object) -> Path:
    """A model file whose header has other parameters."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = json.loads(members["header.json"])
    header["parameters"] |= parameters
    path.write_bytes(zipped(members | {"header.json": json.dumps(header).encode()}))
    return path
