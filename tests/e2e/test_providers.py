"""Location providers: who was delegated to publishes for objects of others, and for no more of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.cli.main import main
from tests.e2e.conftest import LiveServer, Person, serving


def delegate(owner: Person, provider: Person, *oids: str) -> dict[str, Any]:
    body = {"oids": list(oids)} if oids else {}
    answer: dict[str, Any] = owner.done("PUT", f"/v1/privacy/delegations/{provider.name}", body)
    return answer


def refusal(person: Person, *events: dict[str, Any]) -> tuple[int, str, str]:
    answer = person.ask("POST", "/v1/events", list(events))
    problem = answer.json()
    return answer.status_code, problem["code"], problem["detail"]


def fix(oid: str, ts: int, lon: float = 10.5) -> dict[str, Any]:
    return {"oid": oid, "ts": ts, "loc": [lon, 50.5]}


def test_a_provider_publishes_a_batch_for_many_owners(live_server: LiveServer):
    carrier, shop = live_server.user("carrier"), live_server.user("shop")
    shop.square(f"{shop.name}.Yard", 10, 50)
    owners = [live_server.user("owner") for _ in range(4)]
    for owner in owners:
        delegate(owner, carrier)
        owner.grant(shop)
    shop.subscribe("yard", f"(*) within ('{shop.name}.Yard')")
    batch = [fix(f"{owner.name}/van", 1000) for owner in owners] + [
        fix(f"{owner.name}/van", 2000, 0) for owner in owners
    ]
    assert carrier.publish(*batch) == {"accepted": 8, "late": 0}
    told = shop.told()
    assert [(each["oid"], each["mode"]) for each in told] == [
        *((f"{owner.name}/van", "enter") for owner in owners),
        *((f"{owner.name}/van", "leave") for owner in owners),
    ]
    assert {each["lpid"] for each in told} == {carrier.name}


def test_the_server_says_who_the_provider_is_and_nobody_else_does(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    delegate(mike, carrier)
    mike.square(f"{mike.name}.HOME", 10, 50)
    mike.subscribe("all", f"('{mike.name}') within ('{mike.name}.HOME')", tos="every")
    mike.subscribe("theirs", f"('{mike.name}') within ('{mike.name}.HOME') AND lpid = '{carrier.name}'", tos="every")
    carrier.publish(fix(mike.name, 1000))
    mike.publish(fix(mike.name, 2000))
    assert [(each["subscription"], each.get("lpid")) for each in mike.told()] == [
        ("all", carrier.name),
        ("theirs", carrier.name),
        ("all", None),
    ]
    for person in (carrier, mike):
        assert refusal(person, {**fix(mike.name, 3000), "lpid": carrier.name})[:2] == (400, "reserved_name")


def test_what_is_not_delegated_is_answered_like_what_does_not_exist(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    mike.publish(fix(f"{mike.name}/car", 1000))
    delegate(mike, carrier, f"{mike.name}/van")
    before = live_server.dump()
    answers = [
        (status, code, detail.replace(oid, "OID"))
        for oid in (f"{mike.name}/car", f"{mike.name}/boat", mike.name, "nobody/car", "nobody")
        for status, code, detail in [refusal(carrier, fix(oid, 2000))]
    ]
    assert set(answers) == {(404, "object_not_found", "There is no object 'OID' that you may publish for.")}
    assert refusal(carrier, fix(f"{mike.name}/van", 2000), fix(f"{mike.name}/car", 2000))[1] == "object_not_found"
    assert live_server.dump() == before  # of a batch all or nothing
    assert carrier.publish(fix(f"{mike.name.upper()}/VAN", 2000)) == {"accepted": 1, "late": 0}


def test_without_a_delegation_nobody_publishes_for_another(live_server: LiveServer):
    carrier, mike, shop = live_server.user("carrier"), live_server.user("mike"), live_server.user("shop")
    mike.grant(carrier, "enter", "leave", "position")  # a grant is no delegation
    delegate(mike, shop)  # and one to somebody else is none to this one
    assert refusal(carrier, fix(mike.name, 1000))[1] == "object_not_found"


def test_a_delegation_lets_the_provider_know_nothing(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    delegate(mike, carrier)
    carrier.square(f"{carrier.name}.Depot", 10, 50)
    answer = carrier.ask("PUT", "/v1/subscriptions/a", {"selector": f"('{mike.name}') within ('{carrier.name}.Depot')"})
    assert answer.json()["code"] == "object_not_found"
    carrier.subscribe("all", f"(*) within ('{carrier.name}.Depot')")
    mike.publish(fix(mike.name, 1000))
    assert carrier.told() == []


def test_taking_it_back_stops_the_next_event(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    delegate(mike, carrier)
    carrier.publish(fix(mike.name, 1000))
    path = f"/v1/privacy/delegations/{carrier.name}"
    assert mike.ask("DELETE", path).status_code == 204
    assert refusal(carrier, fix(mike.name, 2000))[1] == "object_not_found"
    assert mike.ask("DELETE", path).json()["code"] == "delegation_not_found"
    assert mike.ask("GET", path).json()["code"] == "delegation_not_found"
    assert mike.done("GET", "/v1/privacy/delegations")["items"] == []


def test_delegating_again_replaces_what_was_delegated(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    path = f"/v1/privacy/delegations/{carrier.name}"
    first = mike.ask("PUT", path, {})
    assert (first.status_code, first.json()["oids"]) == (201, None)
    second = mike.ask("PUT", path, {"oids": [f"{mike.name}/van", f"{mike.name}/VAN"]})
    assert (second.status_code, second.json()["provider"]) == (200, carrier.name)
    assert second.json()["oids"] == [f"{mike.name}/VAN"]
    assert refusal(carrier, fix(mike.name, 1000))[1] == "object_not_found"
    carrier.publish(fix(f"{mike.name}/van", 1000))
    assert [each["oids"] for each in mike.done("GET", "/v1/privacy/delegations")["items"]] == [[f"{mike.name}/VAN"]]
    assert mike.done("GET", path)["oids"] == [f"{mike.name}/VAN"]
    assert carrier.done("GET", "/v1/privacy/delegations")["items"] == []


def test_an_object_with_an_agent_is_its_agents(live_server: LiveServer):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")
    delegate(mike, carrier)
    mike.enrol()
    assert refusal(carrier, fix(mike.name, 1000))[:2] == (409, "object_has_agent")
    assert carrier.ask("POST", "/v1/agents", {"oid": f"{mike.name}/van"}).json()["code"] == "object_not_found"


@pytest.mark.parametrize(
    ("provider", "body", "status", "code"),
    [
        ("nobody-at-all", {}, 404, "user_not_found"),
        ("SYSTEM", {}, 404, "user_not_found"),
        ("ME", {}, 400, "option_invalid"),
        ("CARRIER", {"oids": []}, 400, "option_invalid"),
        ("CARRIER", {"oids": ["CARRIER/van"]}, 404, "object_not_found"),
        ("CARRIER", {"oids": ["ME//"]}, 400, "oid_invalid"),
        ("CARRIER", {"oids": "ME"}, 400, "body_invalid"),
        ("CARRIER", {"oids": [7]}, 400, "body_invalid"),
        ("CARRIER", {"objects": []}, 400, "body_invalid"),
        ("CARRIER", {"oids": ["ME/van"] * 10_001}, 400, "option_invalid"),
        ("nul%00", {}, 404, "user_not_found"),
    ],
)
def test_a_delegation_that_makes_no_sense_is_refused(live_server: LiveServer, provider, body, status, code):
    mike, carrier = live_server.user("mike"), live_server.user("carrier")
    named = json.loads(json.dumps(body).replace("ME", mike.name).replace("CARRIER", carrier.name))
    path = provider.replace("ME", mike.name).replace("CARRIER", carrier.name) if provider != "SYSTEM" else provider
    before = live_server.dump()
    answer = mike.ask("PUT", f"/v1/privacy/delegations/{path}", named)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert live_server.dump() == before


def test_delegations_survive_a_restart(tmp_path: Path):
    database = f"sqlite:///{tmp_path / 'fencepost.db'}"
    with serving(database) as server:
        carrier, mike = server.person("carrier"), server.person("mike")
        delegate(mike, carrier, "mike/van")
    with serving(database) as server:
        again = Person("carrier", carrier.key, server.url, server.http)
        assert again.publish(fix("mike/van", 1000)) == {"accepted": 1, "late": 0}
        assert refusal(again, fix("mike", 1000))[1] == "object_not_found"


def test_the_command_says_who_may_publish(live_server: LiveServer, capsys: pytest.CaptureFixture[str]):
    carrier, mike = live_server.user("carrier"), live_server.user("mike")

    def run(*words: str) -> tuple[str, str]:
        assert main(["delegations", *words, "--url", live_server.url, "--key", mike.key]) == 0
        captured = capsys.readouterr()
        return captured.out, captured.err

    assert run("put", carrier.name, "--oid", f"{mike.name}/van", "--oid", mike.name)[1] == (
        f"{carrier.name} may publish for {mike.name}/van, {mike.name}.\n"
    )
    assert json.loads(run("put", carrier.name, "--all", "--json")[0])["oids"] is None
    assert run("list")[0].splitlines()[1].split()[:2] == [carrier.name, "all"]
    assert json.loads(run("list", "--json")[0])["provider"] == carrier.name
    assert run("remove", carrier.name)[1] == f"{carrier.name} may no longer publish for you.\n"
    assert run("list")[1] == "There are none.\n"
