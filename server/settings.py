"""Every setting of the server, read once.

The command line builds one `Settings` from its arguments and the environment and passes it on; nothing else reads
the environment. Each field has a variable `FENCEPOST_<NAME>`; docs/reference/settings.md describes them all, and a
test keeps the two together.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from zones.errors import CallerError

__all__ = ["SettingInvalid", "Settings", "read_settings", "variable"]


class SettingInvalid(CallerError):
    code = "setting_invalid"


_Text = Annotated[str, Meta(min_length=1)]
_Port = Annotated[int, Meta(ge=0, le=65535)]
_Count = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(gt=0, le=10 * 365 * 86400.0)]


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    # Where
    database: _Text = "fencepost.db"
    host: _Text = "127.0.0.1"
    port: _Port = 8000

    # Agents
    lease_s: _Seconds = 86400.0
    max_reports: _Count = 256
    locate_every_s: _Seconds = 60.0
    max_frame_bytes: Annotated[int, Meta(ge=4096)] = 262_144

    # Places by name
    gazetteer: str = ""

    # What one request may hold
    max_body_bytes: Annotated[int, Meta(ge=1024)] = 8 * 1024 * 1024
    max_import_bytes: Annotated[int, Meta(ge=1024)] = 256 * 1024 * 1024
    max_events_per_batch: _Count = 10_000
    max_page: _Count = 1000
    max_wait_s: _Seconds = 60.0

    # Time and the store
    clock_ahead_s: _Seconds = 300.0
    max_commit_batch: _Count = 256


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"FENCEPOST_{name.upper()}"


def read_settings(environ: Mapping[str, str], **given: Any) -> Settings:
    """Arguments first (None means "not given"), then the environment, then the defaults."""
    values: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        if given.get(name) is not None:
            values[name] = _convert(name, given[name], f"--{name.replace('_', '-')}")
        elif environ.get(variable(name)):
            values[name] = _convert(name, environ[variable(name)], variable(name))
    return Settings(**values)


def _convert(name: str, value: Any, source: str) -> Any:
    kind = _KINDS[name]
    try:
        return msgspec.convert(value, kind, strict=False)  # not strict: the environment has only text
    except msgspec.ValidationError as error:
        raise SettingInvalid(
            f"{source} is '{value}', which can't be used: {str(error)[0].lower()}{str(error)[1:]}.",
            hint="docs/reference/settings.md says what each setting takes.",
            setting=name,
        ) from None


_KINDS: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Settings)}
