"""Test the Programs that texts resolve to, shown as Datalog, and the errors of texts that do not resolve."""

from __future__ import annotations

import pytest

from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve, resolve_text
from pyspark_paralagg.errors import ParalaggError
from pyspark_paralagg.program.text import show_rule


def rules(text: str) -> list[str]:
    program = resolve(parse(text))
    return [show_rule(r, program) for r in program.rules]


EDGE = ".decl edge(x: number, y: number)\n.input edge\n"

BECOMES = {
    "constants_and_repeated_variables_are_conditions": (
        "loop(x) :- edge(x, x). one(y) :- edge(1, y).",
        ["loop(x) :- edge_0(x, x_2), x = x_2", "one(y) :- edge_0(x, y), 1 = x"],
    ),
    "equations_define_what_no_atom_binds": (
        "p(x, z) :- edge(x, y), z = a + 1, a = y * 2.",
        ["p(x, y * 2 + 1) :- edge_0(x, y)"],
    ),
    "disjunctions_and_heads_are_multiplied_out": (
        "p(x), q(x) :- edge(x, _), (x < 3; x > 7).",
        [
            "p(x) :- edge_0(x, _), x < 3",
            "p(x) :- edge_0(x, _), x > 7",
            "q(x) :- edge_0(x, _), x < 3",
            "q(x) :- edge_0(x, _), x > 7",
        ],
    ),
    "a_negated_body_is_its_parts_negated": (
        "q(1). p(x) :- edge(x, y), !(q(x), y < 3).",
        ["p(x) :- edge_0(x, y), !q_1(x_2), x = x_2", "p(x) :- edge_0(x, y), y >= 3"],
    ),
    "an_aggregate_of_a_body_is_a_relation": (
        "p(x, n) :- edge(x, _), n = max v : { edge(x, v) }.",
        [
            "max@1(x, max v) :- edge_0(x, v)",
            "p(x, max@max@1) :- edge_0(x, _), max@1(x_2, max@max@1), x = x_2",
        ],
    ),
    "a_count_of_nothing_is_a_rule_of_its_own": (
        "p(x, n) :- edge(x, _), n = count : { edge(_, x) }.",
        [
            "count@1(x, count 1) :- edge_0(_, x)",
            "p(x, count@count@1) :- edge_0(x, _), count@1(x_2, count@count@1), x = x_2",
            "p(x, 0) :- edge_0(x, _), !count@1(x_2, _), x = x_2",
        ],
    ),
    "keys_that_an_aggregate_leaves_open_come_from_outside": (
        "p(x, n) :- edge(x, _), n = max v : { edge(_, v), v < x }.",
        [
            "keys@2(x) :- edge_0(x, _)",
            "max@1(x, max v) :- keys@2(x), edge_0(_, v), v < x",
            "p(x, max@max@1) :- edge_0(x, _), max@1(x_2, max@max@1), x = x_2",
        ],
    ),
    "a_rule_that_is_written_twice_adds_twice_beside_a_mean_too": (
        "m(x, $MEAN(y)) :- edge(x, y). n(x, $SUM(y)) :- edge(x, y). n(x, $SUM(y)) :- edge(x, y).",
        [
            "mean@m(x, sum cast(y as double), count 1) :- edge_0(x, y)",
            "m(c0, s1 / cast(n1 as double)) :- mean@m(c0, s1, n1)",
            "n(x, sum y) :- edge_0(x, y)",
            "n(x, sum y) :- edge_0(x, y)",
        ],
    ),
    "indexed_rules_are_initial_rows_and_step": (
        "r(0, x, 1.0) :- edge(x, _). r(i + 1, y, $SUM(v / 2)) :- r(i, x, v), edge(x, y).",
        ["r@0(x, 1.0) :- edge_0(x, _)", "r(y, sum v / 2.0) :- r(x, v), edge_0(x_2, y), x = x_2"],
    ),
    "a_level_that_is_used_elsewhere_stays_a_column": (
        "l(0, 1). l(i + 1, y) :- l(i, x), edge(x, y), i < 9.",
        ["l(i + 1, y) :- l(i, x), edge_0(x_2, y), x = x_2, i < 9"],
    ),
    "a_hidden_column_keeps_the_order": (
        "p(x, $MIN_BY(y, y * 2)) :- edge(x, y).",
        ["p(x, min_by[y@order] y, min y * 2) :- edge_0(x, y)"],
    ),
    "keys_come_first": ("p($MAX(y), x) :- edge(x, y).", ["p(x, max y) :- edge_0(x, y)"]),
    "numbers_meet_floats_as_floats": (
        "p(x, y / 2, y / 2.0) :- edge(x, y).",
        ["p(x, y div 2, cast(y as double) / 2.0) :- edge_0(x, y)"],
    ),
}


@pytest.mark.parametrize("case", BECOMES)
def test_a_text_resolves_to_these_rules(case: str) -> None:
    text, expected = BECOMES[case]
    assert rules(EDGE + text) == expected


def test_types_follow_from_inputs_facts_and_rules() -> None:
    text = "p(x, s) :- e(x, s). q(x, 0.5) :- p(x, _). q(1, 2). r(v, $SUM(x)) :- q(x, v)."
    resolved = resolve_text(parse(text), {"e": [("a", "int"), ("b", "string")]})
    types = {r.name: [c.type for c in r.columns] for r in resolved.program.relations}
    assert types == {"p": ["bigint", "string"], "q": ["bigint", "double"], "r": ["double", "bigint"]}
    assert resolved.names("p") == ("x", "s")


def test_a_limit_belongs_to_its_stratum() -> None:
    text = EDGE + "r(0, x, 1.0) :- edge(x, _). r(i + 1, y, $SUM(v)) :- r(i, x, v), edge(x, y). .limit r(iterations=7)"
    program = resolve(parse(text))
    assert program.limit(("r",)) == (7, "return", None)
    assert program.limit(("other",)) == (None, "error", None)


WRONG = [
    ("p(x) :- egde(x, _).", "PARALAGG_UNKNOWN_RELATION", 3, 9, "did you mean `edge`?"),
    ("p(x) :- edge(x).", "PARALAGG_DATALOG_ARITY", 3, 9, None),
    ("p(x). p(x, y) :- edge(x, y).", "PARALAGG_DATALOG_ARITY", 3, 1, None),
    ("p(x, z) :- edge(x, _).", "PARALAGG_DATALOG_UNBOUND", 3, 6, "add an atom with z"),
    ("p(x) :- edge(x, _), z < 3.", "PARALAGG_DATALOG_UNBOUND", 3, 21, "add an atom with z"),
    ("p(x) :- edge(x, _), !edge(y, x).", "PARALAGG_DATALOG_UNSAFE_NEGATION", 3, 27, "write `_`"),
    ('p(x) :- edge(x, y), y = "a".', "PARALAGG_DATALOG_TYPE", 3, 21, "to_number"),
    ('p(x, "a") :- edge(x, _). p(x, y) :- edge(x, y).', "PARALAGG_DATALOG_TYPE", 3, 31, ".decl"),
    ("p(cat(x, x)) :- edge(x, _).", "PARALAGG_DATALOG_TYPE", 3, 3, "to_string"),
    ("p(foo(x)) :- edge(x, _).", "PARALAGG_DATALOG_FUNCTOR", 3, 3, None),
    ("p(strlen(x, x)) :- edge(x, _).", "PARALAGG_DATALOG_ARITY", 3, 3, None),
    ("p(ord(x)) :- edge(x, _).", "PARALAGG_DATALOG_UNSUPPORTED", 3, 3, "compare symbols"),
    ("p(x, $MIM(y)) :- edge(x, y).", "PARALAGG_UNKNOWN_AGGREGATE", 3, 6, "did you mean `$MIN`?"),
    ("p(x, $MIN(y, x)) :- edge(x, y).", "PARALAGG_DATALOG_ARITY", 3, 6, None),
    ("p(x, $MIN(y)) :- edge(x, y). p(x, $MAX(y)) :- edge(x, y).", "PARALAGG_DATALOG_AGGREGATE", 3, 35, "same"),
    ('p(x, $SUM(y)) :- edge(x, _), y = "a".', "PARALAGG_DATALOG_TYPE", 3, 6, "to_float"),
    ('p(x, $MSUM("a", y)) :- edge(x, y).', "PARALAGG_DATALOG_TYPE", 3, 6, "to_float"),
    ("p(x, $GCD(1.5)) :- edge(x, _).", "PARALAGG_DATALOG_TYPE", 3, 6, "to_number"),
    ('p(x, $BITOR("a")) :- edge(x, _).', "PARALAGG_DATALOG_TYPE", 3, 6, "to_number"),
    ('p(x, $H_INDEX("a", x, y)) :- edge(x, y).', "PARALAGG_DATALOG_TYPE", 3, 6, "to_number"),
    ("p(x, $H_INDEX(x, 1.5, y)) :- edge(x, y).", "PARALAGG_DATALOG_TYPE", 3, 6, "to_number"),
    (".decl p(x: numbr)", "PARALAGG_DATALOG_TYPE", 3, 9, "did you mean 'number'?"),
    (".decl edge(x: number)", "PARALAGG_DATALOG_DECLARED_TWICE", 3, 1, None),
    ("edge(1, 2.5).", "PARALAGG_BAD_FACT", 3, 9, None),
    (".output q", "PARALAGG_UNKNOWN_RELATION", 3, 1, None),
    ("p(x) :- p(x).", "PARALAGG_DATALOG_TYPE", 3, 1, ".decl p(x: number)"),
    (".assume v >= 0\np(x) :- edge(x, _).", "PARALAGG_ASSUME_COLUMN", 3, 9, "edge.x, edge.y"),
    ("p(x) :- edge(x, y), !p(y).", "PARALAGG_NOT_STRATIFIED", 3, 22, "do not read the result"),
    ("p(x, y) :- edge(x, y). p(y, n) :- edge(_, y), n = sum v : { p(y, v) }.",
     "PARALAGG_NOT_STRATIFIED", 3, 51, "$SUM"),
    ("p(x, $MEAN(y)) :- edge(x, y). p(y, v) :- p(x, v), edge(x, y).", "PARALAGG_NOT_LINEAR", 3, 6, "divide"),
    ("r(0, x, 1) :- edge(x, _). r(i + 1, x, $SUM(v)) :- r(i, x, v). p(i) :- r(i, _, _).",
     "PARALAGG_DATALOG_INDEX", 3, 71, "occurs nowhere else"),
    ("p(x, i) :- edge(x, _), i = range(x).", "PARALAGG_DATALOG_ARITY", 3, 28, "use range(a, b, step)"),
    ("p(1). p(x) :- q(x). q(x) :- p(x).\n.limitsize p(n=5)", "PARALAGG_DATALOG_UNSUPPORTED", 4, 1, "take some rows"),
    (".limit p(tolerance=0.1) p(x) :- edge(x, _).", "PARALAGG_BAD_OPTION", 3, 1, "remove the tolerance"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line", "column", "hint"), WRONG)
def test_an_error_has_a_code_and_a_place(text: str, code: str, line: int, column: int, hint: str | None) -> None:
    with pytest.raises(ParalaggError) as caught:
        resolve(parse(EDGE + text))
    problem = caught.value
    assert (problem.code, problem.place) == (code, f"line {line}, column {column}")
    assert problem.excerpt is not None
    assert problem.excerpt.splitlines()[1].index("^") == column + 1
    assert hint is None or hint in (problem.hint or "")
