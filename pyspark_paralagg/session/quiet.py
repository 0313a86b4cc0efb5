"""Suppress the log records of errors that the caller reports itself."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@contextmanager
def without_spark_logs() -> Iterator[None]:
    """Suppress the log records of PySpark and py4j, which print each exception's stack before they raise it."""
    get_logger: Callable[[str], logging.Logger] = logging.getLogger
    with suppress(ImportError):  # Spark 3.5 logs by Python's own
        from pyspark.logger import PySparkLogger  # noqa: PLC0415 - slow to load

        get_logger = PySparkLogger.getLogger
    loggers = [get_logger(name) for name in _LOGGERS]
    disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    root = logging.getLogger()  # py4j logs there
    root.addFilter(_is_not_from_py4j)
    try:
        yield
    finally:
        root.removeFilter(_is_not_from_py4j)
        for logger, was_disabled in zip(loggers, disabled, strict=True):
            logger.disabled = was_disabled


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
