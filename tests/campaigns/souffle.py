"""Run Soufflé's own test cases on `local`, and print how many give Soufflé's rows and why the others do not.

``make souffle SOUFFLE=path`` runs it on a checkout of Soufflé. A case counts if its output files have the expected
rows, in any order, and its standard output has the expected lines. Floats are compared with six digits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CATEGORIES = ("evaluation", "example", "semantic", "syntactic")
_PREPROCESSED = re.compile(r"^\s*#|__FILE__|__LINE__|__INCL__", re.MULTILINE)
_SEPARATORS = re.compile(r"([\s,\[\](){}]+)")
_FLOAT = re.compile(r"-?[\d.]+(e[+-]?\d+)?|-?inf|-?nan")
_CODE = re.compile(r"(PARALAGG_\w+): (.*)")
_NAMES = re.compile(r"`[^`]*`|'[^']*'|/\S+|\d+")
_MAX_SHOWN = 100


@dataclass(frozen=True)
class Case:
    """One program with its facts and expected output; ``stdout`` is the file with the expected standard output."""

    name: str
    program: Path
    facts: Path
    expected: Path
    stdout: Path
    is_preprocessed: bool


@dataclass(frozen=True)
class Outcome:
    """``kind`` is ``passed``, ``refused``, ``other rows`` or ``too slow``; ``reason`` is empty if it passed."""

    kind: str
    reason: str
    seconds: float


def cases(checkout: Path) -> Iterator[Case]:
    """Yield the cases with expected output: of each set of facts, without Soufflé's negative tests."""
    for category in CATEGORIES:
        folder = checkout / "tests" / category
        lists = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
        negative = set(re.findall(r"negative_test\(\s*(\S+?)[\s)]", lists))
        negative -= set(re.findall(r"positive_test\(\s*(\S+?)[\s)]", lists))
        plain = set(re.findall(r"\(\s*(\S+)[^)]*NO_PREPROCESSOR", lists))
        for path in sorted(p for p in folder.iterdir() if p.is_dir() and p.name not in negative):
            program, stdout = path / f"{path.name}.dl", path / f"{path.name}.out"
            if not program.exists():
                continue
            is_preprocessed = path.name not in plain and bool(_PREPROCESSED.search(_text(program)))
            name = f"{category}/{path.name}"
            has_files = any(path.glob("*.csv*"))
            if has_files or (stdout.exists() and stdout.stat().st_size):
                facts = path / "facts" if (path / "facts").is_dir() else path
                yield Case(name, program, facts, path, stdout, is_preprocessed)
            for subfolder in sorted(s for s in path.iterdir() if s.is_dir() and any(s.glob("*.csv"))):
                if subfolder.name != "facts" or not any(path.glob("*.csv")):
                    none = subfolder / "no.out"
                    yield Case(f"{name}:{subfolder.name}", program, subfolder, subfolder, none, is_preprocessed)


def outcome(case: Case, backend: str, limit: float) -> Outcome:
    """Run ``case`` in a process of its own and compare what it writes."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="souffle_") as folder:
        command = [sys.executable, "-m", "pyspark_paralagg", "run", str(case.program), "--facts", str(case.facts)]
        command += ["--out", folder, "--backend", backend, "-q", *(["--cpp"] if case.is_preprocessed else [])]
        with subprocess.Popen(  # noqa: S603 - the command of this package
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, start_new_session=True
        ) as process:
            try:
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return Outcome("too slow", f"more than {limit:.0f} s", limit)
        seconds = time.monotonic() - started
        if process.returncode:
            return Outcome("refused", err.decode(errors="replace").strip(), seconds)
        return Outcome(*_compared(case, Path(folder), out.decode(errors="replace")), seconds)


def _compared(case: Case, folder: Path, stdout: str) -> tuple[str, str]:
    differing = []
    for expected in sorted(case.expected.glob("*.csv")):
        written = folder / expected.name
        if not written.exists() or _rows(_text(written)) != _rows(_text(expected)):
            differing.append(expected.name)
    expected_out = _text(case.stdout) if case.stdout.exists() else ""
    if expected_out and _rows(stdout) != _rows(expected_out):
        differing.append("standard output")
    return ("other rows", ", ".join(differing)) if differing else ("passed", "")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _rows(text: str) -> list[str]:
    lines = (line for line in text.split("\n") if line.strip())
    return sorted("".join(_value(part) for part in _SEPARATORS.split(line)) for line in lines)


def _value(text: str) -> str:
    is_float = _FLOAT.fullmatch(text) and ("." in text or "e" in text or "n" in text)
    try:
        return f"{float(text):.6g}" if is_float else text
    except ValueError:
        return text


def table(outcomes: dict[str, Outcome]) -> str:
    """Return the number of passed cases, and the others by reason, most frequent first."""
    kinds = Counter(o.kind for o in outcomes.values())
    lines = [f"{kinds['passed']} of {len(outcomes)} cases give Soufflé's rows", "", "cases | reason", "--:|---"]
    reasons: dict[str, list[str]] = {}
    for name, result in outcomes.items():
        if result.kind != "passed":
            reasons.setdefault(_reason(result), []).append(name)
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        lines.append(f"{len(names)} | {reason}: {', '.join(sorted(names))}")
    return "\n".join(lines) + "\n"


def _reason(result: Outcome) -> str:
    code = _CODE.search(result.reason)
    if result.kind != "refused" or code is None:
        return result.kind
    return f"{code[1]} {_NAMES.sub('…', code[2].split(' (in ')[0])[:_MAX_SHOWN]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of Soufflé")
    parser.add_argument("names", nargs="*", help="cases such as semantic/leq; all without one")
    parser.add_argument("--backend", default="local")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--into", type=Path, help="file for the outcomes, as JSON; cases that it has are not repeated")
    options = parser.parse_args(arguments)
    outcomes: dict[str, Outcome] = {}
    if options.into is not None and options.into.exists():
        outcomes = {n: Outcome(*o) for n, o in json.loads(options.into.read_text(encoding="utf-8")).items()}
    chosen = [c for c in cases(options.checkout.resolve()) if not options.names or c.name in options.names]
    waiting = [c for c in chosen if c.name not in outcomes]

    def run(case: Case) -> None:
        result = outcomes[case.name] = outcome(case, options.backend, options.limit)
        sys.stderr.write(f"{case.name}: {result.kind}, {result.seconds:.1f} s\n")
        if options.into is not None:
            content = {n: (o.kind, o.reason, o.seconds) for n, o in list(outcomes.items())}
            options.into.write_text(json.dumps(content, indent=1), encoding="utf-8")

    with ThreadPoolExecutor(options.processes) as pool:
        for _ in pool.map(run, waiting):
            pass
    sys.stdout.write(table({c.name: outcomes[c.name] for c in chosen}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
