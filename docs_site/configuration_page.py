"""``reference/configuration.md``: every key of ``pyspark_paralagg/session/conf.py``."""

from __future__ import annotations

from pyspark_paralagg.session.conf import REGISTRY

_HEAD = """\
# Configuration

Set keys of the Spark session with `SparkSession.builder.config(key, value)`, `spark.conf.set(key, value)`, or
`--conf key=value` of [`paralagg run`](command-line.md). A query reads the values when it is planned. A value of the
wrong type is the error [`PARALAGG_BAD_CONF`](errors.md#PARALAGG_BAD_CONF).

*Static* keys name a program or a folder and belong to the application. Set them on the builder, by `--conf`, in
`spark-defaults.conf`, or in Python with `ra.attach(spark, {key: value})`. Spark refuses `SET` and `spark.conf.set` for
them (`CANNOT_MODIFY_STATIC_CONFIG`).
"""
_STATIC = " Static: set it when the application starts."


def markdown() -> str:
    """One section a key, in the registry's order, with the key as its anchor."""
    sections = [_HEAD]
    for key in REGISTRY:
        default = "unset" if key.default is None else f"`{_text(key.default)}`"
        facts = f"Type: {key.type}. Default: {default}.{_STATIC * key.is_static}"
        sections.append(f"## `{key.name}` {{ #{key.name} }}\n\n{key.doc}\n\n{facts}\n")
    return "\n".join(sections)


def _text(default: object) -> str:
    """As one writes it in a conf: Spark's ``true`` is not Python's ``True``."""
    return str(default).lower() if isinstance(default, bool) else str(default)
