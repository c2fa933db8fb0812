#!/bin/bash
# One store from an archive, as an array of 64 jobs:  sbatch slurm-array.sh ARCHIVE OUT.zarr
# A part that failed is run again alone:              sbatch --array=3,7 slurm-array.sh ARCHIVE OUT.zarr
# How they stand:                                     nc2zarr --parts-status OUT.zarr
#SBATCH --job-name=nc2zarr
#SBATCH --array=0-63
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --requeue
exec "${NC2ZARR:-nc2zarr}" --part auto "$@"
