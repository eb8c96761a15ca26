"""What can go wrong with the store.

FaultError
├── DatabaseUnreachable   database_unreachable    it does not answer, or the connection to it broke
├── DatabaseNotMigrated   database_not_migrated   its tables are not those of this version
├── DatabaseUnsuitable    database_unsuitable     PostgreSQL without PostGIS
└── NotRecorded           not_recorded            the commit failed: as far as we know nothing was written
CallerError
├── DatabaseUrlInvalid    database_url_invalid
├── DatabaseInUse         database_in_use         another server is running on it
├── UserExists            user_exists
├── NotFound
│   └── KeyNotFound       key_not_found
└── KeyLifetimeInvalid    key_lifetime_invalid
"""

from server.errors import NotFound
from zones.errors import CallerError, FaultError

__all__ = [
    "DatabaseInUse",
    "DatabaseNotMigrated",
    "DatabaseUnreachable",
    "DatabaseUnsuitable",
    "DatabaseUrlInvalid",
    "KeyLifetimeInvalid",
    "KeyNotFound",
    "NotRecorded",
    "UserExists",
]


class DatabaseUnreachable(FaultError):
    code = "database_unreachable"


class DatabaseNotMigrated(FaultError):
    code = "database_not_migrated"


class DatabaseUnsuitable(FaultError):
    code = "database_unsuitable"


class NotRecorded(FaultError):
    code = "not_recorded"


class DatabaseUrlInvalid(CallerError):
    code = "database_url_invalid"


class DatabaseInUse(CallerError):
    code = "database_in_use"


class UserExists(CallerError):
    code = "user_exists"


class KeyNotFound(NotFound):
    code = "key_not_found"


class KeyLifetimeInvalid(CallerError):
    code = "key_lifetime_invalid"
