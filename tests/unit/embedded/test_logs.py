"""Logs: the last lines, new ones as they come, and help with a name that is not quite right."""

from itertools import islice

import pytest

from tidemark.embedded.errors import NoLog, UnknownService
from tidemark.embedded.logs import checked_services, log_file, read_log

pytestmark = pytest.mark.unit


@pytest.fixture
def log(settings):
    path = settings.home / "logs" / "kafka.log"
    path.parent.mkdir(parents=True)
    path.write_text("one\ntwo\nthree\n")
    return path


def test_the_last_lines_are_read(settings, log):
    assert list(read_log(settings, "kafka", 2)) == ["two", "three"]


def test_following_goes_on_with_what_is_written_later_also_after_a_restart(settings, log):
    lines = read_log(settings, "kafka", 1, follow=True)
    assert next(lines) == "three"
    with log.open("a") as file:
        file.write("four\nfi")
    assert next(lines) == "four"
    with log.open("a") as file:
        file.write("ve\n")
    assert next(lines) == "five"
    log.write_text("anew\n")
    assert list(islice(lines, 1)) == ["anew"]


@pytest.mark.parametrize(("name", "guess"), [("kafak", "kafka"), ("casandra", "cassandra"), ("qqq", None)])
def test_an_unknown_service_is_answered_with_the_known_ones(settings, name, guess):
    with pytest.raises(UnknownService, match=f"There is no service '{name}'") as unknown:
        log_file(settings, name)
    assert unknown.value.guess == guess
    assert ("Did you mean" in str(unknown.value)) == (guess is not None)
    assert "airflow-scheduler" in str(unknown.value)


def test_airflow_alone_means_its_scheduler(settings):
    with pytest.raises(NoLog, match="airflow-scheduler has no log yet"):
        log_file(settings, "airflow")


def test_a_list_of_services_is_checked_name_by_name():
    assert checked_services("kafka, cassandra") == ["kafka", "cassandra"]
    assert checked_services("") == []
    with pytest.raises(UnknownService, match="Did you mean kafka"):
        checked_services("cassandra,kafak")
