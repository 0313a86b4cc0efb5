"""Relations in JSON files: Soufflé's layout, what is read, and what is refused."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_cli import DISTANCES

from pyspark_paralagg.command.cli import OK, WRONG, main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TYPES = """
.type List = [head: number, tail: List]
.type Named = [name: symbol, of: List, size: float]
.decl value(n: number, u: unsigned, f: float, s: symbol, named: Named)
.input value(IO=jsonfile, filename="in.json")
.output value(IO=jsonfile)
.output value(IO=jsonfile, filename="objects.json", format=object)
.output value(IO=json)
"""
VALUES = r"""
[[-9223372036854775808, 9223372036854775807, 0.1, "naïve €", null],
 [1, 16, "nan", "", ["a, \"b\"] \\", [7, null], 1e300]],
 [2, 0, "-inf", "tab\t", [" nil", null, 2]]]
"""
LISTS = r"""[[-9223372036854775808, 9223372036854775807, 0.1, "naïve €", null],
[1, 16, "nan", "", ["a, \"b\"] \\", [7, null], 1e+300]],
[2, 0, "-inf", "tab\t", [" nil", null, 2.0]]]
"""


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Run a text on JSON files with these contents; outputs go to ``out``."""
    before = Path.cwd()
    os.chdir(tmp_path)
    Path("out").mkdir()

    def run(text: str, *arguments: str, **contents: str) -> int:
        for name, content in contents.items():
            Path(f"{name}.json").write_text(content, encoding="utf-8")
        Path("program.dl").write_text(text, encoding="utf-8")
        backend = () if "--backend" in arguments else ("--backend", "local")
        return main(["run", "program.dl", "-q", "-D", "out", *backend, *arguments])

    yield run
    os.chdir(before)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("backend", ["local", "spark"])
def test_values_of_all_types_are_read_and_written(
    case: Callable[..., int], backend: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert case(TYPES, "--backend", backend, **{"in": VALUES}) == OK
    assert Path("out/value.json").read_text(encoding="utf-8") == LISTS
    assert capfd.readouterr().out == LISTS
    second = json.loads(Path("out/objects.json").read_text(encoding="utf-8"))[1]
    named = {"name": 'a, "b"] \\', "of": {"head": 7, "tail": None}, "size": 1e300}
    assert second == {"n": 1, "u": 16, "f": "nan", "s": "", "named": named}
    assert case(TYPES.replace("in.json", "out/objects.json"), "-D", "again") == OK
    assert Path("again/value.json").read_text(encoding="utf-8") == LISTS


def test_files_of_souffles_own_test(case: Callable[..., int]) -> None:
    """As in ``tests/semantic/jsonfile`` of Soufflé."""
    text = """
    .type list = [x: number, y: list]
    .decl D(a: number, b: list)
    .input D(IO=jsonfile, filename="read.json")
    .output D(IO=jsonfile)
    """
    content = """[{"a": 1, "b": {"x": 1, "y": {"x": 2, "y": null}}},\n{"b": null, "a": 4}]"""
    assert case(text, read=content) == OK
    assert Path("out/D.json").read_text() == "[[1, [1, [2, null]]],\n[4, null]]\n"


def test_relations_without_rows_or_columns(case: Callable[..., int]) -> None:
    text = """
    .decl p(x: number) .decl r() .decl s() .decl t(x: number)
    .input p, r, s(IO=jsonfile)
    .output p, r, s(IO=jsonfile)
    """
    assert case(text, p="[]", r="[null]", s="[]") == OK
    assert [Path(f"out/{n}.json").read_text() for n in "prs"] == ["[]\n", "[null\n]\n", "[]\n"]


def test_compressed_files(case: Callable[..., int]) -> None:
    text = ".decl p(x: symbol)\n.input p(IO=jsonfile)\n.output p(IO=jsonfile, compress=true, name=q)"
    Path("p.json").write_bytes(gzip.compress(b'[["a"]]'))
    assert case(text) == OK
    assert gzip.decompress(Path("out/q.json").read_bytes()) == b'[["a"]]\n'


EDGE = DISTANCES.replace(".input edge", '.input edge(IO=jsonfile, filename="in.json")')
TREE = ".type Tree = Leaf {} | Node {l: Tree, r: Tree}\n.type Box = [tree: Tree]\n.decl t(x: Box)\n"


@pytest.mark.parametrize(
    ("text", "content", "expected"),
    [
        (EDGE, "[[1, 2]", "PARALAGG_INPUT_UNREADABLE: in.json cannot be read as JSON: Expecting ',' delimiter"),
        (EDGE, '{"x": 1}', "in.json cannot be read as JSON: it is not a list of rows"),
        (EDGE, "[[1, 2, NaN]]", "NaN is no number"),
        (EDGE, "[[1, 2, 1e999]]", "1e999 is no number"),
        (EDGE, "[" * 100_000, "its values are nested too deeply"),
        (
            EDGE,
            "[[1, 2, 3], [1, 2]]",
            "PARALAGG_BAD_FACT: [1, 2] is not a row with the values x, y, w (in in.json, row 2)",
        ),
        (EDGE, '[{"x": 1, "y": 2}]', '{"x": 1, "y": 2} is not a row with the values x, y, w'),
        (EDGE, '[{"x": 1, "y": 2, "z": 3}]', "is not a row with the values x, y, w"),
        (EDGE, "[[1, 2, 3.5]]", "'3.5' is not a number"),
        (EDGE, '[[1, 2, "3"]]', 'w: "3" is not a number (in in.json, row 1)'),
        (EDGE, "[[1, null, 3]]", "y: null is not a number (in in.json, row 1)"),
        (EDGE, "[[1, 2, 9223372036854775808]]", "'9223372036854775808' does not fit into 64 bits"),
        (EDGE.replace("in.json", "no.json"), "[]", "PARALAGG_INPUT_MISSING: the file no.json does not exist"),
        (EDGE.replace("jsonfile", "json"), "[]", "PARALAGG_BAD_DIRECTIVE: IO='json' is not valid for an input"),
        (EDGE.replace("IO=jsonfile", "format=list"), "[]", "`format` is a parameter of JSON only"),
        (EDGE.replace("IO=jsonfile", "IO=jsonfile, format=rows"), "[]", "use one of list, object"),
        (TREE + ".output t(IO=json)\nt([$Leaf()]).", "[]", "JSON has no form for Tree, an algebraic data type"),
    ],
)
def test_errors(
    case: Callable[..., int], capfd: pytest.CaptureFixture[str], text: str, content: str, expected: str
) -> None:
    assert case(text, **{"in": content}) == WRONG
    assert expected in capfd.readouterr().err
    assert list(Path("out").iterdir()) == []
