"""Events whose `loc` is a text: the name of a zone that the sender may read, else what the geocoder makes of it.

Texts are looked up before the events are read, all of a batch at once: zones where the world is kept, the rest beside
it, because a geocoder may take its time and nobody else has to wait for it.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from matcher.errors import EventInvalid, LocationUnknown
from matcher.geocoding import Geocoder
from server.node import Node
from server.pubsub.work import Work
from server.store.accounts import Account
from zones.errors import CallerError
from zones.names import parse_zone_name, shown
from zones.representative import representative_point
from zones.shapes import Point
from zones.validation import check_point

__all__ = ["locate_texts"]

_MAX_TEXT = 400
_Places = dict[str, Point | EventInvalid]


async def locate_texts(
    node: Node, caller: Account, geocoder: Geocoder | None, items: Sequence[Any]
) -> Callable[[str], Point] | None:
    """What gives the place of each text in these events, or refuses it; None if there are none."""
    texts = {item["loc"] for item in items if isinstance(item, Mapping) and isinstance(item.get("loc"), str)}
    if not texts:
        return None
    places: _Places = dict(await node.run(_zones_named, caller, texts))
    places |= await asyncio.to_thread(_geocoded, geocoder, texts - places.keys())

    def locate(text: str) -> Point:
        found = places[text]
        if isinstance(found, EventInvalid):
            raise found
        return found

    return locate


def _zones_named(work: Work, account: Account, texts: Collection[str]) -> dict[str, Point]:
    found = {}
    for text in texts:
        try:
            name = parse_zone_name(text)
        except CallerError:
            continue
        entry = work.world.zone(name.owner, name.local)
        if entry is not None and work.world.may_read_zone(entry, account.user_id):
            found[text] = representative_point(entry.zone.shape)
    return found


def _geocoded(geocoder: Geocoder | None, texts: Collection[str]) -> _Places:
    return {text: _place(geocoder, text) for text in texts}


def _place(geocoder: Geocoder | None, text: str) -> Point | EventInvalid:
    try:
        point = None if geocoder is None or len(text) > _MAX_TEXT else geocoder.locate(text)
    except EventInvalid as refused:
        return refused
    if point is not None:
        return check_point(point)
    return LocationUnknown(
        f"The event's loc, {shown(text)}, is neither a zone that you may use nor a place that is known here.",
        hint="Check the name, or send [lon, lat].",
    )
