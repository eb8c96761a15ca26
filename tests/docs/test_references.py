"""The reference pages name what there is: every route, operation and word, and nothing that is not there."""

import re

import pytest

from matcher.selector.parser import parse_selector
from matcher.selector.words import KEYWORDS
from privacy.policies import Operation
from server.app import create_app
from server.settings import Settings
from tests.docs.pages import ROOT

_API = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
_SELECTORS = (ROOT / "docs" / "reference" / "selectors.md").read_text(encoding="utf-8")


def test_every_route_is_on_the_page_of_the_api():
    written = set(re.findall(r"^\| ([A-Z]+) \| `([^`]+)` \|", _API, re.MULTILINE))
    app = create_app(Settings())
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    sockets = {("WEBSOCKET", "/v1/agent"), ("WEBSOCKET", "/v1/stream")}
    assert written == described | sockets


def test_every_operation_is_on_the_page_of_the_api():
    table = _API.split("## Operations of a grant")[1].split("## ")[0]
    assert {
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    } == {str(operation) for operation in Operation}


def test_every_word_of_the_language_is_on_its_page():
    assert {word for word in KEYWORDS if not re.search(rf"\b{word}\b", _SELECTORS, re.IGNORECASE)} == set()


_EXAMPLES = [
    example
    for row in re.findall(r"^\| (`.*`)[^|]* \|", _SELECTORS, re.MULTILINE)
    for example in re.findall(r"`([^`]+)`", row)
    if re.search(r"within|distance|[<>=]|BETWEEN |LIKE '|IN \(|IS NULL", example)
    and " " in example
    and not example.startswith(("LIKE", "IS"))
]


@pytest.mark.parametrize("example", _EXAMPLES)
def test_an_example_of_the_language_can_be_parsed(example: str):
    parse_selector(example)


def test_there_are_examples():
    assert len(_EXAMPLES) >= 11
