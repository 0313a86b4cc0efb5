"""Run the inner loops: functions that Numba compiles, and the compiler of those that ``codegen`` writes."""
