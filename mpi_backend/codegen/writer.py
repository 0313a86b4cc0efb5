"""Write code that may end the kernel with an error, for arithmetic, casts and other expressions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi_backend.codegen.source import Source
    from mpi_backend.state.texts import TextCall

GUARD = "PARALAGG_ASSUMPTION_VIOLATED"
_RESTS_ON_RANGE = (
    "the proof assumes that no value overflows its type (use a wider type, or mode='iterate', where "
    "values wrap around as without ANSI mode)"
)


@dataclass
class Sites:
    """The errors (condition, message), calls of text functions and constant texts that a kernel's status numbers."""

    errors: list[tuple[str, str]] = field(default_factory=list)
    calls: list[TextCall] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)


class Writer:
    """A writer into ``code`` that lists errors in ``sites``. With ``ansi``, overflow is an error."""

    def __init__(self, code: Source, sites: Sites, *, ansi: bool) -> None:
        self.code = code
        self.sites = sites
        self.ansi = ansi
        self.rests_on_range = False
        """True while writing a call whose overflow is an error only because the proof relies on its range."""

    def fail(self, condition: str, error: str, message: str) -> None:
        """Write code that ends the kernel with an error if ``condition`` is true."""
        if self.rests_on_range and error.endswith("_OVERFLOW"):
            error, message = GUARD, f"{_RESTS_ON_RANGE}, and {message}"
        if (error, message) not in self.sites.errors:
            self.sites.errors.append((error, message))
        with self.code.block(f"if {condition}:"):
            self.code.line(f"cur[STATUS] = FAILED + {self.sites.errors.index((error, message))}")
            self.code.leave()
