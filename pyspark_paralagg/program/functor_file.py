"""Load the functions of functors from a Python file: for the command line, and on its ranks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.functor import Functor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def functions_in(file: Path, names: Iterable[str]) -> dict[str, Any]:
    """Return what ``file`` defines under some of the ``names``; raise ``UsageError`` ``PARALAGG_FUNCTOR_FILE``.

    Its module is not in ``sys.modules``, so Spark sends its functions to workers by value.
    """
    spec = importlib.util.spec_from_file_location("paralagg_functors", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise _wrong(file, "does not exist, or is no Python file", "pass the path of a file that ends with .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:
        text = f"{type(problem).__name__}: {problem}".splitlines()[0]
        raise _wrong(file, f"raised {text}", f"correct the file, and run it alone: python {file}") from problem
    return {name: vars(module)[name] for name in names if name in vars(module)}


def described(functors: Sequence[Functor], file: Path) -> dict[str, Any]:
    """Return JSON from which ``functors_of`` makes the functors in another process."""
    types = [{"name": f.name, "parameters": f.parameters, "result": f.result} for f in functors]
    return {"file": str(file.absolute()), "functors": types}


def functors_of(description: Mapping[str, Any]) -> tuple[Functor, ...]:
    """Return the functors of ``described``."""
    types = description["functors"]
    functions = functions_in(Path(description["file"]), [t["name"] for t in types])
    return tuple(Functor(t["name"], tuple(t["parameters"]), t["result"], functions[t["name"]]) for t in types)


def _wrong(file: Path, problem: str, hint: str) -> UsageError:
    message = f"the file {file} {problem}"
    return UsageError("PARALAGG_FUNCTOR_FILE", message, value=str(file), place="--functors", hint=hint)
