#!/bin/bash
# One store from an archive by 16 processes of an MPI launcher:  mpi.sh ARCHIVE OUT.zarr
# Nothing is sent between them; MPIRUN names another launcher and its options.
# shellcheck disable=SC2086 # the launcher is words
exec ${MPIRUN:-mpirun -n 16 --map-by node} "${NC2ZARR:-nc2zarr}" "$@"
