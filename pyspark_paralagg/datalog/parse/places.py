"""From spans to errors: the one place that knows how a place in a text is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark_paralagg.errors import DatalogError, ParalaggError, excerpt

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.syntax import Span


Problem = TypeVar("Problem", bound=ParalaggError)


@dataclass(frozen=True)
class Places:
    """A text's source and its name, for messages."""

    source: str
    name: str = "<text>"

    def told(self, span: Span) -> str:
        """``line 4, column 17``, after the file's name where there is one."""
        place = f"line {span.line}, column {span.column}"
        return place if self.name.startswith("<") else f"{self.name}, {place}"

    def line(self, span: Span) -> str:
        """The line at ``span`` with a mark below it."""
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
        """A ``DatalogError`` that shows the line at ``span``."""
        found = DatalogError(code, message, value=value, place=self.told(span), hint=hint, excerpt=self.line(span))
        found.position = (span.line, span.column)
        return found

    def located(self, problem: Problem, span: Span) -> Problem:
        """``problem``, of the same class, at ``span``."""
        found = type(problem)(
            problem.code,
            problem.message,
            value=problem.value,
            place=self.told(span),
            hint=problem.hint,
            excerpt=self.line(span),
        )
        found.position = (span.line, span.column)
        return found
