"""Run Soufflé's own test cases on an engine, and print how many give Soufflé's rows and why the others do not.

``make souffle SOUFFLE=path`` runs it on a checkout of Soufflé. Each case has a process of its own; on Spark, each of
``--processes`` runs its cases in one JVM, because its start would take most of the time. A case counts if its output
files have the expected rows, in any order, and its standard output has the expected lines. Floats are compared with
six digits.
"""

from __future__ import annotations

import argparse
import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.command.cli import main as main_of_command
from pyspark_paralagg.command.preprocess import source_of
from pyspark_paralagg.command.run import STANDALONE
from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.resolve.types import declared_types
from pyspark_paralagg.datalog.text_to_program import resolve
from pyspark_paralagg.errors import ParalaggError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CATEGORIES = ("evaluation", "example", "semantic", "syntactic")
_PREPROCESSED = re.compile(r"^\s*#|__FILE__|__LINE__|__INCL__", re.MULTILINE)
_SEPARATORS = re.compile(r"([\s,\[\](){}]+)")
_FLOAT = re.compile(r"-?[\d.]+(e[+-]?\d+)?|-?inf|-?nan")
_CODE = re.compile(r"(PARALAGG_\w+): (.*)")
_NAMES = re.compile(r"`[^`]*`|'[^']*'|/\S+|\d+")
_MAX_SHOWN = 100
_on_spark = threading.local()
"""The process that runs this thread's cases on Spark: `pool` and `pid`."""


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


def is_recursive(case: Case) -> bool:
    """Return whether the compiler finds a recursive relation in the program; False for a text that it refuses."""
    try:
        text = read(source_of(case.program, uses_cpp=case.is_preprocessed), str(case.program))
        needs = Dependencies(resolve(text, declared_types(text)))
    except ParalaggError:
        return False
    return any(needs.recursive_rules(name) for name in needs.strata)


def outcome(case: Case, backend: str, confs: Sequence[str], limit: float) -> Outcome:
    """Run ``case`` and compare what it writes."""
    started = time.monotonic()
    run = _run_command if backend in STANDALONE else _run_on_spark
    with tempfile.TemporaryDirectory(prefix="souffle_") as folder:
        arguments = ["run", str(case.program), "--facts", str(case.facts), "--out", folder, "--backend", backend, "-q"]
        arguments += [*(["--cpp"] if case.is_preprocessed else []), *(a for c in confs for a in ("--conf", c))]
        try:
            code, out, err = run(arguments, folder, limit)
        except (subprocess.TimeoutExpired, TimeoutError):
            return Outcome("too slow", f"more than {limit:.0f} s", limit)
        seconds = time.monotonic() - started
        if code:
            return Outcome("refused", err.decode(errors="replace").strip(), seconds)
        return Outcome(*_compared(case, Path(folder), out.decode(errors="replace")), seconds)


def _run_command(arguments: list[str], folder: str, limit: float) -> tuple[int, bytes, bytes]:
    command = [sys.executable, "-m", "pyspark_paralagg", *arguments]
    with subprocess.Popen(  # noqa: S603 - the command of this package
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, start_new_session=True
    ) as process:
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


def _run_on_spark(arguments: list[str], _: str, limit: float) -> tuple[int, bytes, bytes]:
    """Run the command in the process of this thread, which is killed with its JVM after ``limit`` seconds."""
    if not hasattr(_on_spark, "pool"):
        _on_spark.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start_spark)
        _on_spark.pid = _on_spark.pool.submit(os.getpid).result()
    try:
        return _on_spark.pool.submit(_run_in_process, arguments).result(limit)
    except FutureTimeoutError:
        os.kill(_on_spark.pid, signal.SIGKILL)
        del _on_spark.pool
        raise TimeoutError from None


def _start_spark() -> None:
    """Start the session that the commands in this process use. They stop only sessions that they start."""
    from jvm_options import use_quick_jvms  # noqa: PLC0415 - beside the tests; other engines do not need it
    from pyspark.sql import SparkSession  # noqa: PLC0415 - other engines do not need it

    from pyspark_paralagg import configure  # noqa: PLC0415 - likewise

    use_quick_jvms()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    configure(
        builder.config("spark.sql.shuffle.partitions", "2").config("spark.ui.showConsoleProgress", "false")
    ).getOrCreate()


def _run_in_process(arguments: list[str]) -> tuple[int, bytes, bytes]:
    out, err = io.BytesIO(), io.BytesIO()
    texts = (io.TextIOWrapper(b, "utf-8", write_through=True) for b in (out, err))
    with redirect_stdout(next(texts)), redirect_stderr(next(texts)):
        code = main_of_command(arguments)
        return code, out.getvalue(), err.getvalue()


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
    parser.add_argument("--conf", action="append", default=[], help="KEY=VALUE for each run")
    parser.add_argument("--recursive", action="store_true", help="only cases with a recursive relation")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--into", type=Path, help="file for the outcomes, as JSON; cases that it has are not repeated")
    options = parser.parse_args(arguments)
    outcomes: dict[str, Outcome] = {}
    if options.into is not None and options.into.exists():
        outcomes = {n: Outcome(*o) for n, o in json.loads(options.into.read_text(encoding="utf-8")).items()}
    chosen = [c for c in cases(options.checkout.resolve()) if not options.names or c.name in options.names]
    chosen = [c for c in chosen if not options.recursive or is_recursive(c)]
    waiting = [c for c in chosen if c.name not in outcomes]

    def run(case: Case) -> None:
        result = outcomes[case.name] = outcome(case, options.backend, options.conf, options.limit)
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
