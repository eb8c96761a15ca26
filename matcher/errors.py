"""The errors of selectors and events. All are the caller's.

    CallerError
    ├── SelectorError
    │   ├── SelectorInvalid         selector_invalid        `column` says where, the sentence what was expected
    │   ├── SelectorTooLong         selector_too_long       8,192 bytes
    │   ├── SelectorTooDeep         selector_too_deep       32 levels of nesting
    │   ├── SelectorTooComplex      selector_too_complex    256 terms, 256 filters
    │   └── SelectorNotSupported    selector_not_supported  right, but not evaluated by this server
    └── EventInvalid                event_invalid, and its kinds:
        ├── ReservedName                reserved_name
        ├── NameInvalid                 name_invalid
        ├── ValueInvalid                value_invalid
        ├── NumberInvalid               number_invalid
        ├── TimestampInvalid            ts_invalid
        ├── LocationInvalid             loc_invalid
        ├── LocationUnknown             loc_unknown
        ├── LocationAmbiguous           loc_ambiguous
        ├── TooManyPairs                too_many_pairs
        └── TextTooLong                 text_too_long

What is wrong with an event's oid or with a region in it is said by the errors of zones (`oid_invalid`,
`shape_invalid` and its kinds).
"""

from typing import Any

from zones.errors import CallerError

__all__ = [
    "EventInvalid",
    "LocationAmbiguous",
    "LocationInvalid",
    "LocationUnknown",
    "NameInvalid",
    "NumberInvalid",
    "ReservedName",
    "SelectorError",
    "SelectorInvalid",
    "SelectorNotSupported",
    "SelectorTooComplex",
    "SelectorTooDeep",
    "SelectorTooLong",
    "TextTooLong",
    "TimestampInvalid",
    "TooManyPairs",
    "ValueInvalid",
]


class SelectorError(CallerError):
    code = "selector_invalid"


class SelectorInvalid(SelectorError):
    """The text is not a selector; `column` (from 1, in characters) is where it stops being one."""

    code = "selector_invalid"

    def __init__(self, sentence: str, *, column: int, hint: str = "", **details: Any) -> None:
        super().__init__(sentence, hint=hint, column=column, **details)
        self.column = column


class SelectorTooLong(SelectorError):
    code = "selector_too_long"


class SelectorTooDeep(SelectorError):
    code = "selector_too_deep"


class SelectorTooComplex(SelectorError):
    code = "selector_too_complex"


class SelectorNotSupported(SelectorError):
    """The selector is right, but uses what this server can't evaluate yet."""

    code = "selector_not_supported"


class EventInvalid(CallerError):
    """Not an event: no object, or something is missing that every event has."""

    code = "event_invalid"


class ReservedName(EventInvalid):
    """A pair has a name that notifications, or the server, use for something else."""

    code = "reserved_name"


class NameInvalid(EventInvalid):
    """A pair's name is not a plain identifier."""

    code = "name_invalid"


class ValueInvalid(EventInvalid):
    """A pair's value is of no type that events know."""

    code = "value_invalid"


class NumberInvalid(EventInvalid):
    """Not a finite number, or not one that fits into 64 bits, or negative where that has no meaning."""

    code = "number_invalid"


class TimestampInvalid(EventInvalid):
    code = "ts_invalid"


class LocationInvalid(EventInvalid):
    code = "loc_invalid"


class LocationUnknown(EventInvalid):
    """A textual place is no zone that the sender may read, and no place that the geocoder knows."""

    code = "loc_unknown"


class LocationAmbiguous(EventInvalid):
    """A textual place is the name of several."""

    code = "loc_ambiguous"


class TooManyPairs(EventInvalid):
    code = "too_many_pairs"


class TextTooLong(EventInvalid):
    """The strings of an event are too long in all."""

    code = "text_too_long"
