"""One entry of the registry: what an error code means, and what to do about it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass


@dataclass(frozen=True)
class ErrorCode:
    """One stable code. ``code`` never changes its meaning.

    ``kind`` is the name of the exception class in ``pyspark_paralagg.errors``, or ``IN_SPARK`` if only Spark raises it.
    ``cause`` says when it is raised, ``remedy`` what the user does. ``example`` is the shortest text that raises it:
    a Datalog text, or Python that uses ``spark`` and ``ra``. ``tested_by`` names the tests that raise a code whose
    cause needs more than that, such as a cluster or a missing Java.

    >>> ErrorCode("PARALAGG_DATALOG_SYNTAX", "DatalogError", "It is wrong.", "Correct it.", example='''
    ...     p(x) :- q(x).
    ... ''').example
    'p(x) :- q(x).'
    """

    code: str
    kind: str
    cause: str
    remedy: str
    example: str = ""
    tested_by: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "example", inspect.cleandoc(self.example))

    @property
    def language(self) -> str:
        """Return the language of ``example``: ``python`` or ``datalog``; empty without an example.

        >>> ErrorCode("PARALAGG_DATALOG_SYNTAX", "DatalogError", "", "", "p(x) :- q(x).").language
        'datalog'
        """
        if not self.example:
            return ""
        return "python" if "spark." in self.example or "ra." in self.example else "datalog"


IN_SPARK = "Exceptions of Spark"
"""The kind of a code that only Spark's own exceptions carry, as their condition."""
