"""A model of runs on up to 16,384 MPI ranks: ``python -m benchmarks.scale``; docs/scale.md has its results.

A run in strict rounds does the same on any number of ranks; only the owners of rows and edges differ. So the counts of
a run follow from one replay of the rounds, by the engine's own rules of placement::

    graphs -> programs -> replay       the rows that change in each round, once for all numbers of ranks
                            |
              placement -> counts      edges visited, rows and bytes sent, partners, for each rank and round: exact
                            |
     on_ranks -> measured -> costs     seconds: costs of counts are fitted to the CPU time of real ranks
                            |
                  study -> figures, page

``tests/test_scale_model.py`` compares the counts with those of real ranks.
"""
