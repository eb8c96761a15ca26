"""Who may say where an object is, besides its owner.

A delegation lets a location provider (a carrier's tracking service, say) publish for objects of its owner: for all of
them, those to come included, or for those it names. Nobody may unless the owner said so. It goes the other way than a
grant, and neither implies the other: a provider gets to know nothing, and whoever may know may not publish.
"""

import msgspec

from zones.names import fold

__all__ = ["Delegation", "is_delegated"]


class Delegation(msgspec.Struct, frozen=True):
    """`owner_id` lets `provider_id` publish for these objects; None for all of the owner's."""

    owner_id: int
    provider_id: int
    oids: frozenset[str] | None = None  # folded


def is_delegated(delegation: Delegation | None, oid: str) -> bool:
    """Whether the delegation, if there is one, speaks of this object of its owner."""
    return delegation is not None and (delegation.oids is None or fold(oid) in delegation.oids)
