"""Events, selectors and edges: what matches, and which changes are worth telling. Pure."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matcher.engine import Engine

__all__ = ["Engine"]


def __getattr__(name: str) -> Any:
    """The engine is compiled code, which a device neither has nor needs: only who asks for it loads it."""
    if name == "Engine":
        from matcher.engine import Engine

        return Engine
    raise AttributeError(f"module 'matcher' has no attribute {name!r}")
