"""What others could have written is not run: folders and files of caches are ours alone, with the content we wrote."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark_versions import python_path

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.session import shim
from pyspark_paralagg.session.private import private_folder, read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTING = "PARALAGG_KERNEL_CACHE"
ROOT = Path(__file__).parents[1]
NOBODY = 65534
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o002, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Another umask than that of whoever runs the tests."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_new_folder_and_its_files_are_private(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "a" / "b", SETTING)
    write_private(folder / "file", b"content")
    assert (mode(folder), mode(folder / "file")) == (0o700, 0o600)
    assert read_private(folder / "file", SETTING) == b"content"
    assert read_private(folder / "nothing", SETTING) is None
    assert [p.name for p in folder.iterdir()] == ["file"]


@pytest.mark.parametrize("bits", [0o770, 0o720, 0o702, 0o777, 0o1777], ids=oct)
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, bits: int) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(bits)
    with pytest.raises(EnvironmentProblem, match="other users can write to it") as caught:
        private_folder(folder, SETTING)
    assert caught.value.code == "PARALAGG_CACHE_UNSAFE"
    assert (caught.value.value, SETTING in str(caught.value.hint)) == (str(folder), True)


@is_root
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    os.chown(folder, NOBODY, NOBODY)
    with pytest.raises(EnvironmentProblem, match=f"it belongs to user {NOBODY}"):
        private_folder(folder, SETTING)


def test_a_folder_that_others_may_replace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "open" / "cache").mkdir(parents=True, mode=0o700)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(EnvironmentProblem, match="any user can replace it"):
        private_folder(tmp_path / "open" / "cache", SETTING)
    (tmp_path / "open").chmod(0o1777)  # as /tmp: nobody renames what others own
    private_folder(tmp_path / "open" / "cache", SETTING)


def test_what_is_no_folder_or_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/cache")):
        with pytest.raises(EnvironmentProblem) as caught:
            private_folder(path, SETTING)
        assert caught.value.code == "PARALAGG_CACHE_UNWRITABLE"


def test_a_file_that_others_may_write_to_and_a_link_are_refused(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"planted")
    link.symlink_to(file)
    with pytest.raises(EnvironmentProblem, match="PARALAGG_CACHE_UNSAFE"):
        read_private(link, SETTING)
    file.chmod(0o620)
    with pytest.raises(EnvironmentProblem, match="other users can write to it"):
        read_private(file, SETTING)


def test_a_jar_that_others_may_have_written_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark_paralagg.session.spark_home import find_spark_home  # noqa: PLC0415 - it needs pyspark

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shim, "_BUNDLED_JARS", tmp_path / "none")
    spark = find_spark_home()
    jar = shim._cached_path(spark, shim.find_sources(spark.minor).digest)
    jar.parent.mkdir(parents=True)
    jar.parent.chmod(0o700)
    jar.write_bytes(b"planted")
    assert shim.locate_jar(spark) == jar
    jar.chmod(0o666)
    with pytest.raises(EnvironmentProblem, match="PARALAGG_CACHE_UNSAFE"):
        shim.locate_jar(spark)
    jar.chmod(0o600)
    jar.parent.chmod(0o770)
    with pytest.raises(EnvironmentProblem, match="PARALAGG_CACHE_UNSAFE"):
        shim.locate_jar(spark)


PROGRAM = ".decl e(x: number, y: number)\n.input e\n.output p\n"
PROGRAM += "p(1, $MIN(0)) :- e(1, _).\np(y, $MIN(d + 1)) :- p(x, d), e(x, y).\n"


class TestKernels:
    """A run in a process of its own, with a cache of its own."""

    @pytest.fixture(autouse=True)
    def _run_once(self, tmp_path: Path) -> None:
        pytest.importorskip("numba", reason="the engine needs numba")
        self.folder, self.cache = tmp_path, tmp_path / "cache"
        (tmp_path / "p.dl").write_text(PROGRAM)
        (tmp_path / "e.facts").write_text("1\t2\n2\t3\n")

    def run(self) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pyspark_paralagg", "run", str(self.folder / "p.dl"), "--backend", "local"]
        return subprocess.run(  # noqa: S603 - our own command
            [*command, "--facts", str(self.folder), "--out", str(self.folder / "out")],
            env={**os.environ, "PYTHONPATH": python_path(ROOT), SETTING: str(self.cache)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def refused(self, why: str) -> None:
        done = self.run()
        assert done.returncode != 0
        assert "PARALAGG_CACHE_UNSAFE" in done.stderr
        assert why in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.slow("a process for each change, which compiles a kernel to machine code")
    def test_changed_files_are_not_run(self) -> None:
        done = self.run()
        assert done.returncode == 0, done.stderr
        assert mode(self.cache) == 0o700
        assert {mode(path) for path in self.cache.iterdir() if path.suffix in (".py", ".code")} == {0o600}
        mark = self.folder / "planted"

        source = next(self.cache.glob("k*.py"))
        before = source.read_text()
        source.write_text(f"open({str(mark)!r}, 'w')\n{before}")
        self.refused("its content is not what was written")
        source.write_text(before)

        # A pickle that runs a command when it is loaded, as another kernel's file under this one's name, and shortened.
        first, second, *_ = sorted(self.cache.glob("*.code"))
        kept = {path: path.read_bytes() for path in self.cache.glob("*.code")}
        for planted in (b"cos\nsystem\n(S'touch " + str(mark).encode() + b"'\ntR.", kept[second], kept[first][:100]):
            for path, content in kept.items():
                path.write_bytes(planted if planted != content else kept[first])
            self.refused("its content is not what was written")
        for path, content in kept.items():
            path.write_bytes(content)
        assert not mark.exists()
        assert self.run().returncode == 0

        self.cache.chmod(0o777)
        self.refused("other users can write to it")
