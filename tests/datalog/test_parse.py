"""Test the syntax trees of every form of a Datalog text."""

from __future__ import annotations

import pytest

from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.parse.syntax import (
    Apply,
    Assume,
    Atom,
    Attribute,
    BodyAggregate,
    Cast,
    Comparison,
    Conjunction,
    Constraint,
    Declaration,
    Directive,
    Disjunction,
    Functor,
    HeadAggregate,
    Limit,
    Negation,
    Number,
    Plan,
    Rule,
    Span,
    String,
    TypeAlias,
    Variable,
    Wildcard,
)

X, Y, Z = Variable("x"), Variable("y"), Variable("z")
Q, R, S = Atom("q", (X,)), Atom("r", (X,)), Atom("s", (X,))
ONE, TWO, THREE = Number(1), Number(2), Number(3)


def clause(text: str) -> object:
    (only,) = parse(text).clauses
    return only


def rule(text: str) -> Rule:
    result = clause(text)
    assert isinstance(result, Rule)
    return result


def body(text: str) -> object:
    return rule(f"p(x) :- {text}.").body


def term(text: str) -> object:
    comparison = body(f"z = {text}")
    assert isinstance(comparison, Comparison)
    return comparison.right


# --- clauses ---------------------------------------------------------------------------------------------------------


def test_empty_text_has_no_clauses() -> None:
    assert parse("").clauses == ()
    assert parse("\ufeff // a byte order mark and a comment\n").clauses == ()


def test_fact() -> None:
    assert clause('p(1, "x").') == Rule((Atom("p", (ONE, String("x"))),))


def test_relation_without_columns() -> None:
    assert clause("p() :- q().") == Rule((Atom("p", ()),), Atom("q", ()))


@pytest.mark.parametrize("arrow", [":-", "<-"])
def test_rule_with_either_arrow(arrow: str) -> None:
    assert clause(f"p(x) {arrow} q(x), r(x).") == Rule((Atom("p", (X,)),), Conjunction((Q, R)))


def test_less_than_minus_is_an_arrow_after_a_head_only() -> None:
    assert body("q(x), x<-1") == Conjunction((Q, Comparison("<", X, Number(-1))))
    assert rule("p(x, $ANY(x<-1)) <- q(x).").heads[0].args[1] == HeadAggregate("ANY", (Comparison("<", X, Number(-1)),))


def test_several_heads() -> None:
    assert clause("p(x), q(x) :- r(x).") == Rule((Atom("p", (X,)), Q), R)


def test_rule_keeps_its_text_and_places() -> None:
    text = parse("// comment\n  p(x) :-\n  q(x). r(1).\n", name="a.dl")
    first, second = text.clauses
    assert isinstance(first, Rule)
    assert isinstance(second, Rule)
    assert first.text == "p(x) :-\n  q(x)."
    assert first.span == Span(2, 3, 3, 8)
    assert first.body is not None
    assert first.body.span == Span(3, 3, 3, 7)
    assert second.text == "r(1)."
    assert (text.name, text.source[:10]) == ("a.dl", "// comment")


def test_equality_ignores_spans() -> None:
    assert parse("p(x):-q(x).").clauses == parse("\n\np( x ) :- q( x ) .").clauses


def test_plan_after_a_rule() -> None:
    assert rule("p(x) :- q(x), r(x).\n.plan 0:(2,1), 1:(1,2)").plan == Plan(((0, (2, 1)), (1, (1, 2))))


def test_comments_are_allowed_anywhere() -> None:
    text = "/* a * / \n b */ p(x) /* c */ :- // d :- .\n q(x) /**/ . /// e"
    assert parse(text).clauses == parse("p(x) :- q(x).").clauses


# --- bodies ----------------------------------------------------------------------------------------------------------


def test_and_binds_tighter_than_or() -> None:
    assert body("q(x), r(x); s(x)") == Disjunction((Conjunction((Q, R)), S))
    assert body("q(x), (r(x); s(x))") == Conjunction((Q, Disjunction((R, S))))


def test_negation_of_an_atom_of_a_group_and_of_a_comparison() -> None:
    assert body("!q(x)") == Negation(Q)
    assert body("!(q(x), r(x); s(x))") == Negation(Disjunction((Conjunction((Q, R)), S)))
    assert body("!x = 1") == Negation(Comparison("=", X, ONE))


def test_double_negation() -> None:
    assert body("!!q(x)") == Q
    assert body("!(!q(x))") == Q
    assert body("!!!q(x)") == Negation(Q)


@pytest.mark.parametrize("sign", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons(sign: str) -> None:
    assert body(f"x {sign} 1") == Comparison(sign, X, ONE)  # type: ignore[arg-type]


def test_constraints() -> None:
    assert body('match("a.*", x), contains("a", x), true, false') == Conjunction(
        (
            Constraint("match", (String("a.*"), X)),
            Constraint("contains", (String("a"), X)),
            Constraint("true"),
            Constraint("false"),
        )
    )


def test_call_is_an_atom_as_a_condition_and_a_functor_as_a_value() -> None:
    assert body("cat(x, y), cat(x, y) = z") == Conjunction(
        (
            Atom("cat", (X, Y)),
            Comparison("=", Apply("cat", (X, Y)), Z),
        )
    )


def test_wildcards() -> None:
    assert body("q(_, x)") == Atom("q", (Wildcard(), X))


@pytest.mark.parametrize("name", ["?x", "_x", "__", "x?1", "größe", "X9_"])
def test_names_of_variables(name: str) -> None:
    assert body(f"q({name})") == Atom("q", (Variable(name),))


# --- terms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", Number(7)),
        ("007", Number(7)),
        ("0x1F", Number(31)),
        ("0b101", Number(5)),
        ("7u", Number(7, is_unsigned=True)),
        ("0x1fu", Number(31, is_unsigned=True)),
        ("0.5", Number(0.5)),
        ("1e3", Number(1000.0)),
        ("1.5e-3", Number(0.0015)),
        ("-7", Number(-7)),
        ("-9223372036854775808", Number(-9223372036854775808)),
        ("18446744073709551615", Number(18446744073709551615)),
    ],
)
def test_numbers(text: str, value: Number) -> None:
    result = term(text)
    assert result == value
    assert repr(result) == repr(value)  # 1 == 1.0 in Python


def test_number_before_the_dot_of_a_rule() -> None:
    assert parse("p(x) :- x = 1.q(2).").clauses == parse("p(x) :- x = 1. q(2).").clauses
    assert body("x = 1.5") == Comparison("=", X, Number(1.5))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'""', ""),
        (r'"a\tb\n"', "a\tb\n"),
        (r'"\"\\\'"', "\"\\'"),
        (r'"\a\b\f\r\v"', "\a\b\f\r\v"),
        ('"// no comment, /* nor here */ ü"', "// no comment, /* nor here */ ü"),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert term(text) == String(value)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("1 * 2 / 3 % 4", "((1 * 2) / 3) % 4"),
        ("2 ^ 3 ^ 2", "2 ^ (3 ^ 2)"),
        ("-x ^ 2", "-(x ^ 2)"),
        ("-2 ^ 2", "-(2 ^ 2)"),
        ("2 ^ -1 * 3", "(2 ^ (-1)) * 3"),
        ("-x * y", "(-x) * y"),
        ("bnot x band y", "(bnot x) band y"),
        ("1 + 2 bshl 3", "(1 + 2) bshl 3"),
        ("1 bshl 2 bshr 3 bshru 4", "((1 bshl 2) bshr 3) bshru 4"),
        ("1 bor 2 bxor 3 band 4", "1 bor (2 bxor (3 band 4))"),
        ("x lor y lxor z land 1 bor 2", "x lor (y lxor (z land (1 bor 2)))"),
        ("lnot x land y", "(lnot x) land y"),
        ("x-1", "x - 1"),
        ("(x)-1", "x - 1"),
        ("x - -1", "x - (-1)"),
    ],
)
def test_levels_of_operators(text: str, same: str) -> None:
    assert term(text) == term(same)


def test_operators_are_applied_to_operands() -> None:
    assert term("x + 1") == Apply("+", (X, ONE))
    assert term("-x") == Apply("neg", (X,))
    assert term("-(7)") == Apply("neg", (Number(7),))
    assert term("bnot x") == Apply("bnot", (X,))
    assert term("x land y") == Apply("land", (X, Y))


def test_functors_and_casts() -> None:
    assert term('substr(cat("a", x), 0, strlen(y))') == Apply(
        "substr", (Apply("cat", (String("a"), X)), Number(0), Apply("strlen", (Y,)))
    )
    assert term("max(x, y, 1)") == Apply("max", (X, Y, ONE))
    assert term("range(1, 3)") == Apply("range", (ONE, THREE))
    assert term("as(x + 1, Node)") == Cast(Apply("+", (X, ONE)), "Node")


def test_functors_of_the_user() -> None:
    assert term("@f(x, 1) + 1") == Apply("+", (Apply("@f", (X, ONE)), ONE))
    assert term("-@f(@g(x))") == Apply("neg", (Apply("@f", (Apply("@g", (X,)),)),))
    parameters = (Attribute("x", "symbol"), Attribute("", "number"))
    assert clause(".functor f(x: symbol, number): float") == Functor("f", parameters, Attribute("", "float"))


def test_aggregates_in_bodies() -> None:
    assert term("count : { q(x) }") == BodyAggregate("count", None, Q)
    assert term("count : q(x)") == BodyAggregate("count", None, Q)
    assert term("sum x * 2 : { q(x), r(x); s(x) }") == BodyAggregate(
        "sum", Apply("*", (X, TWO)), Disjunction((Conjunction((Q, R)), S))
    )
    assert term("min x : q(x) + 1") == Apply("+", (BodyAggregate("min", X, Q), ONE))
    assert term("mean (x) : q(x)") == BodyAggregate("mean", X, Q)
    assert body("2 * max x : { q(x) } < x") == Comparison("<", Apply("*", (TWO, BodyAggregate("max", X, Q))), X)


def test_comma_makes_min_and_max_functors() -> None:
    assert term("max(x, y) + 1") == Apply("+", (Apply("max", (X, Y)), ONE))
    assert term("max (x + y) : { q(x) }") == BodyAggregate("max", Apply("+", (X, Y)), Q)
    assert term("max max(x, y) : { q(x) }") == BodyAggregate("max", Apply("max", (X, Y)), Q)
    assert term("max (f(x, y)) : { q(x) }") == BodyAggregate("max", Apply("f", (X, Y)), Q)


# --- aggregates in heads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$MIN(x + y)", HeadAggregate("MIN", (Apply("+", (X, Y)),))),
        ("$min(x)", HeadAggregate("MIN", (X,))),
        ("$COUNT", HeadAggregate("COUNT", ())),
        ("$COUNT()", HeadAggregate("COUNT", ())),
        ("$MSUM(x, y)", HeadAggregate("MSUM", (X, Y))),
        ("$Min_By(x, y)", HeadAggregate("MIN_BY", (X, Y))),
        ("$ANY(x < 5)", HeadAggregate("ANY", (Comparison("<", X, Number(5)),))),
        ("$ANY((x < 5))", HeadAggregate("ANY", (Comparison("<", X, Number(5)),))),
        ("$WIDEST(x)", HeadAggregate("WIDEST", (X,))),
    ],
)
def test_aggregates_in_heads(text: str, value: HeadAggregate) -> None:
    assert rule(f"p(z, {text}) :- q(x).").heads[0].args == (Z, value)


# --- directives ------------------------------------------------------------------------------------------------------


def test_a_declaration_of_several_names_is_one_for_each() -> None:
    attributes = (Attribute("x", "number"), Attribute("y", "Node"))
    assert parse(".decl a, b(x: number, y: Node) inline no_magic").clauses == (
        Declaration("a", attributes, ("inline", "no_magic")),
        Declaration("b", attributes, ("inline", "no_magic")),
    )
    assert clause(".decl a()") == Declaration("a", ())


def test_old_qualifiers_of_a_declaration_are_directives() -> None:
    assert parse(".decl a(x: number) output brie input").clauses == (
        Declaration("a", (Attribute("x", "number"),), ("brie",)),
        Directive("output", "a"),
        Directive("input", "a"),
    )


def test_keywords_are_names_where_only_names_are_allowed() -> None:
    assert parse('.decl a(count: number, as: symbol, band: float)\n.input a(sum="x", true=min)').clauses == (
        Declaration("a", (Attribute("count", "number"), Attribute("as", "symbol"), Attribute("band", "float"))),
        Directive("input", "a", (("sum", "x"), ("true", "min"))),
    )


def test_qualifiers_are_names_elsewhere() -> None:
    assert parse(".decl a(x: number)\ninput(x) :- magic(x).").clauses[1] == Rule(
        (Atom("input", (X,)),), Atom("magic", (X,))
    )


@pytest.mark.parametrize(
    ("text", "types"),
    [
        (".type N <: number", ("number",)),
        (".type N = number", ("number",)),
        (".type N = A | B | C", ("A", "B", "C")),
        (".number_type N", ("number",)),
        (".symbol_type N", ("symbol",)),
        (".type N", ("symbol",)),
    ],
)
def test_types(text: str, types: tuple[str, ...]) -> None:
    assert clause(text) == TypeAlias("N", types)


@pytest.mark.parametrize("kind", ["input", "output", "printsize", "limitsize"])
def test_directives(kind: str) -> None:
    directive = Directive(kind, "a")  # type: ignore[arg-type]
    assert clause(f".{kind} a") == directive
    assert clause(f".{kind} a()") == directive


def test_directive_of_several_relations() -> None:
    parameters = (("filename", "e.csv"), ("delimiter", "\t"), ("headers", "true"), ("n", "-3"))
    text = '.input a, b(filename="e.csv", delimiter="\\t", headers=true, n=-3)'
    assert parse(text).clauses == (Directive("input", "a", parameters), Directive("input", "b", parameters))


def test_directives_end_where_the_next_clause_begins() -> None:
    text = ".input a\np(1).\n.type N <: number q(2). .output p r(3)."
    assert [type(c).__name__ for c in parse(text).clauses] == [
        "Directive", "Rule", "TypeAlias", "Rule", "Directive", "Rule",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("(iterations=20)", Limit("rank", 20)),
        ("(tolerance=0.001)", Limit("rank", None, 0.001)),
        ("(iterations=20, tolerance=1)", Limit("rank", 20, 1.0)),
        (" {sum[Δrank] < 0.001}", Limit("rank", None, 0.001)),
        (" {sum[∆rank] < 0.001}", Limit("rank", None, 0.001)),
        (" {sum[Δ] < 1e-3}", Limit("rank", None, 0.001)),
        (" {sum[delta] <= 0.001}", Limit("rank", None, 0.001)),
        (" {sum[delta rank] < 0.001}", Limit("rank", None, 0.001)),
        (" {sum[delta_rank] < 0.001}", Limit("rank", None, 0.001)),
    ],
)
def test_limits(text: str, limit: Limit) -> None:
    assert clause(f".limit rank{text}") == limit


def test_assumptions() -> None:
    assert clause(".assume w >= 0") == Assume("w", ">=", 0)
    assert clause(".assume edge.w > -0.5") == Assume("w", ">", -0.5, "edge")
    assert parse(".assume w >= 0, w < 10").clauses == (Assume("w", ">=", 0), Assume("w", "<", 10))


def test_long_text_parses_in_time_linear_in_its_length() -> None:
    line = "path(x, y, $MIN(l + w)) :- path(x, z, l), edge(z, y, w), !bad(x, _), x + 1 < y * 2.\n"
    assert len(parse(line * 2000).clauses) == 2000


def test_deep_and_long_terms() -> None:
    assert len(parse(f"p(x) :- q({'f(' * 90}x{')' * 90}).").clauses) == 1
    assert len(parse(f"p(x) :- q({' + '.join('x' * 200)}).").clauses) == 1
