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
        "Hint: a backslash itself is written `\\\\`"
    )


def test_the_first_problem_is_reported() -> None:
    assert problem("p(x) :- .\nq(x) :- [x].").message == "the rule's body is empty"
    assert problem("q([x]) :- r(x).\np(x) :- .").code == UNSUPPORTED


DOT = "write `.` here"
NO_AGGREGATE = (
    "in a body write `min x : { ... }`; a head's aggregate can be computed with in a rule that reads its relation"
)
CONDITIONS = "`,` goes on with the conditions, `.` ends the rule"


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
            "this rule has no `.` at its end: `,` goes on with its body",
            "write `.` in place of `,`",
        ),
        # a missing separator between conditions
        ("p(x) :- q(x) r(x).", 1, 14, "expected `,` or `.` after the atom", CONDITIONS),
        ("p(x) :- q(x)\n        r(x).", 1, 13, "expected `,` or `.` after the atom", CONDITIONS),
        ("p(x y) :- q(x, y).", 1, 5, "expected `,` or `)` after `x`", None),
        ("p(x) = q(x).", 1, 6, "expected `,`, `.` or `:-` after the atom", CONDITIONS),
        ("p :- q(x).", 1, 3, "expected `(` after `p`", None),
        # a part is missing
        ("p(x) :- .", 1, 9, "the rule's body is empty", "a fact is written without `:-`: `p(1).`"),
        ("p(x) :- q(x), .", 1, 15, "expected an atom or a condition after `,`", "or take the `,` away"),
        ("p(x) :- q(x),", 1, 14, "expected an atom or a condition after `,`", "or take the `,` away"),
        ("p(x,) :- q(x).", 1, 5, "expected a value after `,`", "or take the `,` away"),
        ("p(x) :- q(x), !.", 1, 16, "expected an atom or a condition after `!`", None),
        ("p(x) :- q(x), x = .", 1, 19, "expected a value after `=`", None),
        ("p(1). + q(2).", 1, 7, "expected a rule, a fact or a directive, not `+`", None),
        # unclosed brackets
        (
            "p(x) :- q(x, r(x).",
            1,
            18,
            "`)` is missing: `(` is open since line 1, column 10",
            "write `)` here or before",
        ),
        ("p(x :- q(x).", 1, 5, "`)` is missing: `(` is open since line 1, column 2", "write `)` here or before"),
        (
            "p(x) :- q(x, y\nr(x) :- s(x).",
            1,
            15,
            "`)` is missing: `(` is open since line 1, column 10",
            "write `)` here or before",
        ),
        (
            "p(n) :- n = count : { q(_).",
            1,
            27,
            "`}` is missing: `{` is open since line 1, column 21",
            "write `}` here or before",
        ),
        ("p(x) :- q(x)), r(x).", 1, 13, "`)` closes nothing", "take it away, or open a bracket before"),
        (
            'p(x) :- q("abc, x).',
            1,
            11,
            "unclosed string",
            'a string ends with `"` on the same line; a quote in it is `\\"`',
        ),
        ("p(1).\n /* never", 2, 2, "unclosed comment", "end it with `*/`"),
        # names and numbers
        ("2p(x) :- q(x).", 1, 1, "a relation's name starts with a letter: `2p`", "such as `r2p`"),
        ('"p"(x) :- q(x).', 1, 1, 'a relation\'s name starts with a letter: `"p"`', None),
        ("p(x) :- q(x), _(x).", 1, 15, "a relation's name starts with a letter: `_`", None),
        ("p(12abc).", 1, 3, "`12abc` is neither a number nor a name", "a name starts with a letter"),
        ("p(1e999).", 1, 3, "this number is too large", "a number has 64 bits, a float is below 1.8e308"),
        (
            "p(18446744073709551616).",
            1,
            3,
            "this number is too large",
            "a number has 64 bits, a float is below 1.8e308",
        ),
        (
            "p(count) :- q(count).",
            1,
            3,
            "`count` is a word of the language, not a name",
            "take another name, such as `count_`",
        ),
        (
            ".decl sum(x: number)",
            1,
            7,
            "`sum` is a word of the language, not a name",
            "take another name, such as `sum_`",
        ),
        (
            "p(x) :- max(x, y), q(x, y).",
            1,
            9,
            "`max` is a word of the language, not a relation's name",
            "such as `max_of`",
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
        (".decl p(x: number).\np(1).", 1, 19, "`.decl` has no `.` at its end", "take the `.` away"),
        (".input p.", 1, 9, "`.input` has no `.` at its end", "take the `.` away"),
        (".decl p(x: number) inlin\n.output p", 1, 20, "unknown qualifier `inlin`", "did you mean `inline`?"),
        (".decl p", 1, 8, "expected `(` or `,` after `p`", None),
        (
            ".input e(filename=a.csv)",
            1,
            20,
            "expected `,` or `)` after `a`",
            'text stands in double quotes: filename="..."',
        ),
        (".limit p(iteration=20)", 1, 10, "`.limit` has no parameter `iteration`", "did you mean `iterations`?"),
        (".limit p(iterations=2.5)", 1, 10, "`iterations` is a whole number such as 20, not `2.5`", None),
        (
            ".limit p()",
            1,
            9,
            "`.limit` says no limit",
            "write `(iterations=20)`, `(tolerance=0.001)` or both",
        ),
        (".limit p {sum[Δq] < 1}", 1, 15, "`Δq` is not the change of `p`", "write `{sum[Δp] < 0.001}`"),
        (
            ".limit p {max[Δp] < 1}",
            1,
            11,
            "an end condition is over the sum of the changes, not `max`",
            "write `{sum[Δp] < 0.001}`",
        ),
        (".assume w", 1, 10, "expected a comparison after `w`", None),
        (
            ".assume w != 0",
            1,
            11,
            "`.assume` bounds a column: `!=` bounds nothing",
            "write `<`, `<=`, `>` or `>=`",
        ),
        # values and conditions
        (
            "p(x) :- x + 1.",
            1,
            9,
            "this is a value, where a condition is expected",
            "write a comparison such as `x < 5`, or an atom such as `edge(x, y)`",
        ),
        (
            "p(x) :- q(x), r.",
            1,
            15,
            "this is a value, where a condition is expected",
            "an atom has parentheses: `r()`; a variable is compared: `r = 1`",
        ),
        (
            "p(x) :- q(x), y = (x < 3).",
            1,
            20,
            "this is a condition, where a value is expected: a comparison",
            "comparisons stand between the parts of a rule's body: `p(x) :- q(x), x < 5.`",
        ),
        (
            "p(x) :- q(x), x = true.",
            1,
            19,
            "this is a condition, where a value is expected: `true`",
            'write a number, or "true"',
        ),
        ("p(x) :- q(x), 1 < x < 5.", 1, 21, "comparisons do not chain", "write two: `a < b, b < c`"),
        ("p(x) :- q(x) :- r(x).", 1, 14, "a second `:-` in one rule", "end the rule before with `.`"),
        # aggregates
        ("p(n) :- n = count x : { q(x) }.", 1, 13, "`count` takes no value", "write `count : { ... }`"),
        ("p(n) :- n = sum : { q(x) }.", 1, 13, "`sum` needs a value before `:`", "write `sum x : { ... }`"),
        (
            "p(n) :- n = max(x).",
            1,
            13,
            "`max` has no body",
            "an aggregate is written `max x : { ... }`; the functor takes two values: `max(a, b)`",
        ),
        (
            "p($MIN(x) + 1) :- q(x).",
            1,
            3,
            "`$MIN` stands where none can be: an aggregate is a whole argument of a rule's head",
            NO_AGGREGATE,
        ),
        (
            "p($MIN(1)).",
            1,
            3,
            "`$MIN` stands where none can be: a fact has nothing to aggregate",
            NO_AGGREGATE,
        ),
        # other languages
        ("p(x) :- q(x), not r(x).", 1, 15, "`not` has no meaning here", "negation is `!`: `!r...`"),
        ("p(x) :- q(x), x == 1.", 1, 17, "`==` has no meaning here", "equality is one `=`"),
        ("p(x) :- q(x), x =< 1.", 1, 17, "`=<` has no meaning here", "write `<=`"),
        ("p(x) :- q(x) ∧ r(x).", 1, 14, "`∧` has no meaning here", "write `,` between conditions"),
        ("p('a').", 1, 3, "`'` has no meaning here", 'text stands in double quotes: "..."'),
        ("# note\np(1).", 1, 1, "`#` has no meaning here", "a comment starts with `//`"),
        (
            "?- q(x).",
            1,
            1,
            "there are no queries: a rule has a head before `:-`",
            "name the result: `result(x) :- ...`, and `.output result`",
        ),
        # nesting too deep for the passes
        (f"p({'(' * 100}1{')' * 100}).", 1, 102, "more than 100 brackets are open here", "split the rule in several"),
        (
            f"p(x) :- q({' + '.join('x' * 201)}).",
            1,
            11,
            "an expression of more than 400 parts, or 100 signs before values",
            "compute parts of it in rules of their own",
        ),
    ],
)
def test_syntax_errors(text: str, line: int, column: int, message: str, hint: str | None) -> None:
    error = problem(text)
    assert (error.code, error.place, error.message, error.hint) == (SYNTAX, place(line, column), message, hint)


COUNTER = (
    "counters (`$`, `autoinc()`, `recursive_iteration_cnt()`) are not supported: a rule's rows have no order",
    "number the rows of an input before: `row_number()` or `monotonically_increasing_id()` on the DataFrame",
)
RECORD = ("records are not supported", "give each field a column of its own: `p(a, b)` in place of `p([a, b])`")
ALGEBRAIC = (
    "algebraic data types are not supported",
    "use a relation for each case, or a column that names the case beside the columns of its fields",
)
COMPONENT = (
    "components are not supported",
    "write the relations and rules out, with a prefix in place of the component's name: `graph_edge(x, y)`",
)
FUNCTOR = (
    "functors of one's own are not supported in a text",
    "compute the value in the DataFrame that is handed in, or use a built-in functor such as `cat` or `substr`",
)
LATTICE = (
    "lattices are not supported in this form",
    "aggregate in the head: `r(x, $MAX(y)) :- ...`, or define the lattice's join with `ra.aggregator(...)`",
)
PREPROCESSOR = (
    "preprocessor lines are not supported",
    "run the preprocessor first, as Soufflé does: `cpp -P program.dl > expanded.dl`",
)


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        (
            ".decl e(x: number, y: number) choice-domain x",
            31,
            "choice-domain is not supported: it keeps any one row of each key",
            "say which row to keep, in the head: `r(x, $MIN(y)) :- ...`, or `$MIN_BY(y, cost)`",
        ),
        (
            ".decl e(x: number, y: number) brie eqrel",
            36,
            "eqrel relations are not supported",
            "write the rules: `r(y, x) :- r(x, y).` and `r(x, z) :- r(x, y), r(y, z).` (and `r(x, x) :- r(x, _).`)",
        ),
        (
            "a(x) <= a(y) :- a(x), a(y), x < y.",
            6,
            "subsumption is not supported",
            "aggregate in the head, which keeps the best row: `dist(x, $MIN(d)) :- ...`, `$MAX` or `$MIN_BY(v, x)`",
        ),
        ("p([x, y]) :- q(x, y).", 3, *RECORD),
        (".type P = [x: number]", 11, *RECORD),
        ("p(x) :- q(x, nil).", 14, f"`nil`: {RECORD[0]}", RECORD[1]),
        (".type P = A {x: number} | B {}", 13, *ALGEBRAIC),
        ("p(x) :- q(x), x = $Cons(1).", 19, f"`$Cons`: {ALGEBRAIC[0]}", ALGEBRAIC[1]),
        ("p($Nil()).", 3, f"`$Nil`: {ALGEBRAIC[0]}", ALGEBRAIC[1]),
        (".comp Graph {", 1, f"`.comp`: {COMPONENT[0]}", COMPONENT[1]),
        (".init g = Graph", 1, f"`.init`: {COMPONENT[0]}", COMPONENT[1]),
        ("p(x) :- g.edge(x).", 9, f"`g.edge`: {COMPONENT[0]}", COMPONENT[1]),
        (".output g.edge", 9, f"`g.edge`: {COMPONENT[0]}", COMPONENT[1]),
        ("p($, x) :- q(x).", 3, *COUNTER),
        ("p(autoinc(), x) :- q(x).", 3, f"`autoinc`: {COUNTER[0]}", COUNTER[1]),
        (".functor f(x: number): number", 1, f"`.functor`: {FUNCTOR[0]}", FUNCTOR[1]),
        ("p(@f(x)) :- q(x).", 3, *FUNCTOR),
        (
            '.pragma "magic-transform" "*"',
            1,
            "`.pragma`: pragmas are not supported",
            "take the line out, and give options where the text is run",
        ),
        ("#define X 1", 1, *PREPROCESSOR),
        ('#include "x.dl"', 1, *PREPROCESSOR),
        (
            '.include "x.dl"',
            1,
            "`.include`: `.include` and `.once` are not supported",
            "put the files' texts together before they are run",
        ),
        (".lattice L<> {", 1, f"`.lattice`: {LATTICE[0]}", LATTICE[1]),
        (".decl p(x: L<>)", 13, *LATTICE),
        (
            "@[note] p(1).",
            1,
            "annotations are not supported",
            "take the `@[...]` out: it changes no result",
        ),
        (
            "p(10.0.0.1).",
            3,
            "`10.0.0.1`: addresses are not supported as numbers",
            'write the address as text, "10.0.0.1", or the number that it stands for',
        ),
    ],
)
def test_refused_by_name(text: str, column: int, message: str, hint: str) -> None:
    error = problem(text)
    assert (error.code, error.place, error.message, error.hint) == (UNSUPPORTED, place(1, column), message, hint)


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
p(n) <- n = sum x * 2 : { q(x), true } + count : q(_), as(n, number) < 5 band 3. .plan 0:(1, 2)
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
