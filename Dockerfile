# An image for drivers and executors, or for workers of a standalone cluster: Spark, Python, numba, this package and the
# jar of its engine; with MPI, if EXTRAS=mpi. The versions are those of constraints.txt (tests/test_dockerfile.py).
#
#   docker build --tag paralagg .
#   docker build --tag paralagg-mpi --build-arg EXTRAS=mpi .
FROM spark:4.2.0-scala2.13-java17-python3-ubuntu

USER root
WORKDIR /opt/paralagg
COPY constraints.txt pyproject.toml README.md LICENSE ./
COPY pyspark_paralagg pyspark_paralagg
COPY mpi_backend mpi_backend
COPY jvm_shim/src/main jvm_shim/src/main

# The image has Spark's Python side, so pip installs the dependencies of pyproject.toml without pyspark (450 MB), then the
# package alone. The jar lies among Spark's own: no --jars is needed.
ENV PYTHONPATH=/opt/spark/python:/opt/spark/python/lib/py4j-0.10.9.9-src.zip
ARG EXTRAS=
RUN pip install --no-cache-dir --constraint constraints.txt numpy pandas pyarrow lark psutil tqdm z3-solver numba hatchling && \
    if [ "$EXTRAS" = mpi ]; then pip install --no-cache-dir --constraint constraints.txt mpi4py mpich; fi && \
    pip install --no-cache-dir --no-deps --no-build-isolation . && \
    python3 -m pyspark_paralagg shim --into /opt/spark/jars && \
    install --directory --mode=700 --owner=spark --group=spark /opt/paralagg/kernels

ENV PARALAGG_KERNEL_CACHE=/opt/paralagg/kernels
WORKDIR /opt/spark/work-dir
USER spark
