#!/bin/bash
# One store from an archive by 16 tasks of one job:   sbatch slurm-srun.sh ARCHIVE OUT.zarr
# Submit it again after a failure: parts that are done write nothing.
#SBATCH --job-name=nc2zarr
#SBATCH --ntasks=16
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=4G
exec srun "${NC2ZARR:-nc2zarr}" "$@"
