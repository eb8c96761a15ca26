"""The mobile buddy list: tell me when a buddy of mine is within 200 metres, and when they have gone again.

    python buddy_list.py URL ME MY_KEY BUDDY BUDDY_KEY [BUDDY BUDDY_KEY ...]

Users and their API keys. Each buddy lets me know how near we are, and nothing else; then I say once what I want to
know. Everybody's phone publishes where it is, and nobody compares anything: the server does, for those who are on
somebody's list. A buddy who takes the grant back is gone from mine. Only the standard library is needed.
"""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

# Everybody goes along one street in Beijing: minute, who (0 is me, 1 the first buddy), metres from its western end.
WALKS = (
    (0, 0, 100), (0, 1, 900), (0, 2, 620), (1, 0, 220), (1, 1, 780), (2, 0, 340), (2, 1, 640), (3, 1, 500),
    (3, 0, 440), (4, 2, 600), (5, 0, 560), (6, 1, 250), (7, 0, 700), (8, 0, 850),
)  # fmt: skip


def call(url: str, key: str, method: str, path: str, body: Any = None) -> Any:
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, head, method=method), timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def main(url: str, *names_and_keys: str) -> None:
    people = list(zip(names_and_keys[::2], names_and_keys[1::2], strict=True))
    (me, my_key), *buddies = people
    for _, key in buddies:
        call(url, key, "POST", "/v1/privacy/grants", {"who": me, "operations": ["distance"]})
    named = ", ".join(f"'{buddy}'" for buddy, _ in buddies)
    call(url, my_key, "PUT", "/v1/subscriptions/buddies", {"selector": f"('{me}') distance (200, {named})"})

    for minute, who, metres in WALKS:
        if who < len(people):
            fix = {"ts": f"2026-05-08T18:{minute:02}:00Z", "loc": [116.36 + metres / 85_400, 39.9]}
            call(url, people[who][1], "POST", "/v1/events", fix)

    for each in call(url, my_key, "GET", "/v1/notifications")["notifications"]:
        if each["mode"] == "enter":
            lon, lat = each["target_loc"]
            print(f"{each['ts'][11:16]} {each['target']} is near you, at {lon:.4f} {lat:.4f}")
        else:
            print(f"{each['ts'][11:16]} {each['target']} has gone, after {each['duration_s'] / 60:g} minutes")


if __name__ == "__main__":
    main(*(sys.argv[1:] or os.environ["BUDDY_LIST"].split()))
