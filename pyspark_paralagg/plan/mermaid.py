"""Draw a Plan as a mermaid flowchart of inputs, indexes, relations and rules, one box a stratum.

    flowchart LR
      in0([in0: node, dist]) --base--> dist[(dist: node, min dist)]
      in1([in1: src, dst, weight]) --> i0{{src -> dst, weight}} --> rule0[dist :- Δdist, in1] --> dist
      dist --Δ--> rule0

Reads the JSON form, like ``printer``. GitHub, notebooks, editors and ``mmdc`` render it.
"""

from __future__ import annotations

from typing import Any

from pyspark_paralagg.plan.plan import Plan
from pyspark_paralagg.plan.printer import name_of, rule_parts, show_input, show_static_index, traits

Json = dict[str, Any]

_QUOTED = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\n": " "}
_SENT = {"same": "own row", "resolved": "resolved at load", "computed": "hashed"}


def show_mermaid(plan: Plan | Json) -> str:
    """Return the text of the flowchart."""
    data = plan.to_json() if isinstance(plan, Plan) else plan
    inputs = {i["id"]: i for i in data["inputs"]}
    lines = ["flowchart LR"]
    lines += [f'  in{i["id"]}(["{_quoted(show_input(i))}"])' for i in data["inputs"] if not i["relation"]]
    for n, stratum in enumerate(data["strata"]):
        lines += _stratum(n, stratum, inputs)
    return "\n".join(lines)


def _stratum(n: int, stratum: Json, inputs: dict[int, Json]) -> list[str]:
    nodes, edges = [], []
    relations = {r["name"]: r for r in stratum["relations"]}
    for r in stratum["relations"]:
        columns = [c["name"] for c in r["keys"]] + [f"{d['aggregator']} {d['column']['name']}" for d in r["dependents"]]
        by = ", ".join(r["keys"][p]["name"] for p in r["distribute_by"]) or "nothing: task 0"
        nodes.append(f'{_relation(r["name"])}[("{_quoted(r["name"] + _listed(columns))}<br/>by {_quoted(by)}")]')
        for word, start in (("base", r["base"]), ("settled" if r["settled"] else "initial", r["initial"])):
            if start is not None:
                edges.append(f"{_input(inputs[start])} -- {word} --> {_relation(r['name'])}")
    for i in stratum["static_indexes"]:
        node = f"s{n}i{i['id']}"
        nodes.append(f'{node}{{{{"{_quoted(show_static_index(i, inputs))}"}}}}')
        edges.append(f"{_input(inputs[i['input']])} --> {node}")
    for i in stratum["relation_indexes"]:
        r = relations[i["relation"]]
        keys = ", ".join(r["keys"][p]["name"] for p in i["keys"]) or "nothing"
        kind = "a copy" if i["copy"] else "index"
        place = ", everywhere" if i["placement"] == "everywhere" else ""
        label = _quoted(f"{kind} of {r['name']} by {keys}{place}")
        nodes.append(f'{_copy(n, i["id"])}{{{{"{label}"}}}}')
        edges.append(f"{_relation(r['name'])} {'-. follows .->' if i['copy'] else '-->'} {_copy(n, i['id'])}")
    for k, rule in enumerate(stratum["rules"]):
        head, body, _ = rule_parts(rule, stratum, inputs)
        node = f"s{n}r{k}"
        nodes.append(f'{node}["{_quoted(head)} :-<br/>{",<br/>".join(map(_quoted, body))}"]')
        edges += _rule_edges(n, node, rule)
    title = _quoted(f"stratum {n + 1}: {', '.join(traits(stratum))}")
    return [f'  subgraph s{n}["{title}"]', *(f"    {x}" for x in nodes), "  end", *(f"  {x}" for x in edges)]


def _rule_edges(n: int, node: str, rule: Json) -> list[str]:
    driver = rule["driver"]
    start = _relation(driver["relation"]) if driver["index"] is None else _copy(n, driver["index"])
    edges = [f"{start} == {'Δ' if driver['version'] == 'delta' else 'all'} ==> {node}"]
    for step in rule["steps"]:
        if step["op"] == "probe":
            source = _copy(n, step["index"]) if step["recursive"] else f"s{n}i{step['index']}"
            edges.append(f"{source} --> {node}")
    return [*dict.fromkeys(edges), f"{node} -- {_SENT[rule['target']['kind']]} --> {_relation(rule['head'])}"]


def _relation(name: str) -> str:
    # A name may have any character; others than ASCII letters and digits become their code, so ids stay unique.
    return "rel_" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c)}_" for c in name)


def _copy(n: int, index: int) -> str:
    return f"s{n}c{index}"


def _input(source: Json) -> str:
    return _relation(name_of(source)) if source["relation"] else f"in{source['id']}"


def _listed(columns: list[str]) -> str:
    return f"({', '.join(columns)})"


def _quoted(text: str) -> str:
    return "".join(_QUOTED.get(c, c) for c in text)
