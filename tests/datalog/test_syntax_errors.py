"""Test the code, place, message and hint of each syntax error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.errors import DatalogError

SYNTAX, UNSUPPORTED = "PARALAGG_DATALOG_SYNTAX", "PARALAGG_DATALOG_UNSUPPORTED"


def problem(text: str) -> DatalogError:
    with pytest.raises(DatalogError) as caught:
        parse(text)
    return caught.value


def place(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def test_error_shows_the_line_with_a_mark() -> None:
    with pytest.raises(DatalogError) as caught:
        parse('p(1).\n\tp(x) :- q(x, "a\\d").\n', name="rules.dl")
    assert str(caught.value) == (
        "PARALAGG_DATALOG_SYNTAX: unknown escape `\\d` in a string (in rules.dl, line 2, column 17)\n"
        '   p(x) :- q(x, "a\\d").\n'
        "                  ^^\n"
        "Hint: write `\\\\` for a backslash"
    )


def test_the_first_problem_is_reported() -> None:
    assert problem("p(x) :- .\nq(x) :- [x].").message == "the rule's body is empty"
    assert problem("q($) :- r(x).\np(x) :- .").code == UNSUPPORTED


DOT = "write `.` here"
NO_AGGREGATE = (
    "write `min x : { ... }` in a body; to compute with a head's aggregate, read its relation in another rule"
)
CONDITIONS = "write `,` to add a condition, `.` to end the rule"


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        # a rule without its dot: the place is its end
        ("p(x) :- q(x)", 1, 13, "this rule has no `.` at its end", DOT),
        ("p(x) :- q(x)\n\n// r\nr(x) :- s(x).", 1, 13, "this rule has no `.` at its end", DOT),
        ("p(x) :- q(x)\n   r(x) :- s(x).", 1, 13, "this rule has no `.` at its end", DOT),
        ("p(x) :-\n  q(x)\n.output p", 2, 7, "this rule has no `.` at its end", DOT),
        ("p(1)\nq(2).", 1, 5, "this fact has no `.` at its end", DOT),
        (
            "p(x) :- q(x),\nr(x) :- s(x).",
            1,
            13,
            "this rule has no `.` at its end: `,` continues its body",
            "write `.` instead of `,`",
        ),
        # a missing separator between conditions
        ("p(x) :- q(x) r(x).", 1, 14, "expected `,` or `.` after the atom", CONDITIONS),
        ("p(x) :- q(x)\n        r(x).", 1, 13, "expected `,` or `.` after the atom", CONDITIONS),
        ("p(x y) :- q(x, y).", 1, 5, "expected `,` or `)` after `x`", None),
        ("p(x) = q(x).", 1, 6, "expected `,`, `.` or `:-` after the atom", CONDITIONS),
        ("p :- q(x).", 1, 3, "expected `(` after `p`", None),
        # a part is missing
        ("p(x) :- .", 1, 9, "the rule's body is empty", "write a fact without `:-`: `p(1).`"),
        ("p(x) :- q(x), .", 1, 15, "expected an atom or a condition after `,`", "add it, or remove the `,`"),
        ("p(x) :- q(x),", 1, 14, "expected an atom or a condition after `,`", "add it, or remove the `,`"),
        ("p(x,) :- q(x).", 1, 5, "expected a value after `,`", "add it, or remove the `,`"),
        ("p(x) :- q(x), !.", 1, 16, "expected an atom or a condition after `!`", None),
        ("p(x) :- q(x), x = .", 1, 19, "expected a value after `=`", None),
        ("p(1). + q(2).", 1, 7, "expected a rule, a fact or a directive, not `+`", None),
        # unclosed brackets
        (
            "p(x) :- q(x, r(x).",
            1,
            18,
            "`)` is missing: `(` is open from line 1, column 10",
            "write `)` here or earlier",
        ),
        ("p(x :- q(x).", 1, 5, "`)` is missing: `(` is open from line 1, column 2", "write `)` here or earlier"),
        (
            "p(x) :- q(x, y\nr(x) :- s(x).",
            1,
            15,
            "`)` is missing: `(` is open from line 1, column 10",
            "write `)` here or earlier",
        ),
        (
            "p(n) :- n = count : { q(_).",
            1,
            27,
            "`}` is missing: `{` is open from line 1, column 21",
            "write `}` here or earlier",
        ),
        ("p(x) :- q(x)), r(x).", 1, 13, "`)` closes no bracket", "remove it, or open a bracket before it"),
        (
            'p(x) :- q("abc, x).',
            1,
            11,
            "unclosed string",
            'end it with `"` on the same line; write `\\"` for a quote in it',
        ),
        ("p(1).\n /* never", 2, 2, "unclosed comment", "end it with `*/`"),
        # names and numbers
        (
            "2p(x) :- q(x).",
            1,
            1,
            "a relation name starts with a letter: `2p`",
            "use `r2p`",
        ),
        ('"p"(x) :- q(x).', 1, 1, 'a relation name starts with a letter: `"p"`', None),
        ("p(x) :- q(x), _(x).", 1, 15, "a relation name starts with a letter: `_`", None),
        ("p(12abc).", 1, 3, "`12abc` is neither a number nor a name", "start a name with a letter"),
        ("p(1e999).", 1, 3, "this number is too large", "use a number of 64 bits, or a float below 1.8e308"),
        (
            "p(18446744073709551616).",
            1,
            3,
            "this number is too large",
            "use a number of 64 bits, or a float below 1.8e308",
        ),
        (
            "p(count) :- q(count).",
            1,
            3,
            "`count` is a keyword, not a name",
            "use another name, such as `count_`",
        ),
        (
            ".decl sum(x: number)",
            1,
            7,
            "`sum` is a keyword, not a name",
            "use another name, such as `sum_`",
        ),
        (
            "p(x) :- max(x, y), q(x, y).",
            1,
            9,
            "`max` is a keyword, not a relation name",
            "use another name, such as `max_of`",
        ),
        # directives
        (".ouput p", 1, 1, "unknown directive `.ouput`", "did you mean `.output`?"),
        (
            ".decl p(x, y: number)",
            1,
            10,
            "the attribute `x` has no type",
            "write `x: number` (or unsigned, float, symbol)",
        ),
        (".decl p(x: number).\np(1).", 1, 19, "`.decl` has no `.` at its end", "remove the `.`"),
        (".input p.", 1, 9, "`.input` has no `.` at its end", "remove the `.`"),
        (".decl p(x: number) inlin\n.output p", 1, 20, "unknown qualifier `inlin`", "did you mean `inline`?"),
        (".decl p", 1, 8, "expected `(` or `,` after `p`", None),
        (
            ".input e(filename=a.csv)",
            1,
            20,
            "expected `,` or `)` after `a`",
            'write text in double quotes: filename="..."',
        ),
        (".limit p(iteration=20)", 1, 10, "`.limit` has no parameter `iteration`", "did you mean `iterations`?"),
        (".limit p(iterations=2.5)", 1, 10, "`iterations` is a whole number such as 20, not `2.5`", None),
        (
            ".limit p()",
            1,
            9,
            "`.limit` has no limit",
            "write `(iterations=20)`, `(tolerance=0.001)` or both",
        ),
        (".limit p {sum[Δq] < 1}", 1, 15, "`Δq` is not the change of `p`", "write `{sum[Δp] < 0.001}`"),
        (
            ".limit p {max[Δp] < 1}",
            1,
            11,
            "an end condition uses the sum of the changes, not `max`",
            "write `{sum[Δp] < 0.001}`",
        ),
        (".assume w", 1, 10, "expected a comparison after `w`", None),
        (
            ".assume w != 0",
            1,
            11,
            "`.assume` needs a bound, but `!=` is none",
            "write `<`, `<=`, `>` or `>=`",
        ),
        # values and conditions
        (
            "p(x) :- x + 1.",
            1,
            9,
            "this is a value, but a condition is expected",
            "write a comparison such as `x < 5`, or an atom such as `edge(x, y)`",
        ),
        (
            "p(x) :- q(x), r.",
            1,
            15,
            "this is a value, but a condition is expected",
            "write `r()` for an atom, or compare the variable: `r = 1`",
        ),
        (
            "p(x) :- q(x), y = (x < 3).",
            1,
            20,
            "this is a condition, but a value is expected: a comparison",
            "write the comparison as a part of the body: `p(x) :- q(x), x < 5.`",
        ),
        (
            "p(x) :- q(x), x = true.",
            1,
            19,
            "this is a condition, but a value is expected: `true`",
            'write a number, or "true"',
        ),
        ("p(x) :- q(x), 1 < x < 5.", 1, 21, "comparisons do not chain", "write two comparisons: `a < b, b < c`"),
        ("p(x) :- q(x) :- r(x).", 1, 14, "a rule has two `:-`", "end the first rule with `.`"),
        # aggregates
        ("p(n) :- n = count x : { q(x) }.", 1, 13, "`count` takes no value", "write `count : { ... }`"),
        ("p(n) :- n = sum : { q(x) }.", 1, 13, "`sum` needs a value before `:`", "write `sum x : { ... }`"),
        (
            "p(n) :- n = max(x).",
            1,
            13,
            "`max` has no body",
            "write `max x : { ... }`; as a functor it takes two values: `max(a, b)`",
        ),
        (
            "p($MIN(x) + 1) :- q(x).",
            1,
            3,
            "`$MIN` is in the wrong place: an aggregate must be a whole argument of a rule's head",
            NO_AGGREGATE,
        ),
        (
            "p($MIN(1)).",
            1,
            3,
            "`$MIN` is in the wrong place: a fact has no rows to aggregate",
            "write the value itself; it is aggregated with those of the rules",
        ),
        # other languages
        ("p(x) :- q(x), not r(x).", 1, 15, "`not` has no meaning here", "write `!` for negation: `!r...`"),
        ("p(x) :- q(x), x == 1.", 1, 17, "`==` has no meaning here", "write one `=` for equality"),
        ("p(x) :- q(x), x =< 1.", 1, 17, "`=<` has no meaning here", "write `<=`"),
        ("p(x) :- q(x) ∧ r(x).", 1, 14, "`∧` has no meaning here", "write `,` between conditions"),
        ("p('a').", 1, 3, "`'` has no meaning here", 'write text in double quotes: "..."'),
        ("# note\np(1).", 1, 1, "`#` has no meaning here", "start a comment with `//`"),
        (
            "?- q(x).",
            1,
            1,
            "queries are not supported: a rule has a head before `:-`",
            "name the result: `result(x) :- ...`, and `.output result`",
        ),
        # nesting too deep for the passes
        (f"p({'(' * 100}1{')' * 100}).", 1, 102, "more than 100 brackets are open here", "split the rule"),
        (
            f"p(x) :- q({' + '.join('x' * 201)}).",
            1,
            11,
            "an expression has more than 400 parts, or 100 signs before values",
            "compute parts of it in separate rules",
        ),
    ],
)
def test_syntax_errors(text: str, line: int, column: int, message: str, hint: str | None) -> None:
    error = problem(text)
    assert (error.code, error.place, error.message, error.hint) == (SYNTAX, place(line, column), message, hint)


COUNTER = (
    "the counters `$` and `recursive_iteration_cnt()` are not supported",
    "number the rows of a rule by `autoinc()` in its head",
)
STATEFUL = (
    "`stateful`: functors with access to Soufflé's tables are not supported",
    "remove the word; the Python function gets symbols as texts",
)
LATTICE = (
    "lattices are not supported in this form",
    "aggregate in the head: `r(x, $MAX(y)) :- ...`, or define the lattice's join with `ra.aggregator(...)`",
)
PREPROCESSOR = (
    "preprocessor lines are not supported",
    "run the preprocessor first, as Soufflé does: `paralagg run --cpp program.dl`, or `cpp -P program.dl`",
)


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("p($, x) :- q(x).", 3, *COUNTER),
        (".functor f(x: number): number stateful", 31, *STATEFUL),
        ("p(recursive_iteration_cnt(), x) :- q(x).", 3, f"`recursive_iteration_cnt`: {COUNTER[0]}", COUNTER[1]),
        ("#define X 1", 1, *PREPROCESSOR),
        ('#include "x.dl"', 1, *PREPROCESSOR),
        (
            '.include "x.dl"',
            1,
            "`.include`: `.include` and `.once` need a file: `paralagg run` reads them as lines of their own",
            "join the files into one text",
        ),
        (".lattice L<> {", 1, f"`.lattice`: {LATTICE[0]}", LATTICE[1]),
        (".decl p(x: L<>)", 13, *LATTICE),
        (
            "@[note] p(1).",
            1,
            "annotations are not supported",
            "remove the `@[...]`, which does not change the result",
        ),
    ],
)
def test_refused_by_name(text: str, column: int, message: str, hint: str) -> None:
    error = problem(text)
    assert (error.code, error.place, error.message, error.hint) == (UNSUPPORTED, place(1, column), message, hint)


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("p(x) :- @f(x).", 9, "this is a value, but a condition is expected", "write a comparison such as"),
        ("@f(x) :- q(x).", 1, "expected a rule, a fact or a directive, not `@f`", ""),
        ("p(@f) :- q(x).", 5, "expected `(` after `@f`", ""),
        ("p(@ f(x)) :- q(x).", 3, "`@` has no meaning here", "write `@f(x)` to call the functor f"),
        (".functor f(symbol)", 19, "expected `:` after `)`", ""),
        (".functor f, g(number): number", 11, "expected `(` after `f`", ""),
        (".comp C { .functor f(number): number }", 11, "a component declares no functors", "outside of the component"),
    ],
)
def test_functors(text: str, column: int, message: str, hint: str) -> None:
    error = problem(text)
    assert (error.code, error.place, error.message) == (SYNTAX, place(1, column), message)
    assert hint in (error.hint or "")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_with_any_line_ending(end: str) -> None:
    error = problem(end.join(["p(1).", '// \x0c \u2028 "', "p(x) :- q(x)", "r(x) :- p(x)."]))
    assert error.place == place(3, 13)
    assert error.excerpt == "  p(x) :- q(x)\n              ^"


WHOLE = """
.decl edge, more(x: number, y: Node) inline brie
.type Node <: symbol .type Any = Node | number
.input edge(filename="e.csv", n=-3)
.limit rank(iterations=20, tolerance=0.001) .limit rank {sum[Δrank] < 0.1}
.assume edge.w >= -1, w < 2
p(1, "a\\n"). /* a comment */ p(0x1f, 7u). // another
p(x, $MIN(l + w), $COUNT), q(x) :- edge(x, _), (more(y, x); !q(-x ^ 2)), x != max(1, y) * 2, match("a", y).
p(n) <- n = sum x * 2 : { q(x), true } + count : q(_), as(n, number) < 5 band 3. .plan 0:()
"""
PIECES = st.sampled_from([
    *'()[]{},.;:|!=<>$@#"\\_?+-*/^%', ":-", "<-", "<:", "/*", "*/", "//", "\n",
    ".decl ", ".comp ", "x", " count ", " min ", "7", "as",
])  # fmt: skip


def error_of(text: str) -> DatalogError | None:
    try:
        parse(text)
    except DatalogError as error:
        return error
    return None


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(WHOLE)), st.integers(0, 12), st.lists(PIECES, max_size=3).map("".join))
def test_broken_text_parses_or_is_an_error_with_a_place(at: int, removed: int, added: str) -> None:
    text = WHOLE[:at] + added + WHOLE[at + removed :]
    error = error_of(text)
    if error is not None:
        line, mark = (error.excerpt or "").split("\n")
        assert line[2:].replace(" ", "") in text.replace(" ", "").replace("\t", "")
        assert 0 <= mark.index("^") - 2 <= len(line)


@pytest.mark.parametrize("text", [
    "p(x) :- q(x), r(x). .plan 0:(2, 1), 1:(1, 2)",
    "p(x) :- q(x), x > 1, !s(x), r(x). .plan 0:(2, 1)",
    "p(x) :- q(x), (r(x); s(x)). .plan 0:(2, 1)",
    "p(1). .plan 0:()",
])  # fmt: skip
def test_a_plan_has_each_positive_atom_once(text: str) -> None:
    assert parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p(x) :- q(x), r(x). .plan 0:(1)", "`0:(1)` is no order of the body's positive atoms (there are 2)"),
        ("p(x) :- q(x), r(x). .plan 0:(1, 1)", "`0:(1, 1)` is no order of the body's positive atoms (there are 2)"),
        ("p(x) :- q(x), r(x). .plan 0:(0, 1)", "`0:(0, 1)` is no order of the body's positive atoms (there are 2)"),
        ("p(x) :- q(x), !r(x). .plan 0:(1, 2)", "`0:(1, 2)` is no order of the body's positive atoms (there are 1)"),
        (
            "p(x) :- q(x), (r(x); true). .plan 0:(1, 2)",
            "`0:(1, 2)` is no order of the body's positive atoms (there are 1)",
        ),
        ("p(x) :- q(x), r(x). .plan 0:(1, 2), 1:(2)", "`1:(2)` is no order of the body's positive atoms (there are 2)"),
        ("p(1). .plan 0:(1)", "`0:(1)` is no order of the body's positive atoms (there are 0)"),
        ("p(x) :- q(x), r(x). .plan 2:(1, 2)", "this rule has no version 2: each recursive atom has one, from 0 on"),
    ],
)
def test_a_plan_that_is_no_order_of_the_atoms(text: str, message: str) -> None:
    found = problem(text)
    assert found.message == message
    assert found.place == place(1, text.index(".plan") + 1)
    assert found.hint


def test_a_plan_has_a_hint() -> None:
    wrong = problem("p(x) :- q(x), r(x). .plan 0:(1)")
    assert wrong.hint == "give each of `(1, 2)` once, in the order of the joins; negated atoms have no number"
    assert problem("p(1). .plan 0:(1)").hint == "leave `.plan` out"
