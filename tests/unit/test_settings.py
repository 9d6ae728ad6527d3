"""Where an installation keeps things: defaults, every variable, and what is refused."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from tidemark.errors import TidemarkError
from tidemark.settings import ROOT, BadSetting, Settings

pytestmark = pytest.mark.unit

CHECKOUT = Path(__file__).parents[2]
PORTS = ["TIDEMARK_KAFKA_PORT", "TIDEMARK_CASSANDRA_PORT", "TIDEMARK_AIRFLOW_PORT"]


def test_the_root_is_the_checkout():
    assert Settings.read({}).root == ROOT == CHECKOUT


def test_everything_has_a_default():
    settings = Settings.read({})
    assert settings.home == CHECKOUT / ".tidemark"
    assert settings.cache == Path.home() / ".cache" / "tidemark"
    assert settings.pipeline_folders == (CHECKOUT / "include" / "pipelines",)
    assert (settings.kafka_port, settings.cassandra_port, settings.airflow_port) == (9092, 9042, 8080)


def test_an_empty_variable_is_as_good_as_none():
    names = [
        "TIDEMARK_ROOT",
        "TIDEMARK_HOME",
        "TIDEMARK_CACHE",
        "TIDEMARK_PIPELINES",
        "TIDEMARK_TRANSFORMS",
        "XDG_CACHE_HOME",
        *PORTS,
    ]
    assert Settings.read(dict.fromkeys(names, "")) == Settings.read({})


def test_the_root_can_be_elsewhere():
    settings = Settings.read({"TIDEMARK_ROOT": "/opt/tidemark"})
    assert settings.root == Path("/opt/tidemark")
    assert settings.home == Path("/opt/tidemark/.tidemark")
    assert settings.pipeline_folders == (Path("/opt/tidemark/include/pipelines"),)


def test_the_home_can_be_elsewhere():
    assert Settings.read({"TIDEMARK_HOME": "/var/tidemark"}).home == Path("/var/tidemark")


def test_a_relative_home_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert Settings.read({"TIDEMARK_HOME": "here"}).home == tmp_path / "here"


def test_the_cache_can_be_elsewhere():
    assert Settings.read({"TIDEMARK_CACHE": "/var/cache/tm"}).cache == Path("/var/cache/tm")


def test_the_cache_lies_in_the_user_s_cache():
    assert Settings.read({"XDG_CACHE_HOME": "/var/cache"}).cache == Path("/var/cache/tidemark")


def test_further_pipeline_folders_come_after_our_own():
    folders = Settings.read({"TIDEMARK_ROOT": "/opt", "TIDEMARK_PIPELINES": "/a:/b"}).pipeline_folders
    assert folders == (Path("/opt/include/pipelines"), Path("/a"), Path("/b"))


def test_empty_names_among_pipeline_folders_are_passed_over():
    assert Settings.read({"TIDEMARK_PIPELINES": ":/a::"}).pipeline_folders[1:] == (Path("/a"),)


def test_each_port_can_be_another():
    settings = Settings.read(dict(zip(PORTS, ["19092", "19042", "18080"], strict=True)))
    assert (settings.kafka_port, settings.cassandra_port, settings.airflow_port) == (19092, 19042, 18080)


@pytest.mark.parametrize("port", ["1", "65535"])
def test_the_first_and_the_last_port_are_taken(port):
    assert Settings.read({"TIDEMARK_KAFKA_PORT": port}).kafka_port == int(port)


@pytest.mark.parametrize("name", PORTS)
@pytest.mark.parametrize("port", ["0", "65536", "-1", "9092.0", "kafka", "9 092"])
def test_what_is_no_port_is_refused_by_name(name, port):
    with pytest.raises(BadSetting) as refusal:
        Settings.read({name: port})
    assert (refusal.value.name, refusal.value.value) == (name, port)
    assert str(refusal.value) == (
        f"{name} is '{port}', but must be a port number from 1 to 65535. Change or unset it and try again."
    )


def test_a_bad_setting_is_for_a_person():
    assert issubclass(BadSetting, TidemarkError)


def test_without_an_argument_the_environment_is_read(monkeypatch):
    monkeypatch.setenv("TIDEMARK_HOME", "/var/tidemark")
    assert Settings.read().home == Path("/var/tidemark")


def test_settings_do_not_change():
    with pytest.raises(FrozenInstanceError):
        Settings.read({}).kafka_port = 1


def test_i26_no_package_is_listed_unless_the_environment_does():
    assert Settings.read({}).transform_packages == ()
    listed = Settings.read({"TIDEMARK_TRANSFORMS": "shop: acme.transforms:"}).transform_packages
    assert listed == ("shop", "acme.transforms")


@pytest.mark.parametrize("value", ["shop-a", "shop:*", "shop..a", "/opt/shop"])
def test_what_is_not_the_name_of_a_package_is_refused(value):
    with pytest.raises(BadSetting, match=r"TIDEMARK_TRANSFORMS is .* names of packages"):
        Settings.read({"TIDEMARK_TRANSFORMS": value})
