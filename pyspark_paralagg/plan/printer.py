"""A Plan as readable text: strata, indexes, Δ rules with where each probe finds its rows, and the reasons.

    stratum 1: lattice, in place
      dist(node, min dist) by node, base in0
      dist(dst, min dist + weight) :- Δdist(node, dist), in1[src = node](dst, weight)
        in1 partitioned by src; target resolved

Reads the JSON form, so that the plan of any DataFrame, which the shim hands back as JSON, can be shown.
"""

from __future__ import annotations

from typing import Any

from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.program.expr import from_json
from pyspark_paralagg.program.text import show

Json = dict[str, Any]


def show_plan(plan: Plan | Json) -> str:
    """The text of a plan, or of its JSON."""
    data = plan.to_json() if isinstance(plan, Plan) else plan
    inputs = {i["id"]: i for i in data["inputs"]}
    lines = []
    for i in data["inputs"]:
        origin = f"result of {i['relation']}" if i["relation"] else f"source {i['source']}"
        filters = "".join(f", {_show(f)}" for f in i["filters"])
        size = "" if i["size_bytes"] is None else f"  [{i['size_bytes']:,} bytes]"
        lines.append(f"{_name(i)}({', '.join(_show(e) for e in i['exprs'])}) := {origin}{filters}{size}")
    for n, stratum in enumerate(data["strata"]):
        lines += _stratum(n, stratum, inputs)
    return "\n".join([*lines, *(f"because {r}" for r in data["reasons"])])


def _stratum(n: int, stratum: Json, inputs: dict[int, Json]) -> list[str]:
    traits = [stratum["relation_class"], "in place" if stratum["in_place"] else "rounds"]
    if stratum["bitmap"]:
        traits.append("bitmaps")
    if stratum["max_iterations"] is not None:
        traits.append(f"at most {stratum['max_iterations']} iterations")
    if stratum["tolerance"] is not None:
        traits.append(f"tolerance {stratum['tolerance']}")
    lines = [f"stratum {n + 1}: {', '.join(traits)}"]
    for r in stratum["relations"]:
        columns = [c["name"] for c in r["keys"]] + [f"{d['aggregator']} {d['column']['name']}" for d in r["dependents"]]
        by = ", ".join(r["keys"][p]["name"] for p in r["distribute_by"]) or "nothing (task 0)"
        initial = "" if r["initial"] is None else f", initial {_name(inputs[r['initial']])}"
        lines.append(f"  {r['name']}({', '.join(columns)}) by {by}, base {_name(inputs[r['base']])}{initial}")
    for rule in stratum["rules"]:
        lines += _rule(rule, stratum, inputs)
    return lines


def _rule(rule: Json, stratum: Json, inputs: dict[int, Json]) -> list[str]:
    relations = {r["name"]: r for r in stratum["relations"]}
    head, driver = relations[rule["head"]], rule["driver"]
    keys = len(head["keys"])
    values = [f"{d['aggregator']} {_show(e)}" for d, e in zip(head["dependents"], rule["emit"][keys:], strict=True)]
    places = []
    delta = "Δ" if driver["version"] == "delta" else ""
    body = [f"{delta}{driver['relation']}{_binds(driver['binds'])}"]
    if driver["index"] is not None:
        places.append(f"driver from {_relation_place(stratum['relation_indexes'][driver['index']], relations)}")
    for step in rule["steps"]:
        if step["op"] == "filter":
            body.append(_show(step["condition"]))
        elif step["recursive"]:
            index = stratum["relation_indexes"][step["index"]]
            names = [c["name"] for c in relations[index["relation"]]["keys"]]
            old = "old " if step["version"] == "old" else ""
            body.append(f"{old}{index['relation']}{_keys(names, index['keys'], step)}{_binds(step['binds'])}")
            places.append(_relation_place(index, relations))
        else:
            index = stratum["static_indexes"][step["index"]]
            source = inputs[index["input"]]
            names = [_show(e) for e in source["exprs"]]
            kind = {"join": "", "semi": "exists ", "anti": "!"}[step["kind"]]
            body.append(f"{kind}{_name(source)}{_keys(names, index['keys'], step)}{_binds(step['binds'])}")
            by = ", ".join(names[p] for p in index["partition_by"])
            places.append(
                f"{_name(source)} {'everywhere' if index['placement'] == 'everywhere' else f'partitioned by {by}'}"
            )
    places.append(f"target {rule['target']['kind']}")
    emitted = ", ".join([*(_show(e) for e in rule["emit"][:keys]), *values])
    return [f"  {head['name']}({emitted}) :- {', '.join(body)}", f"    {'; '.join(places)}"]


def _relation_place(index: Json, relations: dict[str, Json]) -> str:
    name = index["relation"]
    copy = "a copy of " if index["copy"] else ""
    if index["placement"] == "everywhere":
        return f"{copy}{name} everywhere"
    return f"{copy}{name} by {', '.join(relations[name]['keys'][p]['name'] for p in index['keys'])}"


def _keys(names: list[str], keys: list[int], step: Json) -> str:
    pairs = [f"{names[k]} = {_show(e)}" for k, e in zip(keys, step["keys"], strict=True)]
    return f"[{', '.join(pairs)}]" if pairs else ""


def _binds(binds: list[str | None]) -> str:
    return f"({', '.join(b or '_' for b in binds)})"


def _name(source: Json) -> str:
    return source["relation"] or f"in{source['id']}"


def _show(expr: Json) -> str:
    return show(from_json(expr))
