"""Which executor runs a job, and why: the only module that names the backends.

The order of causes is the order of the questions, and only the first cause is told: what was asked for, what the
session can do, what the job needs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_paralagg import conf
from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.backends.protocol import Backend, Job

logger = logging.getLogger("pyspark_paralagg")


def execute(job: Job, backend: str | None) -> dict[str, DataFrame]:
    """Runs ``job`` (or builds its lazy result) where the argument ``backend``, else the session's conf, wants it.

    ``auto`` takes the Spark engine and, where that has an obstacle or refuses the job, plain DataFrames, with a
    warning that says why. Who insists on ``spark`` gets the reason as ``UnsupportedError``.
    """
    # The compiler comes with them: importing the package does not wait for it.
    from pyspark_paralagg.backends.dataframe import DataFrameBackend  # noqa: PLC0415
    from pyspark_paralagg.backends.spark import SparkBackend  # noqa: PLC0415

    spark: Backend = SparkBackend()
    plain: Backend = DataFrameBackend()
    wanted = backend or conf.read(job.session, conf.BACKEND)
    by = f'backend="{wanted}"' if backend else f"{conf.BACKEND.name}={wanted}"
    if wanted in conf.BACKENDS_LATER:
        raise UnsupportedError(
            "PARALAGG_BACKEND_LATER", f"the backend {wanted!r} comes in a later version", value=wanted, place=by
        )
    if wanted == "dataframe":
        return plain.run(job, f"asked for by {by}")
    reason = spark.obstacle(job.session)
    if reason is None:
        chosen = "the Spark engine takes every step that it can compile" if wanted == "auto" else f"asked for by {by}"
        try:
            return spark.run(job, chosen)
        except UnsupportedError as problem:
            if wanted == "spark":
                raise
            reason = problem.message + (f" (in {problem.place})" if problem.place else "")
    elif wanted == "spark":
        raise UnsupportedError("PARALAGG_BACKEND_UNAVAILABLE", reason, value=wanted, place=by)
    logger.warning("%s runs now, on plain DataFrames and iteration by iteration: %s", job.name, reason)
    return plain.run(job, reason)
