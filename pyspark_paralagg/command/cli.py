"""Parse the command line of `paralagg` and run its commands: `run` a program, `doctor`, and its parts for scripts.

`python -m pyspark_paralagg` is the same command. The Makefile calls its `java` before anything is installed, so this
module and its imports run on a bare Python. Only `run` imports the packages that a program needs.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pyspark_paralagg.command.ending import (
    END_SIGNALS,
    forget_signals,
    recorded,
    resend_dropped_signals,
)
from pyspark_paralagg.command.failure import interruption, system_problem
from pyspark_paralagg.errors import EnvironmentProblem, FixpointError, ParalaggError, UsageError
from pyspark_paralagg.session.conf import BACKENDS
from pyspark_paralagg.session.doctor import doctor
from pyspark_paralagg.session.java import find_java
from pyspark_paralagg.session.shim import build_jar, find_jar, find_sources
from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

OK, WRONG, USAGE, FAILED, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143

_EXIT_CODES = """\
exit codes:
  0    all outputs are written
  1    an error in the program, its data or the environment; no output is written
  2    an error in the command line
  3    the run failed: no fixpoint, a limit, an overflow, a lost Spark; no output is written
  130  interrupted (143: terminated); no output is written
"""
_FILES = """\
files:
  .input edge                          edge.facts (tab separated, no header), else edge.parquet or edge.delta
  .input edge(filename="e.csv", delimiter=",", headers="true", rfc4180="true")
  .input edge(filename="e.parquet")    Parquet or Delta by suffix or content, or by IO="parquet", IO="delta"
  .input edge(IO=sqlite, filename="e.db", name="roads")    a table or view of a database, here roads; else edge
  .input edge(IO=jsonfile)             edge.json, a list of rows; each is a list, or an object by column
  .output path                         path.csv, sorted; the same parameters; IO="stdout" prints
  .printsize path                      prints the name and the number of rows
"""


_MASTER = "local[*]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; print errors to standard error, without a traceback."""
    parser = argument_parser()
    args = parser.parse_args(arguments)
    if args.command == "run":
        _check_combination(parser, args)
    try:
        with _unwind_on_signals():
            if args.command == "run":
                _run(args)
            else:
                sys.stdout.write(f"{_run_part(args.command or 'doctor', getattr(args, 'into', None))}\n")
    except BaseException as problem:
        if getattr(args, "debug", False):
            traceback.print_exc()
        interrupt = interruption(problem)
        if interrupt is None and not isinstance(problem, (ParalaggError, OSError)):
            raise
        return _report_problem(interrupt or problem)
    return OK


def _check_combination(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Exit with the usage if options of ``run`` contradict each other."""
    if args.explain and args.backend == "dataframe":
        parser.error("--explain runs nothing, but --backend dataframe computes a recursion while it builds the plan")
    questions = [o for o in ("explain", "why", "why_not") if getattr(args, o) is not None]
    if len(questions) > 1:
        parser.error("use one of --explain, --why and --why-not")
    if questions and args.report:
        parser.error(f"--{questions[0].replace('_', '-')} writes no outputs, so --report has nothing to write")
    if (args.why or args.why_not) and args.backend not in (None, "auto", "local"):
        parser.error(f"--why and --why-not run in this process, not with --backend {args.backend}")
    if args.ranks is not None and args.backend != "mpi":
        parser.error(f"--ranks needs --backend mpi, but the backend is {args.backend or 'auto'}")
    if args.master is not None and args.backend in ("mpi", "local"):
        parser.error(f"--master needs Spark, but --backend {args.backend} runs without Spark")


def _report_problem(problem: BaseException) -> int:
    """Print ``problem`` to standard error and return the exit code."""
    if isinstance(problem, (KeyboardInterrupt, SystemExit)):
        is_terminated = getattr(problem, "code", INTERRUPTED) != INTERRUPTED
        sys.stderr.write(f"{'terminated' if is_terminated else 'interrupted'}; no output is written\n")
        return TERMINATED if is_terminated else INTERRUPTED
    if isinstance(problem, OSError):
        problem = system_problem(problem)
    sys.stderr.write(f"{problem}\n")
    if isinstance(problem, UsageError) and (problem.place or "").startswith("--"):
        return USAGE
    return FAILED if isinstance(problem, FixpointError) else WRONG


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; the documentation generates its page from it."""
    parser = argparse.ArgumentParser(prog="paralagg", description="Recursive aggregates inside Spark.")
    commands = parser.add_subparsers(dest="command", metavar="command")
    run = commands.add_parser(
        "run",
        help="run a Datalog program on files",
        description="Run a Datalog program in Soufflé's syntax, with aggregates in recursive heads.",
        epilog=f"{_FILES}\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("program", type=Path, help="the file of the program, such as program.dl")
    run.add_argument("-F", "--facts", type=Path, default=Path(), metavar="DIR", help="folder of inputs (default: here)")
    run.add_argument("-D", "--out", default=".", metavar="DIR", help="folder of outputs (default: here); - prints them")
    run.add_argument(
        "--format",
        choices=("csv", "parquet", "delta"),
        default="csv",
        help="format of outputs without one of their own (default: csv)",
    )
    run.add_argument(
        "--backend",
        choices=BACKENDS,
        help="executor of recursions; mpi and local need no Spark (default: auto, which is Spark if installed)",
    )
    run.add_argument("--ranks", type=_ranks, metavar="N", help="number of ranks of --backend mpi (default: all cores)")
    run.add_argument(
        "--mode",
        choices=("auto", "iterate", "trust"),
        default="auto",
        help="how to treat recursions that are not proved",
    )
    run.add_argument("--master", help=f"master URL of Spark (default: {_MASTER})")
    run.add_argument(
        "--conf",
        type=_conf,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="conf of Spark, such as spark.driver.memory=8g; repeatable",
    )
    run.add_argument(
        "--explain",
        nargs="?",
        const="text",
        metavar="STAGE",
        help="print the plan without running it (html: a page; program, plan, mermaid or a pass: only that part)",
    )
    run.add_argument(
        "--why",
        metavar="ROW",
        help="print how a row is derived, and no outputs: 'dist(7, _)', with _ for what is no key; runs without Spark",
    )
    run.add_argument("--why-not", metavar="ROW", help="print what each rule lacks that could derive a missing row")
    run.add_argument(
        "--functors",
        type=Path,
        metavar="FILE",
        help="Python file with the functions of the program's functors, by their names",
    )
    run.add_argument("--report", type=Path, metavar="FILE", help="write the RunReport of each output to FILE")
    run.add_argument(
        "--cpp", action="store_true", help="run the C preprocessor over the program first, as Soufflé does"
    )
    run.add_argument("-q", "--quiet", action="store_true", help="write no progress and no warnings to standard error")
    run.add_argument("--debug", action="store_true", help="show tracebacks and all output of Spark")
    commands.add_parser("doctor", help="check the installation (also without a command)")
    commands.add_parser("java", help="print the Java that Spark uses")
    commands.add_parser("spark-home", help="print the folder of Spark")
    shim = commands.add_parser("shim", help="print the path of the shim's jar, compiled if necessary")
    shim.add_argument("--into", type=Path, help="compile into this folder, as paralagg-spark<minor>.jar")
    return parser


def _conf(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value")
    return key.strip(), value


def _ranks(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of ranks")
    return int(text)


def _run(args: argparse.Namespace) -> None:
    try:
        _run_program(args)
    except ModuleNotFoundError as problem:
        message = f"the Python package {problem.name} is not installed"
        hint = "run pip install pyspark-paralagg, which installs all required packages"
        raise EnvironmentProblem("PARALAGG_PACKAGE_MISSING", message, value=problem.name, hint=hint) from problem


def _run_program(args: argparse.Namespace) -> None:
    from pyspark_paralagg.command.run import run  # noqa: PLC0415 - needs packages that `doctor` does not
    from pyspark_paralagg.command.task import Options  # noqa: PLC0415 - likewise

    options = Options(
        program=args.program,
        facts=args.facts,
        out=None if args.out == "-" else Path(args.out),
        format="text" if args.format == "csv" else args.format,
        backend=args.backend,
        mode=args.mode,
        master=args.master or _MASTER,
        ranks=args.ranks,
        confs=tuple(args.conf),
        explain=args.explain,
        why=args.why,
        why_not=args.why_not,
        report=args.report,
        functors=args.functors,
        is_quiet=args.quiet,
        uses_cpp=args.cpp,
        shows_jvm=args.debug,
    )
    with warnings.catch_warnings():
        if not args.debug:
            warnings.simplefilter("ignore")  # PySpark warns about pandas
        run(options)


def _run_part(part: str, into: Path | None) -> object:
    if part == "java":
        return find_java().description
    if part == "spark-home":
        return find_spark_home().home
    if part == "doctor":
        return doctor()
    if into is None:
        return find_jar()
    spark = find_spark_home()
    jar = into / f"paralagg-spark{spark.minor}.jar"
    build_jar(spark, find_sources(spark.minor), jar)
    return jar


@contextmanager
def _unwind_on_signals() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into ``SystemExit``, so that an unfinished run removes its files as on Ctrl-C."""

    def unwind(signum: int, frame: FrameType | None) -> NoReturn:
        del signum, frame
        raise SystemExit(TERMINATED)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    forget_signals()
    handlers = {s: signal.getsignal(s) for s in END_SIGNALS}
    for number, handler in handlers.items():
        if number == signal.SIGINT and callable(handler):  # Python's, PySpark's, or the application's
            signal.signal(number, recorded(handler))
        elif number != signal.SIGINT and handler is not signal.SIG_IGN:  # nohup ignores SIGHUP
            signal.signal(number, recorded(unwind))
    try:
        with resend_dropped_signals():
            yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
