"""Build the command lines of one rank and of the launcher that starts all ranks."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from mpi_backend.launch.messages import TOKEN_VARIABLE
from mpi_backend.launch.preflight import RANKS_VARIABLE, Request, mpiexec
from mpi_backend.names import names_option

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACEMENT = ("sub_buckets", "sub_bucket_rounds", "split_ratio", "merge_share", "heavy_parts", "roll_over_rows")
_LO = "lo" if sys.platform.startswith("linux") else "lo0"
_LOOPBACK = {"HYDRA_IFACE": _LO, "UCX_NET_DEVICES": _LO, "FI_TCP_IFACE": _LO, "FI_SOCKETS_IFACE": _LO}
"""Ranks of one machine listen on its loopback only, with UCX and with libfabric (both in MPICH)."""


def request_of(spec: Mapping[str, Any]) -> Request:
    """Return the request that ``preflight`` checks for a SPEC."""
    return Request(
        launcher=spec["launcher"],
        ranks=spec["ranks"],
        python=tuple(spec["python"]),
        oversubscribe=spec.get("oversubscribe", False),
        staging=spec["out"],
    )


def environment(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that the launcher gets in addition to our environment."""
    # MPICH's mpiexec shall not use Slurm or another resource manager, nor ssh to this machine.
    hydra = {"HYDRA_RMK": "user"}
    if spec["launcher"] == "local":
        hydra |= {
            "HYDRA_LAUNCHER": "fork",
            **{name: value for name, value in _LOOPBACK.items() if name not in os.environ},
        }
    token = {TOKEN_VARIABLE: spec["token"]} if "token" in spec else {}
    return {**hydra, **spec.get("env", {}), **token, RANKS_VARIABLE: str(spec["ranks"])}


def worker_command(spec: Mapping[str, Any]) -> list[str]:
    """Return the command that runs one rank.

    >>> spec = {"python": ["python"], "plan": "p.json", "in": "i", "out": "o", "outputs": ["r"], "ansi": False}
    >>> shlex.join(worker_command(spec))
    'python -m mpi_backend run p.json --in i --out o --outputs=r --no-ansi'
    """
    paths = [spec["plan"], "--in", spec["in"], "--out", spec["out"]]
    if "tell" in spec:  # in the working directory that the starter of the proxy has set
        paths = ["plan.json", "--in", "in", "--out", "out", "--tell", spec["tell"]]
    words = [*spec["python"], "-m", "mpi_backend", "run", *paths]
    for option in ("format", "partitions", "functors", *_PLACEMENT):
        if spec.get(option) is not None:
            words += [f"--{option.replace('_', '-')}", str(spec[option])]
    words += [names_option(option, spec[option]) for option in ("outputs", "counted") if spec.get(option)]
    return words if spec.get("ansi", True) else [*words, "--no-ansi"]


def launch_command(spec: Mapping[str, Any]) -> list[str]:
    """Return the command that starts all ranks: ``local``, ``spark`` or a template.

    With ``spark``, tasks start the proxies of ``hosts``.

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
        # Our working directory may be absent on other machines; OUT is present if they share it.
        folder = "/" if "tell" in spec else spec["out"]
        # Our HOME and PATH may be wrong there: ranks use their executor's environment and the variables of the run.
        names = ",".join([*spec.get("env", {}), RANKS_VARIABLE, TOKEN_VARIABLE])
        options = ["-wdir", folder, "-genvlist", names]
        return [mpiexec(request), *manual, *options, "-n", str(request.ranks), *worker]
    words = [word.replace("{ranks}", str(spec["ranks"])) for word in shlex.split(spec["launcher"])]
    if not any("{command}" in word for word in words):
        return [*words, *worker]
    command: list[str] = []
    for word in words:
        command += worker if word == "{command}" else [word.replace("{command}", shlex.join(worker))]
    return command
