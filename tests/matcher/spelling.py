"""A selector written as somebody might: other spaces, cases, brackets and literals than the package would choose.

It knows the grammar from the page of the language and nothing of the package's formatter.
"""

from random import Random
from typing import Any

from matcher.instants import format_instant
from matcher.selector import tree as t
from zones.wkt import shape_to_wkt

__all__ = ["spell"]

_SPACES = (" ", " ", " ", "  ", "\t", "\r\n", "\f")
_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _SIGNED = range(7)  # how much a thing binds


def spell(rng: Random, node: Any) -> str:
    """The selector's text; the same selector gives many."""
    pieces = _Writer(rng).condition(node, _OR)
    text = pieces[0]
    for piece in pieces[1:]:
        touching = _is_word(text[-1]) and _is_word(piece[0])
        reads_as_one = text.lower().endswith("covered") and piece == "-"  # covered-by is one word
        if touching or reads_as_one or rng.random() < 0.6:
            text += rng.choice(_SPACES)
        text += piece
    return text


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign in "_.'"


class _Writer:
    """Lists of pieces that may be written together or apart."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def condition(self, node: Any, level: int) -> list[str]:
        own, pieces = self._condition(node)
        return self._bracketed(pieces, own < level)

    def _condition(self, node: Any) -> tuple[int, list[str]]:
        if isinstance(node, t.Or):
            return _OR, self._joined([self.condition(item, _AND) for item in node.items], "OR")
        if isinstance(node, t.And):
            return _AND, self._joined([self.condition(item, _NOT) for item in node.items], "AND")
        if isinstance(node, t.Not):
            return _NOT, [self._word("NOT"), *self.condition(node.item, _NOT)]
        return _TEST, self._term(node)

    def _term(self, node: Any) -> list[str]:
        if isinstance(node, t.Within):
            return [*self._objects(node.oids), self._word("within"), *self._zones(node.zones)]
        if isinstance(node, t.Relate):
            subject = self._objects(node.oids) if node.attribute is None else [node.attribute]
            return [*subject, self._word(str(node.relation)), *self._zones(node.zones)]
        if isinstance(node, t.Distance):
            others = self._objects(node.others)[1:]
            return ["(", self._oid(node.oid), ")", self._word("distance"), "(", self._float(node.metres), ",", *others]
        if isinstance(node, t.Compare):
            return [*self._operand(node.left, _SUM), str(node.op), *self._operand(node.right, _SUM)]
        if isinstance(node, t.Truth):
            return self._operand(node.operand, _SUM)
        no = [self._word("NOT")] if node.negated else []
        if isinstance(node, t.Between):
            low, high = self._operand(node.low, _SUM), self._operand(node.high, _SUM)
            return [*self._operand(node.operand, _SUM), *no, self._word("BETWEEN"), *low, self._word("AND"), *high]
        name = self._bracketed([node.name])
        if isinstance(node, t.IsNull):
            return [*name, self._word("IS"), *no, self._word("NULL")]
        if isinstance(node, t.In):
            strings = self._joined([[_quoted(value)] for value in node.values], ",")
            return [*name, *no, self._word("IN"), "(", *strings, ")"]
        escape = [] if node.escape is None else [self._word("ESCAPE"), _quoted(node.escape)]
        return [*name, *no, self._word("LIKE"), _quoted(node.pattern), *escape]

    # --- values

    def _operand(self, node: Any, level: int) -> list[str]:
        own, pieces = self._value(node)
        return self._bracketed(pieces, own < level)

    def _value(self, node: Any) -> tuple[int, list[str]]:
        if isinstance(node, t.Arith):
            own = _SUM if str(node.op) in "+-" else _PRODUCT
            return own, [*self._operand(node.left, own), str(node.op), *self._operand(node.right, own + 1)]
        if isinstance(node, t.Negative):
            return _SIGNED, ["-", *self._operand(node.operand, _SIGNED)]
        return _SIGNED, [node.name] if isinstance(node, t.Name) else self._literal(node.value)

    def _literal(self, value: Any) -> list[str]:
        if isinstance(value, t.Time):
            text = format_instant(value.ms)
            return [self._word("TIMESTAMP"), _quoted(self._rng.choice((text, text[:-1] + "+00:00", text.lower())))]
        if isinstance(value, str):
            return [_quoted(value)]
        if isinstance(value, bool):
            return [self._word(str(value))]
        sign = ["-"] if value < 0 else self._rng.choice(([], [], [], ["+"]))
        return [*sign, self._int(abs(value)) if isinstance(value, int) else self._float(abs(value))]

    def _int(self, value: int) -> str:
        return self._rng.choice((str(value), str(value), f"{value}L", f"{value}l", hex(value), f"0X{value:X}l"))

    def _float(self, value: float) -> str:
        plain = repr(value)
        choices = [plain, plain.upper(), f"{plain}D", f"{plain}f", f"{value:.17E}"]
        if plain.endswith(".0"):
            choices += [plain[:-1], f"{plain[:-2]}d"]
        if plain.startswith("0."):
            choices.append(plain[1:])
        return self._rng.choice(choices)

    # --- names

    def _objects(self, oids: tuple[str, ...] | None) -> list[str]:
        return ["(", "*", ")"] if oids is None else ["(", *self._joined([[self._oid(oid)] for oid in oids], ","), ")"]

    def _oid(self, oid: str) -> str:
        return oid if oid == "mike" and self._rng.random() < 0.7 else _quoted(oid)

    def _zones(self, refs: tuple[t.ZoneRef, ...]) -> list[str]:
        return ["(", *self._joined([[self._zone(ref)] for ref in refs], ","), ")"]

    def _zone(self, ref: t.ZoneRef) -> str:
        if isinstance(ref, t.InlineZone):
            text = shape_to_wkt(ref.shape)
            return self._rng.choice((text, text.lower(), text.replace(",", " ,\n"), text.replace("(", "( ")))
        local = "*" if isinstance(ref, t.ZoneSet) else ref.local if isinstance(ref, t.NamedZone) else f"#{ref.tag}"
        text = f"{ref.owner}.{local}"
        needs_quotes = "@" in text or " " in text
        return _quoted(text) if needs_quotes or self._rng.random() < 0.3 else text

    # --- how it is written

    def _word(self, word: str) -> str:
        return self._rng.choice((word, word.upper(), word.lower(), word.title()))

    def _joined(self, parts: list[list[str]], word: str) -> list[str]:
        pieces = parts[0]
        for part in parts[1:]:
            pieces = [*pieces, self._word(word), *part]
        return pieces

    def _bracketed(self, pieces: list[str], needed: bool = False) -> list[str]:
        for _ in range(max(int(needed), self._rng.choice((0,) * 12 + (1, 2)))):
            pieces = ["(", *pieces, ")"]
        return pieces


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
