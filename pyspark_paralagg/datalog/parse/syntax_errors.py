"""A token that does not fit -> what is wrong, in the words of somebody who writes programs.

The frequent mistakes are recognised one by one, in the order of ``_MISTAKES``; for all others the message says what
could have stood there. A message's place is the place to write at: the end of a rule that lacks its dot, not the
start of the next one.
"""

from __future__ import annotations

import difflib

from pyspark_paralagg.datalog.parse.problems import Problem, place, refused
from pyspark_paralagg.datalog.parse.stuck import DIRECTIVE_TYPES, OPENS, SIGNS, Stuck
from pyspark_paralagg.datalog.parse.words import QUALIFIERS

_WORDS = ("AGGREGATE", "INFIX", "PREFIX", "TRUTH", "AS")


def explain(where: Stuck) -> Problem:
    """What is wrong."""
    for mistake in _MISTAKES:
        problem = mistake(where)
        if problem is not None:
            return problem
    if "DECL" in where.accepts and "DOT" not in where.accepts:
        return Problem(f"expected {where.expected()}, not `{where.token}`", place(where.token))
    after = where.after()
    hint = "`,` goes on with the conditions, `.` ends the rule" if after == " after the atom" else None
    return where.problem(f"expected {where.expected()}{after}", hint)


def _word_of_the_language(p: Stuck) -> Problem | None:
    word = p.token if p.token.type in _WORDS and str(p.token)[0].isalpha() and "NAME" in p.accepts else None
    is_before = p.before is not None and p.before.type in _WORDS and str(p.before)[0].isalpha()
    if word is None and is_before and p.token.type in ("COMMA", "RPAR", "EQUAL", "COMPARE", "DOT", "INFIX", "ARROW"):
        word = p.before
    if word is None:
        return None
    return Problem(
        f"`{word}` is a word of the language, not a name", place(word), f"take another name, such as `{word}_`"
    )


def _not(p: Stuck) -> Problem | None:
    if p.before is not None and p.before == "not" and p.token.type in ("NAME", "LPAR"):
        return Problem("`not` has no meaning here", place(p.before), f"negation is `!`: `!{p.token}...`")
    return None


def _query(p: Stuck) -> Problem | None:
    if (p.token.type == "ARROW" and p.at == p.start) or (p.before is not None and p.before == "?"):
        at = p.token if p.token.type == "ARROW" else p.before
        message = "there are no queries: a rule has a head before `:-`"
        return Problem(message, place(at or p.token), "name the result: `result(x) :- ...`, and `.output result`")
    return None


def _qualifier(p: Stuck) -> Problem | None:
    """``.decl r(x: number) inlin``: the word was taken for the head of a rule."""
    word, before = p.before, p.tokens[p.at - 2] if p.at > 1 else None
    if word is None or before is None or word.type != "NAME" or before.type not in ("RPAR", "QUALIFIER"):
        return None
    starts = [n for n in p.starts if n < p.at - 1]
    if p.start != p.at - 1 or p.tokens[starts[-1]].type != "DECL" or word.line != before.end_line:
        return None
    close = difflib.get_close_matches(str(word), QUALIFIERS, n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"there are {', '.join(QUALIFIERS)}"
    return Problem(f"unknown qualifier `{word}`", place(word), hint)


def _dot_of_a_directive(p: Stuck) -> Problem | None:
    if p.token.type == "DOT" and p.directive is not None and p.open is None and p.before is not p.directive:
        return Problem(f"`{p.directive}` has no `.` at its end", place(p.token), "take the `.` away")
    return None


def _type_missing(p: Stuck) -> Problem | None:
    is_attribute = p.directive is not None and p.directive.type == "DECL" and "COLON" in p.accepts
    if is_attribute and p.token.type in ("COMMA", "RPAR"):
        return p.problem(
            f"the attribute `{p.before}` has no type", f"write `{p.before}: number` (or unsigned, float, symbol)"
        )
    return None


def _name_starts_with_a_letter(p: Stuck) -> Problem | None:
    if p.token.type == "LPAR" and p.before is not None and p.before.type in ("WILDCARD", "STRING", "NUMBER"):
        return Problem(f"a relation's name starts with a letter: `{p.before}`", place(p.before))
    if p.at == p.start and p.token.type in ("WILDCARD", "STRING", "NUMBER", "DOLLAR_NAME"):
        return Problem(f"a relation's name starts with a letter: `{p.token}`", place(p.token))
    return None


def _closes_nothing(p: Stuck) -> Problem | None:
    if p.token.type in OPENS.values() and p.open is None:
        return Problem(f"`{p.token}` closes nothing", place(p.token), "take it away, or open a bracket before")
    return None


def _bracket_missing(p: Stuck) -> Problem | None:
    if p.open is None:
        return None
    missing = OPENS[p.open.type]
    is_next_clause = p.is_on_a_new_line and (p.token.type in DIRECTIVE_TYPES or p.token.type == "$END" or _is_a_head(p))
    is_the_end = p.token.type in ("DOT", "ARROW", *OPENS.values()) and p.token.type != missing
    if missing in p.accepts and (is_next_clause or is_the_end):
        since = f"`{p.open}` is open since line {p.open.line}, column {p.open.column}"
        return p.problem(f"`{SIGNS[missing]}` is missing: {since}", f"write `{SIGNS[missing]}` here or before")
    return None


def _is_a_head(p: Stuck) -> bool:
    """Whether a name looks like the start of a rule: no further right than this one's, or `:-` comes before a dot."""
    if p.token.type != "NAME":
        return False
    if (p.token.column or 0) <= (p.tokens[p.start].column or 0):
        return True
    return next((t.type for t in p.tokens[p.at :] if t.type in ("DOT", "ARROW")), "") == "ARROW"


def _dot_missing(p: Stuck) -> Problem | None:
    if p.directive is not None or not p.is_on_a_new_line or "DOT" not in p.accepts or p.before is None:
        return None
    if p.token.type in DIRECTIVE_TYPES or p.token.type == "$END" or _is_a_head(p):
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
            "this rule has no `.` at its end: `,` goes on with its body", place(comma), "write `.` in place of `,`"
        )
    return Problem("a second `:-` in one rule", place(p.token), "end the rule before with `.`")


def _subsumption(p: Stuck) -> Problem | None:
    is_head = "ARROW" in p.accepts and p.before is not None and p.before.type == "RPAR"
    return refused("subsumption", place(p.token)) if is_head and str(p.token) == "<=" else None


def _chained(p: Stuck) -> Problem | None:
    if p.token.type not in ("COMPARE", "EQUAL") or p.before is None or "COMMA" not in p.accepts:
        return None
    for t in reversed(p.tokens[p.start : p.at]):
        if t.type in ("COMPARE", "EQUAL"):
            return p.problem("comparisons do not chain", f"write two: `a {t} b, b {p.token} c`")
        if t.type in ("COMMA", "SEMICOLON", "ARROW", "LBRACE"):
            break
    return None


def _aggregate_without_body(p: Stuck) -> Problem | None:
    if "COLON" not in p.accepts or p.directive is not None:
        return None
    word = next((t for t in reversed(p.tokens[p.start : p.at]) if t.type == "AGGREGATE"), None)
    if word is None:
        return None
    hint = f"an aggregate is written `{word} x : {{ ... }}`" if word != "count" else "write `count : { ... }`"
    if word in ("min", "max"):
        hint += f"; the functor takes two values: `{word}(a, b)`"
    return Problem(f"`{word}` has no body", place(word), hint)


def _text_without_quotes(p: Stuck) -> Problem | None:
    """``filename=edges.csv``."""
    is_value = p.directive is not None and p.directive.type == "DIRECTIVE" and p.tokens[p.at - 2].type == "EQUAL"
    if not is_value or p.before is None or p.token.line != p.before.line or p.token.type in ("COMMA", "RPAR"):
        return None
    return p.problem(f"expected {p.expected()}{p.after()}", f'text stands in double quotes: {p.tokens[p.at - 3]}="..."')


def _nothing_there(p: Stuck) -> Problem | None:
    if p.before is None or p.token.type not in ("DOT", "COMMA", "SEMICOLON", "$END", *OPENS.values()):
        return None
    if p.before.type == "ARROW":
        return p.problem("the rule's body is empty", "a fact is written without `:-`: `p(1).`")
    if p.before.type in ("COMMA", "SEMICOLON") and p.token.type != "COMMA" and "NAME" in p.accepts:
        return p.problem(f"expected {p.expected()} after `{p.before}`", f"or take the `{p.before}` away")
    return None


_MISTAKES = (
    _not,
    _query,
    _word_of_the_language,
    _qualifier,
    _dot_of_a_directive,
    _type_missing,
    _name_starts_with_a_letter,
    _closes_nothing,
    _second_arrow,
    _aggregate_without_body,
    _text_without_quotes,
    _nothing_there,
    _bracket_missing,
    _dot_missing,
    _subsumption,
    _chained,
)
