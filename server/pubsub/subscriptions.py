"""Creating, changing, pausing and deleting subscriptions.

Privacy comes first: every object a selector names must be one whose owner lets the subscriber know what the type of
service tells. "Not allowed" and "not there" are the same answer. An edit, a pause or a deletion notifies nobody;
the state that is kept meets the next event.
"""

import msgspec
from sqlalchemy import delete, insert, update

from matcher.once import Instant, Mode, Service, Tos
from matcher.selector.mentions import is_anchored_within, zone_refs
from matcher.selector.parser import parse_selector
from matcher.selector.tree import InlineZone, NamedZone, Selector, ZoneRef
from server.errors import ObjectNotFound, OptionInvalid, SubscriptionNotFound, UserNotFound
from server.pubsub.entries import SubscriptionEntry, operations_by_oid
from server.pubsub.work import Work
from server.pubsub.zones import zone_not_found
from server.store import models
from server.store.accounts import Account
from zones.names import ZoneName, shown
from zones.oids import parse_oid
from zones.validation import check_shape

__all__ = [
    "NewSubscription",
    "check_boundary_options",
    "delete_subscription",
    "find_subscription",
    "list_subscriptions",
    "put_subscription",
    "service_of",
]

_MAX_NAME = 100
_MAX_PURPOSE = 1000
_MAX_HYSTERESIS_M = 100_000.0
_MAX_UNC_FACTOR = 10.0


class NewSubscription(msgspec.Struct, frozen=True):
    name: str
    selector: str
    tos: Tos = Tos.ONCE
    modes: tuple[Mode, ...] | None = None
    dwell_s: float = 0.0
    expires: Instant | None = None
    stale_s: float = 300.0
    purpose: str = ""
    paused: bool = False
    hysteresis_m: float = 0.0
    unc_factor: float = 0.0
    crossing: bool = False


def put_subscription(work: Work, account: Account, new: NewSubscription) -> tuple[SubscriptionEntry, bool]:
    """Create it or change it; answers the subscription and whether it is new. Repeating a call changes nothing."""
    _check_name(new.name)
    for option, text in (("selector", new.selector), ("purpose", new.purpose)):
        _check_text(option, text)
    if len(new.purpose) > _MAX_PURPOSE:
        raise OptionInvalid(
            f"The purpose has more than {_MAX_PURPOSE} characters.", hint="Say it shortly.", option="purpose"
        )
    service = service_of(new)
    selector = parse_selector(new.selector)
    check_boundary_options(new, selector)
    _check_zones(work, account, selector)
    _check_privacy(work, account, selector, service)
    work.user_id(account.name)
    old = work.world.subscription(account.user_id, new.name)
    if old is not None and (old.text, old.service, old.purpose, old.paused) == (
        new.selector,
        service,
        new.purpose,
        new.paused,
    ):
        return old, False
    work.tx.touch()
    values = {
        "selector": new.selector,
        "service": msgspec.json.encode(service).decode(),
        "purpose": new.purpose,
        "paused": new.paused,
        "changed": work.now,
    }
    if old is None:
        row = insert(models.Subscription).values(subscriber_id=account.user_id, name=new.name, **values)
        subscription_id = work.conn.execute(row.returning(models.Subscription.id)).scalar_one()
    else:
        subscription_id = old.id
        work.plans.update(work.world.objects_meant(old))
        work.conn.execute(update(models.Subscription).where(models.Subscription.id == subscription_id).values(**values))
    entry = SubscriptionEntry(
        id=subscription_id,
        subscriber_id=account.user_id,
        name=new.name,
        text=new.selector,
        selector=selector,
        service=service,
        purpose=new.purpose,
        paused=new.paused,
        changed=work.now,
    )
    with work.editing():
        work.world.put_subscription(entry)
    work.plans.update(work.world.objects_meant(entry))
    return entry, old is None


def find_subscription(work: Work, account: Account, name: str) -> SubscriptionEntry:
    entry = work.world.subscription(account.user_id, name)
    if entry is None:
        raise SubscriptionNotFound(f"You have no subscription {shown(name)}.", hint="List yours to see their ids.")
    return entry


def list_subscriptions(work: Work, account: Account, after: int, limit: int) -> list[SubscriptionEntry]:
    """The caller's own, in the order in which they were made, behind the one of this row."""
    entries = (entry for entry in work.world.subscriptions.values() if entry.subscriber_id == account.user_id)
    return sorted((entry for entry in entries if entry.id > after), key=lambda entry: entry.id)[:limit]


def delete_subscription(work: Work, account: Account, name: str) -> None:
    entry = find_subscription(work, account, name)
    work.tx.touch()
    work.plans.update(work.world.objects_meant(entry))
    work.conn.execute(delete(models.Binding).where(models.Binding.subscription_id == entry.id))
    work.conn.execute(delete(models.Subscription).where(models.Subscription.id == entry.id))
    work.world.remove_subscription(entry.id)


def _check_name(name: str) -> None:
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable() or "/" in name or name != name.strip():
        raise OptionInvalid(
            f"A subscription's id has 1 to {_MAX_NAME} printable characters and no slash.",
            hint="Choose a short one, for example van7-xidan.",
            option="id",
        )


def _check_text(option: str, text: str) -> None:
    if "\0" in text:  # PostgreSQL takes it in no text
        raise OptionInvalid(f"The {option} has a NUL character in it.", hint="Leave it out.", option=option)


def service_of(new: NewSubscription) -> Service:
    """The options as they decide on edges; refuses those that contradict each other."""
    if new.tos is not Tos.ONCE and new.modes is not None:
        raise OptionInvalid(
            f"modes can't be chosen with tos '{new.tos}'.", hint="Leave modes out, or use tos 'once'.", option="modes"
        )
    if new.tos is Tos.EVERY and new.dwell_s:
        raise OptionInvalid("dwell_s has no meaning with tos 'every'.", hint="Use 'once' or 'first'.", option="dwell_s")
    if not 0 <= new.dwell_s <= 30 * 86400:
        raise OptionInvalid(
            f"dwell_s is {new.dwell_s}; it must be from 0 to 2592000 seconds (30 days).",
            hint="Give the time inside in seconds.",
            option="dwell_s",
        )
    if not 0 < new.stale_s <= 30 * 86400:
        raise OptionInvalid(
            f"stale_s is {new.stale_s}; it must be more than 0 and at most 2592000 seconds (30 days).",
            hint="Give the age in seconds from which a place says nothing about a distance.",
            option="stale_s",
        )
    if not 0 <= new.hysteresis_m <= _MAX_HYSTERESIS_M:
        raise OptionInvalid(
            f"hysteresis_m is {new.hysteresis_m}; it must be from 0 to {_MAX_HYSTERESIS_M:.0f} metres.",
            hint="Give how far from the boundary one has to be, in metres.",
            option="hysteresis_m",
        )
    if not 0 <= new.unc_factor <= _MAX_UNC_FACTOR:
        raise OptionInvalid(
            f"unc_factor is {new.unc_factor}; it must be from 0 to {_MAX_UNC_FACTOR:.0f}.",
            hint="1 suits what moves, 3 what mostly stays where it is.",
            option="unc_factor",
        )
    if new.tos is Tos.EVERY and new.crossing:
        raise OptionInvalid(
            "crossing has no meaning with tos 'every'.",
            hint="A crossing is an enter and a leave: use 'once' or 'first'.",
            option="crossing",
        )
    modes = new.modes
    if modes is None:
        modes = {Tos.ONCE: (Mode.ENTER, Mode.LEAVE), Tos.FIRST: (Mode.ENTER,), Tos.EVERY: (Mode.MATCH,)}[new.tos]
    elif not modes or Mode.MATCH in modes:
        raise OptionInvalid("modes is a list of 'enter' and 'leave'.", hint="Name one of them or both.", option="modes")
    ordered = tuple(mode for mode in Mode if mode in modes)
    return Service(
        tos=new.tos,
        modes=ordered,
        dwell_s=new.dwell_s,
        expires=new.expires,
        stale_s=new.stale_s,
        hysteresis_m=new.hysteresis_m,
        unc_factor=new.unc_factor,
        crossing=new.crossing,
    )


def check_boundary_options(new: NewSubscription, selector: Selector) -> None:
    """Options that look at a boundary need one: that of the zone a binding is about."""
    given = {"hysteresis_m": new.hysteresis_m, "unc_factor": new.unc_factor, "crossing": new.crossing}
    option = next((name for name, value in given.items() if value), None)
    if option is not None and not is_anchored_within(selector):
        raise OptionInvalid(
            f"{option} needs a term 'within' that is not negated: the boundary of its zones is what it looks at.",
            hint="Ask for within, and for the mode leave instead of NOT.",
            option=option,
        )


def _check_zones(work: Work, account: Account, selector: Selector) -> None:
    for ref in zone_refs(selector):
        if isinstance(ref, InlineZone):
            check_shape(ref.shape)
        elif not _may_name(work, account, ref):
            if isinstance(ref, NamedZone):
                raise zone_not_found(ZoneName(ref.owner, ref.local))
            raise UserNotFound(
                f"There are no zones of '{ref.owner}' that you may use.",
                hint="Check the name; zones of others are private.",
            )


def _may_name(work: Work, account: Account, ref: ZoneRef) -> bool:
    if isinstance(ref, InlineZone):
        return True
    if isinstance(ref, NamedZone):
        entry = work.world.zone(ref.owner, ref.local)
        return entry is not None and work.world.may_read_zone(entry, account.user_id)
    return work.user_id(ref.owner) in (account.user_id, work.world.system_id)


def _check_privacy(work: Work, account: Account, selector: Selector, service: Service) -> None:
    for oid, operations in operations_by_oid(service, selector).items():
        owner_id = work.user_id(parse_oid(oid).owner)
        if owner_id is None or not all(work.world.allows(owner_id, account.user_id, op) for op in operations):
            raise ObjectNotFound(
                f"There is no object '{oid}' whose {' and '.join(operations)} you may know.",
                hint="Its owner can grant it: POST /v1/privacy/grants.",
                oid=oid,
            )
