"""Grants: an owner lets somebody know about the owner's objects.

Granting to somebody again replaces what was granted before. Revoking is one transaction: after it, nothing more is
delivered, and connected devices drop what they evaluated for that subscriber.
"""

from collections.abc import Iterable

import msgspec
from sqlalchemy import delete, insert

from privacy.policies import Grant, Operation
from server.errors import GrantNotFound, OptionInvalid, UserNotFound
from server.pubsub.work import Work
from server.store import models
from server.store.accounts import Account
from zones.names import shown

__all__ = ["add_grant", "remove_grant"]


def add_grant(work: Work, account: Account, who: str, operations: Iterable[Operation]) -> Grant:
    wanted = frozenset(operations)
    who_id = work.user_id(who)
    if who_id is None or who_id == work.world.system_id:
        raise UserNotFound(f"There is no user {shown(who)}.", hint="Check the spelling of the name.")
    if not wanted:
        raise OptionInvalid("A grant without operations allows nothing.", hint="Name at least one, for example enter.")
    if who_id == account.user_id:
        raise OptionInvalid("You need no grant for yourself.", hint="Name somebody else.")
    work.tx.touch()
    replaced = [old for old in work.world.grants.get(account.user_id, {}).values() if old.who_id == who_id]
    # The same again is permitted since it was permitted first.
    created = min((old.created for old in replaced if old.operations == wanted), default=work.now)
    work.conn.execute(delete(models.Grant).where(models.Grant.id.in_([old.id for old in replaced])))
    row = insert(models.Grant).values(
        owner_id=account.user_id,
        who_id=who_id,
        operations=msgspec.json.encode(sorted(wanted)).decode(),
        created=created,
    )
    grant_id = work.conn.execute(row.returning(models.Grant.id)).scalar_one()
    grant = Grant(id=grant_id, owner_id=account.user_id, who_id=who_id, operations=wanted, created=created)
    with work.editing():
        for old in replaced:
            work.world.remove_grant(account.user_id, old.id)
        work.world.put_grant(grant)
    work.plans.update(work.world.objects_of(account.user_id))
    return grant


def remove_grant(work: Work, account: Account, grant_id: int) -> None:
    if grant_id not in work.world.grants.get(account.user_id, {}):
        raise GrantNotFound(f"You have no grant {grant_id}.", hint="List your grants to see their ids.")
    work.tx.touch()
    work.conn.execute(delete(models.Grant).where(models.Grant.id == grant_id))
    with work.editing():
        work.world.remove_grant(account.user_id, grant_id)
    work.plans.update(work.world.objects_of(account.user_id))
