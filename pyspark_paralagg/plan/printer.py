"""Show a Plan as text: strata, indexes, Δ rules with the placement of each probe, and the reasons.

    stratum 1: lattice, in place
      dist(node, min dist) by node, base in0
      dist(dst, min dist + weight) :- Δdist(node, dist), in1[src = node](dst, weight)
        in1 partitioned by src; target resolved

Reads the JSON form, because the shim returns the plan of a DataFrame as JSON.
"""

from __future__ import annotations

from typing import Any

from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.program.expr import from_json
from pyspark_paralagg.program.text import show, show_size, source_name

Json = dict[str, Any]


def show_plan(plan: Plan | Json, *, reasons: bool = True) -> str:
    """Return the text of a plan, or of its JSON."""
    data = plan.to_json() if isinstance(plan, Plan) else plan
    lines = [show_input(i) for i in data["inputs"]] + show_strata(data)
    return "\n".join([*lines, *(f"because {r}" for r in data["reasons"] if reasons)])


def show_input(source: Json) -> str:
    """Return an input as text, like ``in1(src, dst) := source 0, w > 0  [1,000 bytes]``."""
    origin = f"result of {source['relation']}" if source["relation"] else source["name"] or f"source {source['source']}"
    filters = "".join(f", {_show(f)}" for f in source["filters"])
    size = "" if source["size_bytes"] is None else f"  [{show_size(source['size_bytes']) or 'size unknown'}]"
    return f"{name_of(source)}({', '.join(_show(e) for e in source['exprs'])}) := {origin}{filters}{size}"


def show_strata(data: Json) -> list[str]:
    """Return the lines of all strata: relations, Δ rules, and the placement of each probe."""
    inputs = {i["id"]: i for i in data["inputs"]}
    return [line for n, stratum in enumerate(data["strata"]) for line in _stratum(n, stratum, inputs)]


def show_indexes(data: Json) -> list[str]:
    """Return a line for each index, like ``index in1(src -> dst, weight)``; copies with the rule that updates them."""
    inputs = {i["id"]: i for i in data["inputs"]}
    lines = []
    for stratum in data["strata"]:
        relations = {r["name"]: r for r in stratum["relations"]}
        lines += [show_static_index(i, inputs) for i in stratum["static_indexes"]]
        for r in stratum["relations"]:
            lines.append(f"index {r['name']}({_names(r['keys'], r['distribute_by'])} -> row): canonical")
        for i in stratum["relation_indexes"]:
            r = relations[i["relation"]]
            columns = ", ".join([c["name"] for c in r["keys"]] + [d["column"]["name"] for d in r["dependents"]])
            shown = f"index {r['name']}({_names(r['keys'], i['keys'])} -> row)"
            row = f"{r['name']}({columns})"
            follows = f"a copy: {row} :- Δ{row}" + (", in the place of the key's old row" if r["dependents"] else "")
            place = ", everywhere" if i["placement"] == "everywhere" else ""
            lines.append(f"{shown}{place}: {follows if i['copy'] else 'on the canonical one'}")
    return lines


def show_static_index(index: Json, inputs: dict[int, Json]) -> str:
    """Return an index as text, like ``index in1(src -> dst, weight), partitioned by src``."""
    source = inputs[index["input"]]
    parts = ("keys", "payload", "partition_by")
    keys, payload, by = (", ".join(_show(source["exprs"][p]) for p in index[part]) for part in parts)
    place = "everywhere" if index["placement"] == "everywhere" else f"partitioned by {by}"
    return f"index {name_of(source)}({keys or 'nothing'} -> {payload or 'there is one'}), {place}"


def _names(columns: list[Json], positions: list[int]) -> str:
    return ", ".join(columns[p]["name"] for p in positions) or "nothing"


def _stratum(n: int, stratum: Json, inputs: dict[int, Json]) -> list[str]:
    lines = [f"stratum {n + 1}: {', '.join(traits(stratum))}"]
    for r in stratum["relations"]:
        columns = [c["name"] for c in r["keys"]] + [_dependent(d) for d in r["dependents"]]
        by = ", ".join(r["keys"][p]["name"] for p in r["distribute_by"]) or "nothing (task 0)"
        word = "settled" if r["settled"] else "initial"
        initial = "" if r["initial"] is None else f", {word} {name_of(inputs[r['initial']])}"
        lines.append(f"  {r['name']}({', '.join(columns)}) by {by}, base {name_of(inputs[r['base']])}{initial}")
    for rule in stratum["rules"]:
        lines += _rule(rule, stratum, inputs)
    return lines


def traits(stratum: Json) -> list[str]:
    """Return the properties of a stratum: its class, rounds or in place, limits."""
    properties = [stratum["relation_class"], "in place" if stratum["in_place"] else "rounds"]
    if stratum["bitmap"]:
        properties.append("bitmaps")
    if stratum["bit_rows"]:
        properties.append("rows of bits")
    if stratum["max_iterations"] is not None:
        properties.append(f"at most {stratum['max_iterations']} iterations")
    if stratum["ends_at"] is not None:
        properties.append(f"ends at {stratum['ends_at']} rows")
    if stratum["tolerance"] is not None:
        properties.append(f"tolerance {stratum['tolerance']}")
    return properties


def _dependent(d: Json) -> str:
    follows = f" of {d['view']['relation']}" if d.get("view") else ""
    return f"{d['aggregator']} {d['column']['name']}{follows}"


def _rule(rule: Json, stratum: Json, inputs: dict[int, Json]) -> list[str]:
    head, body, places = rule_parts(rule, stratum, inputs)
    return [f"  {head} :- {', '.join(body)}", f"    {'; '.join(places)}"]


def rule_parts(rule: Json, stratum: Json, inputs: dict[int, Json]) -> tuple[str, list[str], list[str]]:
    """Return the head, the atoms and conditions, and the placement of each probe of a planned rule."""
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
            body.append(f"{kind}{name_of(source)}{_keys(names, index['keys'], step)}{_binds(step['binds'])}")
            by = ", ".join(names[p] for p in index["partition_by"])
            places.append(
                f"{name_of(source)} {'everywhere' if index['placement'] == 'everywhere' else f'partitioned by {by}'}"
            )
    places.append(f"target {rule['target']['kind']}")
    emitted = ", ".join([*(_show(e) for e in rule["emit"][:keys]), *values])
    return f"{head['name']}({emitted})", body, places


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


def name_of(source: Json) -> str:
    """Return the name of an input."""
    return source_name(source["relation"], source["name"], source["id"])


def _show(expr: Json) -> str:
    return show(from_json(expr))
