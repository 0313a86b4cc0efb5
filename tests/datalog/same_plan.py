"""Remove from Plans the names that a frontend chooses: a step and a text of the same recursion have the same Plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.report.engine_report import describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

_NAMED = ("handle", "text", "place", "id", "name", "source", "nullable", "mirrored", "spread", "hubs")
_OF_A_STRATUM = ("relation_class", "in_place", "cycle_check", "max_iterations", "tolerance", "on_limit")
_OF_A_STRATUM += ("ordered_by", "copies_order", "makes_strings", "carried")


def strata_of(results: Iterable[DataFrame]) -> list[str]:
    """Return the strata that the engine evaluates for ``results``, without names, as sorted JSON texts."""
    return sorted({_stratum(s) for d in map(describe, results) if d is not None for s in d["plan"]["strata"]})


def _stratum(stratum: dict[str, Any]) -> str:
    relations = {r["name"]: f"relation {n}" for n, r in enumerate(stratum["relations"])}
    columns = [[c["type"] for c in (*r["keys"], *(d["column"] for d in r["dependents"]))] for r in stratum["relations"]]
    indexes = [(i["keys"], i["payload"], i["placement"], i["read"], i["sorted_by"]) for i in stratum["static_indexes"]]
    plain = {
        **{k: stratum[k] for k in _OF_A_STRATUM},
        "bitmap": stratum["bitmap"] and {**stratum["bitmap"], "relation": relations[stratum["bitmap"]["relation"]]},
        "bit_rows": stratum["bit_rows"] is not None,
        "columns": columns,
        "indexes": indexes,
        "copies": [(i["keys"], i["placement"], i["copy"]) for i in stratum["relation_indexes"]],
        "rules": [_rule(r, relations) for r in stratum["rules"]],
    }
    return json.dumps(plain, sort_keys=True)


def _rule(rule: dict[str, Any], relations: dict[str, str]) -> dict[str, Any]:
    bound = [*rule["driver"]["binds"], *(b for s in rule["steps"] for b in s.get("binds", ()))]
    variables = {v: f"v{n}" for n, v in enumerate(dict.fromkeys(b for b in bound if b is not None))}

    def plain(value: Any) -> Any:  # noqa: ANN401 - walks JSON
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items() if k not in _NAMED and k not in ("head", "relation", "reads")}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return variables.get(value, value) if isinstance(value, str) else value

    head, driver = relations[rule["head"]], relations[rule["driver"]["relation"]]
    return {"head": head, "driver": driver, "reads": sorted(map(variables.__getitem__, rule["reads"])), **plain(rule)}
