"""Enrolling and revoking agents.

The owner's app asks for a token, the device redeems it once and makes its own secret, so that the credential never
travels. An object has at most one agent: redeeming a token ends the previous one in the same transaction, and
every change of evaluator is a new generation.
"""

import hashlib
import hmac
import re
import secrets

import msgspec
from sqlalchemy import Connection, insert, select, update

from matcher.once import Instant
from server.errors import AgentNotFound, OptionInvalid, TokenInvalid
from server.pubsub.entries import AgentEntry
from server.pubsub.publishing import object_for_owner
from server.pubsub.work import Work
from server.store import models
from server.store.accounts import Account

__all__ = ["AgentIdentity", "Enrolled", "Invitation", "authenticate_agent", "enrol", "invite", "revoke_agent"]

_TOKEN_LIFE_S = 15 * 60

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_CREDENTIAL = re.compile(r"fpa_([0-9]{1,18})_([A-Za-z0-9_-]{16,128})\Z")


class Invitation(msgspec.Struct, frozen=True):
    """A one-use token, shown once."""

    agent: int
    oid: str
    token: str
    expires: Instant


class Enrolled(msgspec.Struct, frozen=True):
    agent: int
    oid: str


class AgentIdentity(msgspec.Struct, frozen=True):
    """Whose agent is at the other end."""

    agent_id: int
    object_id: int
    owner_id: int


def invite(work: Work, account: Account, oid: str) -> Invitation:
    """Make a token with which a device can become the object's agent. Until then nothing changes."""
    entry = object_for_owner(work, account, oid)
    token = f"fpt_{secrets.token_urlsafe(24)}"
    expires = work.now + _TOKEN_LIFE_S * 1000
    row = insert(models.Agent).values(
        object_id=entry.id, status="invited", token_hash=_sha256(token), token_expires=expires, created=work.now
    )
    agent_id = work.conn.execute(row.returning(models.Agent.id)).scalar_one()
    return Invitation(agent_id, entry.oid, token, expires)


def enrol(work: Work, token: str, secret_sha256: str) -> Enrolled:
    """Redeem a token: this device is the object's agent from now on, and no other."""
    if not _SHA256.match(secret_sha256):
        raise OptionInvalid(
            "secret_sha256 is not a SHA-256 hash in lower-case hex.",
            hint="Send hashlib.sha256(secret).hexdigest() of the secret the device made.",
            option="secret_sha256",
        )
    found = work.conn.execute(
        select(models.Agent.__table__).where(
            models.Agent.token_hash == _sha256(token),
            models.Agent.status == "invited",
            models.Agent.token_expires > work.now,
        )
    ).first()
    if found is None:
        raise TokenInvalid(
            "The enrolment token is wrong, used or more than 15 minutes old.",
            hint="Ask for a new one: POST /v1/agents.",
        )
    credential_hash = bytes.fromhex(secret_sha256)
    taken = select(models.Agent.id).where(
        models.Agent.credential_hash == credential_hash, models.Agent.object_id != found.object_id
    )
    if work.conn.scalar(taken) is not None:
        raise OptionInvalid(
            "The secret is that of another agent.", hint="Make a new one for each enrolment.", option="secret_sha256"
        )
    work.tx.touch()
    _end(work, found.object_id)
    lease_until = work.now + round(work.settings.lease_s * 1000)
    work.conn.execute(
        update(models.Agent)
        .where(models.Agent.id == found.id)
        .values(
            status="active",
            token_hash=None,
            token_expires=None,
            credential_hash=credential_hash,
            lease_until=lease_until,
        )
    )
    work.world.agents[found.object_id] = AgentEntry(found.id, found.object_id, lease_until)
    return Enrolled(found.id, work.world.objects[found.object_id].oid)


def revoke_agent(work: Work, account: Account, agent_id: int) -> None:
    """End an agent (or its invitation); the server evaluates from here on."""
    found = work.conn.execute(
        select(models.Agent.object_id, models.Agent.status)
        .join(models.Object, models.Object.id == models.Agent.object_id)
        .where(models.Agent.id == agent_id, models.Object.owner_id == account.user_id)
    ).first()
    if found is None or found.status == "ended":
        raise AgentNotFound(f"You have no agent {agent_id}.", hint="List yours: GET /v1/agents.")
    work.tx.touch()
    if found.status == "active":
        _end(work, found.object_id)
    else:
        _mark_ended(work, agent_id)


def authenticate_agent(conn: Connection, credential: str) -> AgentIdentity | None:
    """Who this credential belongs to, if it is (still) an active agent's."""
    match = _CREDENTIAL.match(credential)
    if match is None:
        return None
    row = conn.execute(
        select(models.Agent.id, models.Agent.object_id, models.Agent.credential_hash, models.Object.owner_id)
        .join(models.Object, models.Object.id == models.Agent.object_id)
        .where(models.Agent.id == int(match[1]), models.Agent.status == "active")
    ).first()
    if row is None or not hmac.compare_digest(row.credential_hash, _sha256(match[2])):
        return None
    return AgentIdentity(row.id, row.object_id, row.owner_id)


def _end(work: Work, object_id: int) -> None:
    """End the object's agent, if it has one, and start a generation that none of its reports belongs to."""
    agent = work.world.agents.pop(object_id, None)
    if agent is not None:
        _mark_ended(work, agent.id)
        work.ended_agents.add(agent.id)
    entry = work.world.objects[object_id]
    if agent is not None:
        work.forget_last(entry)
    entry.generation += 1
    work.recorder.object_changed(entry)


def _mark_ended(work: Work, agent_id: int) -> None:
    work.conn.execute(
        update(models.Agent)
        .where(models.Agent.id == agent_id)
        .values(status="ended", token_hash=None, credential_hash=None)
    )


def _sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
