"""Tell a plant when a storm begins and stops to be over it, if it is bad enough.

    python storm_over_plant.py URL CENTRE CENTRE_KEY COMPANY COMPANY_KEY

Two users and their API keys: the storm centre, and the company that has the plant. The centre lets the company know of
its storms; the company says once what it wants to know. Then the centre publishes where its storm is, as a polygon
with wind and precipitation, and has nothing to do with who listens. Only the standard library is needed.
"""

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

# A storm that comes in from the west: lon of its western edge, wind in m/s, precipitation in mm/h.
TRACK = ((5.0, 41, 30), (6.5, 44, 25), (8.2, 28, 35), (8.6, 45, 40), (8.9, 47, 45), (11.5, 46, 30), (13.0, 30, 10))


_ENVIRON = ("FENCEPOST_URL", "CENTRE", "CENTRE_KEY", "COMPANY", "COMPANY_KEY")


def call(url: str, key: str, method: str, path: str, body: Any = None) -> Any:
    head = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url + path, data, head, method=method), timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def box(west: float, south: float, east: float, north: float) -> dict[str, Any]:
    ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
    return {"type": "Polygon", "coordinates": [ring]}


def main(url: str, centre: str, centre_key: str, company: str, company_key: str) -> None:
    plant = f"{company}.Plant7"
    call(url, company_key, "PUT", f"/v1/zones/{plant}", {"shape": box(10, 50, 10.2, 50.1)})
    call(url, centre_key, "POST", "/v1/privacy/grants", {"who": company, "operations": ["enter", "leave"]})
    selector = f"area overlaps ({plant}) AND wind > 32 AND precipitation > 20"
    call(url, company_key, "PUT", "/v1/subscriptions/storms", {"selector": selector})

    for hour, (west, wind, precipitation) in enumerate(TRACK):
        storm = {
            "oid": f"{centre}/kyrill",
            "ts": f"2026-01-18T{hour:02}:00:00Z",
            "area": box(west, 50.05, west + 2, 52),
        }
        call(url, centre_key, "POST", "/v1/events", storm | {"wind": wind, "precipitation": precipitation})

    for each in call(url, company_key, "GET", "/v1/notifications")["notifications"]:
        stayed = f" after {each['duration_s'] / 3600:g} h" if "duration_s" in each else ""
        print(f"{each['ts'][11:16]} {each['oid']} {each['mode']} {each['target']}{stayed}, wind {each['wind']} m/s")


if __name__ == "__main__":
    main(*(sys.argv[1:] or [os.environ[name] for name in _ENVIRON]))
