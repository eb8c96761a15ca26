import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zones.errors import OidInvalid, ZoneNameInvalid
from zones.names import (
    SYSTEM,
    ZoneName,
    check_local_name,
    check_owner_name,
    fold,
    importable,
    is_system,
    parse_zone_name,
)
from zones.oids import Oid, parse_oid
from zones.shapes import Circle
from zones.zone import Zone


@pytest.mark.parametrize(
    ("text", "owner", "local"),
    [
        ("SYSTEM.Xidan", "SYSTEM", "Xidan"),
        ("mike.HOME", "mike", "HOME"),
        ("foo@acme.com.Office", "foo@acme.com", "Office"),
        ("北京.西单 商场", "北京", "西单 商场"),
        ("o'neill.it's here", "o'neill", "it's here"),
        ("mike.a/b", "mike", "a/b"),
    ],
)
def test_the_owner_is_everything_before_the_last_dot(text, owner, local):
    assert parse_zone_name(text) == ZoneName(owner, local)
    assert str(ZoneName(owner, local)) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("HOME", "no owner"),
        (".HOME", "no owner"),
        ("mike.", "no local name"),
        ("", "no owner"),
        (".", "no owner"),
        ("mike..HOME", "dot"),
        (".mike.HOME", "dot"),
        ("acme/van.HOME", "'/'"),
        ("acme／van.HOME", "'/'"),
        ("mike.ho．me", "'.'"),
        ("mike.ho․me", "'.'"),
        ("mike.wait…", "'.'"),
        ("mike.*", "set of zones"),
        ("mike.#school", "set of zones"),
        ("mike.＃school", "set of zones"),
        (" mike.HOME", "space"),
        ("mike .HOME", "space"),
        ("mike. HOME", "space"),
        ("mike.HOME ", "space"),
        ("mike.MY  HOME", "space"),
        ("mi\u200bke.HOME", "U+200B (ZERO WIDTH SPACE) at position 3"),
        ("mike.HO\u200dME", "ZERO WIDTH JOINER"),
        ("mike.HO\u00adME", "SOFT HYPHEN"),
        ("mike.\u202eEMOH", "RIGHT-TO-LEFT OVERRIDE"),
        ("mike.HO\u2066ME", "LEFT-TO-RIGHT ISOLATE"),
        ("mike.HO\ufeffME", "ZERO WIDTH NO-BREAK SPACE"),
        ("mike.HOME\ufe0f", "VARIATION SELECTOR-16"),
        ("mike.HO\u3164ME", "HANGUL FILLER"),
        ("mike.HO\u034fME", "COMBINING GRAPHEME JOINER"),
        ("mike.HO\u00a0ME", "NO-BREAK SPACE"),
        ("mike.HO\tME", "U+0009"),
        ("mike.HO\x00ME", "U+0000"),
        ("mike.HO\u2028ME", "LINE SEPARATOR"),
        ("mike.HO\ud800ME", "U+D800"),
        ("mike.HO\ue000ME", "U+E000"),
        ("mike.HO\u0378ME", "U+0378"),
        ("mike." + "x" * 101, "101 characters; 100 are allowed"),
        ("x" * 255 + ".HOME", "255 characters; 254 are allowed"),
    ],
)
def test_names_that_could_deceive_are_refused(text, says):
    with pytest.raises(ZoneNameInvalid) as caught:
        parse_zone_name(text)
    assert caught.value.code == "zone_name_invalid"
    assert says in caught.value.sentence
    assert caught.value.hint
    assert caught.value.sentence.isprintable()


def test_the_longest_names_are_allowed():
    assert check_owner_name("x" * 254) == "x" * 254
    assert check_local_name("x" * 100) == "x" * 100


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("mike", "MIKE"),
        ("mike", "ｍｉｋｅ"),
        ("fine", "ﬁne"),
        ("straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("K", "\u212a"),
        ("Å", "\u212b"),
        ("ΣΑΣ", "σας"),
        ("①", "1"),
    ],
)
def test_twins_fold_to_the_same(one, other):
    assert fold(one) == fold(other)


def test_different_names_stay_different():
    assert len({fold(name) for name in ("home", "home2", "ho me", "hóme", "ho-me", "ho_me")}) == 6


@given(st.text())
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_folding_is_blind_to_case_and_to_composition(text):
    assert fold(text.casefold()) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(text)
    assert fold(unicodedata.normalize("NFKC", text)) == fold(text)


@given(st.text(max_size=20))
def test_a_name_that_passes_reads_back_the_same(text):
    try:
        name = parse_zone_name(text)
    except ZoneNameInvalid:
        return
    assert str(name) == text
    assert "." not in fold(name.local)
    assert "/" not in fold(name.owner)


def test_nobody_poses_as_system():
    assert is_system(SYSTEM)
    assert is_system("system")
    assert is_system("ＳＹＳＴＥＭ")
    assert not is_system("systems")


def test_dots_in_imported_names_become_underscores():
    assert importable("A.1.b") == "A_1_b"
    assert importable("A．1") == "A_1"
    assert importable("A 1") == "A 1"


@pytest.mark.parametrize(
    ("text", "oid"),
    [
        ("mike", Oid("mike")),
        ("foo@acme.com", Oid("foo@acme.com")),
        ("acme/van7", Oid("acme", "van7")),
        ("foo@acme.com/van.7", Oid("foo@acme.com", "van.7")),
        ("acme/.hidden", Oid("acme", ".hidden")),
    ],
)
def test_an_oid_is_an_owner_or_an_owners_object(text, oid):
    assert parse_oid(text) == oid
    assert str(oid) == text


@pytest.mark.parametrize(
    "text",
    ["", "/", "/van7", "acme/", "acme/van/7", "acme/van／7", "acme//van", "ac\u200bme", "acme/va\u200bn", " acme",
     "acme /van", "acme/ van", "acme/" + "x" * 101, "x" * 255, "acme./van"],
)  # fmt: skip
def test_bad_oids_are_refused(text):
    with pytest.raises(OidInvalid) as caught:
        parse_oid(text)
    assert caught.value.code == "oid_invalid"
    assert caught.value.hint
    assert caught.value.sentence.isprintable()


def test_a_zone_has_a_name():
    zone = Zone(7, "foo@acme.com", "Office", 1, Circle((0.0, 0.0), 5.0))
    assert zone.name == "foo@acme.com.Office"
    assert parse_zone_name(zone.name) == ZoneName(zone.owner, zone.local)
    assert not zone.on_devices
