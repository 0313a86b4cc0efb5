"""``$PATH`` and ``$HOPS`` of a text: the columns that it shows, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_paralagg.compile import PASSES, compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import DatalogError, UsageError, VerificationError
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.trace import Hops, Path, Trace

EDGE = ".decl edge(x: number, y: number, w: number)\n.input edge\n"
STEP = "dist(y, $MIN(d + w), $PATH()) :- dist(x, d, _), edge(x, y, w).\n"
BASE = "dist(1, 0, $PATH()).\n"


def test_columns_have_their_place_and_name() -> None:
    text = ".decl dist(route: path, x: number, legs: number, d: number)\n" + EDGE
    text += "dist($PATH(0), 1, $HOPS(0), 0).\n"
    text += "dist($PATH(d + w), y, $HOPS(), $MIN(d + w)) :- dist(_, x, _, d), edge(x, y, w)."
    resolved = resolve_text(read(text), {})
    assert resolved.names("dist") == ("route", "x", "legs", "d")
    relation = resolved.program.relation("dist")
    assert [c.name for c in relation.columns] == ["x", "d"]
    assert relation.traces == (Trace("route", Path("d")), Trace("legs", Hops("d")))


def test_a_set_and_columns_without_declaration() -> None:
    text = EDGE + "r(1, $HOPS(), $PATH()).\nr(path, $HOPS(), $PATH()) :- r(x, _, _), edge(x, path, _)."
    resolved = resolve_text(read(text), {})
    assert resolved.names("r") == ("path", "hops", "path_2")
    assert [t.kind for t in resolved.program.relation("r").traces] == [Hops(), Path()]
    assert [r.name for r in requested_program(resolved, ["r"]).relations] == ["r@path_2"]


def test_a_component_and_a_lower_relation() -> None:
    text = EDGE + "road(x, y, w) :- edge(x, y, w), w < 9.\n.comp C {.decl d(x: number, v: number, p: path)\n"
    text += "d(1, 0, $PATH()).\nd(y, $MIN(v + w), $PATH()) :- d(x, v, _), road(x, y, w).}\n.init c = C"
    resolved = resolve_text(read(text), {})
    assert {"road", "c.d@p"} == {r.name for r in requested_program(resolved, ["c.d"]).relations}


@pytest.mark.parametrize(
    ("value", "types", "is_own"),
    [
        ("$MIN(d + w)", "number", True),
        ("$MIN(w + d)", "number", True),
        ("$MAX(d - w)", "number", True),
        ("$MIN(d)", "number", True),
        ("$MIN(d)", "float", True),
        ("$MIN(d + w)", "float", False),  # rounding may make two sums equal
        ("$MIN(w)", "number", False),  # does not depend on the row before
        ("$MIN(w - d)", "number", None),
        ("$MAX(min(d, w))", "number", False),
        ("$MIN(d + d)", "number", False),
        ("$MIN(d * 2)", "number", False),
    ],
)
@pytest.mark.parametrize("ansi", [False, True])
def test_the_recursion_itself_finds_paths_where_equal_values_stay_equal(
    value: str,
    types: str,
    is_own: bool | None,  # noqa: FBT001 - None: the proof refuses the value
    ansi: bool,  # noqa: FBT001
) -> None:
    text = f".decl edge(x: number, y: number, w: {types})\n.input edge\n"
    text += "dist(x, w, $PATH()) :- edge(x, _, w)." + f"dist(y, {value}, $PATH()) :- dist(x, d, _), edge(x, y, w)."
    program = replace(requested_program(resolve_text(read(text), {}), ["dist"]), setting=Setting(ansi))
    if is_own is None:
        with pytest.raises(VerificationError):
            compile_program(program)
        return
    assert [r.name for r in program.relations] == (["dist@path"] if is_own else ["dist", "dist@path"])
    assert compile_program(program).strata[-1].relation_class == "lattice"


def test_growing_keys_of_a_recursion_with_paths_are_told_once() -> None:
    text = "n(1, $PATH()).\nn(x + 1, $PATH()) :- n(x, _).\nm(x) :- n(x, _)."
    program = requested_program(resolve_text(read(text), {}), ["n", "m"])
    assert [r.name for r in program.relations] == ["n", "m", "n@path"]
    for run_pass in PASSES:
        program = run_pass(program)
    [warning] = program.warnings
    assert warning.startswith("n: the key")


def test_paths_of_a_recursion_that_others_read() -> None:
    text = EDGE + BASE + STEP + "far(x) :- dist(x, d, _), d > 9."
    program = requested_program(resolve_text(read(text), {}), ["dist", "far"])
    assert [r.name for r in program.relations] == ["dist", "far", "dist@path"]
    assert len(compile_program(program).strata) == 3


@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (EDGE + BASE + STEP + "q(p) :- dist(_, _, p).", "PATH", "a rule reads the $PATH of `dist`"),
        (EDGE + BASE + STEP.replace(", _)", ", p)"), "PATH", "write _ for argument 3"),
        (EDGE + BASE + STEP.replace(", _)", ")"), "DATALOG_ARITY", "has 3 arguments, but here 2"),
        (EDGE + BASE.replace("$PATH()", "7") + STEP, "PATH", "but not here (in line 3, column 1)"),
        (".decl dist(x: number, d: number, p: number)\n" + EDGE + BASE + STEP, "PATH", "declare it as p: path"),
        (EDGE + BASE + STEP.replace("$PATH()", "$PATH(w)"), "PATH", "that no $MIN or $MAX of this head has"),
        (EDGE + BASE + STEP.replace("$PATH()", "$PATH(d, w)"), "PATH", "takes one argument or none, not 2"),
        (EDGE + BASE + STEP.replace("$MIN", "$SUM"), "PATH", "has no $MIN or $MAX that decides"),
        (
            EDGE
            + "dist(1, 0, 0, $PATH()).\ndist(y, $MIN(d + w), $MAX(w), $PATH()) :- dist(x, d, _, _), edge(x, y, w).",
            "PATH",
            "nothing says which $MIN or $MAX",
        ),
        (EDGE + BASE + STEP + ".input dist", "PATH", "`dist` is an input"),
        (EDGE + "dist(1, $PATH()).\ndist(y, $PATH()) :- edge(1, y, _).", "PATH", "`dist` does not recurse"),
        (
            EDGE + ".type P = [a: number, b: number]\n.decl r(p: P, h: number)\nr([1, 1], $HOPS()).\n"
            "r([y, x], $HOPS()) :- r([x, _], _), edge(x, y, _).",
            "PATH",
            "has records or branches",
        ),
        (EDGE + BASE + STEP + ".limit dist(iterations=3)", "PATH", "a limit of 3 iterations returns rows"),
        (
            EDGE + "r(x, y, $PATH()) :- edge(x, y, _).\nr(x, z, $PATH()) :- r(x, y, _), r(y, z, _).",
            "PATH",
            "has no single parent",
        ),
    ],
)
def test_what_is_refused(text: str, code: str, says: str) -> None:
    with pytest.raises((DatalogError, UsageError)) as e:
        requested_program(resolve_text(read(text), {}), ["dist" if "dist" in text else "r"])
    assert e.value.code == f"PARALAGG_{code}"
    assert says in str(e.value)


def test_a_base_that_computes_more_columns_than_its_input_has() -> None:
    text = EDGE + "r(x, y, x + x, 7, $MAX(1), $PATH()) :- edge(x, y, _).\n"
    text += "r(x, y, z + 1, 7, $MAX(v), $PATH()) :- r(x, y, z, 0, v, _)."
    plan = compile_program(requested_program(resolve_text(read(text), {}), ["r"]))
    assert "r@path" in {r.name for s in plan.strata for r in s.relations}


def test_a_limited_set_has_paths_as_its_rows_are_final() -> None:
    text = EDGE + "r(1, $PATH()).\nr(y, $PATH()) :- r(x, _), edge(x, y, _).\n.limit r(iterations=3)"
    assert [r.name for r in requested_program(resolve_text(read(text), {}), ["r"]).relations] == ["r", "r@path"]


def test_an_input_as_dataframe_has_no_path() -> None:
    with pytest.raises(DatalogError, match="`dist` is an input"):
        read(EDGE + BASE + STEP, inputs=["dist"])
