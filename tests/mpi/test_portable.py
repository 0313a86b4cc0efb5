"""Test that unsupported programs are refused before they run, by the code generator."""

from __future__ import annotations

import pytest
from datalog.fixtures import ALL, CASES

from mpi_backend.codegen.portable import unportable
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.program import Column, Input

D, S, M = Col("d", "double"), Col("s", "string"), Col("m", "decimal(9,2)")


def refusal(expr: Expr) -> str | None:
    columns = tuple(Column(c.name, c.type) for c in (D, S, M))
    return unportable(Plan("p", (Input(0, 0, columns, (expr,), name="edge"),), ()), inputs=True)


@pytest.mark.parametrize("name", CASES)
def test_every_fixture_is_portable(name: str) -> None:
    case = ALL[name]
    plan = compile_program(requested_program(resolve_text(case.text, case.types), list(case.expected)))
    assert unportable(plan, inputs=True) is None


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        (Call("Sin", (D,), "double"), "sin(d) in the input edge: the MPI engine has no Sin"),
        (
            Call("Add", (D, Call("Sin", (D,), "double")), "double"),
            "d + sin(d) in the input edge: the MPI engine has no",
        ),
        (Call("Cast", (D,), "string"), "the MPI engine does not cast double to string"),
        (Call("Cast", (S,), "decimal(9,2)"), "the MPI engine does not cast string to decimal(9,2)"),
        (Call("Cast", (S,), "timestamp"), "the MPI engine does not cast string to timestamp"),
        (Call("Cast", (D,), "decimal(9,2)"), "does not cast fractions to decimal(9,2)"),
        (Call("Divide", (M, M), "decimal(18,10)"), "does not compute a quotient of decimals"),
        (Call("RLike", (S, Lit("(?i)a", "string")), "boolean"), "means something else in Java"),
        (
            Call("RegExpInStr", (S, Lit("(?i)a", "string"), Lit(0, "int")), "int"),
            "means something else in Java",
        ),
        (Call("Add", (M, M), "decimal(38,2)"), "the MPI engine cannot hold decimal(38,2) in a word"),
        (Call("If", (Lit(value=True, type="boolean"), D, Call("Sin", (D,), "double")), "double"), "has no Sin"),
    ],
)
def test_a_refusal_names_the_expression_and_its_place(expr: Expr, reason: str) -> None:
    assert reason in str(refusal(expr))


def test_expressions_of_inputs_are_checked_on_request_only() -> None:
    source = Input(0, 0, (Column("d", "double"),), (Call("Sin", (D,), "double"),))
    assert unportable(Plan("p", (source,), ())) is None


def test_a_rule_is_named() -> None:
    text = '.decl r(x: number, s: symbol)\nr(1, "a").\nr(x, cat(s, to_string(to_float(x)))) :- r(x, s), strlen(s) < 9.'
    plan = compile_program(requested_program(resolve_text(parse(text, "t"), {}), ["r"]))
    reason = str(unportable(plan))
    assert reason.endswith("the MPI engine does not cast double to string")
    assert " in r(" in reason
