"""Test what a killed refresh of a recursive table leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=5),
    pytest.mark.slow("four JVMs that are killed in a refresh"),
]


def test_a_killed_refresh_that_runs_again_gives_the_same_table(
    delta: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("killed"))
    full, fixpoint, merge = (delta("refresh_killed", step, folder) for step in ("full", "fixpoint", "merge"))
    assert [facts.end for facts in (full, fixpoint, merge)] == ["ended with code 9"] * 3
    assert fixpoint["before"] == {"version": -1}
    only_first = {"version": 0, "rows": ["first"], "history": ["full"]}
    assert merge["before"] == only_first
    after = delta("refresh_killed", "after", folder)
    assert after["before"] == only_first
    assert after["again"] == "incremental"
    assert after["then"] == {"version": 1, "rows": ["then"], "history": ["incremental", "full"]}
    assert after["lost"] == {
        "found": {"version": 2, "rows": ["last"], "history": ["incremental", "incremental", "full"]},
        "next": "none",
    }
