"""Split a text into the tokens of grammar.lark; drop comments and white space.

The tokenizer is written by hand because some words depend on their context. `-` after an operand is binary. `<-` is a
rule's arrow only after its head. `max(a, b)` is a functor, `max x : ...` an aggregate. Words such as `count` are plain
names between the parentheses of a directive. A sign that no program can contain is a ``Problem``. The tokens before it
are returned with it, so that the parser reports earlier problems first.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from lark import Token

from pyspark_paralagg.datalog.parse.problems import Problem, refused
from pyspark_paralagg.datalog.parse.syntax import Span
from pyspark_paralagg.datalog.parse.words import (
    CLOSES,
    DIRECTIVES,
    FOREIGN,
    QUALIFIERS,
    REFUSED_DIRECTIVES,
    REFUSED_SIGNS,
    REFUSED_WORDS,
    SIGNS,
    WORDS,
)

_TOKEN = re.compile(
    r"""
      (?P<SPACE> (?: [\s\ufeff]+ | //[^\n]* | /\*.*?\*/ )+ )
    | (?P<NUMBER> 0[xX][0-9a-fA-F]+u? | 0[bB][01]+u?
        | [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ | [0-9]+u? )
    | (?P<NAME> (?:[^\W\d]|[?∆]) [\w?∆]* )
    | (?P<STRING> "(?:\\.|[^"\\\n])*" )
    | (?P<DOLLAR_NAME> \$(?:[^\W\d]|\?)[\w?]*(?:\.(?:[^\W\d]|\?)[\w?]*)* )
    | (?P<FUNCTOR_NAME> @(?:[^\W\d]|\?)[\w?]* )
    | (?P<DIRECTIVE> \.[^\W\d]\w* )
    | (?P<FOREIGN> == | => | =< | <> | -> | := | && | \|\| | \*\* | \\\+ | [&~'\\] )
    | (?P<SIGN> :- | <- | <: | <= | >= | != | /\* | @@ | @\[ | @! | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUALIFIED = re.compile(r"(?:\.(?:[^\W\d]|\?)[\w?]*)+")
_WORD = re.compile(r"[\w?.]*[\w?]")
_ADDRESS = re.compile(r"\d+(\.\d+){3}")

_ENDS_OPERAND = frozenset(
    ("NAME", "WILDCARD", "NUMBER", "STRING", "TRUTH", "RPAR", "RBRACE", "RSQB", "NIL", "DOLLAR_NAME")
)
_CONTINUES_DIRECTIVE = frozenset(("COMMA", "EQUAL", "SUBTYPE", "VBAR", "COLON", "LT", "CHOICE", *DIRECTIVES.values()))
_BEFORE_A_RELATION = frozenset(
    (
        "DOT",
        "ARROW",
        "COMMA",
        "SEMICOLON",
        "LPAR",
        "LBRACE",
        "BANG",
        "COLON",
        "SUBTYPE",
        "VBAR",
        "LT",
        "RBRACE",
        "NAME",
        "QUALIFIER",
        "GT",
        "RPAR",
        "STRING",
        *DIRECTIVES.values(),
    )
)
_QUALIFIED_AFTER_EQUAL = ("TYPE", "INIT")
_MAX_DEPTH = 100  # open brackets; later passes recurse over them


class Tokens(NamedTuple):
    """The tokens of a text, up to its first problem if there is one. Clauses begin at ``starts``."""

    tokens: list[Token]
    starts: list[int]
    problem: Problem | None


def tokenize(source: str) -> Tokens:
    """Return the tokens of ``source``."""
    tokenizer = _Tokenizer(source)
    try:
        tokenizer.run()
    except Problem as problem:
        return Tokens(tokenizer.tokens, tokenizer.starts, problem)
    return Tokens(tokenizer.tokens, tokenizer.starts, None)


class _Tokenizer:
    def __init__(self, source: str) -> None:
        self.tokens: list[Token] = []
        self.starts: list[int] = []
        self._source = source
        self._position = 0
        self._line = 1
        self._line_start = 0
        self._open: list[int] = []  # positions of the open brackets in tokens
        self._directive = ""  # the type of the current clause's directive, "" in a rule
        self._has_arrow = False
        self._components = 0  # the number of open component bodies

    def run(self) -> None:
        source, size = self._source, len(self._source)
        while self._position < size:
            match = _TOKEN.match(source, self._position)
            if match is None or match.lastgroup is None:  # unreachable: the last alternative matches anything
                raise AssertionError(self._position)
            kind, text = match.lastgroup, match.group()
            if kind == "SPACE":
                self._position += len(text)
                newlines = text.count("\n")
                if newlines:
                    self._line += newlines
                    self._line_start = self._position - len(text) + text.rindex("\n") + 1
            elif kind == "NAME":
                self._add_word(text)
            elif kind == "SIGN":
                self._add_sign(text)
            elif kind == "NUMBER":
                self._add_number(text)
            elif kind == "DIRECTIVE":
                self._add_directive(text)
            elif kind == "FOREIGN":
                raise self._foreign_sign(text)
            else:
                self._add(kind, text)

    @property
    def _previous(self) -> str:
        return self.tokens[-1].type if self.tokens else "DOT"

    def _span(self, text: str) -> Span:
        column = self._position - self._line_start + 1
        return Span(self._line, column, self._line, column + len(text))

    def _add(self, kind: str, text: str) -> None:
        if self._previous == "DOT":
            self.starts.append(len(self.tokens))
        start, column = self._position, self._position - self._line_start + 1
        self._position = start + len(text)
        self.tokens.append(Token(kind, text, start, self._line, column, self._line, column + len(text), self._position))

    def _add_word(self, text: str) -> None:
        is_in_brackets = bool(self._open) and self._directive not in ("", "PLAN")
        if self._directive and not self._open and self._previous not in _CONTINUES_DIRECTIVE:
            if self._directive == "DECL" and self._add_qualifier(text):
                return
            if self._directive == "FUNCTOR" and text == "stateful" and not self._follows("(", len(text)):
                raise refused("stateful", self._span(text), text)
            self._directive = ""  # a name that does not continue the directive begins a rule
            self.starts.append(len(self.tokens))
        rest = _QUALIFIED.match(self._source, self._position + len(text))
        if rest and (
            self._previous in _BEFORE_A_RELATION
            or (self._directive in _QUALIFIED_AFTER_EQUAL and self._previous == "EQUAL")
        ):
            text += rest.group()
            self._add("QUALIFIED" if self._directive == "ASSUME" else "NAME", text)
        elif is_in_brackets:
            self._add("NAME", text)
        elif text in REFUSED_WORDS:
            raise refused(REFUSED_WORDS[text], self._span(text), text)
        elif text == "as" and self._follows("(", len(text)):
            self._add("AS", text)
        else:
            self._add(WORDS.get(text, "NAME"), text)

    def _add_qualifier(self, text: str) -> bool:
        if text == "choice" and self._source.startswith("-domain", self._position + len(text)):
            self._add("CHOICE", "choice-domain")
            return True
        if self._follows("(", len(text)):  # the head of a rule
            return False
        if text in QUALIFIERS:
            self._add("QUALIFIER", text)
        return text in QUALIFIERS

    def _follows(self, sign: str, offset: int) -> bool:
        return self._source[self._position + offset :].lstrip()[:1] == sign

    def _add_sign(self, text: str) -> None:
        if text == "<-" and not self._is_after_a_head():
            text = "<"
        if text not in SIGNS:
            raise self._unknown_sign(text)
        kind = "SUBSUMES" if text == "<=" and self._is_after_a_head() else SIGNS[text]
        if self._add_component_sign(text):
            return
        if text == "-" and self._previous not in _ENDS_OPERAND:
            kind = "PREFIX"
        elif kind == "DOT":
            self._directive, self._has_arrow = "", False
        elif kind == "ARROW":
            self._has_arrow = True
        elif kind == "COMMA":
            self._make_functor()
        elif kind in CLOSES.values():
            self._open_bracket(text)
        elif kind in CLOSES and self._open and self.tokens[self._open[-1]].type == CLOSES[kind]:
            self._open.pop()
        self._add(kind, text)

    def _is_after_a_head(self) -> bool:
        return self._previous == "RPAR" and not (self._open or self._has_arrow)

    def _add_component_sign(self, text: str) -> bool:
        """Add the braces of a component's body, and the angle brackets of its parameters."""
        if self._directive in ("COMP", "INIT") and text in "<>":
            self._add("LT" if text == "<" else "GT", text)
        elif self._directive == "COMP" and text == "{":
            self._components += 1
            self._directive = ""
            self._add("LBRACE", text)
        elif text == "}" and self._components and not self._open:
            self._components -= 1
            self._directive, self._has_arrow = "", False
            self._add("RBRACE", text)
        else:
            return False
        return True

    def _open_bracket(self, text: str) -> None:
        if len(self._open) == _MAX_DEPTH:
            message = f"more than {_MAX_DEPTH} brackets are open here"
            raise Problem(message, self._span(text), "split the rule")
        self._open.append(len(self.tokens))

    def _make_functor(self) -> None:
        """Retype `min` or `max` as a functor if its parentheses have a comma: an aggregate has one value."""
        if self._open and self._open[-1] > 0 and self.tokens[self._open[-1]].type == "LPAR":
            word = self.tokens[self._open[-1] - 1]
            if word.type == "AGGREGATE" and word.value in ("min", "max"):
                word.type = "NAME"

    def _add_number(self, text: str) -> None:
        after = self._source[self._position + len(text) : self._position + len(text) + 2]
        if not (after[:1].isalnum() or after[:1] in ("_", "?") or (after[:1] == "." and after[1:].isdigit())):
            self._add("NUMBER", text)
            return
        match = _WORD.match(self._source, self._position)
        word = match.group() if match else text
        if self._follows("(", len(word)):
            raise Problem(f"a relation name starts with a letter: `{word}`", self._span(word), f"use `r{word}`")
        if _ADDRESS.fullmatch(word):
            self._add("NUMBER", word)
            return
        raise Problem(f"`{word}` is neither a number nor a name", self._span(word), "start a name with a letter")

    def _add_directive(self, text: str) -> None:
        after = self._source[self._position + len(text) : self._position + len(text) + 1]
        before = self._source[self._line_start : self._position].strip()
        is_first = not before or self._previous in ("DOT", "LBRACE", "RBRACE")
        if text in DIRECTIVES and (is_first or not after.strip()):
            self._directive, self._has_arrow = DIRECTIVES[text], False
            self._open.clear()
            self.starts.append(len(self.tokens))
            self._add(self._directive, text)
        elif text in REFUSED_DIRECTIVES and (is_first or not after.strip()):
            raise refused(REFUSED_DIRECTIVES[text], self._span(text), text)
        elif is_first:
            close = difflib.get_close_matches(text.lower(), DIRECTIVES, n=1)
            hint = f"did you mean `{close[0]}`?" if close else f"use one of {', '.join(DIRECTIVES)}"
            raise Problem(f"unknown directive `{text}`", self._span(text), hint)
        else:
            self._add_sign(".")

    def _foreign_sign(self, text: str) -> Problem:
        if text == "<>" and self._directive == "DECL":
            return refused("lattice", self._span(text))
        return Problem(f"`{text}` has no meaning here", self._span(text), FOREIGN[text])

    def _unknown_sign(self, text: str) -> Problem:
        line = self._source[self._position :].partition("\n")[0]
        if text in REFUSED_SIGNS:
            return refused(REFUSED_SIGNS[text], self._span(text))
        if text == '"':
            return Problem(
                "unclosed string", self._span(line), 'end it with `"` on the same line; write `\\"` for a quote in it'
            )
        if text == "/*":
            return Problem("unclosed comment", self._span(text), "end it with `*/`")
        if text == "#" and re.match(r"#\s*(\d|define|include|if|el|en|un|line|pragma|error|warning)", line):
            return refused("preprocessor", self._span(line.rstrip()))
        hint = "start a comment with `//`" if text == "#" else FOREIGN.get(text)
        return Problem(f"`{text}` has no meaning here", self._span(text), hint)
