"""Run a suite file: read it, open its folder, work through its cases."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from coopt.plan.progress import OnProgress
from coopt.suite.cases import cases_of
from coopt.suite.driver import Driver, Summary
from coopt.suite.folder import opened
from coopt.suite.parquet import check_parquet
from coopt.suite.pools import DaskPool, LocalPool, Pool, available_cores
from coopt.suite.study import read_study


def run_suite(
    path: str | Path,
    output: str | Path | None = None,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    on_progress: OnProgress = lambda step: None,
) -> Summary:
    """Answer every case of a suite file and keep the results in a folder.

    Parameters
    ----------
    output
        The folder; None for `out/NAME`.
    workers
        Processes of this machine, each with one solver thread; None for one for each core this process may use.
    scheduler
        Address of a Dask scheduler whose workers do the work instead.
    resume
        Whether the folder may hold results of this suite; what is answered there is not asked again.

    Raises
    ------
    InstanceError
        When the suite, the folder or the scheduler cannot be used; nothing was run then.
    """
    check_parquet()
    study = read_study(path)
    cases = cases_of(study.suite, Path(path).parent)
    pool_of: Callable[[], Pool] = partial(LocalPool, workers or available_cores())
    if scheduler is not None:
        pool_of = partial(DaskPool, scheduler)
    with opened(output or Path("out") / study.suite.name, study, resume=resume) as folder:
        return Driver(study.suite.name, cases, folder, on_progress).run(pool_of)
