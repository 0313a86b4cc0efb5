"""Explain an unexpected token in terms of the Datalog language.

``_MISTAKES`` lists a function for each frequent mistake, in the order in which they apply. For every other mistake
the message lists what the parser accepts there. A problem's place is where to edit the text: the end of a rule that
lacks its dot, not the start of the next rule.
"""

from __future__ import annotations

import difflib

from pyspark_paralagg.datalog.parse.problems import Problem, place
from pyspark_paralagg.datalog.parse.stuck import DIRECTIVE_TYPES, OPENS, SIGNS, Stuck
from pyspark_paralagg.datalog.parse.words import QUALIFIERS

_WORDS = ("AGGREGATE", "INFIX", "PREFIX", "TRUTH", "AS")


def explain(p: Stuck) -> Problem:
    """Return the problem at the parser's state ``p``."""
    for mistake in _MISTAKES:
        problem = mistake(p)
        if problem is not None:
            return problem
    if "DECL" in p.accepts and "DOT" not in p.accepts:
        return Problem(f"expected {p.expected()}, not `{p.token}`", place(p.token))
    after = p.after()
    hint = "write `,` to add a condition, `.` to end the rule" if after == " after the atom" else None
    return p.problem(f"expected {p.expected()}{after}", hint)


def _reserved_word(p: Stuck) -> Problem | None:
    word = p.token if p.token.type in _WORDS and str(p.token)[0].isalpha() and "NAME" in p.accepts else None
    is_before = p.before is not None and p.before.type in _WORDS and str(p.before)[0].isalpha()
    if word is None and is_before and p.token.type in ("COMMA", "RPAR", "EQUAL", "COMPARE", "DOT", "INFIX", "ARROW"):
        word = p.before
    if word is None:
        return None
    return Problem(f"`{word}` is a keyword, not a name", place(word), f"use another name, such as `{word}_`")


def _not_keyword(p: Stuck) -> Problem | None:
    if p.before is not None and p.before == "not" and p.token.type in ("NAME", "LPAR"):
        return Problem("`not` has no meaning here", place(p.before), f"write `!` for negation: `!{p.token}...`")
    return None


def _query(p: Stuck) -> Problem | None:
    if (p.token.type == "ARROW" and p.at == p.start) or (p.before is not None and p.before == "?"):
        token = p.token if p.token.type == "ARROW" else p.before
        message = "queries are not supported: a rule has a head before `:-`"
        return Problem(message, place(token or p.token), "name the result: `result(x) :- ...`, and `.output result`")
    return None


def _qualifier(p: Stuck) -> Problem | None:
    """Explain an unknown qualifier, ``.decl r(x: number) inlin``, which the parser reads as the head of a rule."""
    word, before = p.before, p.tokens[p.at - 2] if p.at > 1 else None
    if word is None or before is None or word.type != "NAME" or before.type not in ("RPAR", "QUALIFIER"):
        return None
    starts = [n for n in p.starts if n < p.at - 1]
    if p.start != p.at - 1 or p.tokens[starts[-1]].type != "DECL" or word.line != before.end_line:
        return None
    close = difflib.get_close_matches(str(word), QUALIFIERS, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"use one of {', '.join(QUALIFIERS)}"
    return Problem(f"unknown qualifier `{word}`", place(word), hint)


def _dot_after_directive(p: Stuck) -> Problem | None:
    if p.token.type == "DOT" and p.directive is not None and p.open is None and p.before is not p.directive:
        return Problem(f"`{p.directive}` has no `.` at its end", place(p.token), "remove the `.`")
    return None


def _missing_type(p: Stuck) -> Problem | None:
    is_attribute = p.directive is not None and p.directive.type == "DECL" and "COLON" in p.accepts
    if is_attribute and p.token.type in ("COMMA", "RPAR"):
        return p.problem(
            f"the attribute `{p.before}` has no type", f"write `{p.before}: number` (or unsigned, float, symbol)"
        )
    return None


def _invalid_relation_name(p: Stuck) -> Problem | None:
    if p.token.type == "LPAR" and p.before is not None and p.before.type in ("WILDCARD", "STRING", "NUMBER"):
        return Problem(f"a relation name starts with a letter: `{p.before}`", place(p.before))
    if p.at == p.start and p.token.type in ("WILDCARD", "STRING", "NUMBER", "DOLLAR_NAME"):
        return Problem(f"a relation name starts with a letter: `{p.token}`", place(p.token))
    return None


def _unmatched_closing(p: Stuck) -> Problem | None:
    if p.token.type in OPENS.values() and p.open is None:
        return Problem(f"`{p.token}` closes no bracket", place(p.token), "remove it, or open a bracket before it")
    return None


def _missing_bracket(p: Stuck) -> Problem | None:
    if p.open is None:
        return None
    missing = OPENS[p.open.type]
    is_next_clause = p.is_on_a_new_line and (p.token.type in DIRECTIVE_TYPES or p.token.type == "$END" or _is_head(p))
    is_clause_end = p.token.type in ("DOT", "ARROW", *OPENS.values()) and p.token.type != missing
    if missing in p.accepts and (is_next_clause or is_clause_end):
        since = f"`{p.open}` is open from line {p.open.line}, column {p.open.column}"
        return p.problem(f"`{SIGNS[missing]}` is missing: {since}", f"write `{SIGNS[missing]}` here or earlier")
    return None


def _is_head(p: Stuck) -> bool:
    """Return whether a name looks like the start of a rule.

    It does if it is no further right than the current rule's start, or if `:-` follows before a dot.
    """
    if p.token.type != "NAME":
        return False
    if (p.token.column or 0) <= (p.tokens[p.start].column or 0):
        return True
    return next((t.type for t in p.tokens[p.at :] if t.type in ("DOT", "ARROW")), "") == "ARROW"


def _missing_dot(p: Stuck) -> Problem | None:
    if p.directive is not None or not p.is_on_a_new_line or "DOT" not in p.accepts or p.before is None:
        return None
    if p.token.type in DIRECTIVE_TYPES or p.token.type == "$END" or _is_head(p):
        what = "rule" if any(t.type == "ARROW" for t in p.tokens[p.start : p.at]) else "fact"
        return p.problem(f"this {what} has no `.` at its end", "write `.` here")
    return None


def _second_arrow(p: Stuck) -> Problem | None:
    arrows = [t for t in p.tokens[p.start : p.at] if t.type == "ARROW"]
    if p.token.type != "ARROW" or not arrows:
        return None
    name = p.opening(p.before) - 1 if p.before is not None and p.before.type == "RPAR" else p.at
    comma = p.tokens[name - 1]
    if comma.type == "COMMA" and comma.line != p.tokens[name].line:
        return Problem(
            "this rule has no `.` at its end: `,` continues its body", place(comma), "write `.` instead of `,`"
        )
    return Problem("a rule has two `:-`", place(p.token), "end the first rule with `.`")


def _chained_comparison(p: Stuck) -> Problem | None:
    if p.token.type not in ("COMPARE", "EQUAL") or p.before is None or "COMMA" not in p.accepts:
        return None
    for t in reversed(p.tokens[p.start : p.at]):
        if t.type in ("COMPARE", "EQUAL"):
            return p.problem("comparisons do not chain", f"write two comparisons: `a {t} b, b {p.token} c`")
        if t.type in ("COMMA", "SEMICOLON", "ARROW", "LBRACE"):
            break
    return None


def _aggregate_without_body(p: Stuck) -> Problem | None:
    if "COLON" not in p.accepts or p.directive is not None:
        return None
    word = next((t for t in reversed(p.tokens[p.start : p.at]) if t.type == "AGGREGATE"), None)
    if word is None:
        return None
    hint = f"write `{word} x : {{ ... }}`" if word != "count" else "write `count : { ... }`"
    if word in ("min", "max"):
        hint += f"; as a functor it takes two values: `{word}(a, b)`"
    return Problem(f"`{word}` has no body", place(word), hint)


def _text_without_quotes(p: Stuck) -> Problem | None:
    """Explain a parameter's text without quotes: ``filename=edges.csv``."""
    is_value = p.directive is not None and p.directive.type == "DIRECTIVE" and p.tokens[p.at - 2].type == "EQUAL"
    if not is_value or p.before is None or p.token.line != p.before.line or p.token.type in ("COMMA", "RPAR"):
        return None
    return p.problem(f"expected {p.expected()}{p.after()}", f'write text in double quotes: {p.tokens[p.at - 3]}="..."')


def _missing_part(p: Stuck) -> Problem | None:
    if p.before is None or p.token.type not in ("DOT", "COMMA", "SEMICOLON", "$END", *OPENS.values()):
        return None
    if p.before.type == "ARROW":
        return p.problem("the rule's body is empty", "write a fact without `:-`: `p(1).`")
    if p.before.type in ("COMMA", "SEMICOLON") and p.token.type != "COMMA" and "NAME" in p.accepts:
        return p.problem(f"expected {p.expected()} after `{p.before}`", f"add it, or remove the `{p.before}`")
    return None


_MISTAKES = (
    _not_keyword,
    _query,
    _reserved_word,
    _qualifier,
    _dot_after_directive,
    _missing_type,
    _invalid_relation_name,
    _unmatched_closing,
    _second_arrow,
    _aggregate_without_body,
    _text_without_quotes,
    _missing_part,
    _missing_bracket,
    _missing_dot,
    _chained_comparison,
)
