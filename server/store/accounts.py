"""Users and their API keys.

A key reads `fpk_<id>_<secret>` and is shown once. The id finds the row, so that nothing has to be searched by
secret; of the secret only a SHA-256 is kept. That is enough: it is 32 random bytes, not a password somebody chose.
"""

import hashlib
import hmac
import secrets

import msgspec
from sqlalchemy import Connection, Row, Select, insert, select, update
from sqlalchemy.exc import IntegrityError

from matcher.once import Instant
from server.errors import UserNotFound
from server.store.errors import KeyLifetimeInvalid, KeyNotFound, UserExists
from server.store.models import Key, User
from zones.names import check_owner_name, fold, is_system

__all__ = [
    "Account",
    "KeyRecord",
    "UserRecord",
    "add_key",
    "add_user",
    "authenticate",
    "find_user",
    "is_key_valid",
    "list_keys",
    "list_users",
    "revoke_key",
]

_PREFIX = "fpk"
_NOBODY = hashlib.sha256(b"").digest()  # compared with when there is no such key, so that it takes as long


class Account(msgspec.Struct, frozen=True):
    """Whose key a request came with."""

    user_id: int
    name: str
    is_admin: bool
    key_id: str


class UserRecord(msgspec.Struct, frozen=True):
    user_id: int
    name: str
    is_admin: bool
    created: Instant


class KeyRecord(msgspec.Struct, frozen=True):
    key_id: str
    user: str
    label: str
    created: Instant
    expires: Instant | None
    revoked: Instant | None


def add_user(conn: Connection, name: str, *, admin: bool = False, now: Instant) -> UserRecord:
    check_owner_name(name)
    if is_system(name):
        raise UserExists(f"The name '{name}' is the system's own.", hint="Choose another name.", name=name)
    row = {"name": name, "folded": fold(name), "is_admin": admin, "last_offset": 0, "created": now}
    try:
        with conn.begin_nested():
            user_id = conn.execute(insert(User).values(row).returning(User.id)).scalar_one()
    except IntegrityError:
        taken = conn.scalar(select(User.name).where(User.folded == fold(name)))
        raise UserExists(
            f"There is already a user '{taken}'.",
            hint="Names that differ only in case or in how characters are written count as the same: choose another.",
            name=name,
        ) from None
    return UserRecord(user_id, name, admin, now)


def find_user(conn: Connection, name: str) -> UserRecord:
    """The user of this name, however it is written."""
    row = conn.execute(_users().where(User.folded == fold(name))).one_or_none()
    if row is None:
        raise UserNotFound(f"There is no user '{name}'.", hint="See `fencepost users list`.", name=name)
    return UserRecord(*row)


def list_users(conn: Connection) -> list[UserRecord]:
    return [UserRecord(*row) for row in conn.execute(_users().order_by(User.folded))]


def add_key(conn: Connection, user_id: int, *, label: str = "", expires: Instant | None = None, now: Instant) -> str:
    """Make a key and return its text, which can't be had a second time."""
    name = conn.scalar(select(User.name).where(User.id == user_id))
    if name is None:
        raise UserNotFound(f"There is no user with the number {user_id}.", hint="See `fencepost users list`.")
    if is_system(name):
        raise UserNotFound(
            "SYSTEM is nobody's account and has no keys.",
            hint="Make a key for an administrator (`fencepost users add NAME --admin`).",
        )
    if expires is not None and expires <= now:
        raise KeyLifetimeInvalid("The key would be expired from the start.", hint="Let it expire in the future.")
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    row = {"id": key_id, "user_id": user_id, "secret_hash": _hashed(secret), "label": label, "created": now}
    conn.execute(insert(Key).values(**row, expires=expires))
    return f"{_PREFIX}_{key_id}_{secret}"


def list_keys(conn: Connection, user_id: int) -> list[KeyRecord]:
    """Every key the user ever had, without secrets."""
    query = select(Key.id, User.name, Key.label, Key.created, Key.expires, Key.revoked).join(
        User, User.id == Key.user_id
    )
    rows = conn.execute(query.where(Key.user_id == user_id).order_by(Key.created, Key.id))
    return [KeyRecord(*row) for row in rows]


def revoke_key(conn: Connection, key_id: str, *, now: Instant) -> None:
    """End a key at once; ending it again keeps the first moment."""
    if conn.scalar(select(Key.id).where(Key.id == key_id)) is None:
        raise KeyNotFound(
            f"There is no key with the id '{key_id}'.",
            hint="The id is what stands between the underscores of the key; see `fencepost keys list USER`.",
        )
    conn.execute(update(Key).where(Key.id == key_id, Key.revoked.is_(None)).values(revoked=now))


def authenticate(conn: Connection, key_text: str, now: Instant) -> Account | None:
    """Whose key this is, or None: unknown, wrong, expired and revoked look the same."""
    prefix, _, rest = key_text.partition("_")
    key_id, _, secret = rest.partition("_")
    if prefix != _PREFIX or not key_id or not secret:
        return None
    row = _find_key(conn, key_id)
    if not hmac.compare_digest(_hashed(secret), row.secret_hash if row else _NOBODY) or row is None:
        return None
    if not _is_in_force(row.revoked, row.expires, now):
        return None
    return Account(row.user_id, row.name, row.is_admin, key_id)


def is_key_valid(conn: Connection, key_id: str, now: Instant) -> bool:
    """Whether a key that somebody came in with would still let them in."""
    row = _find_key(conn, key_id)
    return row is not None and _is_in_force(row.revoked, row.expires, now)


def _is_in_force(revoked: Instant | None, expires: Instant | None, now: Instant) -> bool:
    return revoked is None and (expires is None or expires > now)


def _find_key(conn: Connection, key_id: str) -> Row[bytes, int | None, int | None, int, str, bool] | None:
    if len(key_id) > 24 or not key_id.isalnum() or not key_id.isascii():  # PostgreSQL takes no NUL in a text
        return None
    columns = select(Key.secret_hash, Key.revoked, Key.expires, Key.user_id, User.name, User.is_admin)
    return conn.execute(columns.join(User).where(Key.id == key_id)).one_or_none()


def _users() -> Select[int, str, bool, int]:
    return select(User.id, User.name, User.is_admin, User.created)


def _hashed(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
