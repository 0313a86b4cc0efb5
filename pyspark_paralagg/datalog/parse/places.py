"""Turn spans into places in error messages: the file's name, line, column and an excerpt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_paralagg.errors import DatalogError, ParalaggError, excerpt

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.syntax import Span


Problem = TypeVar("Problem", bound=ParalaggError)


@dataclass(frozen=True)
class Places:
    """The source of a text and its name, for messages."""

    source: str
    name: str = "<text>"

    def describe(self, span: Span) -> str:
        """Return ``line 4, column 17``, after the file's name if the text has one."""
        place = f"line {span.line}, column {span.column}"
        return place if self.name.startswith("<") else f"{self.name}, {place}"

    def line(self, span: Span) -> str:
        """Return the line at ``span`` with a mark below it."""
        width = span.end_column - span.column if span.end_line == span.line else len(self.source)
        return excerpt(self.source, span.line, span.column, width)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        hint: str | None = None,
        value: Any = None,  # noqa: ANN401 - the offending value may be anything
    ) -> DatalogError:
        """Return a ``DatalogError`` that shows the line at ``span``."""
        result = DatalogError(code, message, value=value, place=self.describe(span), hint=hint, excerpt=self.line(span))
        result.position = (span.line, span.column)
        return result

    def located(self, problem: Problem, span: Span) -> Problem:
        """Return a copy of ``problem`` placed at ``span``."""
        result = type(problem)(
            problem.code,
            problem.message,
            value=problem.value,
            place=self.describe(span),
            hint=problem.hint,
            excerpt=self.line(span),
        )
        result.position = (span.line, span.column)
        return result
