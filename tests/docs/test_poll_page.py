"""The page of `fencepost poll` names every option, and its example does what it says."""

import re
import shlex
from itertools import pairwise

import pytest

from server.cli.feeds import FeedMap, items_of
from server.cli.main import main
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "reference" / "poll.md").read_text(encoding="utf-8")


def test_every_option_is_on_the_page(capsys: pytest.CaptureFixture[str]):
    assert main(["poll", "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"`{option}`" not in TEXT} == set()


def test_the_feed_of_the_page_is_published_as_the_page_says():
    (feed,) = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
    (command,) = re.findall(r"^    (fencepost poll .*?)\n\n", TEXT, re.DOTALL | re.MULTILINE)
    words = shlex.split(command)
    given = dict(pairwise(words))
    paths = dict(words[place + 1].split("=") for place, word in enumerate(words) if word == "--map")
    mapping = FeedMap(paths, given["--owner"], seconds=given["--ts-unit"] == "s")
    (item,) = items_of(feed.encode(), given["--items"])
    body = mapping.event_of(item).body
    assert body == {"oid": "acme/7", "ts": 1795000000000, "loc": [116.37, 39.91], "speed": 8.5}
