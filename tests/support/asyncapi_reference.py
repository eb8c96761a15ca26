"""Write docs/asyncapi.yaml from the message structs: `python -m tests.support.asyncapi_reference`.

AsyncAPI documents are YAML, and every JSON document is one. So no YAML library is needed, neither here nor by those
who read the file.
"""

import inspect
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from agent_sdk.protocol.codec import SUBPROTOCOLS
from agent_sdk.protocol.messages import PROTOCOL, FromAgent, FromServer
from matcher.once import Mode
from matcher.selector.tree import And, DeviceCondition, Not, Or
from server.api.stream_messages import FromSubscriber, Reply
from tests.support.sources import ROOT

__all__ = ["REFERENCE", "document", "reference_text"]

REFERENCE = ROOT / "docs" / "asyncapi.yaml"
_SCHEMAS = "#/components/schemas/"
_ANSWERS = {"hello": "welcome", "report": "ack", "renew": "lease"}
_INSTANTS = ("now", "ts", "newest", "expires", "since", "pending", "ms")


def reference_text() -> str:
    """The whole file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def document() -> dict[str, Any]:
    """The document as a value."""
    from_agent, from_server, said = get_args(FromAgent), get_args(FromServer), get_args(FromSubscriber)
    names = {kind: kind.__struct_config__.tag for kind in (*from_agent, *from_server)}
    spoken = {kind: kind.__struct_config__.tag for kind in said}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Fencepost",
            "version": str(PROTOCOL),
            "description": "The two WebSockets of a Fencepost server. docs/protocol.md has the rules of /v1/agent.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"local": {"host": "127.0.0.1:8000", "protocol": "ws", "description": "As `fencepost serve` is."}},
        "channels": {"agent": _agent_channel(names.values()), "stream": _stream_channel(spoken.values())},
        "operations": {
            **{f"take_{names[kind]}": _operation("receive", names[kind]) for kind in from_agent},
            **{f"send_{names[kind]}": _operation("send", names[kind]) for kind in from_server},
            "stream_notification": _stream_operation("send", "notification"),
            **{f"stream_{tag}": _stream_operation("receive", tag) for tag in spoken.values()},
        },
        "components": {
            "messages": {
                **{tag: _message(tag, _said_of(kind), kind.__name__) for kind, tag in names.items()},
                "notification": _message("notification", "One notification of the subscriber's.", "Notification"),
                **{tag: _message(tag, _said_of(kind), kind.__name__) for kind, tag in spoken.items()},
                "reply": _message("reply", _said_of(Reply), Reply.__name__),
            },
            "schemas": _schemas((*from_agent, *from_server, *said, Reply)),
            "securitySchemes": {
                "agent_credential": _bearer("fpa_..., what enrolling made: `Authorization: Bearer fpa_...`."),
                "api_key": _bearer("fpk_..., a user's key: `Authorization: Bearer fpk_...`."),
            },
        },
    }


# --- channels and operations -------------------------------------------------------------------------


def _agent_channel(tags: Iterable[str]) -> dict[str, Any]:
    header = {"type": "string", "enum": list(SUBPROTOCOLS), "description": "MessagePack or JSON, the same messages."}
    return {
        "address": "/v1/agent",
        "title": "A device's agent",
        "description": "Plans to the device, edges from it. The subprotocol decides on the encoding.",
        "messages": {tag: {"$ref": f"#/components/messages/{tag}"} for tag in tags},
        "bindings": {
            "ws": {
                "method": "GET",
                "headers": {
                    "type": "object",
                    "required": ["Sec-WebSocket-Protocol"],
                    "properties": {"Sec-WebSocket-Protocol": header},
                },
                "bindingVersion": "0.1.0",
            }
        },
    }


def _stream_channel(tags: Iterable[str]) -> dict[str, Any]:
    after = {"type": "string", "pattern": "^[0-9]{1,18}$", "default": "0", "description": "Begin behind this offset."}
    return {
        "address": "/v1/stream",
        "title": "A subscriber's notifications",
        "description": "Each text frame to the subscriber is a notification, in the order of offset, or a reply to one "
        "of its messages, which has no offset.",
        "messages": {tag: {"$ref": f"#/components/messages/{tag}"} for tag in ("notification", *tags, "reply")},
        "bindings": {
            "ws": {
                "method": "GET",
                "query": {"type": "object", "properties": {"after": after}},
                "bindingVersion": "0.1.0",
            }
        },
    }


def _stream_operation(action: str, tag: str) -> dict[str, Any]:
    channel = {"$ref": "#/channels/stream"}
    operation: dict[str, Any] = {
        "action": action,
        "channel": channel,
        "messages": [{"$ref": f"#/channels/stream/messages/{tag}"}],
        "security": [{"$ref": "#/components/securitySchemes/api_key"}],
    }
    if action == "receive":
        operation["reply"] = {"channel": channel, "messages": [{"$ref": "#/channels/stream/messages/reply"}]}
    return operation


def _operation(action: str, tag: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": "#/channels/agent"},
        "messages": [{"$ref": f"#/channels/agent/messages/{tag}"}],
        "security": [{"$ref": "#/components/securitySchemes/agent_credential"}],
    }
    if tag in _ANSWERS:
        answer = [{"$ref": f"#/channels/agent/messages/{_ANSWERS[tag]}"}]
        operation["reply"] = {"channel": {"$ref": "#/channels/agent"}, "messages": answer}
    return operation


def _message(tag: str, summary: str, schema: str) -> dict[str, Any]:
    return {"name": tag, "summary": summary, "payload": {"$ref": _SCHEMAS + schema}}


def _bearer(description: str) -> dict[str, Any]:
    return {"type": "http", "scheme": "bearer", "description": description}


# --- schemas -----------------------------------------------------------------------------------------


def _schemas(messages: tuple[type, ...]) -> dict[str, Any]:
    """Those of the messages and of all they hold, by name."""
    _, found = msgspec.json.schema_components(
        (*messages, DeviceCondition), schema_hook=_hook, ref_template=_SCHEMAS + "{name}"
    )
    found["Condition"] = {
        "description": "A tree that is TRUE, FALSE or UNKNOWN for a fix.",
        "anyOf": [{"$ref": _SCHEMAS + kind.__name__} for kind in get_args(DeviceCondition)],
    }
    # In the code these hold selectors as well; what travels has only conditions in it.
    found[Not.__name__]["properties"]["item"] = {"$ref": _SCHEMAS + "Condition"}
    for kind in (And, Or):
        found[kind.__name__]["properties"]["items"] = {"type": "array", "items": {"$ref": _SCHEMAS + "Condition"}}
    found["PlanItem"]["properties"]["condition"] = {"$ref": _SCHEMAS + "Condition"}
    found["Notification"] = _notification()
    found["Notify"]["properties"]["notifications"]["items"] = {"$ref": _SCHEMAS + "Notification"}
    wanted = _reachable(found, [kind.__name__ for kind in messages])
    return {name: _tidy(found[name]) for name in sorted(wanted)}


def _hook(kind: type) -> dict[str, Any]:
    assert kind is object
    return {"description": "Any value."}


def _notification() -> dict[str, Any]:
    """As server/pubsub/recording.py writes it and server/delivery/reading.py withdraws it."""
    return {
        "title": "Notification",
        "description": "The event's pairs and what became of it; a withdrawn one has its offset only.",
        "type": "object",
        "required": ["offset"],
        "properties": {
            "offset": {"type": "integer", "minimum": 1},
            "id": {"type": "string"},
            "subscription": {"type": "string"},
            "mode": {"enum": sorted(Mode)},
            "target": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "target_loc": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "oid": {"type": "string"},
            "ts": {"type": "string", "format": "date-time"},
            "loc": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "unc": {"type": "number", "minimum": 0},
            "visit": {"type": "string", "description": "Of a leave: the id of its enter."},
            "duration_s": {"type": "number", "description": "Of a leave: since its enter."},
            "withdrawn": {"const": True},
        },
        "additionalProperties": True,
    }


def _reachable(schemas: dict[str, Any], roots: list[str]) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += (ref.removeprefix(_SCHEMAS) for ref in _references(schemas[name]))
    return found


def _references(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            if name == "$ref":
                yield each
            else:
                yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _tidy(schema: dict[str, Any]) -> dict[str, Any]:
    """A description of one paragraph, what an instant is, and nothing that AsyncAPI's schemas don't know."""
    schema = _in_draft_7(schema)
    if "description" in schema:
        schema["description"] = _first_paragraph(schema["description"])
    for name, each in schema.get("properties", {}).items():
        if name in _INSTANTS and each.get("type") != "string":
            each["description"] = "Milliseconds since 1970-01-01T00:00:00Z."
    return schema


def _in_draft_7(value: Any) -> Any:
    """AsyncAPI's own schemas are those of draft 7: no prefixItems, and no discriminator that is an object."""
    if isinstance(value, list):
        return [_in_draft_7(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {name: _in_draft_7(each) for name, each in value.items() if name not in ("discriminator", "prefixItems")}
    if "prefixItems" in value:
        first, *others = value["prefixItems"]
        assert all(other == first for other in others)  # coordinates
        plain["items"] = first
    return plain


def _said_of(kind: type) -> str:
    said = vars(kind).get("__doc__")
    return _first_paragraph(inspect.cleandoc(said)) if said else "Edges that the device has decided."


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _write(path: Path) -> None:
    path.write_text(reference_text(), encoding="utf-8")


if __name__ == "__main__":
    _write(REFERENCE)
    print(REFERENCE.relative_to(ROOT))
