"""``reference/configuration.md``: every key of ``pyspark_paralagg/session/conf.py``."""

from __future__ import annotations

from pyspark_paralagg.session.conf import REGISTRY

_HEAD = """\
# Configuration

Keys of the Spark session: `SparkSession.builder.config(key, value)`, `spark.conf.set(key, value)`, or
`--conf key=value` of [`paralagg run`](command-line.md). A query reads what stands there when it is planned. A value
that is not of the key's type is the error [`PARALAGG_BAD_CONF`](errors.md#PARALAGG_BAD_CONF).

*Static* keys name a program or a folder. They belong to the application: set them on the builder, by `--conf`, in
`spark-defaults.conf`, or in Python by `ra.attach(spark, {key: value})`. `SET` and `spark.conf.set` are refused by Spark
(`CANNOT_MODIFY_STATIC_CONFIG`).
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
