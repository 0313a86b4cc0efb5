"""Test rules of sixty atoms, which exceed Python's limits of nested loops and of indentation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mpi_backend.codegen.source import Source
from pyspark_paralagg.command.cli import OK, main

if TYPE_CHECKING:
    from pathlib import Path

ATOMS = 60
NODES = 7
BACKENDS = [("local",), ("mpi", "--ranks", "2"), ("spark",)]
EDGES = ".decl e(a: number, b: number)\n" + " ".join(f"e({n}, {n % NODES + 1})." for n in range(1, NODES + 1))
STEPS = ", ".join(f"e(x{n}, x{n + 1})" for n in range(ATOMS - 1))
CHAIN = f"""{EDGES}
p(1). p(x{ATOMS - 1}) :- p(x0), {STEPS}, !contains("8", to_string(x{ATOMS - 3})), to_string(x2) != "9".
.output p
"""
STAR = f"""{EDGES}
p(x, y0 + y{ATOMS - 1}) :- {", ".join(f"e(x, y{n})" for n in range(ATOMS))}.
.output p
"""


def run(folder: Path, text: str, *arguments: str) -> list[str]:
    """Run a program. Return the rows of `p`."""
    (folder / "p.dl").write_text(text)
    assert main(["run", str(folder / "p.dl"), "-F", str(folder), "-D", str(folder / "out"), *arguments]) == OK
    return (folder / "out" / "p.csv").read_text().splitlines()


def after(node: int, steps: int) -> int:
    """Return the node at the end of a path of ``steps`` edges."""
    return (node - 1 + steps) % NODES + 1


@pytest.mark.usefixtures("spark")
@pytest.mark.rotates(runs=3, turns={"backend": BACKENDS})
@pytest.mark.slow("machine code for a rule of sixty atoms")
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda b: b[0])
def test_a_chain_of_sixty_atoms_recurses(tmp_path: Path, backend: tuple[str, ...]) -> None:
    if backend[0] == "mpi":
        pytest.importorskip("mpi4py")
    reached = {1}
    while len(reached) < len(reached | {after(n, ATOMS - 1) for n in reached}):
        reached |= {after(n, ATOMS - 1) for n in reached}
    assert run(tmp_path, CHAIN, "--backend", *backend) == [str(n) for n in sorted(reached)]


@pytest.mark.rotates(runs=3, turn=2)
@pytest.mark.slow("machine code for a rule of sixty atoms")
def test_a_star_of_sixty_atoms(tmp_path: Path) -> None:
    assert run(tmp_path, STAR, "--backend", "local") == [f"{n}\t{2 * after(n, 1)}" for n in range(1, NODES + 1)]


def test_deep_code_becomes_a_function_of_the_variables_that_it_reads() -> None:
    code = Source()
    code.line("n = cur[0]")
    with code.block("while n < 9:"):
        code.line("b = n + 1")
        with code.function("outer", "total"):
            code.line("c = b + 1")
            with code.function("inner", "total"):
                code.line("total = a[b] + c")
                with code.block("if total > 5:"):
                    code.leave()
        code.line("n = b")
    functions, text = code.functions(["cur", "a", "unread", "total"])
    assert list(functions) == ["inner", "outer"]
    assert functions["inner"] == (
        ["a", "b", "c", "total"],
        "total = a[b] + c\nif total > 5:\n    return True, total\nreturn False, total\n",
    )
    arguments, body = functions["outer"]
    assert arguments == ["a", "b", "total"]
    assert body.splitlines()[1] == "left1, total = inner(a, b, c, total)"
    assert text.splitlines()[3:6] == ["    left2, total = outer(a, b, total)", "    if left2:", "        return"]
