"""Define the signs and words of the language with their token types, and those of other languages with hints."""

from __future__ import annotations

SIGNS = {
    ":-": "ARROW", "<-": "ARROW", "<:": "SUBTYPE", "=": "EQUAL", "!": "BANG", ".": "DOT", ",": "COMMA",
    ";": "SEMICOLON", ":": "COLON", "|": "VBAR",
    "(": "LPAR", ")": "RPAR", "{": "LBRACE", "}": "RBRACE", "[": "LSQB", "]": "RSQB",
    **dict.fromkeys(("<", "<=", ">", ">=", "!="), "COMPARE"), **dict.fromkeys("+-*/%^", "INFIX"),
}  # fmt: skip
CLOSES = {"RPAR": "LPAR", "RBRACE": "LBRACE", "RSQB": "LSQB"}
WORDS = {
    **dict.fromkeys(("count", "sum", "min", "max", "mean"), "AGGREGATE"), "true": "TRUTH", "false": "TRUTH",
    **dict.fromkeys(("band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor"), "INFIX"),
    "bnot": "PREFIX", "lnot": "PREFIX", "_": "WILDCARD", "nil": "NIL",
}  # fmt: skip
REFUSED_WORDS = {
    "recursive_iteration_cnt": "counter", "debug_delta": "debug_delta",
    "__FILE__": "preprocessor", "__LINE__": "preprocessor", "__INCL__": "preprocessor",
}  # fmt: skip
DIRECTIVES = {
    ".decl": "DECL", ".type": "TYPE", ".number_type": "TYPE", ".symbol_type": "TYPE", ".limit": "LIMIT",
    ".assume": "ASSUME", ".plan": "PLAN", ".pragma": "PRAGMA",
    ".comp": "COMP", ".init": "INIT", ".override": "OVERRIDE", ".functor": "FUNCTOR",
    **dict.fromkeys((".input", ".output", ".printsize", ".limitsize"), "DIRECTIVE"),
}  # fmt: skip
REFUSED_DIRECTIVES = {
    ".include": "include", ".once": "include", ".lattice": "lattice",
}  # fmt: skip
REFUSED_SIGNS = {"$": "counter", "@@": "aggregator", "@[": "annotation", "@!": "annotation"}
QUALIFIERS = (
    "inline", "no_inline", "magic", "no_magic", "brie", "btree", "btree_delete", "overridable", "eqrel",
    "input", "output", "printsize",
)  # fmt: skip
FOREIGN = {
    "==": "write one `=` for equality", "=>": "write `>=` to compare, or put the head of a rule first: `head :- body.`",
    "=<": "write `<=`", "<>": "write `!=`", "->": "put the head of a rule first: `head :- body.`",
    ":=": "write `=` for equality, `:-` between a rule's head and its body", "&&": "write `,` between conditions",
    "&": "write `,` between conditions, `band` between numbers", "||": "write `;` between conditions",
    "**": "write `^`", "\\+": "write `!` for negation", "~": "write `!` for negation, `bnot` for that of bits",
    "'": 'write text in double quotes: "..."', "\\": "use a backslash only in strings",
    "@": "write `@f(x)` to call the functor f",
    "∧": "write `,` between conditions", "¬": "write `!` for negation",
    "∨": "write `;` between conditions",  # noqa: RUF001 - it is that sign
    "≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`", "←": "write `:-`",
}  # fmt: skip
