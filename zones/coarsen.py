"""How exactly a position may be known: the position as a viewer may see it.

One precision exists so far. A coarser one is a new case in here; everything that looks at a position on
somebody's behalf already passes its precision along.
"""

from enum import StrEnum

__all__ = ["Precision"]


class Precision(StrEnum):
    EXACT = "exact"
