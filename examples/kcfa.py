"""Which functions can each call of a program reach? Control-flow analysis of the lambda calculus, sensitive to k calls.

    python -m examples.kcfa [--terms 4] [--depth 2]

The analysis of Gilray et al. 2021 (docs/papers.md: Compiling Data-Parallel Datalog, section 4.1) as Datalog: three
relations that recurse through each other, with bodies of up to six atoms. Its programs are those that Van Horn and
Mairson 2008 found worst for it: each level calls a function twice, so that every variable below has a value for each
way of reaching it. Read downwards: terms (`worst_case`), their facts (`facts_of`), the rules (`program`), a run.

A context is the last k calls. A closure is a function and the context that it was made in; a call copies what is free
in the function from there into the context of its body. More levels or a longer context make more of everything.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Reference:
    """``x``."""

    name: str


@dataclass(frozen=True)
class Function:
    """``(λ (x) body)``."""

    parameter: str
    body: Term


@dataclass(frozen=True)
class Call:
    """``(function argument)``."""

    function: Term
    argument: Term


Term = Reference | Function | Call

TRUE = Function("a", Function("b", Reference("a")))
FALSE = Function("a", Function("b", Reference("b")))


def worst_case(levels: int) -> Term:
    """``((λ (f1) (begin (f1 #t) (f1 #f))) (λ (x1) ...))``, nested; innermost ``(λ (z) (z x1 ... xn))``."""
    variables = [f"x{i}" for i in range(1, levels + 1)]
    inner: Term = Function("z", reduce(Call, map(Reference, variables), Reference("z")))
    for i, x in reversed(list(enumerate(variables, 1))):
        f = Reference(f"f{i}")
        twice = Call(Function(f"u{i}", Call(f, FALSE)), Call(f, TRUE))  # u is not used: what `begin` comes down to
        inner = Call(Function(f.name, twice), Function(x, inner))
    return inner


def facts_of(term: Term) -> dict[str, list[tuple[int | str, ...]]]:
    """The rows of ``start``, ``reference``, ``function``, ``call``; expressions are numbered from 1, the whole is 1."""
    facts: dict[str, list[tuple[int | str, ...]]] = {"start": [(1,)], "reference": [], "function": [], "call": []}
    numbers = itertools.count(1)

    def number(t: Term) -> int:
        own = next(numbers)
        if isinstance(t, Reference):
            facts["reference"].append((own, t.name))
        elif isinstance(t, Function):
            facts["function"].append((own, t.parameter, number(t.body)))
        else:
            facts["call"].append((own, number(t.function), number(t.argument)))
        return own

    number(term)
    return facts


def program(depth: int) -> str:
    """The analysis with contexts of ``depth`` calls, each a column."""
    c, d, v = (_columns(letter, depth) for letter in "cdv")
    inside = ", ".join(["e", *c.split(", ")][:depth])  # the context of what `e` calls: e itself, and all but the last
    nothing, nowhere = _repeated("_", depth), _repeated("0", depth)

    def atom(relation: str, *columns: str) -> str:
        return f"{relation}({', '.join(filter(None, columns))})"

    context = _declared("c", depth)
    made = _declared("d", depth)
    return f"""\
// What each expression may come to be, by context: the last {depth} calls, the newest first; 0 where there were fewer.
.decl start(e: number)
.decl reference(e: number, x: symbol)
.decl function(e: number, x: symbol, body: number)
.decl call(e: number, f: number, a: number)
.decl free(x: symbol, e: number)
.decl {atom("reached", "e: number", context)}
.decl {atom("value", "e: number", context, "l: number", made)}
.decl {atom("bound", "x: symbol", context, "l: number", made)}
.input start, reference, function, call
.output free, reached, value, bound

free(x, e) :- reference(e, x).
free(x, e) :- call(e, f, a), (free(x, f); free(x, a)).
free(x, e) :- function(e, y, body), free(x, body), x != y.

{atom("reached", "e", nowhere)} :- start(e).
{atom("reached", "f", c)}, {atom("reached", "a", c)} :- {atom("reached", "e", c)}, call(e, f, a).

{atom("value", "e", c, "e", c)} :- {atom("reached", "e", c)}, function(e, _, _).
{atom("value", "e", c, "l", d)} :- {atom("reached", "e", c)}, reference(e, x), {atom("bound", "x", c, "l", d)}.

// A call whose function and argument have values: its body is reached, its parameter bound, what is free comes along.
{atom("reached", "body", inside)}, {atom("bound", "x", inside, "m", v)} :-
    {atom("reached", "e", c)}, call(e, f, a), {atom("value", "f", c, "l", nothing)}, {atom("value", "a", c, "m", v)},
    function(l, x, body).
{atom("bound", "y", inside, "m", v)} :-
    {atom("reached", "e", c)}, call(e, f, a), {atom("value", "f", c, "l", d)}, {atom("value", "a", c, "_", nothing)},
    free(y, l), {atom("bound", "y", d, "m", v)}.

// And what its body comes to be, it does.
{atom("value", "e", c, "m", v)} :-
    {atom("reached", "e", c)}, call(e, f, _), {atom("value", "f", c, "l", nothing)}, function(l, _, body),
    {atom("value", "body", inside, "m", v)}.
"""


def _columns(letter: str, depth: int) -> str:
    return ", ".join(f"{letter}{i}" for i in range(1, depth + 1))


def _declared(letter: str, depth: int) -> str:
    return ", ".join(f"{letter}{i}: number" for i in range(1, depth + 1))


def _repeated(term: str, depth: int) -> str:
    return ", ".join([term] * depth)


def main(arguments: Sequence[str] | None = None) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - terms and rules need no Spark

    import pyspark_paralagg as ra  # noqa: PLC0415 - likewise

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--terms", type=int, default=4, help="levels of the program that is analysed")
    parser.add_argument("--depth", type=int, default=2, help="calls that a context remembers")
    options = parser.parse_args(arguments)
    facts = facts_of(worst_case(options.terms))

    builder = SparkSession.builder.master("local[*]").appName("kcfa")
    spark = ra.configure(builder.config("spark.ui.showConsoleProgress", "false")).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    columns = {
        "start": "e bigint",
        "reference": "e bigint, x string",
        "function": "e bigint, x string, body bigint",
        "call": "e bigint, f bigint, a bigint",
    }
    frames = {name: spark.createDataFrame(rows, columns[name]) for name, rows in facts.items()}

    began = time.perf_counter()
    results = ra.datalog(spark, program(options.depth), frames)
    counts = {name: results[name].count() for name in ("reached", "value", "bound")}
    took = time.perf_counter() - began
    print(f"{sum(map(len, facts.values()))} facts of {options.terms} levels, contexts of {options.depth} calls:")
    for name, rows in counts.items():
        print(f"  {name:<10}{rows:>12,}")
    print(f"in {took:.1f} s")
    spark.stop()


if __name__ == "__main__":
    main()
