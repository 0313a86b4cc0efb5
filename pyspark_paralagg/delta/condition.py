"""Read which error Spark or Delta has raised."""

from __future__ import annotations

from typing import Any


def condition_of(problem: Any) -> str:  # noqa: ANN401 - pyspark's converted exception, or py4j's
    """Return the condition of Spark's error, such as ``TABLE_OR_VIEW_NOT_FOUND``; an empty text if it has none.

    Spark 3.5 calls it the error's class. pyspark does not convert the error of a failed job.
    """
    import pyspark  # noqa: PLC0415 - optional
    from py4j.protocol import Py4JError  # noqa: PLC0415 - pyspark is optional

    java = getattr(problem, "java_exception", None)
    error = problem if java is None else java
    # Spark 4 still has the old name, which pyspark warns of.
    name = "getCondition" if not pyspark.__version__.startswith("3.") else "getErrorClass"
    try:
        return str(getattr(error, name)() or "")
    except Py4JError:  # only Spark's exceptions have this method
        return ""
