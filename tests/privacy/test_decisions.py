"""Default deny, and the laws that grants keep."""

from hypothesis import given
from hypothesis import strategies as st

from privacy.decisions import Reason, decide
from privacy.policies import Grant, Operation, Request
from zones.coarsen import Precision

people = st.integers(1, 4)
operations = st.sampled_from(Operation)
grants = st.lists(st.builds(Grant, st.integers(1, 99), people, people, st.frozensets(operations)), max_size=6)
requests = st.builds(Request, people, people, operations)


def test_without_a_grant_nothing_is_allowed():
    decision = decide(Request(1, 2, Operation.ENTER), [])
    assert (decision.allowed, decision.reason, decision.precision) == (False, Reason.NO_GRANT, None)


def test_an_owner_knows_about_their_own_objects():
    assert decide(Request(1, 1, Operation.POSITION), []).reason is Reason.OWNER


def test_a_grant_allows_what_it_names_to_whom_it_names():
    grant = Grant(7, 1, 2, frozenset({Operation.ENTER}))
    assert decide(Request(1, 2, Operation.ENTER), [grant]).precision is Precision.EXACT
    assert not decide(Request(1, 2, Operation.LEAVE), [grant]).allowed
    assert not decide(Request(1, 3, Operation.ENTER), [grant]).allowed
    assert not decide(Request(2, 1, Operation.ENTER), [grant]).allowed


@given(requests, grants, st.randoms())
def test_the_order_of_grants_never_matters(request, given_grants, random):
    shuffled = list(given_grants)
    random.shuffle(shuffled)
    assert decide(request, shuffled).allowed == decide(request, given_grants).allowed


@given(requests, grants, grants)
def test_another_grant_never_takes_away(request, some, more):
    if decide(request, some).allowed:
        assert decide(request, some + more).allowed


@given(requests, grants)
def test_allowed_means_owner_or_a_grant_that_says_so(request, given_grants):
    said = any(
        (g.owner_id, g.who_id) == (request.owner_id, request.asker_id) and request.operation in g.operations
        for g in given_grants
    )
    assert decide(request, given_grants).allowed == (said or request.owner_id == request.asker_id)
