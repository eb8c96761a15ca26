"""A zone of interest: a named, owned, versioned shape.

The id is what everything else refers to, because names can be given again after a deletion. The version rises
with each change.
"""

from typing import Any

import msgspec

from zones.shapes import Shape

__all__ = ["Zone"]


class Zone(msgspec.Struct, frozen=True):
    id: int
    owner: str
    local: str
    version: int
    shape: Shape
    properties: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    on_devices: bool = False  # may the geometry go to other people's devices

    @property
    def name(self) -> str:
        """`OWNER.Name`, as subscribers and notifications write it."""
        return f"{self.owner}.{self.local}"
