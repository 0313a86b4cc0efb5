"""Makes a failing case smaller: fewer clauses, fewer literals, fewer rows, for as long as it fails in the same way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from datalog.programs_random import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def shrunk(case: Case, fails: Callable[[Case], bool], most: int = 400) -> Case:
    """The smallest case found with ``most`` calls of ``fails``."""
    tried = 0
    is_smaller = True
    while is_smaller and tried < most:
        is_smaller = False
        for smaller in _smaller(case):
            tried += 1
            if fails(smaller):
                case, is_smaller = smaller, True
                break
            if tried >= most:
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    lines = case.text.splitlines()
    for n in range(len(lines)):
        yield _of("\n".join(lines[:n] + lines[n + 1 :]), case)
    for name, rows in case.facts.items():
        if len(rows) > 1:
            yield replace(case, facts={**case.facts, name: rows[: len(rows) // 2]})
            yield replace(case, facts={**case.facts, name: rows[len(rows) // 2 :]})
        for n in range(len(rows)):
            yield replace(case, facts={**case.facts, name: rows[:n] + rows[n + 1 :]})
    for n, line in enumerate(lines):
        head, arrow, body = line.partition(" :- ")
        literals = split(body.removesuffix(".")) if arrow else []
        for m in range(len(literals)) if len(literals) > 1 else ():
            rest = ", ".join(literals[:m] + literals[m + 1 :])
            yield _of("\n".join([*lines[:n], f"{head} :- {rest}.", *lines[n + 1 :]]), case)


def _of(text: str, case: Case) -> Case:
    """``text`` with the inputs that it reads."""
    read = [name for name in case.inputs if f"{name}(" in text]
    return Case(text, {n: case.inputs[n] for n in read}, {n: case.facts[n] for n in read})


def split(body: str) -> list[str]:
    """The literals of a body: what commas outside of brackets and strings divide."""
    found, depth, is_text, start = [], 0, False, 0
    for n, c in enumerate(body):
        if c == '"':
            is_text = not is_text
        elif not is_text:
            depth += (c in "({") - (c in ")}")
            if c == "," and depth == 0:
                found.append(body[start:n].strip())
                start = n + 1
    return [*found, body[start:].strip()]
