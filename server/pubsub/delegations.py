"""Delegations: owners let location providers publish for their objects, and take that back.

Delegating to a provider again replaces what was delegated before. To a provider, an object that is not delegated is one
that does not exist.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import delete, insert

from privacy.delegations import Delegation, is_delegated
from server.errors import DelegationNotFound, ObjectNotFound, OptionInvalid, UserNotFound
from server.pubsub.work import Work
from server.store import models
from server.store.accounts import Account
from zones.names import fold, shown
from zones.oids import parse_oid

__all__ = ["MAX_OIDS", "is_published_by", "owner_of", "put_delegation", "remove_delegation"]

MAX_OIDS = 10_000


def put_delegation(work: Work, account: Account, provider: str, oids: Sequence[str] | None) -> bool:
    """Let the provider publish for these objects of the account, or for all; answers whether it is a new one."""
    provider_id = work.user_id(provider)
    if provider_id is None or provider_id == work.world.system_id:
        raise UserNotFound(f"There is no user {shown(provider)}.", hint="Check the spelling of the name.")
    if provider_id == account.user_id:
        raise OptionInvalid("You may publish for your objects anyway.", hint="Name somebody else.")
    named = None if oids is None else _checked(account, oids)
    work.tx.touch()
    work.user_id(account.name)
    known = (account.user_id, provider_id) in work.world.delegations
    _delete(work, account.user_id, provider_id)
    work.conn.execute(
        insert(models.Delegation).values(
            owner_id=account.user_id,
            provider_id=provider_id,
            oids=None if named is None else msgspec.json.encode(named).decode(),
            created=work.now,
        )
    )
    folded = None if named is None else frozenset(map(fold, named))
    work.world.delegations[account.user_id, provider_id] = Delegation(account.user_id, provider_id, folded)
    return not known


def remove_delegation(work: Work, account: Account, provider: str) -> None:
    """What the provider publishes from now on is refused."""
    provider_id = work.user_id(provider)
    if provider_id is None or (account.user_id, provider_id) not in work.world.delegations:
        raise DelegationNotFound(f"You have delegated nothing to {shown(provider)}.", hint="List your delegations.")
    work.tx.touch()
    _delete(work, account.user_id, provider_id)
    del work.world.delegations[account.user_id, provider_id]


def owner_of(work: Work, account: Account, oid: str) -> int | None:
    """The id of the user whose object it is or would be, if this account may publish for it."""
    owner = parse_oid(oid).owner
    if fold(owner) == fold(account.name):
        return account.user_id
    owner_id = work.user_id(owner)
    return owner_id if owner_id is not None and is_published_by(work, account, owner_id, oid) else None


def is_published_by(work: Work, account: Account, owner_id: int, oid: str) -> bool:
    """Whether this account may say where the object of that owner is."""
    if owner_id == account.user_id:
        return True
    return is_delegated(work.world.delegations.get((owner_id, account.user_id)), oid)


def _checked(account: Account, oids: Sequence[str]) -> list[str]:
    if not oids:
        raise OptionInvalid(
            "A delegation of no objects allows nothing.", hint="Name at least one, or leave oids out for all."
        )
    if len(oids) > MAX_OIDS:
        raise OptionInvalid(
            f"The delegation names {len(oids)} objects; at most {MAX_OIDS} are taken.", hint="Leave oids out for all."
        )
    for oid in oids:
        if fold(parse_oid(oid).owner) != fold(account.name):
            raise ObjectNotFound(
                f"There is no object '{oid}' of yours.",
                hint=f"Your objects are '{account.name}' and '{account.name}/...'.",
                oid=oid,
            )
    return list({fold(oid): oid for oid in oids}.values())


def _delete(work: Work, owner_id: int, provider_id: int) -> None:
    table = models.Delegation
    work.conn.execute(delete(table).where(table.owner_id == owner_id, table.provider_id == provider_id))
