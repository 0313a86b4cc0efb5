"""Writes ``docs/semantics.md`` from ``template.md`` and the programs here: ``python tests/verdicts/semantics.py``.

Each ``.dl`` begins with lines ``// key: value``: what it is an example of, and what the check is expected to say of it.
``tests/compile/test_verdicts.py`` compares, and sees to it that the file on disk is what this makes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.compile import PASSES, compile_program
from pyspark_paralagg.compile.prove.verdict import Judgement, Proved
from pyspark_paralagg.compile.prove.verify import judgements, verify
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve
from pyspark_paralagg.errors import VerificationError

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import Plan
    from pyspark_paralagg.program.program import Program

HERE = Path(__file__).parent
TARGET = HERE.parent.parent / "docs" / "semantics.md"
CLASSES = ("set", "lattice", "accumulating")
SHAPES = ("linear", "non-linear", "mutual", "filtered", "carried", "thresholded")


@dataclass(frozen=True)
class Found:
    """One program and what the check says: ``verdict`` is proved, refuted or unknown."""

    name: str
    header: dict[str, str]
    verdict: str
    judged: tuple[Judgement, ...] = ()
    plan: Plan | None = None
    error: VerificationError | None = None

    @property
    def expected(self) -> str:
        """As ``// expect:`` says it."""
        return self.verdict if self.error is None else f"{self.verdict} {self.error.code}"


def program_of(file: Path) -> Program:
    """The Program of a text."""
    return resolve(parse(file.read_text(), file.name), {})


def check(file: Path) -> Found:
    """What the check says of one program."""
    header = dict(
        line.removeprefix("// ").split(": ", 1) for line in file.read_text().splitlines() if line.startswith("// ")
    )
    try:
        program = program_of(file)
        plan = compile_program(program)
    except VerificationError as error:
        verdict = "unknown" if error.code == "PARALAGG_NOT_PROVED" else "refuted"
        return Found(file.stem, header, verdict, error=error)
    for run in PASSES[: PASSES.index(verify)]:
        program = run(program)
    return Found(file.stem, header, "proved", tuple(judgements(program)), plan)


def iterated(file: Path) -> Plan:
    """The plan under ``mode="iterate"``."""
    return compile_program(replace(program_of(file), mode="iterate"))


def files(folder: Path = HERE) -> list[Path]:
    """The programs of a folder, in the order of their names."""
    return sorted(folder.glob("*.dl"))


def document() -> str:
    """The whole file."""
    shapes = [check(f) for f in files()]
    shapes.sort(key=lambda f: (CLASSES.index(f.header["class"]), SHAPES.index(f.header["shape"])))
    papers = [check(f) for f in files(HERE / "programs")]
    tables = {"@matrix": _matrix(shapes), "@rows": _rows(shapes), "@papers": _papers(papers), "@rank": _rank()}
    lines = (HERE / "template.md").read_text().splitlines()
    return "\n".join(x for line in lines for x in tables.get(line, [line])) + "\n"


def _matrix(found: list[Found]) -> list[str]:
    lines = [f"| class | {' | '.join(SHAPES)} |", f"|---|{'---|' * len(SHAPES)}"]
    for name in CLASSES:
        cells = []
        for shape in SHAPES:
            here = [f.verdict for f in found if (f.header["class"], f.header["shape"]) == (name, shape)]
            counts = [f"{here.count(v)} {v}" for v in ("proved", "refuted", "unknown") if v in here]
            cells.append(", ".join(counts))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _rows(found: list[Found]) -> list[str]:
    lines = ["| class | shape | program | rule | verdict | by what, or why not |", "|---|---|---|---|---|---|"]
    for f in found:
        head = f"{f.header['class']} | {f.header['shape']} | {_escaped(f.header['says'])} | {_rule(f)}"
        lines.append(f"| {head} | {f.verdict} | {_escaped(_why(f))} |")
    return lines


def _rule(found: Found) -> str:
    """The rule that is refuted; of a program that is proved, the last one."""
    lines = (HERE / f"{found.name}.dl").read_text().splitlines()
    line = re.search(r"line (\d+)", str(found.error.place)) if found.error else None
    rule = lines[int(line[1]) - 1] if line else [x for x in lines if ":-" in x][-1]
    return f"`{_escaped(rule)}`"


def _why(found: Found) -> str:
    if found.error is not None:
        told = found.error.message
        if found.verdict == "unknown":
            told += f". {(found.error.hint or '').split(',')[0]}"
        return f"`{found.error.code}`: {told}"
    by: dict[str, list[str]] = {}
    for j in found.judged:
        left, _, right = j.claim.partition(" = ")
        is_copy = right.startswith(tuple(f"{left} {verb}" for verb in ("never", "is linear", "follows")))
        if isinstance(j.verdict, Proved) and not is_copy:
            by.setdefault(j.verdict.by, []).append(j.claim)
    told = [f"{'; '.join(dict.fromkeys(claims))}: by {means}" for means, claims in by.items()]
    return ". ".join(told) or "values are copied, and what is there once stays"


def _papers(found: list[Found]) -> list[str]:
    lines = [
        "| program | aggregator | written after | the paper | here | by | evaluated as |",
        "|---|---|---|---|---|---|---|",
    ]
    for f in found:
        h = f.header
        theirs = "no" if "refuted" in h["expect"] else "yes"
        if f.plan is None:
            lines.append(
                f"| {h['name']} | {h['aggregator']} | {h['from']} | {theirs} | refuted | {_escaped(_why(f))} | "
                'iterated, with `mode="iterate"` |'
            )
            continue
        means = dict.fromkeys(j.verdict.by for j in f.judged if isinstance(j.verdict, Proved))
        last = f.plan.strata[-1]
        recursive = next((s for s in reversed(f.plan.strata) if any(_is_recursive(r) for r in s.rules)), last)
        how = recursive.relation_class
        if how == "iterated":
            how = "iterated: it starts from other rows than its base (see below)"
        lines.append(
            f"| {h['name']} | {h['aggregator']} | {h['from']} | {theirs} | proved | {', '.join(means)} | {how} |"
        )
    return lines


def _is_recursive(rule: object) -> bool:
    return getattr(rule, "head", None) == getattr(getattr(rule, "driver", None), "relation", "")


def _rank() -> list[str]:
    found = check(HERE / "programs" / "07_pagerank.dl")
    reasons = found.plan.reasons if found.plan else ()
    [shown] = [r for r in reasons if "incremental form" in r]
    return ["```", shown, "```"]


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(document())
