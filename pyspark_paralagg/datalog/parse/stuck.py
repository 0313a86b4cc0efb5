"""Describe the state of the parser at an unexpected token; ``syntax_errors`` explains it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.problems import Problem, end, place
from pyspark_paralagg.datalog.parse.words import DIRECTIVES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from lark import Token

OPENS = {"LPAR": "RPAR", "LBRACE": "RBRACE", "LSQB": "RSQB"}
SIGNS = {
    "COMMA": ",", "DOT": ".", "SEMICOLON": ";", "COLON": ":", "VBAR": "|", "EQUAL": "=", "ARROW": ":-", "SUBTYPE": "<:",
    "LPAR": "(", "RPAR": ")", "LBRACE": "{", "RBRACE": "}", "LSQB": "[", "RSQB": "]",
}  # fmt: skip
DIRECTIVE_TYPES = frozenset(DIRECTIVES.values())


@dataclass(frozen=True)
class Stuck:
    """The parser's state at the unexpected token ``tokens[at]``.

    ``accepts`` has the token types that the parser accepts there. Clauses begin at ``starts``.
    """

    tokens: Sequence[Token]
    starts: Sequence[int]
    at: int
    accepts: AbstractSet[str]

    @property
    def token(self) -> Token:
        """The unexpected token."""
        return self.tokens[self.at]

    @property
    def before(self) -> Token | None:
        """The token before the unexpected one."""
        return self.tokens[self.at - 1] if self.at else None

    @property
    def is_on_a_new_line(self) -> bool:
        """True if a line ends between ``before`` and ``token``."""
        return self.before is None or self.token.type == "$END" or self.token.line != self.before.end_line

    @cached_property
    def start(self) -> int:
        """The position at which the current clause begins."""
        if self.before is None or self.before.type == "DOT":
            return self.at
        return max(n for n in self.starts if n < self.at)

    @property
    def directive(self) -> Token | None:
        """The directive of the current clause; None in a rule."""
        first = self.tokens[self.start]
        return first if first.type in DIRECTIVE_TYPES and self.start < self.at else None

    @cached_property
    def open(self) -> Token | None:
        """The innermost open bracket."""
        brackets: list[Token] = []
        for token in self.tokens[self.start : self.at]:
            if token.type in OPENS:
                brackets.append(token)
            elif brackets and token.type == OPENS[brackets[-1].type]:
                brackets.pop()
        return brackets[-1] if brackets else None

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """Return a problem at the token, or after the previous one if the token is on another line."""
        span = end(self.before) if self.before is not None and self.is_on_a_new_line else place(self.token)
        return Problem(message, span, hint)

    def opening(self, closing: Token) -> int:
        """Return the position of the bracket that the previous token, ``closing``, closes."""
        depth, position = 0, self.at - 1
        while position > self.start:
            type_ = self.tokens[position].type
            depth += (type_ == closing.type) - (OPENS.get(type_) == closing.type)
            if depth == 0:
                break
            position -= 1
        return position

    def expected(self) -> str:
        """Describe the accepted tokens in words."""
        phrases = []
        if "BANG" in self.accepts:
            phrases.append("an atom or a condition")
        elif "WILDCARD" in self.accepts:
            phrases.append("a value")
        elif "DECL" in self.accepts:
            phrases.append("a rule, a fact or a directive")
        elif "NAME" in self.accepts:
            phrases.append("a name")
        elif "NUMBER" in self.accepts:
            phrases.append("a number")
        if "LPAR" in self.accepts and not self.accepts & {"WILDCARD", "INFIX"}:
            phrases.append("`(`")
        suggested = self.accepts & self._suggested_types() - {"LPAR", "EQUAL"}
        if "WILDCARD" in self.accepts:
            suggested -= {"LSQB"}  # a record is one of the values
        phrases += [f"`{sign}`" for type_, sign in SIGNS.items() if type_ in suggested]
        if not phrases:
            phrases.append("a comparison" if "COMPARE" in self.accepts else "another sign")
        if "EQUAL" in self.accepts and "COMPARE" not in self.accepts:
            phrases.append("`=`")
        *others, last = phrases
        return f"{', '.join(others)} or {last}" if others else last

    def _suggested_types(self) -> AbstractSet[str]:
        """Return the types of signs to suggest; of the closing brackets only that of the open one."""
        closing = {OPENS[self.open.type]} if self.open is not None else set()
        return (set(SIGNS) - set(OPENS.values()) - {"SEMICOLON"}) | closing

    def after(self) -> str:
        """Describe the position of the missing token: after which token it belongs."""
        if self.before is None:
            return ""
        if self.before.type == "RPAR" and self.directive is None:
            name = self.opening(self.before) - 1
            return " after the atom" if name >= self.start and self.tokens[name].type == "NAME" else " after `)`"
        return f" after `{self.before}`" if self.before.type != "DOT" else ""
