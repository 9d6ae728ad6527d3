"""jars.lock and ivy.xml agree with each other and with what is installed."""

import re
import xml.etree.ElementTree as ET
from importlib.metadata import version

import pytest

from tidemark.embedded.jars.ivy import flat_module, settings_xml
from tidemark.embedded.jars.lock_file import CONFS, HERE, Jar, jar_set, locked_jars, version_of

pytestmark = pytest.mark.unit


def test_every_version_of_ivy_xml_is_in_the_lock():
    root = ET.parse(HERE / "ivy.xml").getroot()
    asked = [f"{d.get('org')}:{d.get('name')}:{d.get('rev')}" for d in root.iter("dependency")]
    asked += [f"{d.get('org')}:{d.get('module')}:{d.get('rev')}" for d in root.iter("override")]
    assert set(asked) <= {jar.coordinate for jar in locked_jars()}, (
        "run: python -m tidemark.embedded.jars.lock"
    )
    assert len(asked) == 5


def test_no_jar_is_there_twice_on_a_class_path():
    for conf in CONFS:
        modules = [
            (jar.organisation, jar.module, jar.classifier) for jar in locked_jars() if jar.conf == conf
        ]
        assert len(modules) == len(set(modules))


def test_spark_gets_four_jars_and_nothing_that_it_brings_itself():
    jars = {jar.module: jar.version for jar in locked_jars() if jar.conf == "spark"}
    assert jars == {
        "spark-sql-kafka-0-10_2.13": version("pyspark"),
        "spark-token-provider-kafka-0-10_2.13": "4.0.0",
        "kafka-clients": "3.9.2",
        "commons-pool2": "2.13.1",
    }


def test_no_registry_is_written_down():
    for path in (HERE / "ivy.xml", HERE / "ivysettings.xml", HERE / "jars.lock"):
        assert not re.search(r"https?://", path.read_text()), path


def test_another_registry_is_used_when_the_environment_names_one():
    assert "root=" not in settings_xml(None)
    assert 'root="http://registry.example/"' in settings_xml("http://registry.example/")


def test_a_line_of_the_lock_reads_back_as_it_was_written():
    line = "cassandra/netty-4.1-linux.jar 00ff 12 io.netty:netty:4.1:linux"
    jar = Jar.parse(line)
    assert (jar.organisation, jar.module, jar.version, jar.classifier) == (
        "io.netty",
        "netty",
        "4.1",
        "linux",
    )
    assert jar.line == line


def test_jars_that_differ_by_their_classifier_only_are_one_dependency_with_several_artifacts():
    jars = [
        Jar("kafka", f"n-1{c}.jar", "0", 1, f"org:n:1{c.replace('-', ':')}") for c in ("", "-osx", "-linux")
    ]
    root = ET.fromstring(flat_module(jars))
    assert len(root.findall("dependencies/dependency")) == 1
    assert len(root.findall("dependencies/dependency/artifact")) == 3


def test_the_name_of_the_jar_set_follows_the_files():
    assert re.fullmatch("[0-9a-f]{12}", jar_set())


def test_the_versions_people_see_are_those_of_the_lock():
    assert version_of("cassandra-all") == "5.0.9"
    assert version_of("kafka_2.13") == "4.3.1"
