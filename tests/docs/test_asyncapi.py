"""docs/asyncapi.yaml is what the structs say, holds together, and fits what travels."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_sdk.protocol.messages import FromAgent, FromServer
from matcher.events import RESERVED_NAMES
from server.api.stream_messages import FromSubscriber
from server.app import create_app
from server.settings import Settings
from tests.support.asyncapi_reference import REFERENCE, document, reference_text

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
_FRAMES = [json.loads(text) for text in re.findall(r"^```json (?:agent|server)\n(.*?)^```", _PAGE, re.M | re.S)]
_DOCUMENT = document()
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
    "integer": (int,), "number": (int, float),
}  # fmt: skip


def test_the_file_is_up_to_date():
    assert REFERENCE.read_text(encoding="utf-8") == reference_text(), "run: python -m tests.support.asyncapi_reference"


def test_every_reference_leads_somewhere():
    references = [value for name, value in _pairs(_DOCUMENT) if name == "$ref"]
    assert references
    for reference in references:
        _resolved(reference)


def test_every_message_is_on_the_channel_and_has_an_operation_in_its_direction():
    tags = {
        **{kind.__struct_config__.tag: "receive" for kind in get_args(FromAgent)},
        **{kind.__struct_config__.tag: "send" for kind in get_args(FromServer)},
    }
    assert _DOCUMENT["channels"]["agent"]["messages"].keys() == tags.keys()
    actions = {
        operation["messages"][0]["$ref"].rpartition("/")[2]: operation["action"]
        for operation in _DOCUMENT["operations"].values()
        if operation["channel"]["$ref"] == "#/channels/agent"
    }
    assert actions == tags


def test_what_a_subscriber_may_say_is_on_the_stream_and_gets_a_reply():
    tags = {kind.__struct_config__.tag for kind in get_args(FromSubscriber)}
    assert _DOCUMENT["channels"]["stream"]["messages"].keys() == tags | {"notification", "reply"}
    for tag in tags:
        operation = _DOCUMENT["operations"][f"stream_{tag}"]
        assert operation["action"] == "receive"
        assert operation["reply"]["messages"] == [{"$ref": "#/channels/stream/messages/reply"}]


@pytest.mark.parametrize(
    ("tag", "frame", "fits"),
    [
        ("subscribe", {"t": "subscribe", "ref": 1, "id": "s", "subscription": {"selector": "TRUE"}}, True),
        ("subscribe", {"t": "subscribe", "ref": 1, "id": "s", "subscription": {}}, False),
        ("unsubscribe", {"t": "unsubscribe", "ref": "a", "id": "s"}, True),
        ("list", {"t": "list", "ref": 1}, True),
        ("read", {"t": "read", "id": "s"}, False),
        ("reply", {"ref": None, "status": 400, "body": {"code": "body_invalid"}}, True),
    ],
)
def test_messages_on_the_stream_fit_their_schemas(tag, frame, fits):
    misfit = _misfit(frame, _DOCUMENT["components"]["messages"][tag]["payload"])
    assert (misfit is None) is fits, misfit


def test_the_addresses_are_the_websockets_of_the_server():
    paths = set()
    waiting = list(create_app(Settings()).routes)
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "original_router", None)
        waiting += inner.routes if inner is not None else []
        if "WebSocket" in type(route).__name__:
            paths.add(route.path)
    assert {channel["address"] for channel in _DOCUMENT["channels"].values()} == paths


def test_a_notification_has_the_names_that_notifications_reserve():
    written = _DOCUMENT["components"]["schemas"]["Notification"]["properties"].keys()
    assert written >= RESERVED_NAMES - {"target_loc"}  # of distance, which is not evaluated yet


@pytest.mark.parametrize("frame", _FRAMES, ids=lambda frame: frame["t"])
def test_an_example_of_the_protocol_page_fits_its_schema(frame):
    assert _misfit(frame, _DOCUMENT["components"]["messages"][frame["t"]]["payload"]) is None


@pytest.mark.parametrize(
    ("tag", "frame"),
    [
        ("hello", {"t": "hello", "protocol": 1}),
        ("hello", {"t": "hello", "protocol": "1", "now": 1}),
        ("ack", {"t": "lease", "seq": 1}),
        ("plan", {"t": "plan", "generation": 1, "etag": "e", "full": True, "lease_s": 1,
                  "items": [{"handle": "h", "condition": {"t": "within", "oids": None, "zones": []}}]}),
        ("report", {"t": "report", "reports": [{"seq": 1, "generation": 1, "handle": "h", "n": 1, "mode": "enter",
                                                "ts": 1, "loc": [1, 2, 3]}]}),
    ],
    ids=["field missing", "wrong type", "other tag", "selector in a condition", "three coordinates"],
)  # fmt: skip
def test_what_would_be_refused_does_not_fit(tag, frame):
    assert _misfit(frame, _DOCUMENT["components"]["messages"][tag]["payload"]) is not None


# --- as much of JSON Schema (draft 7) as the document uses ------------------------------------------

_UNDERSTOOD = {
    "$ref", "anyOf", "type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems",
    "maxItems", "minimum",
}  # fmt: skip
_SAID_ONLY = {"title", "description", "default", "format"}


def _misfit(value: Any, schema: Any, place: str = "$") -> str | None:
    """Where the value does not fit the schema; None if it does."""
    assert schema.keys() <= _UNDERSTOOD | _SAID_ONLY, schema.keys()
    if "$ref" in schema:
        return _misfit(value, _resolved(schema["$ref"]), place)
    if "anyOf" in schema and all(_misfit(value, each, place) for each in schema["anyOf"]):
        return place
    if "type" in schema and not (
        isinstance(value, _TYPES[schema["type"]]) and isinstance(value, bool) <= (schema["type"] == "boolean")
    ):
        return place
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return place
    if isinstance(value, dict):
        return _object_misfit(value, schema, place)
    if isinstance(value, list):
        return _array_misfit(value, schema, place)
    return place if "minimum" in schema and value < schema["minimum"] else None


def _object_misfit(value: dict[str, Any], schema: Any, place: str) -> str | None:
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{place}.{missing[0]}"
    others = schema.get("additionalProperties", True)
    for name, each in value.items():
        fitting = schema.get("properties", {}).get(name, others)
        if fitting is not True and (wrong := _misfit(each, fitting, f"{place}.{name}")):
            return wrong
    return None


def _array_misfit(value: list[Any], schema: Any, place: str) -> str | None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return place
    misfits = (_misfit(each, schema.get("items", {}), f"{place}[{index}]") for index, each in enumerate(value))
    return next(filter(None, misfits), None)


def _resolved(reference: str) -> Any:
    found: Any = _DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [*value.items(), *(pair for each in value.values() for pair in _pairs(each))]
    return [pair for each in value for pair in _pairs(each)] if isinstance(value, list) else []
