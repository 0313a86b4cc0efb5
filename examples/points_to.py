"""Can the password end up in the log? Points-to analysis of a small Python program, in Datalog.

    python -m examples.points_to [--out demo-output]        (or: make example NAME=points_to)

Andersen's analysis with fields, as Java analysers do it: which objects may a variable hold, and which may a field of
an object hold? Each needs the other, so the two relations recurse through each other. An object is named by the line
that makes it. The analysis knows no order of statements, so it may say too much and never too little; the test runs
the program for real and holds what happened against it.

Look at the end of the rules: `within` counts the fields that lie between two objects, by $MIN. Objects point at each
other in circles here, so counting without an aggregate would not end.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pyspark_paralagg as ra
from examples import layers, stage

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import SparkSession

PROGRAM = """\
password = Secret()
name = Text()
user = User()
user.name = name
user.password = password
session = Session()
session.user = user
user.session = session
cache = Cache()
cache.latest = session
request = Request()
request.target = name
copy = request
error = Failure()
error.context = copy
log = Log()
log.entry = error
last = cache.latest
copy.session = last
metrics = Metrics()
metrics.label = request.target
"""
RULES = """\
.decl new(var: symbol, object: symbol)
.decl assign(into: symbol, of: symbol)
.decl load(into: symbol, base: symbol, field: symbol)    // into = base.field
.decl store(base: symbol, field: symbol, of: symbol)     // base.field = of
.decl holds(var: symbol, object: symbol)
.decl field(object: symbol, field: symbol, to: symbol)
.decl within(object: symbol, to: symbol, fields: number)
.input new, assign, load, store
.output holds, field, within

holds(v, o) :- new(v, o).
holds(v, o) :- assign(v, w), holds(w, o).
holds(v, o) :- load(v, w, f), holds(w, p), field(p, f, o).
field(p, f, o) :- store(v, f, w), holds(v, p), holds(w, o).

// How many fields away is one object from another?
within(p, o, $MIN(1)) :- field(p, _, o).
within(p, o, $MIN(n + 1)) :- within(p, q, n), field(q, _, o).
"""
COLUMNS = {
    "new": "var string, object string",
    "assign": "into string, of string",
    "load": "into string, base string, field string",
    "store": "base string, field string, of string",
}
ROSE, GOLD = "#f4617b", "#ffd166"


def facts_of(program: str) -> dict[str, list[tuple[str, ...]]]:
    """The rows of ``new``, ``assign``, ``load`` and ``store``; what a field is given has a variable of its own."""
    facts: dict[str, list[tuple[str, ...]]] = {name: [] for name in COLUMNS}
    for statement in ast.parse(program).body:
        line = statement.lineno
        match statement:
            case ast.Assign([ast.Attribute(ast.Name(base), field)], value):
                into = f"(line {line})"
                facts["store"].append((base, field, into))
            case ast.Assign([ast.Name(into)], value):
                pass
            case _:
                raise SyntaxError(f"line {line}: {ast.unparse(statement)} is no assignment to a variable or a field")
        match value:
            case ast.Call(ast.Name(kind), [], []):
                facts["new"].append((into, f"{kind}:{line}"))
            case ast.Name(of):
                facts["assign"].append((into, of))
            case ast.Attribute(ast.Name(base), field):
                facts["load"].append((into, base, field))
            case _:
                raise SyntaxError(f"line {line}: {ast.unparse(value)} is no new object, variable or field")
    return facts


def tell(spark: SparkSession, out: Path) -> Path:
    # %% The program, and what it says about objects, as rows.
    print(PROGRAM)
    frames = {name: spark.createDataFrame(rows, COLUMNS[name]) for name, rows in facts_of(PROGRAM).items()}

    # %% The analysis: `holds` and `field` recurse through each other, `within` comes after them.
    found = ra.datalog(spark, RULES, frames)
    holds, field, within = (found[name].toPandas() for name in ("holds", "field", "within"))

    # %% The answer. From which objects does one get to the password, and over how many fields?
    secret = holds.object[holds["var"] == "password"].item()
    leaks = within[within.to == secret].sort_values(["fields", "object"])
    print("\nWhoever has one of these has the password:\n")
    for name, fields in zip(leaks.object, leaks.fields, strict=True):
        variables = ", ".join(sorted(v for v in holds["var"][holds.object == name] if v.isidentifier()))
        print(f"  {name:<14}{fields} field{'s' if fields > 1 else ' '} away   in the hands of: {variables}")

    # %% As a picture: red is what leads to the password.
    picture = out / "points_to.png"
    draw_objects(picture, field, set(leaks.object), secret)
    return picture


def draw_objects(file: Path, field: pd.DataFrame, leaking: set[str], secret: str) -> None:
    """Draw the objects and what their fields may hold."""
    colours = dict.fromkeys(leaking, ROSE) | {secret: GOLD}
    names = sorted({*field.object, *field.to}, key=lambda name: -int(name.split(":")[1]))
    boxes = [layers.Box(n, "{}\nof line {}".format(*n.split(":")), colours.get(n, layers.QUIET)) for n in names]
    arrows = [
        layers.Arrow(p, o, f".{name}", ROSE if p in leaking and o in colours else layers.QUIET)
        for p, name, o in field.itertuples(index=False)
    ]
    subtitle = "Objects of the program; red ones lead to the password, field by field"
    layers.draw(file, boxes, arrows, "Can the password end up in the log?", subtitle, "Points-to analysis")


if __name__ == "__main__":
    stage.run(__doc__, tell)
