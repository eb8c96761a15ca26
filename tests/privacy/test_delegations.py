"""Delegations: whom an owner lets publish."""

import pytest

from privacy.delegations import Delegation, is_delegated


@pytest.mark.parametrize(
    ("delegation", "oid", "expected"),
    [
        (None, "mike/van", False),
        (Delegation(1, 2), "mike/van", True),
        (Delegation(1, 2), "mike", True),
        (Delegation(1, 2, frozenset({"mike/van"})), "mike/van", True),
        (Delegation(1, 2, frozenset({"mike/van"})), "MIKE/ＶＡＮ", True),
        (Delegation(1, 2, frozenset({"mike/van"})), "mike", False),
        (Delegation(1, 2, frozenset({"mike"})), "mike/van", False),
        (Delegation(1, 2, frozenset()), "mike", False),
    ],
)
def test_who_may_publish_for_what(delegation, oid: str, expected: bool):
    assert is_delegated(delegation, oid) is expected
