"""A sweep over random sets on a Ray cluster.

    python ray_sweep.py --sets 1000                              # a local cluster, all cores
    RAY_ADDRESS=ray://head:10001 python ray_sweep.py --sets 100000 --parquet rows.parquet

It prints the share of sets that each scheduler meets completely, by load, and the time that it took.
"""

from __future__ import annotations

import argparse
import time

import ray
import temponet.ray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100, help="sets for each load")
    parser.add_argument("--jobs", type=int, default=1000, help="jobs for each set")
    parser.add_argument("--piece", type=int, default=64, help="sets in a Ray task")
    parser.add_argument("--schedulers", default="edf,rm,mh-edf,edf-skip")
    parser.add_argument("--workers", type=int, default=None, help="cores of the local cluster")
    parser.add_argument("--parquet", default=None, help="file for the rows")
    parser.add_argument("--check", action="store_true", help="compare with this machine alone, bit for bit")
    given = parser.parse_args()
    if given.workers is not None:
        ray.init(num_cpus=given.workers, include_dashboard=False, log_to_driver=False)
    temponet.ray.connect()
    loads = [0.8, 0.9, 1.0, 1.1, 1.2]
    settings = {"sets": given.sets, "jobs": given.jobs, "schedulers": given.schedulers, "bcet": 0.5, "oracle_budget": None}
    # Starting the workers is not part of the sweep.
    temponet.ray.sweep([1.0], piece=1, progress=False, **{**settings, "sets": int(ray.cluster_resources()["CPU"])})
    begun = time.perf_counter()
    sweep = temponet.ray.sweep(loads, piece=given.piece, parquet=given.parquet, **settings)
    took = time.perf_counter() - begun
    for scheduler in given.schedulers.split(","):
        shares = [f"{100 * point.acceptance:6.2f}%" for point in sweep.curves if point.scheduler == scheduler]
        print(f"{scheduler:10}", *shares)
    sets = given.sets * len(loads)
    print(f"{sets} sets in {took:.1f} s on {int(ray.cluster_resources()['CPU'])} cores: {sets / took:.0f} sets/s")
    if given.check:
        begun = time.perf_counter()
        same = temponet.sweep(loads, **settings).to_dict() == sweep.to_dict()
        print(f"this machine alone: {time.perf_counter() - begun:.1f} s, {'the same figures' if same else 'OTHER FIGURES'}")
        if not same:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
