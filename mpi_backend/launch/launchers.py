"""Command lines: of one rank, and of what starts all of them."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from mpi_backend.launch.messages import TOKEN_VARIABLE
from mpi_backend.launch.preflight import RANKS_VARIABLE, Request, mpiexec
from mpi_backend.names import outputs_option

if TYPE_CHECKING:
    from collections.abc import Mapping

_LO = "lo" if sys.platform.startswith("linux") else "lo0"
_LOOPBACK = {"HYDRA_IFACE": _LO, "UCX_NET_DEVICES": _LO, "FI_TCP_IFACE": _LO, "FI_SOCKETS_IFACE": _LO}
"""Ranks of one machine listen on its loopback only, with MPICH's UCX as with its libfabric."""


def request_of(spec: Mapping[str, Any]) -> Request:
    """What a SPEC asks of ``preflight``."""
    return Request(
        launcher=spec["launcher"],
        ranks=spec["ranks"],
        python=tuple(spec["python"]),
        oversubscribe=spec.get("oversubscribe", False),
        staging=spec["out"],
    )


def environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the launcher finds in its environment beside ours."""
    # MPICH's mpiexec asks no Slurm or other resource manager for machines, and no ssh for this one.
    of_hydra = {"HYDRA_RMK": "user"}
    if spec["launcher"] == "local":
        of_hydra |= {
            "HYDRA_LAUNCHER": "fork",
            **{name: value for name, value in _LOOPBACK.items() if name not in os.environ},
        }
    token = {TOKEN_VARIABLE: spec["token"]} if "token" in spec else {}
    return {**of_hydra, **spec.get("env", {}), **token, RANKS_VARIABLE: str(spec["ranks"])}


def worker_command(spec: Mapping[str, Any]) -> list[str]:
    """One rank.

    >>> spec = {"python": ["python"], "plan": "p.json", "in": "i", "out": "o", "outputs": ["r"], "ansi": False}
    >>> shlex.join(worker_command(spec))
    'python -m mpi_backend run p.json --in i --out o --outputs=r --no-ansi'
    """
    places = [spec["plan"], "--in", spec["in"], "--out", spec["out"]]
    if "tell" in spec:  # in the folder that whoever starts a proxy has named to it
        places = ["plan.json", "--in", "in", "--out", "out", "--tell", spec["tell"]]
    words = [*spec["python"], "-m", "mpi_backend", "run", *places]
    for option in ("format", "partitions", "sub_buckets"):
        if spec.get(option) is not None:
            words += [f"--{option.replace('_', '-')}", str(spec[option])]
    if spec.get("outputs"):
        words.append(outputs_option(spec["outputs"]))
    return words if spec.get("ansi", True) else [*words, "--no-ansi"]


def launch_command(spec: Mapping[str, Any]) -> list[str]:
    """All ranks: ``local``, ``spark`` (``hosts``: the proxies that others start) or a template.

    >>> spec = {"python": ["python"], "plan": "p.json", "in": "i", "out": "o", "ranks": 4}
    >>> shlex.join(launch_command({**spec, "launcher": "srun -n {ranks}"}))
    'srun -n 4 python -m mpi_backend run p.json --in i --out o'
    >>> shlex.join(launch_command({**spec, "launcher": "run --np={ranks} {command} --quiet"}))
    'run --np=4 python -m mpi_backend run p.json --in i --out o --quiet'
    """
    worker = worker_command(spec)
    request = request_of(spec)
    if request.launcher == "local":
        return [mpiexec(request), "-n", str(request.ranks), *worker] if request.needs_mpi else worker
    if request.launcher == "spark":
        manual = ["-launcher", "manual", "-localhost", spec["address"], "-hosts", ",".join(spec["hosts"])]
        # Our working directory need not be there on other machines; OUT is, where they share it.
        folder = "/" if "tell" in spec else spec["out"]
        # Nor are our HOME and PATH theirs: ranks have the environment of their executor, and what is about the run.
        names = ",".join([*spec.get("env", {}), RANKS_VARIABLE, TOKEN_VARIABLE])
        how = ["-wdir", folder, "-genvlist", names]
        return [mpiexec(request), *manual, *how, "-n", str(request.ranks), *worker]
    words = [word.replace("{ranks}", str(spec["ranks"])) for word in shlex.split(spec["launcher"])]
    if not any("{command}" in word for word in words):
        return [*words, *worker]
    full: list[str] = []
    for word in words:
        full += worker if word == "{command}" else [word.replace("{command}", shlex.join(worker))]
    return full
