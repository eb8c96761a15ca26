"""Files that commands read as a whole, packed by gzip or not."""

import gzip
import sys
import zlib
from pathlib import Path

from zones.errors import CallerError

__all__ = ["FileUnreadable", "read_file"]

_GZIP = b"\x1f\x8b"


class FileUnreadable(CallerError):
    """A file has not the format that the command reads, or is damaged."""

    code = "file_unreadable"


def read_file(file: str) -> bytes:
    """What is in it, unpacked if its first bytes say that it is packed; - is standard input."""
    raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    try:
        return gzip.decompress(raw) if raw[:2] == _GZIP else raw
    except (OSError, EOFError, zlib.error):
        raise FileUnreadable(f"{file} is a gzip file with an end or a part missing.", hint="Copy it again.") from None
