"""The commands that talk to a server: what they send, and what they make of its answers.

The server here answers from a list; that the real one understands these requests is tested end to end.
"""

import gzip
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from server.cli.main import main

KEY = "fpk_0123456789abcdef_secret"


@dataclass
class Peer:
    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    location: str | None = None


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    peer = Peer()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            peer.requests.append((self.command, self.path, body))
            peer.keys.add(self.headers.get("Authorization"))
            status, content = peer.answers.pop(0)
            data = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            if peer.location:
                self.send_header("Location", peer.location)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        peer.url = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("FENCEPOST_URL", peer.url)
        monkeypatch.setenv("FENCEPOST_KEY", KEY)
        yield peer
        server.shutdown()
        thread.join()


def test_the_key_travels_as_a_bearer_token(peer: Peer):
    peer.answers = [(200, {"items": [], "next": None})]
    assert main(["grants", "list"]) == 0
    assert peer.keys == {f"Bearer {KEY}"}


@pytest.mark.parametrize(
    ("argv", "method", "path", "body"),
    [
        (
            ["grants", "add", "--who", "anna", "--operations", "enter, leave"],
            "POST",
            "/v1/privacy/grants",
            {"who": "anna", "operations": ["enter", "leave"]},
        ),
        (["grants", "remove", "7"], "DELETE", "/v1/privacy/grants/7", None),
        (
            ["subscriptions", "put", "van 7/é", "(mike) within (SYSTEM.Xidan)"],
            "PUT",
            "/v1/subscriptions/van%207%2F%C3%A9",
            {"selector": "(mike) within (SYSTEM.Xidan)"},
        ),
        (
            ["subscriptions", "put", "s", "x = 1", "--tos", "once", "--modes", "enter", "--dwell-s", "3", "--paused"],
            "PUT",
            "/v1/subscriptions/s",
            {"selector": "x = 1", "tos": "once", "modes": ["enter"], "dwell_s": 3.0, "paused": True},
        ),
        (["subscriptions", "delete", "s"], "DELETE", "/v1/subscriptions/s", None),
        (["agents", "enrol", "acme/van7"], "POST", "/v1/agents", {"oid": "acme/van7"}),
        (["agents", "revoke", "3"], "DELETE", "/v1/agents/3", None),
        (["zones", "delete", "mike.HOME"], "DELETE", "/v1/zones/mike.HOME", None),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
def test_a_command_is_one_request(peer: Peer, argv: list[str], method: str, path: str, body: Any):
    answer = {"id": 1, "who": "anna", "operations": ["enter"], "token": "fpt_x"}
    peer.answers = [(200, answer) if body else (204, None)]
    assert main(argv) == 0
    ((sent_method, sent_path, sent_body),) = peer.requests
    assert (sent_method, sent_path) == (method, path)
    assert (json.loads(sent_body) if sent_body else None) == body


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_imported_as_it_is_or_unpacked(peer: Peer, tmp_path: Path, packed: bool):
    text = b'{"type": "FeatureCollection", "features": []}'
    file = tmp_path / "zones.geojson"
    file.write_bytes(gzip.compress(text) if packed else text)
    peer.answers = [(200, {"imported": 0})]
    assert main(["zones", "import", str(file), "--owner", "SYSTEM", "--name-from", "NAME"]) == 0
    assert peer.requests == [("POST", "/v1/zones:import?owner=SYSTEM&name_from=NAME", text)]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PK\x03\x04", "is not JSON"),
        (b"{", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (gzip.compress(b"{}" * 1000)[:-9], "gzip file with an end or a part missing"),
    ],
    ids=["zip", "cut", "not text", "deep", "cut gzip"],
)
def test_a_file_that_can_not_be_read_is_not_sent(
    peer: Peer, tmp_path: Path, content: bytes, said: str, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "zones.geojson"
    file.write_bytes(content)
    assert main(["zones", "import", str(file), "--owner", "SYSTEM"]) == 1
    assert said in capsys.readouterr().err
    assert peer.requests == []


def test_a_file_that_is_not_there_is_named(peer: Peer, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["zones", "import", str(tmp_path / "no.geojson"), "--owner", "SYSTEM"]) == 1
    assert capsys.readouterr().err == f"fencepost: {tmp_path / 'no.geojson'}: No such file or directory.\n"


def test_lists_are_read_to_their_last_page(peer: Peer, capsys: pytest.CaptureFixture[str]):
    zone = {"version": 1, "shape": {"type": "Circle", "center": [1.0, 2.0], "radius_m": 3.0}}
    peer.answers = [
        (200, {"items": [{"name": "mike.A", **zone}], "next": "c1"}),
        (200, {"items": [{"name": "mike.B", **zone}], "next": None}),
    ]
    assert main(["zones", "list", "--owner", "mike", "--json"]) == 0
    assert [json.loads(line)["name"] for line in capsys.readouterr().out.splitlines()] == ["mike.A", "mike.B"]
    assert [path for _, path, _ in peer.requests] == [
        "/v1/zones?owner=mike&limit=500",
        "/v1/zones?owner=mike&limit=500&after=c1",
    ]


def test_an_export_can_be_imported_again(peer: Peer, capsys: pytest.CaptureFixture[str]):
    from zones.geojson import features_from_geojson

    circle = {"type": "Circle", "center": [1.0, 2.0], "radius_m": 30.0}
    zone = {"name": "foo@acme.com.Home", "version": 1, "shape": circle, "properties": {"floor": 2}}
    peer.answers = [(200, {"items": [zone], "next": None})]
    assert main(["zones", "export", "--owner", "foo@acme.com"]) == 0
    (feature,) = features_from_geojson(json.loads(capsys.readouterr().out))
    assert feature.name == "Home"
    assert (feature.shape.center, feature.shape.radius_m) == ((1.0, 2.0), 30.0)
    assert feature.properties == {"floor": 2}


def test_a_problem_document_becomes_one_sentence(peer: Peer, capsys: pytest.CaptureFixture[str]):
    problem = {"status": 404, "code": "zone_not_found", "detail": "There is no zone X.", "hint": "Check the name."}
    peer.answers = [(404, problem)]
    assert main(["zones", "delete", "mike.X"]) == 1
    assert capsys.readouterr().err == "fencepost: There is no zone X. Check the name.\n"


@pytest.mark.parametrize("status", [200, 500])
def test_something_else_behind_the_url_is_said_to_be_something_else(
    peer: Peer, status: int, capsys: pytest.CaptureFixture[str]
):
    peer.answers = [(status, b"<html>Welcome to nginx</html>")]
    assert main(["grants", "list"]) == 1
    err = capsys.readouterr().err
    assert peer.url in err
    assert "Check the URL." in err


def test_the_key_never_follows_a_redirect(peer: Peer):
    peer.location = f"{peer.url}/elsewhere"
    peer.answers = [(302, None), (200, {"items": [], "next": None})]
    assert main(["grants", "list"]) == 1
    assert len(peer.requests) == 1


def test_a_server_that_is_not_there_is_named(
    peer: Peer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("FENCEPOST_URL", "http://127.0.0.1:1")
    assert main(["grants", "list"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("fencepost: The server at http://127.0.0.1:1 does not answer: Connection refused.")
    assert "fencepost serve" in err


@pytest.mark.parametrize("url", [
        "localhost:8000", "ftp://x", "nonsense", "http://", "http://[::1", "http://x:port", "http://x\ny",
        f"http://{'x' * 70}.example",
    ],
)  # fmt: skip
def test_a_url_that_is_none_is_refused(peer: Peer, url: str, capsys: pytest.CaptureFixture[str]):
    assert main(["grants", "list", "--url", url]) == 1
    assert "is not the URL of a server" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["fpk_ä_x", "fpk_a\nX-Other: 1"])
def test_a_key_that_would_break_the_request_is_refused(peer: Peer, key: str, capsys: pytest.CaptureFixture[str]):
    assert main(["grants", "list", "--key", key]) == 1
    assert "characters that no key has" in capsys.readouterr().err
    assert peer.requests == []


def test_a_token_is_alone_on_stdout(peer: Peer, capsys: pytest.CaptureFixture[str]):
    peer.answers = [(201, {"agent": 4, "oid": "mike", "token": "fpt_once", "expires": "2030-01-01T00:00:00.000Z"})]
    assert main(["agents", "enrol", "mike"]) == 0
    assert capsys.readouterr().out == "fpt_once\n"


def test_notifications_are_printed_up_to_the_newest(peer: Peer, capsys: pytest.CaptureFixture[str]):
    told = {"offset": 6, "ts": "2030-01-01T00:00:00.000Z", "oid": "mike", "mode": "enter", "target": "SYSTEM.Xidan"}
    peer.answers = [
        (200, {"notifications": [{**told, "subscription": "s"}, {"offset": 7, "withdrawn": True}], "next": 7}),
        (200, {"notifications": [], "next": 7}),
    ]
    assert main(["notifications", "--after", "5"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "6  2030-01-01T00:00:00.000Z  mike  enter  SYSTEM.Xidan  s",
        "7  withdrawn",
    ]
    assert [path for _, path, _ in peer.requests] == [
        "/v1/notifications?after=5&limit=500",
        "/v1/notifications?after=7&limit=500",
    ]


def test_a_file_of_events_is_published_in_batches(
    peer: Peer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("server.cli.publish._BATCH", 2)
    file = tmp_path / "trace.jsonl"
    file.write_text('{"ts": 1}\n\n{"ts": 2}\n{"ts": 3}\n')
    peer.answers = [(202, {"accepted": 2, "late": 0}), (202, {"accepted": 0, "late": 1})]
    assert main(["publish", "--file", str(file), "--json"]) == 0
    assert [json.loads(body) for _, _, body in peer.requests] == [[{"ts": 1}, {"ts": 2}], [{"ts": 3}]]
    assert json.loads(capsys.readouterr().out) == {"accepted": 2, "late": 1}


@pytest.mark.parametrize("how", ["argument", "file"])
def test_an_event_that_is_not_json_is_not_sent(
    peer: Peer, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
):
    file = tmp_path / "trace.jsonl"
    file.write_text('{"ts": 1}\n{"ts": \n')
    assert main(["publish", "{"] if how == "argument" else ["publish", "--file", str(file)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("fencepost: The event is not JSON." if how == "argument" else "fencepost: Line 2 of ")
    assert peer.requests == []


def test_a_file_that_is_not_utf_8_is_not_sent(peer: Peer, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b'{"ts": 1}\n\xff\xfe\n')
    assert main(["publish", "--file", str(file)]) == 1
    assert capsys.readouterr().err.startswith("fencepost: Line 2 of ")
    assert peer.requests == []


def test_an_explanation_is_a_table_of_bindings(peer: Peer, capsys: pytest.CaptureFixture[str]):
    binding = {
        "oid": "mike",
        "target": "SYSTEM.Xidan",
        "status": "active",
        "evaluator": "agent",
        "reason": "offloaded",
    }
    missing = [{"reason": "object_not_found", "oid": "anna"}, {"reason": "zone_not_found", "zone": "SYSTEM.Old"}]
    peer.answers = [(200, {"id": "s", "paused": False, "bindings": [binding], "missing": missing, "next": "x"})]
    assert main(["subscriptions", "explain", "s"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == [*binding, *binding.values()]
    assert printed.err.splitlines()[:2] == ["anna: object_not_found", "SYSTEM.Old: zone_not_found"]
    assert peer.requests[0][:2] == ("GET", "/v1/subscriptions/s/explain")


def test_an_event_is_explained_binding_by_binding(peer: Peer, capsys: pytest.CaptureFixture[str]):
    verdict = {"target": "SYSTEM.Xidan", "fires": False, "reason": "condition_false", "parts": ["speed > 5"]}
    peer.answers = [(200, {"id": "s", "oid": "mike", "verdicts": [verdict], "next": None})] * 2
    assert main(["subscriptions", "explain", "s", "--event", '{"ts": 1, "loc": [1, 2]}']) == 0
    assert "condition_false" in capsys.readouterr().out
    assert peer.requests[0][:2] == ("POST", "/v1/subscriptions/s/explain")
    assert main(["subscriptions", "explain", "s", "--json", "--event", '{"ts": 1, "loc": [1, 2]}']) == 0
    assert json.loads(capsys.readouterr().out)["verdicts"] == [verdict]


@pytest.mark.parametrize("event", ["{", "[]", "5"])
def test_an_event_that_is_no_object_is_bad_usage(peer: Peer, event: str):
    assert main(["subscriptions", "explain", "s", "--event", event]) == 2
    assert peer.requests == []


def test_who_is_inside_is_a_table_of_all_pages(peer: Peer, capsys: pytest.CaptureFixture[str]):
    inside = [
        {"oid": f"mike{n}", "target": "SYSTEM.Xidan", "since": "2026-11-18T07:00:00.000Z", "visit": "v"}
        for n in range(2)
    ]
    peer.answers = [(200, {"items": inside[:1], "next": "c"}), (200, {"items": inside[1:], "next": None})]
    assert main(["subscriptions", "state", "s"]) == 0
    assert capsys.readouterr().out.split() == [*inside[0], *inside[0].values(), *inside[1].values()]
    assert peer.requests[1][1].startswith("/v1/subscriptions/s/state")


def test_input_that_is_not_utf_8_is_refused_in_words(peer: Peer):
    command = [sys.executable, "-m", "server.cli.main", "publish", "--file", "-"]
    done = subprocess.run(command, input=b'{"ts": "\xff"}\n', capture_output=True, check=False, timeout=60)
    assert (done.returncode, peer.requests) == (1, [])
    assert done.stderr == b"fencepost: Line 1 of stdin is not JSON. Write one JSON object, on one line.\n"
