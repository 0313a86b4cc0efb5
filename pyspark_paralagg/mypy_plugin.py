"""Tell mypy the type of ``df.recursive_agg``, which pyspark's DataFrame has only while this package is imported.

    [tool.mypy]
    plugins = ["pyspark_paralagg.mypy_plugin"]

Without the plugin mypy takes ``df.recursive_agg`` for a column of that name. Other type checkers have no plugins:
``ra.recursive_agg(df, ...)`` and ``df.transform(ra.recursive_agg, ...)`` are typed everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy.plugin import Plugin
from mypy.types import CallableType

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy.plugin import AttributeContext
    from mypy.types import Type

_MODULE, _FUNCTION = "pyspark_paralagg.api.dataframe", "recursive_agg"
_FRAMES = ("pyspark.sql.dataframe.DataFrame", "pyspark.sql.connect.dataframe.DataFrame")


class ParalaggPlugin(Plugin):
    """Gives DataFrames the method."""

    def get_attribute_hook(self, fullname: str) -> Callable[[AttributeContext], Type] | None:
        """Return the hook for ``DataFrame.recursive_agg``."""
        return self._method if fullname in [f"{frame}.{_FUNCTION}" for frame in _FRAMES] else None

    def _method(self, context: AttributeContext) -> Type:
        symbol = self.lookup_fully_qualified(f"{_MODULE}.{_FUNCTION}")
        function = None if symbol is None or symbol.node is None else getattr(symbol.node, "type", None)
        if not isinstance(function, CallableType):  # the file does not import the package
            return context.default_attr_type
        return function.copy_modified(
            arg_types=function.arg_types[1:], arg_kinds=function.arg_kinds[1:], arg_names=function.arg_names[1:]
        )


def plugin(version: str) -> type[Plugin]:
    """Return the plugin; mypy calls this with its version."""
    del version
    return ParalaggPlugin
