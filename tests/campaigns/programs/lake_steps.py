"""Random changes of Delta tables, and the recursions that are kept over them, refreshed after each or some.

Each step changes a source by an insert, a delete, an update, a merge, an OPTIMIZE, a VACUUM, a property, or a restore
of an earlier version, or edits a kept table by hand. Then it refreshes shortest paths, reachability, widest paths,
numbers of paths, and one text (``lake_texts``). A refresh may end in the middle: before its commit, after it and before
it has heard of it, or because its process is killed. Or it may run beside another one of the same table. The next one
has to give the right rows. Rows are compared with those computed in Python of what the sources have.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from campaigns.programs.campaign import Tally
from campaigns.programs.lake_texts import EXPECTED, table_of

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit, write

sys.path.insert(0, str(Path(__file__).parents[2] / "cluster"))

from lake import EDGES, STARTS, Lake, delta_session, distances, edges_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NODES = 8
STEPS = 20
"""In each pair of source tables."""
_KILLED = 0.04
"""Share of the steps that kill a refresh in another process."""
_TWICE = 0.1
"""Share of the refreshes that run beside another one of the same table."""
CHANGES = (
    "insert", "insert", "delete", "delete", "update", "merge", "upsert_delete", "restore", "optimize", "vacuum",
    "set_property", "edit_target", "nothing",
)  # fmt: skip


class Interrupted(Exception):  # noqa: N818 - as if the process were killed there
    """Raised in the middle of a refresh."""


def run(seeds: Iterable[int], until: float = float("inf")) -> Tally:
    """A step a seed; each twenty begin with new tables."""
    spark = delta_session()
    spark.sparkContext.setLogLevel("ERROR")
    tally = Tally()
    walk: _Walk | None = None
    try:
        for seed in seeds:
            if time.monotonic() > until:
                break
            tally.tick()
            if walk is None or seed % STEPS == 0:
                walk = _Walk(Lake(spark, tempfile.mkdtemp(prefix="paralagg-lake-")), seed // STEPS)
            try:
                walk.step()
                problem = walk.difference()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                problem = f"{type(error).__name__}: {error}"
            if problem is None:
                tally.agreed += 1
            else:
                tally.fail(f"seed {seed}: {problem}\nsteps of these tables: {walk.log}")
                walk = None
                if seed % STEPS != STEPS - 1:
                    walk = _Walk(Lake(spark, tempfile.mkdtemp(prefix="paralagg-lake-")), seed)
    finally:
        spark.stop()
    return tally


def widths(edges: list[tuple[Any, ...]], starts: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return the widest paths (node, width), by passes over all edges until nothing changes."""
    best = {node: 20 for node, _ in starts}
    for _ in range(len(edges) + 1):
        for src, dst, w in edges:
            if src in best:
                best[dst] = max(best.get(dst, 0), min(best[src], w))
    return sorted(best.items())


def ways(edges: list[tuple[Any, ...]], starts: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return the number of paths (node, n) along edges to a higher number; copies of edges and starts count."""
    found: dict[int, int] = {}
    for node, _ in starts:
        found[node] = found.get(node, 0) + 1
    for src, dst, _ in sorted(edges):
        if src < dst and src in found:
            found[dst] = found.get(dst, 0) + found[src]
    return sorted(found.items())


class _Walk:
    """Steps over one pair of source tables."""

    def __init__(self, lake: Lake, seed: int) -> None:
        self.lake, self.dice = lake, random.Random(seed)
        self.log: list[str] = []
        self._text = self.dice.choice(list(EXPECTED))
        self._oldest: dict[str, int] = {}
        """The first version of a source whose files are still there."""
        lake.add("edges", edges_of(self.dice, NODES, 8), EDGES)
        lake.add("starts", [(0, 0)], STARTS)

    def step(self) -> None:
        """A change of a source, and refreshes."""
        for _ in range(self.dice.randint(1, 2)):
            kind = self.dice.choice(CHANGES)
            source = self.dice.choice(("edges", "edges", "edges", "starts"))
            self.log.append(f"{kind} {source}")
            getattr(self, kind)(source)
        if self.dice.random() < _KILLED:
            self._killed()
        for table in self._tables():
            if self.dice.random() < 0.3:
                self._interrupted(table)
            if self.dice.random() < _TWICE:
                self._twice(table)
            self.log.append(table.refresh(full=False).kind)

    def difference(self) -> str | None:
        """How a kept table differs from what its sources say."""
        edges = [tuple(r) for r in self.lake.read("edges").select("src", "dst", "w").collect()]
        starts = [tuple(r) for r in self.lake.read("starts").select("node", "dist").collect()]
        meant = distances(edges, starts)
        if self.lake.rows("dist") != meant:
            return f"dist has {self.lake.rows('dist')}, expected {meant}, of {edges} and {starts}"
        if self.lake.rows("reach") != sorted((node,) for _, node in meant):
            return f"reach has {self.lake.rows('reach')}, expected the nodes of {meant}"
        found = sorted(tuple(row) for row in self.lake.read(self._text).collect())
        expected = EXPECTED[self._text](edges, starts)
        if found != expected:
            return f"{self._text} has {found}, expected {expected}, of {edges} and {starts}"
        wide = widths(edges, starts)
        if self.lake.rows("narrow") != wide:
            return f"narrow has {self.lake.rows('narrow')}, expected {wide}, of {edges} and {starts}"
        counts = sorted((node, n) for n, node in self.lake.rows("ways"))
        if counts != ways(edges, starts):
            return f"ways has {counts}, expected {ways(edges, starts)}, of {edges} and {starts}"
        return None

    def _tables(self) -> list[ra.delta.RecursiveTable]:
        lake = self.lake
        sources = {"edges": lake.path("edges"), "starts": lake.path("starts")}

        def kept(name: str, **program: Any) -> ra.delta.RecursiveTable:
            return ra.delta.RecursiveTable(lake.spark, lake.path(name), keys="node", sources=sources, **program)

        reach = kept(
            "reach",
            base=lambda t: t["starts"].select("node"),
            step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src).select(t["edges"].dst.alias("node")),
        )
        narrow = kept(
            "narrow",
            aggs={"width": "max"},
            base=lambda t: t["starts"].selectExpr("node", "20L AS width"),
            step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr(
                "dst AS node", "least(width, w) AS width"
            ),
        )
        paths = kept(
            "ways",
            aggs={"n": "sum"},
            base=lambda t: t["starts"].selectExpr("node", "1L AS n"),
            step=lambda d, t: d.join(t["edges"].where("src < dst"), d.node == t["edges"].src).selectExpr(
                "dst AS node", "n"
            ),
        )
        return [lake.shortest("dist"), reach, narrow, paths, table_of(lake, self._text)]

    def _interrupted(self, table: ra.delta.RecursiveTable) -> None:
        owner, name = self.dice.choice(((write, "_write"), (commit.Writer, "_find_commit")))
        before = getattr(owner, name)

        def stop(*_: Any, **__: Any) -> None:
            raise Interrupted

        setattr(owner, name, stop)
        try:
            table.refresh(full=False)
            self.log.append("a refresh that had nothing to interrupt")
        except Interrupted:
            self.log.append(f"interrupted at {name}")
        finally:
            setattr(owner, name, before)

    def _twice(self, table: ra.delta.RecursiveTable) -> None:
        """Refresh the table in two threads at once; one of them may find that the other was faster."""

        def refresh_once(_: int) -> str:
            try:
                return str(table.refresh(full=False).kind)
            except ra.ParalaggError as problem:
                return problem.code

        with ThreadPoolExecutor(2) as threads:
            self.log.append(f"two at once: {', '.join(threads.map(refresh_once, range(2)))}")

    def _killed(self) -> None:
        """Kill a process of its own in the middle of a refresh, with its JVM."""
        command = [sys.executable, "-m", "campaigns.programs.refresh_child", str(self.lake.folder)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
        assert child.stdout is not None
        try:
            ready = child.stdout.readline()
            assert ready == b"ready\n", "the child has not started"
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(self.dice.uniform(0.5, 8))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            rest, _ = child.communicate()
        self.log.append("a killed refresh" if b"done" not in rest else "a refresh that was over before the kill")

    # --- changes ---

    def _rows(self, source: str) -> list[tuple[Any, ...]]:
        if source == "edges":
            return list(edges_of(self.dice, NODES, self.dice.randint(1, 3)))
        return [(self.dice.randrange(NODES), self.dice.randrange(9))]

    def insert(self, source: str) -> None:
        self.lake.add(source, self._rows(source), EDGES if source == "edges" else STARTS)

    def delete(self, source: str) -> None:
        column = "dst" if source == "edges" else "node"
        self.lake.sql(f"DELETE FROM {{}} WHERE {column} = {self.dice.randrange(NODES)}", source)

    def update(self, source: str) -> None:
        value, key = ("w", "src") if source == "edges" else ("dist", "node")
        more = self.dice.choice((f"{value} + 3", f"greatest({value} - 2, 1)"))
        self.lake.sql(f"UPDATE {{}} SET {value} = {more} WHERE {key} = {self.dice.randrange(NODES)}", source)

    def merge(self, source: str) -> None:
        schema, value = (EDGES, "w") if source == "edges" else (STARTS, "dist")
        keys = ("src", "dst") if source == "edges" else ("node",)
        rows = {row[: len(keys)]: row for row in self._rows(source)}
        self.lake.spark.createDataFrame(list(rows.values()), schema).createOrReplaceTempView("more")
        on = " AND ".join(f"t.{k} = m.{k}" for k in keys)
        self.lake.sql(
            f"MERGE INTO {{}} t USING more m ON {on} WHEN MATCHED THEN UPDATE SET t.{value} = m.{value} "
            "WHEN NOT MATCHED THEN INSERT *",
            source,
        )

    def upsert_delete(self, source: str) -> None:
        """A merge that deletes what it finds, so that rows come and go in one commit."""
        key = "src" if source == "edges" else "node"
        schema = EDGES if source == "edges" else STARTS
        rows = {row[0]: row for row in self._rows(source)}
        self.lake.spark.createDataFrame(list(rows.values()), schema).createOrReplaceTempView("more")
        self.lake.sql(
            f"MERGE INTO {{}} t USING more m ON t.{key} = m.{key} "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
            source,
        )

    def optimize(self, source: str) -> None:
        """Other files, the same rows."""
        self.lake.sql("OPTIMIZE {}", source)

    def vacuum(self, source: str) -> None:
        """Delete the files of earlier versions, and those of the change feed."""
        self.lake.sql("VACUUM {} RETAIN 0 HOURS", source)
        self._oldest[source] = self.lake.version(source)

    def set_property(self, source: str) -> None:
        """Make a commit that changes no row."""
        self.lake.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('paralagg.note' = '{self.dice.random()}')", source)

    def edit_target(self, _: str) -> None:
        """Another writer changes a kept table."""
        texts = [t.name for t in self.lake.folder.glob(f"{self._text}*")]
        target = self.dice.choice(["dist", "reach", "narrow", "ways", *texts])
        if (self.lake.folder / target).exists():
            key = self.lake.read(target).columns[0]
            self.lake.sql(f"DELETE FROM {{}} WHERE {key} = {self.dice.randrange(NODES)}", target)

    def restore(self, source: str) -> None:
        version = self.dice.randint(self._oldest.get(source, 0), self.lake.version(source))
        self.lake.sql(f"RESTORE TABLE {{}} TO VERSION AS OF {version}", source)

    def nothing(self, source: str) -> None:
        """The refresh has nothing to do."""
