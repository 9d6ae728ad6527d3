"""Tidemark's pages in Airflow's web server: nothing answers without a log-in (item 26)."""

import pytest
from fastapi.routing import APIRoute

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The plugin, with an Airflow that has a home of its own and no database."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(tmp_path_factory.mktemp("airflow")))
        from tidemark_airflow.pages import results

        yield results


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"])
def test_i26_the_schema_and_the_pages_that_show_it_are_not_there(results, path):
    from fastapi.testclient import TestClient  # warns

    assert TestClient(results.pages).get(path).status_code == 404


def test_i26_every_route_asks_who_is_there(results):
    asking = [route for route in results.pages.routes if isinstance(route, APIRoute)]
    assert len(asking) == len(results.pages.routes) > 0
    assert [route.path for route in asking if results._may_look not in route.dependencies] == []
