"""The fault campaign: real processes on loopback, each harmed at a random moment.

    make faults COUNT=500 SEED=1

A case is an engine, a fault, its target and a moment (``cases``). The result must be right, or the error must have a
code; the run ends soon after the fault; no process, file or shared memory is left. ``docs/reliability.md`` has a table.
"""
