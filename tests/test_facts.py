"""Files of facts: what a line means, what is refused and how precisely, and that both readers mean the same."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_paralagg.command import directives, facts, frames, lines
from pyspark_paralagg.command.lines import FactLines, copy_to_parquet
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.resolve.types import declared_types, unsigned_columns
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EDGE = (("x", "bigint"), ("y", "bigint"))
NAMED = (("n", "bigint"), ("s", "string"))


def _read(folder: Path, content: bytes, columns: tuple[tuple[str, str], ...], **how: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - fields of FactLines
    file = folder / "edge.facts"
    file.write_bytes(content)
    count = copy_to_parquet(FactLines(file, "edge", columns, **how), folder / "copy.parquet")
    table = pq.read_table(folder / "copy.parquet")
    assert count == table.num_rows
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def _refused(folder: Path, content: bytes, columns: tuple[tuple[str, str], ...], **how: Any) -> UsageError:  # noqa: ANN401 - likewise
    with pytest.raises(UsageError) as refused:
        _read(folder, content, columns, **how)
    assert refused.value.code == "PARALAGG_BAD_FACT"
    return refused.value


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"1\t2\n3\t4\n", [(1, 2), (3, 4)]),
        (b"1\t2\n3\t4", [(1, 2), (3, 4)]),
        (b"1\t2\r\n3\t4\r\n", [(1, 2), (3, 4)]),
        (b"1\t2\r\n3\t4\r", [(1, 2), (3, 4)]),
        (b"\xef\xbb\xbf1\t2\n", [(1, 2)]),
        (b"+1\t-2\n", [(1, -2)]),
        (b" 1\t2 \n", [(1, 2)]),
        (b"0x1F\t0b101\n", [(31, 5)]),
        (b"9223372036854775807\t-9223372036854775808\n", [((1 << 63) - 1, -(1 << 63))]),
        (b"", []),
    ],
)
def test_numbers_are_read(tmp_path: Path, content: bytes, rows: list[tuple[int, int]]) -> None:
    assert _read(tmp_path, content, EDGE) == rows


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"1\t", ""),
        (b'1\t"a"', '"a"'),
        (b"1\t  a b ", "  a b "),
        (b"1\t\\t\\n", "\\t\\n"),
        (b"1\tNULL", "NULL"),
        (b"1\tna\xc3\xafve \xe2\x82\xac", "naïve €"),
        (b"1\ta\rb", "a\rb"),
        (b"1\ta,b;c", "a,b;c"),
    ],
)
def test_strings_stand_for_themselves(tmp_path: Path, line: bytes, value: str) -> None:
    assert _read(tmp_path, line + b"\n2\tz\n", NAMED) == [(1, value), (2, "z")]


def test_an_empty_line_is_an_empty_string(tmp_path: Path) -> None:
    assert _read(tmp_path, b"a\n\nb\n", (("s", "string"),)) == [("a",), ("",), ("b",)]


def test_floats_and_booleans(tmp_path: Path) -> None:
    columns = (("v", "double"), ("b", "boolean"))
    rows = _read(tmp_path, b"1\ttrue\n-2.5e-3\tfalse\ninf\t1\n+.5\t0\n", columns)
    assert rows == [(1.0, True), (-0.0025, False), (float("inf"), True), (0.5, False)]


@pytest.mark.parametrize("content", [b"x\ty\n1\t2\n", b"x\ty\n1\t+2\n"])  # the second is read carefully
def test_a_header_is_left_out(tmp_path: Path, content: bytes) -> None:
    assert _read(tmp_path, content, EDGE, has_header=True) == [(1, 2)]
    assert _read(tmp_path, b"x\ty\n", EDGE, has_header=True) == []


@pytest.mark.parametrize("delimiter", [",", " ", "|", "::", "€"])
def test_any_delimiter(tmp_path: Path, delimiter: str) -> None:
    assert _read(tmp_path, f"1{delimiter}2\n".encode(), EDGE, delimiter=delimiter) == [(1, 2)]


def test_rfc4180_quotes(tmp_path: Path) -> None:
    content = b'1,"a ""b"", c"\n2,"two\nlines"\n3,plain\n4,\n'
    rows = _read(tmp_path, content, NAMED, delimiter=",", is_quoted=True)
    assert rows == [(1, 'a "b", c'), (2, "two\nlines"), (3, "plain"), (4, "")]
    # The careful reader: a sign that Arrow does not take.
    assert _read(tmp_path, b"+" + content, NAMED, delimiter=",", is_quoted=True) == rows


@pytest.mark.parametrize(
    ("content", "columns", "how", "line", "value", "told"),
    [
        (b"1\t2\n3\n", EDGE, {}, 2, "3", "'3' has 1 value, but edge has 2 columns"),
        (b"1\t2\n3\t4\t5\n", EDGE, {}, 2, "3\t4\t5", "has 3 values"),
        (b"1\t2\n\n", EDGE, {}, 2, "", "'' has 1 value"),
        (b"a\tb\n\nc\td\n", (("s", "string"), ("t", "string")), {}, 2, "", "'' has 1 value"),
        (b"a\tb\r\n\r\n", (("s", "string"), ("t", "string")), {}, 2, "", "'' has 1 value"),
        (b"1,2\n", EDGE, {}, 1, "1,2", 'write .input edge(delimiter=",") to read 2 values'),
        (b"1\t2\n3\tx4\n", EDGE, {}, 2, "x4", "'x4' is not a number"),
        (b"1\t2\n3\t\n", EDGE, {}, 2, "", "'' is not a number"),
        (b"1\t2.0\n", EDGE, {}, 1, "2.0", "'2.0' is not a number"),
        (b"1\t1_0\n", EDGE, {}, 1, "1_0", "'1_0' is not a number"),
        (b"src\tdst\n1\t2\n", EDGE, {}, 1, "src", 'if the line is a header, write .input edge(headers="true")'),
        (b"1\t9223372036854775808\n", EDGE, {}, 1, "9223372036854775808", "does not fit into 64 bits"),
        (b"1\t-9223372036854775809\n", EDGE, {}, 1, "-9223372036854775809", "does not fit into 64 bits"),
        (b"1\t" + b"9" * 5000 + b"\n", EDGE, {}, 1, "9" * 5000, "does not fit into 64 bits"),
        (b"1\t2\n1\t-3\n", EDGE, {"unsigned": frozenset("y")}, 2, "-3", "'-3' is negative"),
        (b"1\t18446744073709551615\n", EDGE, {"unsigned": frozenset("y")}, 1, "18446744073709551615", "64 bits"),
        (b"1\t0xffffffffffffffff\n", EDGE, {"unsigned": frozenset("y")}, 1, "0xffffffffffffffff", "63 bits"),
        (b"1\ta\n2\t\xff\n", NAMED, {}, 2, b"2\t\xff", "is not UTF-8"),
        (b"1\t2\n1,5\n", (("v", "double"), ("w", "double")), {}, 2, "1,5", "1 value"),
        (b"1\n1,5\n", (("v", "double"),), {}, 2, "1,5", "'1,5' is not a number"),
        (b"yes\n", (("b", "boolean"),), {}, 1, "yes", "neither true nor false"),
        (b'1,"a\nb"\n2,"c\n', NAMED, {"delimiter": ",", "is_quoted": True}, 3, None, "the line is not valid CSV"),
        (b"a\tb\n1\tz\n", EDGE, {"has_header": True}, 2, "z", "'z' is not a number"),
    ],
)
def test_a_line_that_is_no_fact_is_told(  # noqa: PLR0913, PLR0917 - a table
    tmp_path: Path,
    content: bytes,
    columns: tuple[tuple[str, str], ...],
    how: dict[str, Any],
    line: int,
    value: object,
    told: str,
) -> None:
    problem = _refused(tmp_path, content, columns, **how)
    assert (problem.place, problem.value) == (f"{tmp_path / 'edge.facts'}, line {line}", value)
    assert told in str(problem)


def test_the_first_of_several_bad_lines_is_told_however_far_down(tmp_path: Path) -> None:
    content = b"1\t2\n" * 3_000_000 + b"1\tx\n" + b"1\t2\n" * 300_000 + b"bad\n"
    assert _refused(tmp_path, content, EDGE).place == f"{tmp_path / 'edge.facts'}, line 3000001"


def test_blocks_end_with_lines_and_outside_of_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_BLOCK", 7)
    content = b'n,s\n1,"a\nb"\n+2,c\n3,"d\n\n""e"\n4,\xef\xbb\xbff'
    rows = [(1, "a\nb"), (2, "c"), (3, 'd\n\n"e'), (4, "\ufefff")]
    assert _read(tmp_path, content, NAMED, delimiter=",", is_quoted=True, has_header=True) == rows
    bad = _refused(tmp_path, content + b"\n5\n", NAMED, delimiter=",", is_quoted=True, has_header=True)
    assert str(bad.place).endswith("line 9")


def test_no_python_runs_for_each_line(tmp_path: Path) -> None:
    count = 100_000
    content = "".join(f"{i * 7919 % 1_000_003}\t{i}\tname {i % 1000}\n" for i in range(count)).encode()
    calls = 0

    def count_call(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count_call)
    try:
        lines_read = _read_count(tmp_path, content)
    finally:
        sys.setprofile(None)
    assert lines_read == count
    assert calls < count // 10


def _read_count(folder: Path, content: bytes) -> int:
    file = folder / "many.facts"
    file.write_bytes(content)
    return copy_to_parquet(FactLines(file, "many", (*EDGE, ("s", "string"))), folder / "many.parquet")


TOKENS = st.one_of(
    st.text(alphabet="0123456789+-.eExXbBaAfF_ \tinINFnan\"'\r,", max_size=12),
    st.integers(-(1 << 64), 1 << 65).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["0x8000000000000000", "-0x1", "00012", "1e400", "Infinity", "nan", "true", "True", "-0", "\u0661"]
    ),
)


@settings(max_examples=400, deadline=None)
@given(
    rows=st.lists(st.tuples(TOKENS, st.text(max_size=5)), min_size=1, max_size=3),
    spark_type=st.sampled_from(["bigint", "double", "boolean", "string"]),
    end=st.sampled_from(["\n", "\r\n", ""]),
    first=st.sampled_from([1, 7]),
    is_unsigned=st.booleans(),
)
def test_what_arrow_takes_the_careful_reader_takes_too(
    rows: list[tuple[str, str]], spark_type: str, end: str, first: int, *, is_unsigned: bool
) -> None:
    block = ((end or "\n").join(f"{a}\t{b}" for a, b in rows) + end).encode("utf-8", "surrogatepass")
    unsigned = frozenset({"a"} if is_unsigned and spark_type == "bigint" else ())
    source = FactLines(Path("f.facts"), "f", (("a", spark_type), ("b", "string")), unsigned)
    try:
        fast = lines._read_fast(source, first, block)
    except (pa.ArrowInvalid, lines._NeedsCarefulReader):
        return  # the careful one decides
    careful = lines._read_carefully(source, first, block, encodes=True)
    assert repr(careful.to_pydict()) == repr(fast.to_pydict())  # by repr: NaN


def _loaded(spark: SparkSession, folder: Path, source: str) -> dict[str, list[tuple[Any, ...]]]:
    text = parse(source)
    work = folder / "work"
    work.mkdir()
    inputs = directives.inputs(text, folder)
    examined = frames.copy_texts(facts.examine(text, inputs, declared_types(text), unsigned_columns(text)), work)
    return {name: sorted(tuple(r) for r in df.collect()) for name, df in frames.load(spark, examined).items()}


def test_inputs_by_suffix_by_option_and_several_of_one_relation(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "more.csv").write_text("x;y\n3;4\n")
    pq.write_table(pa.table({"y": [6], "x": [5], "other": ["?"]}), tmp_path / "more.parquet")
    spark.range(1).selectExpr("cast(7 as int) as x", "8L as y").write.parquet(str(tmp_path / "folder"))
    pq.write_table(pa.table({"s": ["a"]}), tmp_path / "name.parquet")
    loaded = _loaded(
        spark,
        tmp_path,
        """
        .decl edge(x: number, y: number)
        .input edge
        .input edge(filename="more.csv", delimiter=";", headers="true")
        .input edge(filename="more.parquet")
        .input edge(filename="folder", IO="parquet")
        .input name
        """,
    )
    assert loaded == {"edge": [(1, 2), (3, 4), (5, 6), (7, 8)], "name": [("a",)]}


def test_a_negative_number_of_parquet_in_an_unsigned_column(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": [-2]}), tmp_path / "edge.parquet")
    with pytest.raises(UsageError, match="-2 is negative") as refused:
        _loaded(spark, tmp_path, ".decl edge(a: number, b: unsigned)\n.input edge")
    assert (refused.value.code, refused.value.place) == ("PARALAGG_BAD_FACT", str(tmp_path / "edge.parquet"))


@pytest.mark.parametrize(
    ("source", "code", "told"),
    [
        (".input nope", "PARALAGG_INPUT_MISSING", "nope.facts"),
        ('.input edge(filename="gone.csv")', "PARALAGG_INPUT_MISSING", "gone.csv"),
        ('.input edge(filname="edge.facts")', "PARALAGG_BAD_DIRECTIVE", "did you mean 'filename'?"),
        (".input edge(IO=excel)", "PARALAGG_BAD_DIRECTIVE", "use one of file, parquet, delta, sqlite"),
        ('.input edge(headers="maybe")', "PARALAGG_BAD_DIRECTIVE", "neither true nor false"),
        ('.input edge(delimiter="")', "PARALAGG_BAD_DIRECTIVE", "is not a valid delimiter"),
        ('.input edge(rfc4180="true", delimiter="::")', "PARALAGG_BAD_DIRECTIVE", "one character"),
        ('.input edge(filename="folder")', "PARALAGG_BAD_DIRECTIVE", "is not a Delta table"),
        (".input edge", "PARALAGG_INPUT_UNDECLARED", ".decl edge(x: number"),
    ],
)
def test_a_directive_that_cannot_be_is_told_with_its_line(tmp_path: Path, source: str, code: str, told: str) -> None:
    (tmp_path / "edge.facts").write_text("1\t2\n")
    (tmp_path / "folder").mkdir()
    source = source.replace('"folder"', '"folder", IO="delta"')
    text = parse(f"// first\n{source}")
    with pytest.raises(UsageError) as refused:
        facts.examine(text, directives.inputs(text, tmp_path), {}, {})
    assert refused.value.code == code
    assert told in str(refused.value)
    assert "line 2, column" in str(refused.value.place)
    assert source in str(refused.value)


def test_two_outputs_cannot_go_to_one_file(tmp_path: Path) -> None:
    text = parse('.output a(filename="x.csv")\n.output b(filename="x.csv")')
    with pytest.raises(UsageError, match=r"a and b both go to .*x\.csv"):
        directives.outputs(text, tmp_path)
