"""Test that parsing the canonical text of a tree gives the tree, for written texts and for random trees."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.parse.show import show
from pyspark_paralagg.datalog.parse.words import QUALIFIERS, REFUSED_WORDS, WORDS

TEXTS = {
    "p(x,$min(a+b*2),$COUNT())<-q(x,a,b).": "p(x, $MIN(a + b * 2), $COUNT) :- q(x, a, b).",
    "p(x):-(q(x),r(x));!(s(x);t(x)).": "p(x) :- q(x), r(x); !(s(x); t(x)).",
    "p(x):-(q(x);r(x)),x!=0x10.": "p(x) :- (q(x); r(x)), x != 16.",
    "p(x):-x=((1+2)*3)-(4-5).": "p(x) :- x = (1 + 2) * 3 - (4 - 5).",
    "p(x):-x=(-2)^2+(2^3)^(-x).": "p(x) :- x = (-2) ^ 2 + (2 ^ 3) ^ (-x).",
    "p(x):-x=-(7)-(-7)-bnot 7.": "p(x) :- x = -(7) - -7 - bnot 7.",
    'p("a\\"\\n") .': 'p("a\\"\\n").',
    "p(n):-n=sum x:{q(x)}+count:{q(_),r(_)}.": "p(n) :- n = sum x : q(x) + count : { q(_), r(_) }.",
    "p(x):-q(x),r(x). .plan 0:(2,1)": "p(x) :- q(x), r(x). .plan 0:(2, 1)",
    ".decl a,b(x:number)inline": ".decl a(x: number) inline\n.decl b(x: number) inline",
    "p(x,a)<=p(x,b):-a<b.": "p(x, a) <= p(x, b) :- a < b.",
    ".decl p(x:number,y:number)brie choice-domain x,(x,y)": (
        ".decl p(x: number, y: number) brie choice-domain x, (x, y)"
    ),
    ".type N=number .type U=A|B": ".type N <: number\n.type U = A | B",
    ".input a(headers=true)": '.input a(headers="true")',
    ".limit r {sum[Δr]<0.001}": ".limit r(tolerance=0.001)",
    ".assume e.w>-1": ".assume e.w > -1",
    '.pragma "a" "b" .pragma "c"': '.pragma "a" "b"\n.pragma "c"',
    ".comp A<T>:B<T>,C{.decl p(x:T) .override q p(1).}": (
        ".comp A<T> : B<T>, C {\n.decl p(x: T)\n.override q\np(1).\n}"
    ),
    ".init a=A<x.T,U> a.p(x):-a.b.q(x).": ".init a = A<x.T, U>\na.p(x) :- a.b.q(x).",
    ".functor f(x:symbol,number):unsigned p(@f(x,1)+@f(y,2)):-q(x,y).": (
        ".functor f(x: symbol, number): unsigned\np(@f(x, 1) + @f(y, 2)) :- q(x, y)."
    ),
    ".type L=[h:number,t:L]": ".type L = [h: number, t: L]",
    ".type E=A{}|B{l:E,r:E}": ".type E = A {} | B {l: E, r: E}",
    "p([x,nil],[]):-q([_,[x,y]]),x=$Add($Leaf(y),$End).": (
        "p([x, nil], []) :- q([_, [x, y]]), x = $Add($Leaf(y), $End)."
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_canonical_text(text: str) -> None:
    assert show(parse(text)) == f"{TEXTS[text]}\n"
    assert parse(show(parse(text))).clauses == parse(text).clauses


# --- random trees ----------------------------------------------------------------------------------------------------

_RESERVED = {*WORDS, *REFUSED_WORDS, *QUALIFIERS, "as", "match", "contains", "not", "choice"}


def is_free(name: str) -> bool:
    return name[0] not in "09" and name not in _RESERVED


def is_positive(condition: object) -> bool:
    return not isinstance(condition, syntax.Negation)


def exact_form(clause: object) -> str:
    """Return a form that includes the types of numbers (1 == 1.0 in Python) but not the clause's text."""
    return repr(clause).split(", text=")[0]


names = st.text("abxyzAZ_?09ü", min_size=1, max_size=4).filter(is_free)
numbers = st.one_of(
    st.builds(syntax.Number, st.integers(-(2**63), 2**64 - 1)),
    st.builds(syntax.Number, st.integers(0, 2**64 - 1), st.just(value=True)),
    st.builds(syntax.Number, st.floats(allow_nan=False, allow_infinity=False)),
)
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
leaves: Any = st.one_of(
    st.builds(syntax.Variable, names), st.just(syntax.Wildcard()), numbers, st.builds(syntax.String, texts)
)
infix = st.sampled_from([
    "+", "-", "*", "/", "%", "^", "band", "bor", "bxor", "bshl", "bshr", "bshru", "land", "lor", "lxor",
])  # fmt: skip


def several(part: Any, min_size: int = 0) -> Any:  # noqa: ANN401 - strategies of any kind of node
    return st.lists(part, min_size=min_size, max_size=3).map(tuple)


def all_conditions() -> Any:  # noqa: ANN401
    return conditions


def compound_terms(inner: Any) -> Any:  # noqa: ANN401
    bodies = st.deferred(all_conditions)
    return st.one_of(
        st.builds(syntax.Apply, infix, st.tuples(inner, inner)),
        st.builds(syntax.Apply, st.sampled_from(["neg", "bnot", "lnot"]), st.tuples(inner)),
        st.builds(syntax.Apply, names, several(inner)),
        st.builds(syntax.Apply, st.sampled_from(["min", "max"]), several(inner, 2)),
        st.builds(syntax.Cast, inner, names),
        st.builds(syntax.BodyAggregate, st.sampled_from(["sum", "min", "max", "mean"]), inner, bodies),
        st.builds(syntax.BodyAggregate, st.just("count"), st.none(), bodies),
    )


terms = st.recursive(leaves, compound_terms, max_leaves=6)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
comparisons = st.builds(syntax.Comparison, signs, terms, terms)
atoms = st.builds(syntax.Atom, names, several(terms))
simple = st.one_of(
    atoms,
    comparisons,
    st.builds(syntax.Constraint, st.sampled_from(["match", "contains"]), several(terms, 1)),
    st.builds(syntax.Constraint, st.sampled_from(["true", "false"])),
)


def compound_conditions(inner: Any) -> Any:  # noqa: ANN401
    return st.one_of(
        st.builds(syntax.Conjunction, several(inner, 2)),
        st.builds(syntax.Disjunction, several(inner, 2)),
        st.builds(syntax.Negation, inner.filter(is_positive)),
    )


conditions: Any = st.recursive(simple, compound_conditions, max_leaves=5)
aggregates = st.builds(
    syntax.HeadAggregate, st.text(string.ascii_uppercase, min_size=1, max_size=4), several(terms | comparisons)
)
heads = st.builds(syntax.Atom, names, several(terms | aggregates))
whole = st.integers(0, 9)


def planned_rules(count: int) -> Any:  # noqa: ANN401
    """A rule whose plan orders its atoms, of which there are ``count``, at least two."""
    bodies = st.lists(atoms, min_size=count, max_size=count).map(lambda parts: syntax.Conjunction(tuple(parts)))
    orders = st.tuples(st.integers(0, count - 1), st.permutations(range(1, count + 1)).map(tuple))
    return st.builds(syntax.Rule, several(heads, 1), bodies, st.builds(syntax.Plan, several(orders, 1)))


attributes = several(st.builds(syntax.Attribute, names, names))
small = st.floats(0, 1e300) | st.integers(0, 99).map(float)
clauses: Any = st.one_of(
    st.builds(syntax.Rule, several(heads, 1), conditions),
    st.integers(2, 3).flatmap(planned_rules),
    st.builds(syntax.Rule, several(atoms, 1)),
    st.builds(
        syntax.Declaration,
        names,
        attributes,
        several(st.sampled_from(QUALIFIERS[:8])),
        several(several(names, 1)),
    ),
    st.builds(syntax.Subsumption, atoms, atoms, conditions),
    st.builds(syntax.TypeAlias, names, several(names, 1)),
    st.builds(
        syntax.Directive,
        st.sampled_from(["input", "output", "printsize", "limitsize"]),
        names,
        several(st.tuples(names, texts)),
    ),
    st.builds(syntax.Limit, names, whole, st.none() | small),
    st.builds(syntax.Limit, names, st.none(), small),
    st.builds(
        syntax.Assume, names, st.sampled_from(["<", "<=", ">", ">="]), st.integers(-9, 9) | small, st.none() | names
    ),
)


@settings(max_examples=100, deadline=None)
@given(several(clauses))
def test_parsing_the_text_of_any_tree_gives_the_tree(tree: tuple[syntax.Clause, ...]) -> None:
    parsed = parse(show(syntax.Text(tree))).clauses
    assert parsed == tree
    assert [exact_form(c) for c in parsed] == [exact_form(c) for c in tree]
