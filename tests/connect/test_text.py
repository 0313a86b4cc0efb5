"""SQL texts of a step, read with sqlglot: constants as Spark reads them, and refusals instead of guesses."""

from __future__ import annotations

import sys
from decimal import Decimal

import pytest

from pyspark_paralagg.connect.expressions import Expressions
from pyspark_paralagg.connect.scope import Scope
from pyspark_paralagg.connect.text import Item, parsed
from pyspark_paralagg.connect.types import constant_of
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Lit
from pyspark_paralagg.program.functions import Setting


@pytest.mark.parametrize(
    ("text", "value", "type_name"),
    [
        ("5", 5, "int"),
        ("-5", -5, "int"),
        ("3000000000", 3_000_000_000, "bigint"),
        ("5L", 5, "bigint"),
        ("1.50", "1.50", "decimal(3,2)"),
        ("0.001", "0.001", "decimal(3,3)"),
        ("1.5D", 1.5, "double"),
        ("1e3", 1000.0, "double"),
        ("cast(0.1 as float)", 0.10000000149011612, "float"),
        ("cast(7 as tinyint)", 7, "tinyint"),
        (r"'a\\b\n'", "a\\b\n", "string"),
        ("true", True, "boolean"),
        ("null", None, "void"),
    ],
)
def test_constant(text: str, value: object, type_name: str) -> None:
    assert parsed(text) == Item(Lit(value, type_name))  # type: ignore[arg-type]


def test_cast_of_a_number_that_does_not_fit_stays_a_cast() -> None:
    assert parsed("cast(300 as tinyint)") == Item(args=(Item(Lit(300, "int")),), cast="tinyint")
    assert constant_of(Decimal(1 << 63), "bigint") is None
    assert constant_of(Decimal(-(1 << 63)), "bigint") == Lit(-(1 << 63), "bigint")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a between 1 and 2", "and"),
        ("a is not null", "isnotnull"),
        ("a not in (1, 2)", "not"),
        ("a <> b", "!="),
        ("a <=> b", "<=>"),
        ("a div b", "div"),
        ("log10(a)", "log10"),
        ("ifnull(a, b)", "coalesce"),
        ("date_add(a, 1)", "date_add"),
        ("datediff(a, b)", "datediff"),
        ("case when a then 1 else 2 end", "when"),
        ("count(*)", "count"),
        ("bool_or(a)", "bool_or"),
    ],
)
def test_function(text: str, name: str) -> None:
    assert parsed(text).value == name


@pytest.mark.parametrize(
    "text",
    [
        r"'\u0041'",
        r"'50\%'",
        "'it''s'",
        "* except (a)",
        "a is distinct from b",
        "a[0]",
        "transform(a, x -> x)",
        "(select max(a) from b)",
        "sum(a) over (partition by b)",
        "interval 1 day",
        "a +",
    ],
)
def test_what_python_might_read_otherwise_than_spark_is_refused(text: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parsed(text)
    assert caught.value.code == "PARALAGG_STEP_UNSUPPORTED"


def test_without_sqlglot_a_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    proto = pytest.importorskip("pyspark.sql.connect.proto")
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    monkeypatch.delitem(sys.modules, "pyspark_paralagg.connect.text")
    text = proto.Expression(expression_string=proto.Expression.ExpressionString(expression="d + 1"))
    with pytest.raises(UnsupportedError, match="needs sqlglot") as found:
        Expressions(Scope(()), Setting(ansi=True)).value(text)
    assert "pip install" in str(found.value.hint)
