"""Read a text: parse it, then reduce Soufflé's larger constructs to plain rules.

``parse`` -> **desugar** -> ``resolve``. Each pass takes a tree and returns one; what follows knows only plain rules, so
every executor runs the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.desugar.body_counters import with_counters_in_heads
from pyspark_paralagg.datalog.desugar.choice import without_choices
from pyspark_paralagg.datalog.desugar.components import without_components
from pyspark_paralagg.datalog.desugar.counters import without_counters
from pyspark_paralagg.datalog.desugar.equivalences import without_equivalences
from pyspark_paralagg.datalog.desugar.inline import without_inlined
from pyspark_paralagg.datalog.desugar.ordinals import without_ordinals
from pyspark_paralagg.datalog.desugar.records import without_structures
from pyspark_paralagg.datalog.desugar.subsumption import without_subsumption
from pyspark_paralagg.datalog.desugar.traces import without_traces
from pyspark_paralagg.datalog.parse.parse import parse

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_paralagg.datalog.parse.syntax import Text


def read(source: str, name: str = "<text>", inputs: Collection[str] = ()) -> Text:
    """Return the plain syntax tree of ``source``; ``inputs`` are relations whose rows come from outside.

    Raise ``DatalogError`` with the places of the text's problems.

    >>> text = read(".comp C { .decl p(x: number) p(1). } .init c = C")
    >>> [type(c).__name__ for c in text.clauses], text.clauses[1].heads[0].relation
    (['Declaration', 'Rule'], 'c.p')
    """
    text = without_traces(without_components(parse(source, name)), inputs)
    text = without_counters(with_counters_in_heads(without_ordinals(without_inlined(text))))
    text = without_choices(without_subsumption(text, inputs), inputs)
    return without_structures(without_equivalences(text, inputs))
