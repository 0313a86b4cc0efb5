"""Where the parser got stuck, and what could have stood there: what ``syntax_errors`` looks at."""

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
    """``tokens[at]`` does not fit; a token of ``accepts`` would have. Clauses begin at ``starts``."""

    tokens: Sequence[Token]
    starts: Sequence[int]
    at: int
    accepts: AbstractSet[str]

    @property
    def token(self) -> Token:
        """The token that does not fit."""
        return self.tokens[self.at]

    @property
    def before(self) -> Token | None:
        """The last one that did."""
        return self.tokens[self.at - 1] if self.at else None

    @property
    def is_on_a_new_line(self) -> bool:
        """Whether a line ends between the two."""
        return self.before is None or self.token.type == "$END" or self.token.line != self.before.end_line

    @cached_property
    def start(self) -> int:
        """Where the clause begins that the token breaks."""
        if self.before is None or self.before.type == "DOT":
            return self.at
        return max(n for n in self.starts if n < self.at)

    @property
    def directive(self) -> Token | None:
        """The directive that this clause is, None in a rule."""
        first = self.tokens[self.start]
        return first if first.type in DIRECTIVE_TYPES and self.start < self.at else None

    @cached_property
    def open(self) -> Token | None:
        """The innermost bracket that is open."""
        found: list[Token] = []
        for t in self.tokens[self.start : self.at]:
            if t.type in OPENS:
                found.append(t)
            elif found and t.type == OPENS[found[-1].type]:
                found.pop()
        return found[-1] if found else None

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """At the token, or behind the one before it where the token is on another line."""
        span = end(self.before) if self.before is not None and self.is_on_a_new_line else place(self.token)
        return Problem(message, span, hint)

    def opening(self, closing: Token) -> int:
        """The position of the bracket that ``closing``, the token before, closes."""
        depth, n = 0, self.at - 1
        while n > self.start:
            depth += (self.tokens[n].type == closing.type) - (OPENS.get(self.tokens[n].type) == closing.type)
            if depth == 0:
                break
            n -= 1
        return n

    def expected(self) -> str:
        """What could stand here, in words."""
        found = []
        if "BANG" in self.accepts:
            found.append("an atom or a condition")
        elif "WILDCARD" in self.accepts:
            found.append("a value")
        elif "DECL" in self.accepts:
            found.append("a rule, a fact or a directive")
        elif "NAME" in self.accepts:
            found.append("a name")
        elif "NUMBER" in self.accepts:
            found.append("a number")
        if "LPAR" in self.accepts and not self.accepts & {"WILDCARD", "INFIX"}:
            found.append("`(`")
        found += [
            f"`{SIGNS[t]}`" for t in SIGNS if t in self.accepts and t not in ("LPAR", "EQUAL") and t in self._wanted()
        ]
        if not found:
            found.append("a comparison" if "COMPARE" in self.accepts else "another sign")
        if "EQUAL" in self.accepts and "COMPARE" not in self.accepts:
            found.append("`=`")
        *most, last = found
        return f"{', '.join(most)} or {last}" if most else last

    def _wanted(self) -> AbstractSet[str]:
        """Signs worth a word: of closing ones that of the open bracket."""
        closing = {OPENS[self.open.type]} if self.open is not None else set()
        return (set(SIGNS) - set(OPENS.values()) - {"SEMICOLON"}) | closing

    def after(self) -> str:
        """Behind what the expected thing is missing."""
        if self.before is None:
            return ""
        if self.before.type == "RPAR" and self.directive is None:
            name = self.opening(self.before) - 1
            return " after the atom" if name >= self.start and self.tokens[name].type == "NAME" else " after `)`"
        return f" after `{self.before}`" if self.before.type != "DOT" else ""
