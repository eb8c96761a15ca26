"""docs/protocol.md says everything that travels, in its proper table, and its examples are what we send."""

import ast
import json
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from msgspec.structs import fields

from agent_sdk.errors import ProtocolViolation
from agent_sdk.protocol.capabilities import CAPABILITIES
from agent_sdk.protocol.codec import JSON, MSGPACK, SUBPROTOCOLS
from agent_sdk.protocol.messages import FromAgent, FromServer, PlanItem, PlanZone, Refusal, ReportItem
from agent_sdk.protocol.session import ANSWER_TIMEOUT_S, CLOSE_REPLACED, CLOSE_REVOKED, Next, after_close
from matcher.event_format import MAX_PAIRS, MAX_TEXT_BYTES
from matcher.events import RESERVED_NAMES, Value
from matcher.instants import LAST_INSTANT
from matcher.once import OnceState, Service
from matcher.selector.tree import DeviceCondition, Operand, Time
from server.api.agents import EnrolBody, InviteBody
from server.settings import Settings
from tests.support.error_reference import error_classes
from zones.shapes import Shape

_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
_PARTS = {"plan item": PlanItem, "plan zone": PlanZone, "service": Service, "state": OnceState,
          "report item": ReportItem, "refusal": Refusal}  # fmt: skip
_MESSAGES = {kind.__struct_config__.tag: kind for kind in (*get_args(FromAgent), *get_args(FromServer))}
_TYPES = {"condition": DeviceCondition, "shape": Shape}


def _section(title: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) (?:\d+\. )?{re.escape(title)}\n(.*?)(?=^#{{2,}} |\Z)", _PAGE, re.M | re.S)
    assert found, f"no section '{title}'"
    return found[2]


def _tables(text: str) -> dict[str, list[list[str]]]:
    """The rows of each table, by the name of its first column."""
    tables: dict[str, list[list[str]]] = {}
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.M):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()]
        assert len({len(row) for row in rows}) == 1, rows[0]
        tables.setdefault(rows[0][0], []).extend(rows[2:])
    return tables


def _codes(rows: list[list[str]]) -> list[str]:
    """The first cells, which are in backticks."""
    names = [re.fullmatch(r"`([^`]+)`", row[0]) for row in rows]
    assert all(names), rows
    return [name[1] for name in names if name]


def _examples(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", _PAGE, re.M | re.S)


def _written_fields(kind: type) -> list[str]:
    config = kind.__struct_config__
    return [config.tag_field] * (config.tag_field is not None) + [field.encode_name for field in fields(kind)]


# --- messages and their fields -----------------------------------------------------------------------


def test_each_message_is_in_the_list_with_its_direction():
    rows = _tables(_section("Messages"))["`t`"]
    directions = {"agent": get_args(FromAgent), "server": get_args(FromServer)}
    assert sorted(_codes(rows)) == sorted(_MESSAGES)
    for name, row in zip(_codes(rows), rows, strict=True):
        assert _MESSAGES[name] in directions[row[1]], name


@pytest.mark.parametrize(("title", "kind"), [(f"`{tag}`", kind) for tag, kind in _MESSAGES.items()] + [*_PARTS.items()])
def test_each_field_is_in_its_table_with_whether_it_is_required(title, kind):
    rows = _tables(_section(title))["field"]
    assert _codes(rows) == _written_fields(kind)
    optional = {field.encode_name for field in fields(kind) if not field.required}
    for row in rows:
        assert (row[2] == "required") is (row[0].strip("`") not in optional), (title, row)
        assert row[1], (title, row)
        assert row[3], (title, row)


@pytest.mark.parametrize(("title", "kind"), [(f"`{tag}`", kind) for tag, kind in _MESSAGES.items()] + [*_PARTS.items()])
def test_each_default_is_the_one_that_a_receiver_fills_in(title, kind):
    by_name = {field.encode_name: field for field in fields(kind)}
    for name, _, default, _ in _tables(_section(title))["field"]:
        field = by_name.get(name.strip("`"))
        if default == "required" or field is None:
            continue
        value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        plain = json.loads(msgspec.json.encode(value))
        if default == "all its defaults":
            assert isinstance(value, msgspec.Struct)
            assert value == type(value)()
        elif default == "none":
            assert value is None
        else:
            assert json.loads(default.strip("`")) == plain, (title, name)


def test_each_capability_is_in_its_table():
    assert _codes(_tables(_section("`hello`"))["capability"]) == list(CAPABILITIES)


# --- nodes, shapes and values ------------------------------------------------------------------------


def _nodes_of(rows: list[list[str]]) -> dict[str, list[str]]:
    named = zip(_codes(rows), rows, strict=True)
    return {name: re.findall(r"`([a-z_]+)`", re.sub(r"\(.*?\)", "", row[1])) for name, row in named}


def _own_fields(kinds: tuple[type, ...]) -> dict[str, list[str]]:
    return {kind.__struct_config__.tag: [field.encode_name for field in fields(kind)] for kind in kinds}


def test_each_condition_node_and_operand_is_in_its_table_with_its_fields():
    rows = _tables(_section("Conditions"))["`t`"]
    expected = _own_fields((*get_args(DeviceCondition), *get_args(Operand), Time))
    written = {
        name: [field for field in found if field in expected.get(name, ())] for name, found in _nodes_of(rows).items()
    }
    assert written == expected


def test_each_shape_is_in_its_table_with_its_fields():
    assert _nodes_of(_tables(_section("Shapes, and when a zone covers a point"))["`type`"]) == _own_fields(
        get_args(Shape)
    )


def test_each_value_that_is_an_object_is_in_its_table_with_its_fields():
    structs = tuple(kind for kind in get_args(Value) if issubclass(kind, msgspec.Struct))
    assert _nodes_of(_tables(_section("report item"))["`t`"]) == _own_fields(structs)


# --- codes -------------------------------------------------------------------------------------------


def _close_codes() -> dict[int, str]:
    rows = _tables(_section("How a connection ends"))["close code"]
    return {int(code): row[2] for row in rows for code in row[0].split(", ")}


def test_each_close_code_says_what_the_agent_does_then():
    written = _close_codes()
    violations = {error.close_code for error in error_classes() if issubclass(error, ProtocolViolation)}
    assert violations | {CLOSE_REVOKED, CLOSE_REPLACED, 1013} <= written.keys()
    for code, action in written.items():
        then = after_close(code)
        assert ("stop for good" in action) is (then is Next.STOP), code
        assert action.startswith("wait 30 to 60 s") is (then is Next.RECONNECT_LATER), code
        assert action.startswith("connect again") is (then is Next.RECONNECT), code


def test_each_protocol_error_is_in_its_table_with_its_close_code():
    rows = _tables(_section("How a connection ends"))["code"]
    written = {name: int(row[1]) for name, row in zip(_codes(rows), rows, strict=True)}
    violations = {error.code: error.close_code for error in error_classes() if issubclass(error, ProtocolViolation)}
    others = {"agent_revoked": CLOSE_REVOKED, "session_replaced": CLOSE_REPLACED}
    faults = {"not_recorded": 1013, "database_unreachable": 1013}
    assert written == violations | others | faults
    assert set(written.values()) <= _close_codes().keys()


def test_what_the_server_says_in_a_bye_is_in_the_table():
    source = (_ROOT / "server" / "controller" / "live.py").read_text(encoding="utf-8")
    said = set(re.findall(r'\.end\([^,]+, "([a-z_]+)"', source))
    assert said
    assert said <= set(_codes(_tables(_section("How a connection ends"))["code"]))


def test_each_refusal_of_a_report_is_in_its_table():
    written = set(_codes(_tables(_section("Reporting"))["code in `refused`"]))
    source = (_ROOT / "server" / "controller" / "reports.py").read_text(encoding="utf-8")
    given = set(re.findall(r'_bury\(work, agent, report, "([a-z_]+)"', source))
    known = {error.code for error in error_classes()}
    assert given == {"binding_ended", "edge_out_of_turn"}
    assert given <= written
    assert written - given <= known


def test_what_a_bad_event_is_refused_with_is_in_the_table():
    written = set(_codes(_tables(_section("Reporting"))["code in `refused`"]))
    events = {error.code for error in error_classes() if error.__module__ == "matcher.errors"}
    from_events = {code for code in events if not code.startswith("selector")}
    # A report's loc is two numbers and its oid is the server's own, so these two can't come.
    assert from_events - {"event_invalid", "loc_unknown", "loc_ambiguous"} | {"ts_ahead"} <= written


# --- numbers -----------------------------------------------------------------------------------------


def test_the_limits_are_those_of_the_code():
    text = _section("Limits")
    for number in (Settings().max_frame_bytes, Settings().max_reports, MAX_PAIRS, MAX_TEXT_BYTES):
        assert re.search(rf"\b{number:,}\b", text), number
    assert str(LAST_INSTANT) in text
    row = next(row for row in _tables(text)["what"] if row[0] == "a pair's name")
    assert set(re.findall(r"`([a-z_]+)`", row[1])) == RESERVED_NAMES | {"oid", "ts", "loc", "unc", "lpid"}


def test_the_timeouts_are_those_of_the_code():
    rows = {row[0]: row[1] for row in _tables(_section("Trying again"))["wait for"]}
    assert rows["`lease`"] == f"{ANSWER_TIMEOUT_S:.0f} s after `renew`"
    assert rows["`welcome`, and the plan if one must follow"] == f"{ANSWER_TIMEOUT_S:.0f} s after `hello`"


def test_the_subprotocols_are_named():
    for name in SUBPROTOCOLS:
        assert f"`{name}`" in _section("Connecting")


def test_the_client_that_drives_a_server_from_the_page_knows_nothing_of_ours():
    tree = ast.parse((_ROOT / "tests" / "e2e" / "test_protocol_page.py").read_text(encoding="utf-8"))
    imports = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imports |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {path.parent.name for path in _ROOT.glob("*/__init__.py")}
    assert {"agent_sdk", "tests"} <= ours
    assert {name.partition(".")[0] for name in imports} & ours == set()


# --- examples ----------------------------------------------------------------------------------------


def test_every_block_of_the_page_is_of_a_kind_that_is_checked():
    kinds = set(re.findall(r"^```([a-z][a-z ]*)$", _PAGE, re.M))
    checked = {"json agent", "json server", "json condition", "json shape", "msgpack agent", "msgpack server"}
    assert kinds == checked | {"http request", "http answer", "text"}


@pytest.mark.parametrize("text", _examples("json agent"))
def test_an_example_from_the_agent_is_what_our_codec_reads_and_writes(text):
    assert json.loads(JSON.encode(JSON.decode_from_agent(text))) == json.loads(text)
    packed = MSGPACK.encode(JSON.decode_from_agent(text))
    assert MSGPACK.decode_from_agent(packed) == JSON.decode_from_agent(text)


@pytest.mark.parametrize("text", _examples("json server"))
def test_an_example_from_the_server_is_what_our_codec_reads_and_writes(text):
    assert json.loads(JSON.encode(JSON.decode_from_server(text))) == json.loads(text)
    packed = MSGPACK.encode(JSON.decode_from_server(text))
    assert MSGPACK.decode_from_server(packed) == JSON.decode_from_server(text)


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in _TYPES for text in _examples(f"json {kind}")])
def test_an_example_of_a_part_is_what_our_codec_reads_and_writes(kind, text):
    decoded = msgspec.json.decode(text, type=_TYPES[kind])
    assert json.loads(msgspec.json.encode(decoded)) == json.loads(text)


@pytest.mark.parametrize("who", ["agent", "server"])
def test_the_bytes_are_those_of_the_json_above_them(who):
    pairs = re.findall(rf"^```json {who}\n(.*?)^```\n\n```msgpack {who}\n(.*?)^```", _PAGE, re.M | re.S)
    assert pairs
    for text, dump in pairs:
        decode = (JSON.decode_from_agent, JSON.decode_from_server)[who == "server"]
        assert MSGPACK.encode(decode(text)) == bytes.fromhex(dump)


def test_each_message_node_and_shape_has_an_example():
    frames = [json.loads(text) for who in ("agent", "server") for text in _examples(f"json {who}")]
    assert {frame["t"] for frame in frames} == set(_MESSAGES)
    conditions = [json.loads(text) for text in _examples("json condition")]
    expected = _own_fields((*get_args(DeviceCondition), *get_args(Operand), Time)).keys()
    assert set(_tags(conditions, "t")) == expected
    assert (
        set(_tags([json.loads(text) for text in _examples("json shape")], "type"))
        == _own_fields(get_args(Shape)).keys()
    )


def test_the_bodies_of_enrolment_are_what_the_server_takes():
    bodies = [text.partition("\n\n")[2] for text in _examples("http request") if "/v1/agents" in text]
    assert msgspec.json.decode(bodies[0], type=InviteBody).oid == "mike"
    assert msgspec.json.decode(bodies[1], type=EnrolBody).token.startswith("fpt_")


def _tags(value: object, name: str) -> list[str]:
    if isinstance(value, list):
        return [tag for each in value for tag in _tags(each, name)]
    if isinstance(value, dict):
        own = [value[name]] if isinstance(value.get(name), str) else []
        return own + [tag for each in value.values() for tag in _tags(each, name)]
    return []
