"""Which attributes of an event a selector or a condition names: who reads events can leave out the rest."""

from collections.abc import Iterator

import msgspec

from matcher.selector.tree import Condition, In, IsNull, Like, Name, Relate, Related, Selector

__all__ = ["attributes_in"]


def attributes_in(node: Selector | Condition) -> frozenset[str]:
    """The names of pairs, and `oid`, `ts`, `loc`, `unc`, `lpid` where they are written."""
    return frozenset(_attributes(node))


def _attributes(node: object) -> Iterator[str]:
    if isinstance(node, Name | In | Like | IsNull):
        yield node.name
    elif isinstance(node, Relate | Related):
        if node.attribute is not None:
            yield node.attribute
    elif isinstance(node, tuple):
        for item in node:
            yield from _attributes(item)
    elif isinstance(node, msgspec.Struct):
        for name in node.__struct_fields__:
            yield from _attributes(getattr(node, name))
