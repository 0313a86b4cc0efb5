"""Create hosts on one machine: each has its own network, mount, process and UTS namespaces, joined by a bridge.

    enter()                                    # this script becomes the first process of a host "driver", 10.77.0.1
    one = Network().host("one", command, env, log)             # 10.77.0.2

A host's root is in memory. It has read-only mounts of the system's programs, Java, Spark, the Python environment and
this checkout. Nothing has a name outside: when the driver's first process ends, the kernel removes all processes,
networks and mounts.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parent.parent.parent
DRIVER = "10.77.0.1"
_INSIDE = "PARALAGG_TEST_IS_INSIDE"
_APART = ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"]
_PROGRAMS = ("unshare", "ip", "mount", "chroot", "hostname")
_TRIAL = """
ip link add bridge0 type bridge
ip link add end0 type veth peer name end1
mount -t tmpfs trial /mnt
"""
# NAME ADDRESS PATHS -- COMMAND: build the root, wait for a line (the network cable exists), then exec COMMAND.
_HOST = """
name=$1 address=$2 root=/mnt; shift 2
mount -t tmpfs root $root
mkdir -p $root/proc $root/sys $root/dev $root/tmp $root/root $root/var/tmp
for path in tmp root var/tmp; do mount -t tmpfs own $root/$path; done
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
    shift
done
shift
mount -t proc proc $root/proc
mount -t sysfs sysfs $root/sys
mount --rbind /dev $root/dev
mount -t tmpfs own $root/dev/shm
mount -o remount,ro $root
hostname "$name"
echo ready
read -r cable
ip link set lo up
ip addr add "$address/24" dev eth0
ip link set eth0 up
exec chroot $root "$@"
"""


def obstacle() -> str | None:
    """Return why this machine cannot create hosts; None if it can."""
    if not sys.platform.startswith("linux"):
        return "namespaces are Linux's"
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"there is no {', '.join(missing)} on PATH"
    trial = subprocess.run([*_APART, "sh", "-ec", _TRIAL], capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return None if trial.returncode == 0 else f"the kernel grants no namespaces: {trial.stderr.strip()}"


def enter() -> None:
    """Restart this script as the first process of the driver's host, with its own HOME, and return there."""
    if _INSIDE not in os.environ:
        os.environ[_INSIDE] = "1"
        os.execvp(_APART[0], [*_APART, sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this script
    _run("hostname", "driver")
    _run("ip", "link", "set", "lo", "up")
    os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))  # contains the shim's jar
    _run("mount", "-t", "tmpfs", "home", "/mnt")
    os.environ.update(HOME="/mnt", SPARK_LOCAL_IP=DRIVER)  # other hosts do not resolve its name, as in containers


class Network:
    """A bridge with the driver's address, and the hosts connected to it."""

    def __init__(self) -> None:
        _run("ip", "link", "add", "bridge0", "type", "bridge")
        _run("ip", "addr", "add", f"{DRIVER}/24", "dev", "bridge0")
        _run("ip", "link", "set", "bridge0", "up")
        self._count = 0

    def host(self, name: str, command: Sequence[str], visible: Sequence[Path], log: Path) -> Host:
        """Start ``command`` as the first process of a new host. The word ADDRESS becomes the host's address."""
        self._count += 1
        address = f"{DRIVER.rpartition('.')[0]}.{1 + self._count}"
        words = [name, address, *_existing(visible), "--", *(address if w == "ADDRESS" else w for w in command)]
        with log.open("w") as lines:
            process = subprocess.Popen(  # noqa: S603 - ours
                [*_APART, "sh", "-ec", _HOST, "host", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=lines,
                cwd="/",
                env={"HOME": "/root", "PATH": os.environ["PATH"], "SPARK_LOCAL_IP": address},
                text=True,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", log.read_text()
        _run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
        _run("ip", "link", "set", f"to-{name}", "master", "bridge0", "up")
        process.stdin.write("\n")
        process.stdin.flush()
        return Host(name, address, process)

    def shape(self, host: str, discipline: str) -> str | None:
        """Set the queueing discipline of what the bridge sends to a host. Return why the kernel refuses it, or None."""
        command = ["tc", "qdisc", "replace", "dev", f"to-{host}", "root", *discipline.split()]
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        return None if result.returncode == 0 else result.stderr.strip()


class Host:
    """A host as seen from the driver's host, whose namespaces contain it."""

    def __init__(self, name: str, address: str, process: subprocess.Popen[str]) -> None:
        self.name = name
        self.address = address
        self._process = process

    def send(self, line: str) -> None:
        """Write a line to the first process: a command, if that is a shell."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def processes(self, *words: str) -> list[int]:
        """Return the process ids, in the driver's namespace, of processes whose commands have these words."""
        network = Path(f"/proc/{self._process.pid}/ns/net").readlink()
        ids = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended
                command = (path / "cmdline").read_bytes().decode().split("\0")
                if (path / "ns" / "net").readlink() == network and set(words) <= set(command):
                    ids.append(int(path.name))
        return ids

    def find(self, pattern: str) -> list[str]:
        """Return matching files and folders in the host's writable folders."""
        first = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()[0]
        root = Path(f"/proc/{first}/root")
        matches = []
        for folder in (root / name for name in ("tmp", "root", "var/tmp", "dev/shm")):
            device = folder.stat().st_dev  # read-only mounts are other devices
            matches += [path for path in folder.rglob(pattern) if path.lstat().st_dev == device]
        return sorted(str(path.relative_to(root)) for path in matches)


def _existing(visible: Sequence[Path]) -> list[str]:
    """Return the existing paths that every host mounts."""
    paths = [*map(Path, ("/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib64", sys.prefix, sys.base_prefix))]
    paths.append(Path(sys.prefix).resolve())  # the environment may be a link from ROOT to another folder
    return [str(path) for path in dict.fromkeys([*paths, ROOT, *visible]) if path.exists()]


def _run(*command: str) -> None:
    subprocess.run(command, check=True)  # noqa: S603 - ours
