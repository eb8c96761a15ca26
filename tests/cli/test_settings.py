"""Settings: one struct, read once, all of it documented."""

import re
from pathlib import Path

import msgspec
import pytest

from server.settings import SettingInvalid, Settings, read_settings, variable

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_defaults_hold_when_nothing_is_given():
    assert read_settings({}) == Settings()
    assert read_settings({"FENCEPOST_PORT": ""}, host=None) == Settings()


def test_arguments_go_before_the_environment():
    environ = {"FENCEPOST_PORT": "9000", "FENCEPOST_HOST": "::1", "FENCEPOST_LEASE_S": "2.5"}
    settings = read_settings(environ, port=9001)
    assert (settings.port, settings.host, settings.lease_s) == (9001, "::1", 2.5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FENCEPOST_PORT", "eighty"),
        ("FENCEPOST_PORT", "65536"),
        ("FENCEPOST_LEASE_S", "0"),
        ("FENCEPOST_LEASE_S", "nan"),
        ("FENCEPOST_LEASE_S", "inf"),
        ("FENCEPOST_MAX_REPORTS", "-1"),
        ("FENCEPOST_MAX_FRAME_BYTES", "1.5"),
    ],
)
def test_a_value_that_can_not_work_is_refused_by_its_name(name: str, value: str):
    with pytest.raises(SettingInvalid, match=f"{name} is '{value}'"):
        read_settings({name: value})


def test_every_setting_is_documented_with_its_default():
    rows = dict(re.findall(r"^\| `(FENCEPOST_\w+)` \|[^|]*\| (?:`([^`]+)` )?\|", _PAGE.read_text(), re.MULTILINE))
    for field in msgspec.structs.fields(Settings):
        default = f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
        assert rows[variable(field.name)] == default
    assert set(rows) == {variable(name) for name in Settings.__struct_fields__} | {"FENCEPOST_URL", "FENCEPOST_KEY"}
