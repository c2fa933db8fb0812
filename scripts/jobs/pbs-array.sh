#!/bin/bash
# One store from an archive, as an array of 64 jobs:
#   qsub -v ARGS="archive/ out.zarr" pbs-array.sh
# PBS gives an index and no count; the array begins at 1 and --parts is its length.
#PBS -N nc2zarr
#PBS -J 1-64
#PBS -l select=1:ncpus=8:mem=32gb
#PBS -r y
cd "$PBS_O_WORKDIR" || exit 1
# shellcheck disable=SC2086 # the arguments are words
exec "${NC2ZARR:-nc2zarr}" --part auto --parts 64 $ARGS
