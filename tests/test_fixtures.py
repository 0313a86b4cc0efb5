"""Every fixture on every executor: folders with tables, a step, and rows written down beforehand.

The Spark engine runs with 1, 2 and 7 partitions, with AQE on and off; with some of these settings in one task where it
can, with others always in all. The DataFrame executor, which leaves both to Spark, has one setting and runs a query a
round, so that a run takes twelve of the fixtures.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rows import assert_same_rows, frame, read_table, rows_of

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import DataFrame, SparkSession

FIXTURES = Path(__file__).parent / "fixtures"
CASES = sorted(p.parent.name for p in FIXTURES.glob("*/step.py"))
SETTINGS = [
    pytest.param(n, aqe, id=f"spark-{n}-{'aqe' if aqe else 'plain'}") for n in (1, 2, 7) for aqe in (True, False)
]
ONE_TASK = {(n, aqe): 1 << 20 if (n == 2) == aqe else 0 for n in (1, 2, 7) for aqe in (True, False)}
HEAVY_PARTS = {(2, False): 1 << 20, (7, True): 2}
"""In one setting every row with edges is a hub, in one some are."""


@pytest.mark.rotates(runs=6, by=("case",))
@pytest.mark.parametrize(("partitions", "aqe"), SETTINGS)
@pytest.mark.parametrize("case", CASES)
def test_fixture(spark: SparkSession, case: str, partitions: int, *, aqe: bool) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", str(aqe).lower())
    spark.conf.set("spark.paralagg.oneTask.maxRows", ONE_TASK[partitions, aqe])
    spark.conf.set("spark.paralagg.heavyParts", HEAVY_PARTS.get((partitions, aqe), 8))
    check(spark, case, "spark")


@pytest.mark.slow("several jobs in each of the rounds, of which some fixtures have a hundred")
@pytest.mark.rotates(runs=14)
@pytest.mark.parametrize("case", CASES)
def test_fixture_on_plain_dataframes(spark: SparkSession, case: str) -> None:
    check(spark, case, "dataframe")


def check(spark: SparkSession, case: str, backend: str) -> None:
    """Compare the rows of a fixture on ``backend`` with those that are written down."""
    folder = FIXTURES / case
    module = load(folder / "step.py")
    tables, expected = {}, {}
    for path in sorted(folder.glob("*.tsv")):
        if path.stem.startswith("expected"):
            expected[path.stem] = read_table(path)
        else:
            tables[path.stem] = frame(spark, *read_table(path))
    if hasattr(module, "CODE"):
        with pytest.raises(Exception, match=module.CODE):
            collect(module.run(tables, backend=backend))
        return
    found = module.run(tables, backend=backend)
    results = {f"expected.{k}": df for k, df in found.items()} if isinstance(found, dict) else {"expected": found}
    assert results.keys() == expected.keys()
    for name, df in results.items():
        ddl, rows = expected[name]
        assert ", ".join(f"`{c}` {t}" for c, t in df.dtypes) == ddl
        assert_same_rows(rows_of(df), rows)


def collect(found: DataFrame | dict[str, DataFrame]) -> list[list[tuple[Any, ...]]]:
    """Run what a fixture returns."""
    return [rows_of(df) for df in (found.values() if isinstance(found, dict) else [found])]


def load(path: Path) -> ModuleType:
    """The module in ``path``, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"fixture_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
