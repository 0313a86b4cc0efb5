"""What runs in loops: functions that Numba compiles, and the generator of those that a Plan needs."""
