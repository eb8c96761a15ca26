"""The first use of the compiled engine on a machine takes many seconds; nobody has to wait for them."""

import time
from pathlib import Path

import httpx
import pytest

from tests.support.live_server import LiveServer, serving


def is_warm(server: LiveServer) -> bool:
    return "fencepost_engine_warm 1.0" in httpx.get(f"{server.url}/metrics", timeout=60).text


@pytest.mark.slow
def test_the_server_answers_while_the_engine_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "never used"))
    with serving(f"sqlite:///{tmp_path / 'fencepost.db'}") as server:
        noaa, acme = server.user("noaa"), server.user("acme")
        noaa.grant(acme, "enter", "leave")
        acme.square(f"{acme.name}.Plant7", 10, 50)
        acme.subscribe("storms", f"area overlaps ({acme.name}.Plant7)")
        ring = [[9.5, 50.5], [10.5, 50.5], [10.5, 52], [9.5, 50.5]]
        published = 0
        while not (published and is_warm(server)):
            away = 0 if published % 2 else 30
            area = {"type": "Polygon", "coordinates": [[[lon + away, lat] for lon, lat in ring]]}
            event = {"oid": f"{noaa.name}/irma", "ts": 1_790_000_000_000 + published, "area": area}
            noaa.publish(event)
            published += 1
            time.sleep(0.05)
        assert published > 10, "it was warm at once, so nothing was seen"
        assert [each["mode"] for each in acme.told(limit=1000)] == ["enter", "leave"] * ((published - 1) // 2) + [
            "enter"
        ] * ((published - 1) % 2)
