"""Read which error Spark or Delta has raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def condition_of(problem: Any) -> str:  # noqa: ANN401 - pyspark's converted exception, or py4j's
    """Return the condition of Spark's error, such as ``TABLE_OR_VIEW_NOT_FOUND``; an empty text if it has none.

    Spark 3.5 calls it the error's class. pyspark does not convert the error of a failed job, and that of 3.5 wraps the
    error of its task.
    """
    import pyspark  # noqa: PLC0415 - optional

    # Spark 4 still has the old name, which pyspark warns of.
    name = "getCondition" if not pyspark.__version__.startswith("3.") else "getErrorClass"
    return next(filter(None, (_called(error, name) for error in _causes(problem))), "")


def message_of(problem: Any) -> str:  # noqa: ANN401 - likewise
    """Return the message of Spark's error, without what wraps it and without Java's stack."""
    if getattr(problem, "java_exception", None) is None:
        return str(problem)
    *_, innermost = _causes(problem)
    return _called(innermost, "getMessage") or str(problem)


def _causes(problem: Any) -> Iterator[Any]:  # noqa: ANN401 - likewise
    """Yield the error, or in its place the JVM's own errors that py4j shows, from the outermost on."""
    error = getattr(problem, "java_exception", None)
    if error is None:
        yield problem
    while error is not None:
        yield error
        error = error.getCause()


def _called(error: Any, name: str) -> str:  # noqa: ANN401 - an exception of pyspark or of the JVM
    from py4j.protocol import Py4JError  # noqa: PLC0415 - pyspark is optional

    try:
        return str(getattr(error, name)() or "")
    except (AttributeError, Py4JError):  # only Spark's exceptions have conditions
        return ""
