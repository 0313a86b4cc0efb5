"""Run registered actions before a session is configured or attached.

Layers above ``session`` register them, so ``session`` imports none of them. ``api`` registers
``DataFrame.recursive_agg`` this way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_ACTIONS: list[Callable[[], None]] = []


def before_session(action: Callable[[], None]) -> None:
    """Register ``action``. It runs for each session, so it must be idempotent."""
    _ACTIONS.append(action)


def run_actions() -> None:
    """Run all registered actions in the order of their registration."""
    for action in _ACTIONS:
        action()
