"""Read the value that a conf has before the session starts, from the same places and in the same order as Spark.

A value set on a builder overrides spark-submit's arguments and ``spark-defaults.conf``. ``configure`` appends to lists,
so it has to carry the existing items over.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.session.spark_home import find_spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROPERTY = re.compile(r"\s*(?P<key>[^\s=:#!]+)\s*[=:\s]\s*(?P<value>.*?)\s*")
_SHORT_FORMS = {"spark.jars": "--jars"}


def running_jvm() -> Any | None:  # noqa: ANN401 - a py4j object has no type
    """Return the JVM that pyspark uses, or will use because spark-submit started it; None if there is none."""
    from pyspark import SparkContext  # noqa: PLC0415 - this module loads without pyspark

    if SparkContext._jvm is None and "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001 - pyspark has no public attribute for it
        SparkContext._ensure_initialized()  # noqa: SLF001 - connects; starts neither a JVM nor a context
    return SparkContext._jvm  # noqa: SLF001 - likewise


def existing_value(builder: SparkSession.Builder, key: str) -> str:
    """Return the value that ``key`` has for a session of this builder as it is now; "" if it is unset.

    The builder's own options come first. If a JVM runs, its conf comes next: spark-submit has put its arguments,
    packages and defaults there. Otherwise they are read as the JVM will read them: ``PYSPARK_SUBMIT_ARGS``, then the
    defaults file.
    """
    options: dict[str, object] = builder._options  # noqa: SLF001 - pyspark has no public way to read a builder
    if key in options:
        return str(options[key])
    from pyspark import SparkConf  # noqa: PLC0415 - this module loads without pyspark

    if running_jvm() is not None:
        return SparkConf().get(key, "") or ""
    arguments = _submit_arguments()
    submitted = _from_arguments(arguments, key)
    return submitted if submitted is not None else _from_defaults(arguments, key)


def add_to_submit_arguments(option: str, item: str) -> None:
    """Append ``item`` to the list of an option in ``PYSPARK_SUBMIT_ARGS``, if the variable has that option.

    ``--jars`` in this variable outranks ``spark.jars``: a jar that only the conf names is missing on the driver's class
    path when the session loads its extensions.
    """
    arguments = _submit_arguments()
    changed = False
    for position, argument in enumerate(arguments):
        name, is_joined, value = argument.partition("=")
        if argument == option and position + 1 < len(arguments):
            arguments[position + 1] = _with_item(arguments[position + 1], item)
            changed = True
        elif name == option and is_joined:
            arguments[position] = f"{option}={_with_item(value, item)}"
            changed = True
    if changed:
        os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join(arguments)


def _with_item(items: str, item: str) -> str:
    return items if item in items.split(",") else f"{items},{item}"


def _submit_arguments() -> list[str]:
    return shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))


def _from_arguments(arguments: list[str], key: str) -> str | None:
    conf_value: str | None = None
    short_form_value: str | None = None
    for option, value in _options(arguments):
        if option in ("--conf", "-c") and value.split("=", 1)[0] == key:
            conf_value = value.partition("=")[2]
        elif option == _SHORT_FORMS.get(key):
            short_form_value = value
    return short_form_value if short_form_value is not None else conf_value  # spark-submit's own order


def _from_defaults(arguments: list[str], key: str) -> str:
    files = [value for option, value in _options(arguments) if option == "--properties-file"]
    folder = os.environ.get("SPARK_CONF_DIR")
    defaults = (Path(folder) if folder else find_spark_home().home / "conf") / "spark-defaults.conf"
    file = Path(files[-1]) if files else defaults
    if not file.is_file():
        return ""
    value = ""
    for line in file.read_text(encoding="utf-8").splitlines():
        entry = _PROPERTY.fullmatch(line)
        if entry and entry["key"] == key:
            value = entry["value"]
    return value


def _options(arguments: list[str]) -> list[tuple[str, str]]:
    """Pair each ``--option`` with its value, whether written ``--option value`` or ``--option=value``."""
    pairs = []
    for position, argument in enumerate(arguments):
        if argument.startswith("--") and "=" in argument:
            option, _, value = argument.partition("=")
            pairs.append((option, value))
        elif argument.startswith("-") and position + 1 < len(arguments):
            pairs.append((argument, arguments[position + 1]))
    return pairs
