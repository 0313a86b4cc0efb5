"""Write the Python source of the kernels that are specific to a Plan; Numba compiles it."""
