"""Selector text to tree.

The grammar is that of JMS 2.0 message selectors with the spatial terms of this system. It does not tell conditions
from values: `(a)` can be either until something follows. So one grammar of expressions stays LALR(1), and
`matcher.selector.builder` tells the two apart. The parser does not recurse, and the builder counts the depth, so no
text can exhaust the stack.

Where JMS leaves a choice, or this language differs:

- A selector is never empty; `TRUE` selects everything. Names are ASCII (`$` is no part of them).
- Numbers that begin with 0 are refused instead of being read as octal. `57L`, `0x1F`, `7.`, `.5`, `7E3`, `5F`, `5D` are
  Java's literals. A minus before a number belongs to the number.
- To order strings or booleans, or to compute with what is no number, is refused where it can be seen. `oid`, `lpid`
  are strings, `ts` a time, `unc` a number, `loc` a place that only spatial terms and IS NULL can speak of.
- Not reserved: `*` and `#tag` behind an owner's dot, and CIRCLE, POLYGON, MULTIPOLYGON, which are shapes only before a
  parenthesis. The reserved words are `matcher.selector.words.KEYWORDS`.
"""

from functools import cache, lru_cache
from typing import Protocol, cast

import lark
from lark import Lark, Token

from matcher.errors import SelectorInvalid, SelectorTooLong
from matcher.selector.builder import MAX_DEPTH, MAX_TERMS, Builder, Part, as_condition
from matcher.selector.expected import unexpected
from matcher.selector.filters import check_filters
from matcher.selector.tokens import tokenize
from matcher.selector.tree import Selector

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_TERMS", "parse_selector"]

MAX_BYTES = 8192

_GRAMMAR = """
?start: disjunction

?disjunction: conjunction
    | conjunction (_OR conjunction)+                            -> any_of
?conjunction: negation
    | negation (_AND negation)+                                 -> all_of
?negation: test
    | NOT negation                                              -> negated

?test: sum
    | sum COMPARE sum                                           -> compared
    | sum [NOT] _BETWEEN sum _AND sum                           -> between
    | sum [NOT] _IN _LPAR STRING (_COMMA STRING)* _RPAR         -> among
    | sum [NOT] _LIKE STRING [_ESCAPE STRING]                   -> like
    | sum _IS [NOT] _NULL                                       -> null
    | sum RELATION zones                                        -> attribute_related
    | oids _WITHIN zones                                        -> within
    | oids RELATION zones                                       -> related
    | oids _DISTANCE _LPAR metres _COMMA others _RPAR           -> distance

?sum: product
    | sum PLUS product                                          -> arith
    | sum MINUS product                                         -> arith
?product: signed
    | product STAR signed                                       -> arith
    | product SLASH signed                                      -> arith
?signed: value
    | MINUS signed                                              -> negative
    | PLUS signed                                               -> positive
?value: NAME                                                    -> name
    | STRING                                                    -> string
    | INT                                                       -> exact
    | FLOAT                                                     -> approximate
    | TRUE                                                      -> true
    | FALSE                                                     -> false
    | _TIMESTAMP STRING                                         -> timestamp
    | _LPAR disjunction _RPAR                                   -> group

oids: _OIDS others _RPAR
others: STAR | oid (_COMMA oid)*
oid: NAME | STRING
zones: _LPAR zone (_COMMA zone)* _RPAR
zone: ZONE | STRING | SHAPE
metres: INT | FLOAT

%declare _OR _AND NOT COMPARE _BETWEEN _IN _LIKE _ESCAPE _IS _NULL RELATION _WITHIN _DISTANCE
%declare PLUS MINUS STAR SLASH _LPAR _RPAR _COMMA _OIDS
%declare NAME STRING INT FLOAT TRUE FALSE _TIMESTAMP ZONE SHAPE
"""


@lru_cache(maxsize=1024)
def parse_selector(text: str) -> Selector:
    """The tree of a selector; what is wrong with one is said by a `SelectorError`."""
    _check_length(text)
    selector = as_condition(_parse(text))
    check_filters(selector)
    return selector


def _parse(text: str) -> Part:
    tokens = tokenize(text)
    parser = cast("_Parser", _parser().parse_interactive())
    for index, token in enumerate(tokens):
        try:
            parser.feed_token(token)
        except lark.UnexpectedToken:
            raise unexpected(text, tokens, index, parser.accepts()) from None
    try:
        return parser.feed_eof()
    except lark.UnexpectedToken:
        raise unexpected(text, tokens, len(tokens), parser.accepts()) from None


class _Parser(Protocol):
    """Lark's interactive parser, with the types it leaves out."""

    def feed_token(self, token: Token) -> object: ...
    def feed_eof(self) -> Part: ...
    def accepts(self) -> set[str]: ...


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="basic", transformer=Builder())


def _check_length(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as fault:
        raise SelectorInvalid(
            f"The character at column {fault.start + 1} is half of a surrogate pair.",
            hint="Send the text as UTF-8.",
            column=fault.start + 1,
        ) from None
    if size > MAX_BYTES:
        raise SelectorTooLong(
            f"The selector has {size} bytes; {MAX_BYTES} are allowed.",
            hint="Name zones by tag (OWNER.#tag), or use several subscriptions.",
            column=len(text.encode()[:MAX_BYTES].decode(errors="ignore")) + 1,
        )
