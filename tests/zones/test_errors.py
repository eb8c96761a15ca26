import inspect

from zones import errors


def classes():
    return [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.FencepostError)]


def test_every_error_and_its_code_is_in_the_tree():
    tree = errors.__doc__
    for kind in classes():
        assert kind.__name__ in tree
        if issubclass(kind, errors.ZoneError | errors.OidInvalid) and kind is not errors.ZoneError:
            line = next(line for line in tree.splitlines() if f" {kind.__name__} " in line)
            assert f" {kind.code}" in line


def test_codes_are_promises_made_once():
    own = [
        kind for kind in classes() if "code" in vars(kind) and kind not in (errors.FencepostError, errors.FaultError)
    ]
    assert len({kind.code for kind in own}) == len(own)


def test_every_error_is_public():
    assert {kind.__name__ for kind in classes()} == set(errors.__all__)


def test_errors_carry_sentence_hint_and_details():
    fault = errors.ZeroArea("It is flat.", hint="Puff it up.", lon=1.0)
    assert (str(fault), fault.sentence, fault.hint, fault.details) == (
        "It is flat.",
        "It is flat.",
        "Puff it up.",
        {"lon": 1.0},
    )
