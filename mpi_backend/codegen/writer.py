"""Writes generated code that may end in an error: what arithmetic, casts and other expressions have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpi_backend.codegen.source import Source
    from mpi_backend.state.texts import TextCall

GUARD = "PARALAGG_ASSUMPTION_VIOLATED"
_RESTS_ON_RANGE = (
    "the proof rests on no value leaving the range of its type (take a wider type, or ask for mode='iterate', where it "
    "wraps around as without ANSI mode)"
)


@dataclass
class Sites:
    """The places that a kernel's status names: errors (condition, message), calls of text functions, constant texts."""

    errors: list[tuple[str, str]] = field(default_factory=list)
    calls: list[TextCall] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)


class Writer:
    """Writes into ``code``; errors are kept in ``sites``. ``ansi`` says whether overflow is an error."""

    def __init__(self, code: Source, sites: Sites, *, ansi: bool) -> None:
        self.code = code
        self.sites = sites
        self.ansi = ansi
        self.rests_on_range = False
        """True while a call is written whose overflow is an error only because the proof rests on it."""

    def fail(self, condition: str, error: str, message: str) -> None:
        """Ends the kernel with an error where ``condition`` holds."""
        if self.rests_on_range and error.endswith("_OVERFLOW"):
            error, message = GUARD, f"{_RESTS_ON_RANGE}, and {message}"
        if (error, message) not in self.sites.errors:
            self.sites.errors.append((error, message))
        with self.code.block(f"if {condition}:"):
            self.code.line(f"cur[STATUS] = FAILED + {self.sites.errors.index((error, message))}")
            self.code.leave()
