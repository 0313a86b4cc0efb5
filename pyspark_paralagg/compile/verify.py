"""stub, replaced next"""
from dataclasses import replace
from pyspark_paralagg.program.program import Program
from pyspark_paralagg.program.aggregators import AGGREGATORS
def verify(program: Program) -> Program:
    cls=[]
    for r in program.relations:
        cls.append((r.name, "lattice" if all(AGGREGATORS[d.aggregator].is_idempotent for d in r.dependents) else "accumulating"))
    return replace(program, classes=tuple(cls))
