"""One rule decides that a run is dry: by hand and by backfill unless switched off, on schedule never."""

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("run_type", "dry_run", "expected"),
    [
        ("manual", True, True),
        ("manual", False, False),
        ("backfill", True, True),
        ("backfill", False, False),
        ("scheduled", True, False),
        ("scheduled", False, False),
        ("asset_triggered", True, False),
        ("asset_triggered", False, False),
        ("asset_materialization", True, True),
        ("asset_materialization", False, False),
    ],
)
def test_the_type_of_a_run_and_the_parameter_decide(run_type, dry_run, expected):
    from tidemark_airflow.dry_run import is_dry_run

    assert is_dry_run(SimpleNamespace(run_type=run_type), {"dry_run": dry_run}) is expected


@pytest.mark.parametrize(
    ("conf", "expected"), [(None, False), ({}, False), ({"dry_run": False}, False), ({"dry_run": True}, True)]
)
def test_a_run_that_another_dag_starts_is_dry_where_that_dag_asks_for_it(conf, expected):
    from tidemark_airflow.dry_run import is_dry_run

    run = SimpleNamespace(run_type="operator_triggered", conf=conf)
    assert is_dry_run(run, {"dry_run": True}) is expected


def test_every_type_of_run_that_airflow_knows_is_covered():
    from airflow.utils.types import DagRunType

    from tidemark_airflow.dry_run import ON_SCHEDULE

    assert {one.value for one in DagRunType} == ON_SCHEDULE | {
        "manual",
        "backfill",
        "operator_triggered",
        "asset_materialization",
    }


def test_the_parameter_is_on_where_it_is_not_set():
    from tidemark_airflow.dry_run import DRY_RUN, dry_run_param

    param = dry_run_param()
    assert (param.resolve(), param.description) == (True, DRY_RUN)
