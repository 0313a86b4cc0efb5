"""One rank, and two ranks on two hosts: ``python -m benchmarks.two_hosts`` (as root, on Linux).

The hosts are those of the cluster tests (``tests/cluster/hosts.py``): namespaces of this machine, joined by a bridge.
They share no memory and no writable files, so ranks talk by TCP. The bridge sends 1 Gbit/s to each host after a delay
of 0.2 ms, as far as the kernel can; a delay that it cannot make is computed and marked. Prints a table. With
``--json``, prints the facts of each run instead, which the tests read.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.datasets import DEFAULT_CACHE, PROJECT, open_graph
from mpi_backend.launch.preflight import Request, mpiexec

sys.path.insert(0, str(PROJECT / "tests" / "cluster"))

from hosts import DRIVER, Host, Network, enter, obstacle

if TYPE_CHECKING:
    from collections.abc import Sequence

DELAY = 0.2e-3
RATE = 125e6
_SECONDS = 300
_LINKS = {
    "1 Gbit/s and 0.2 ms (netem)": "netem delay 200us rate 1gbit limit 10000",
    "1 Gbit/s (tbf), no delay": "tbf rate 1gbit burst 256kb latency 50ms",
    "1 Gbit/s (htb), no delay": "htb default 1",
}
_PROXY, _END = "HYDRA_LAUNCH: ", "HYDRA_LAUNCH_END"
_COLUMNS = (
    ("query", "---"),
    ("ranks", "--:"),
    ("loop, s", "--:"),
    ("CPU outside of MPI, s", "--:"),
    ("in MPI, s", "--:"),
    ("meetings", "--:"),
    ("ms a meeting", "--:"),
    ("MB: report", "--:"),
    ("interfaces", "--:"),
    ("edges visited, M", "--:"),
    ("loading, s", "--:"),
    ("MB of loading", "--:"),
    ("form", "---"),
)


def link(network: Network, hosts: Sequence[Host]) -> str:
    """Slow down the network to all hosts by the first discipline that the kernel has. Return its name."""
    for name, discipline in _LINKS.items():
        refusals = [network.shape(host.name, discipline) for host in hosts]
        if not any(refusals):
            return name
        print(f"`tc {discipline.split()[0]}`: {refusals[0]}", file=sys.stderr)
    return "not limited"


def run_ranks(hosts: Sequence[Host], command: Sequence[str]) -> list[dict[str, Any]]:
    """Run a rank on each host: mpiexec here, a proxy there. Return the lines of JSON that they print."""
    ranks = len(hosts)
    addresses = ",".join(f"{host.address}:1" for host in hosts)
    launch = [mpiexec(Request(launcher="spark", ranks=ranks)), "-launcher", "manual", "-localhost", DRIVER]
    launch += ["-hosts", addresses, "-wdir", "/", "-genvnone", "-n", str(ranks)]
    launch += ["env", f"PYTHONPATH={PROJECT}", *command]
    environment = {**os.environ, "HYDRA_RMK": "user"}
    process = subprocess.Popen(launch, stdout=subprocess.PIPE, env=environment, text=True)  # noqa: S603 - ours
    assert process.stdout is not None
    timer = threading.Timer(_SECONDS, process.kill)  # mpiexec waits forever for a proxy that does not start
    timer.start()
    waiting, facts = list(hosts), []
    for line in process.stdout:
        if line.startswith(_PROXY):
            waiting.pop(0).send(f"{shlex.join(line.removeprefix(_PROXY).split())} &")
        elif line.startswith("{"):
            facts.append(json.loads(line))
        elif not line.startswith(_END):
            sys.stderr.write(line)
    timer.cancel()
    if process.wait() != 0:
        raise RuntimeError(f"mpiexec ended with code {process.returncode}")
    return facts


def row(query: str, runs: Sequence[dict[str, Any]]) -> str:
    """Return a row of the table: medians of all runs, each of its rank with most."""
    ranks = len(runs[0]["ranks"])

    def median(field: str, choose: Any = max) -> float:  # noqa: ANN401 - max, min or sum
        return statistics.median(choose(r[field] for r in run["ranks"]) for run in runs)

    walls = [max(r["wall"] for r in run["ranks"]) for run in runs]
    meetings, in_mpi = median("meetings"), median("in_mpi", min)
    cells = [
        query,
        ranks,
        f"{statistics.median(walls):.2f} ({min(walls):.2f})",
        f"{median('cpu'):.2f}",
        f"{in_mpi:.2f}",
        f"{meetings:.0f}",
        f"{1e3 * in_mpi / meetings:.2f}" if meetings else "",
        f"{statistics.median(run['report_bytes'] for run in runs) / 1e6:.1f}",
        f"{median('interface_bytes', sum) / 1e6:.1f}",
        f"{statistics.median(run['work'] for run in runs) / 1e6:.1f}",
        f"{median('load'):.2f}",
        f"{median('load_bytes', sum) / 1e6:.0f}",
        runs[0]["form"],
    ]
    return f"| {' | '.join(map(str, cells))} |"


def computed(one: Sequence[dict[str, Any]], two: Sequence[dict[str, Any]], *, has_rate: bool) -> str:
    """Return how much faster two ranks are, with and without the delay that the kernel could not make."""
    first, second = (statistics.median(max(r["wall"] for r in run["ranks"]) for run in runs) for runs in (one, two))
    cpu, cpus = (statistics.median(max(r["cpu"] for r in run["ranks"]) for run in runs) for runs in (one, two))
    meetings = statistics.median(max(r["meetings"] for r in run["ranks"]) for run in two)
    sent = statistics.median(max(r["interface_bytes"] for r in run["ranks"]) for run in two)
    network = meetings * DELAY + sent / RATE
    added = meetings * DELAY if has_rate else network
    return (
        f"measured {first / second:.2f} times as fast; computed, with {1e3 * added:.1f} ms for what the link lacks, "
        f"{first / (second + added):.2f} times; computed from CPU seconds outside of MPI and {1e3 * network:.1f} ms of "
        f"network {cpu / (cpus + network):.2f} times"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="rmat-20")
    parser.add_argument("--queries", default="sssp,components")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder of the graphs")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each query, after one that compiles")
    parser.add_argument("--log", type=Path, default=Path(os.devnull), help="file for what hosts write to stderr")
    parser.add_argument("--unlimited", action="store_true", help="leave the network as fast as it is")
    parser.add_argument("--json", action="store_true", help="print the facts of each run")
    options = parser.parse_args()
    why = obstacle()
    if why is not None:
        parser.error(why)
    cache = options.cache.absolute()
    graph = open_graph(options.graph, cache)
    enter()
    network = Network()
    hosts = [network.host(name, ["sh"], (cache, graph.directory.resolve()), options.log) for name in ("one", "two")]
    limits = "not limited" if options.unlimited else link(network, hosts)
    facts: dict[str, Any] = {"link": limits}
    lines = [f"| {' | '.join(title for title, _ in _COLUMNS)} |", f"|{'|'.join(dashes for _, dashes in _COLUMNS)}|"]
    notes = []
    for query in options.queries.split(","):
        command = [sys.executable, "-m", "benchmarks.rank_loop", query, "--graph", graph.name]
        command += ["--cache", str(cache), "--repeat", str(options.repeat)]
        one = run_ranks(hosts[:1], command)
        facts["network"], *two = run_ranks(hosts, command)
        facts[query] = {"one": one, "two": two}
        assert len({run["rows"] for run in (*one, *two)}) == 1, "ranks differ in their rows"
        lines += [row(query, one), row(query, two)]
        notes.append(f"{query}: {computed(one, two, has_rate='Gbit' in limits)}")
    if options.json:
        print(json.dumps(facts))
        return
    empty, rate = facts["network"]["empty_meeting"], facts["network"]["bytes_a_second"]
    print(
        f"{graph.name}, link {limits}: a meeting without words {1e3 * empty:.3f} ms, {rate / 1e6:.0f} MB/s each way\n"
    )
    print("\n".join([*lines, "", *notes]))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
