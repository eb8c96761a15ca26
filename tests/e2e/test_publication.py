"""The samples of the publication: the spatial event of its Table 1 gives the notification of its Table 2.

`LPID` is left out: the server sets it for location providers, who are not there yet. The zone's name is written
without its blank, as names here are.
"""

from tests.e2e.conftest import LiveServer

TABLE_1 = {"oid": "foo@acme.com", "ts": "2002-05-01T13:20:05Z", "loc": [119.323, 38.465], "Priority": "High"}
TABLE_2 = {
    "oid": "foo@acme.com",
    "ts": "2002-05-01T13:20:05.000Z",
    "loc": [119.323, 38.465],
    "Priority": "High",
    "mode": "enter",
    "target": "SYSTEM.TimesSquare",
}


def test_the_event_of_table_1_gives_the_notification_of_table_2(live_server: LiveServer):
    root = live_server.person("root", admin=True)
    foo = live_server.person("foo@acme.com")
    shop = live_server.person("shop")
    root.square("SYSTEM.TimesSquare", 119.32, 38.46, 0.01)
    foo.grant(shop)
    shop.subscribe("coupon", "('foo@acme.com') within (SYSTEM.TimesSquare)")

    assert foo.publish(TABLE_1) == {"accepted": 1, "late": 0}

    (notification,) = shop.told()
    ours = {name: notification.pop(name) for name in ("id", "offset", "subscription")}
    assert notification == TABLE_2
    assert (ours["offset"], ours["subscription"]) == (1, "coupon")
    assert len(ours["id"]) >= 16

    # "While the ToS is set to once": staying inside tells nothing more, leaving tells once.
    foo.publish({**TABLE_1, "ts": "2002-05-01T13:21:05Z"}, {**TABLE_1, "ts": "2002-05-01T13:22:05Z", "loc": [0, 0]})
    (left,) = shop.told(after=1)
    assert (left["mode"], left["target"], left["visit"]) == ("leave", "SYSTEM.TimesSquare", ours["id"])
    assert left["duration_s"] == 120.0
