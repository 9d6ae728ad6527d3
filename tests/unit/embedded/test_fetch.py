"""Fetching jars: everything that goes wrong is named, and leaves nothing in the way of the next attempt."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.fake_fetch import FETCHES, GOOD, calls

from tidemark.embedded.errors import (
    CacheNotWritable,
    FetchFailed,
    JarDamaged,
    JavaMissing,
    NoSpace,
    RegistryUnreachable,
)
from tidemark.embedded.files import exclusive
from tidemark.embedded.jars.fetch import SPARE, ensure_jars
from tidemark.embedded.jars.ivy import Fetching

pytestmark = pytest.mark.unit


def leftovers(settings):
    return [path.name for path in (settings.cache / "jars").glob(".staging-*")]


def test_fetched_jars_are_where_the_class_paths_say(settings, java, registry):
    jars = ensure_jars(settings, environ=java(FETCHES))
    assert {f"{path.parent.name}/{path.name}" for path in jars.folder.glob("*/*")} == set(GOOD)
    assert jars.classpath("kafka") == str(jars.folder / "kafka" / "*")
    assert jars.named("cassandra", "b") == jars.folder / "cassandra" / "b-2.jar"
    assert jars.spark == (jars.folder / "spark" / "c-3.jar",)
    assert not (settings.cache / "ivy").exists(), "Ivy's copy is not kept"


def test_what_is_there_is_not_fetched_again(settings, java, registry):
    environ = java(FETCHES)
    ensure_jars(settings, environ=environ)
    ensure_jars(settings, environ={})
    assert calls(environ) == 1


def test_only_one_kind_of_jars_is_fetched_when_only_that_is_wanted(settings, java, registry):
    environ = java(FETCHES)
    jars = ensure_jars(settings, only="spark", environ=environ)
    assert [path.name for path in jars.folder.iterdir()] == ["spark"]
    ensure_jars(settings, environ=environ)
    assert sorted(path.name for path in jars.folder.iterdir()) == ["cassandra", "kafka", "spark"]


def test_progress_counts_to_the_number_of_jars_and_names_the_one_on_its_way(settings, java, registry):
    steps = []
    ensure_jars(settings, progress=steps.append, environ=java(FETCHES))
    assert Fetching(1, 3, "b-2.jar") in steps
    assert steps[0] == Fetching(0, 3, "")
    assert steps[-1] == Fetching(3, 3, "")


def test_without_java_nothing_is_fetched(settings, registry, monkeypatch, tmp_path):
    monkeypatch.setattr("tidemark.embedded.java.JVM_FOLDERS", tmp_path)
    monkeypatch.setattr("tidemark.embedded.jars.fetch.find_java", lambda environ: _no_java())
    with pytest.raises(JavaMissing):
        ensure_jars(settings, environ={"PATH": ""})


def _no_java():
    raise JavaMissing(["PATH"])


def test_too_little_space_is_found_before_the_fetch(settings, java, registry):
    environ = java(FETCHES)
    size = sum(map(len, GOOD.values()))
    with pytest.raises(NoSpace, match="Free some space, or set TIDEMARK_CACHE") as refused:
        ensure_jars(settings, free_space=lambda _: 2 * size + SPARE - 1, environ=environ)
    assert (refused.value.needed, refused.value.free) == (2 * size + SPARE, 2 * size + SPARE - 1)
    assert calls(environ) == 0
    ensure_jars(settings, free_space=lambda _: 2 * size + SPARE, environ=environ)


def test_a_disk_that_fills_up_during_the_fetch_is_named(settings, java, registry):
    says = 'echo "[FAILED     ] org#a;1!a.jar: No space left on device (1ms)"; exit 1'
    with pytest.raises(NoSpace, match="became full while fetching"):
        ensure_jars(settings, environ=java(says))
    assert leftovers(settings) == []


def test_a_disk_that_is_full_for_us_is_named(settings, java, registry, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tidemark.embedded.jars.fetch.run_ivy", full)
    with pytest.raises(NoSpace):
        ensure_jars(settings, environ=java(FETCHES))


def test_a_registry_that_has_not_all_jars_is_told_with_their_names(settings, java, registry):
    says = """
    echo "		module not found: org.first#a;1"
    echo "	[FAILED     ] org.second#b;2!b.jar: connection reset (3ms)"
    echo "		:: org.third#c;3: not found"
    exit 1"""
    with pytest.raises(RegistryUnreachable, match="3 of the jars could not be fetched") as refused:
        ensure_jars(settings, environ=java(says))
    assert refused.value.missing == ["org.first:a:1", "org.second:b:2", "org.third:c:3"]
    assert "module not found" in refused.value.log.read_text()
    assert leftovers(settings) == []


def test_a_registry_that_never_answers_is_given_up(settings, java, registry, monkeypatch):
    monkeypatch.setattr("tidemark.embedded.jars.ivy.SILENCE", 0.05)
    with pytest.raises(RegistryUnreachable) as refused:
        ensure_jars(settings, environ=java("exec sleep 60"))
    assert refused.value.missing == ["org:a:1", "org:b:2", "org:c:3"]


def test_any_other_failure_of_ivy_shows_its_last_lines(settings, java, registry):
    with pytest.raises(FetchFailed, match="something odd"):
        ensure_jars(settings, environ=java("echo something odd; exit 3"))


def test_a_jar_that_ivy_forgot_is_missing(settings, java, registry):
    with pytest.raises(RegistryUnreachable) as refused:
        ensure_jars(settings, only="spark", environ=java("exit 0"))
    assert refused.value.missing == ["org:c:3"]


def test_an_exchanged_jar_is_refused_whatever_the_server_said(settings, java, registry):
    environ = java(FETCHES)
    good = (registry / "cassandra" / "b-2.jar").read_bytes()
    (registry / "cassandra" / "b-2.jar").write_bytes(bytes(len(good)))
    with pytest.raises(JarDamaged, match=r"cassandra/b-2\.jar is damaged .*Call again") as refused:
        ensure_jars(settings, environ=environ)
    assert refused.value.jar == "cassandra/b-2.jar"
    assert refused.value.expected == hashlib.sha256(good).hexdigest()
    assert refused.value.found == hashlib.sha256(bytes(len(good))).hexdigest()
    assert leftovers(settings) == []
    (registry / "cassandra" / "b-2.jar").write_bytes(good)
    ensure_jars(settings, environ=environ)


def test_a_jar_cut_short_in_the_cache_is_found_removed_and_fetched_again(settings, java, registry):
    environ = java(FETCHES)
    jars = ensure_jars(settings, environ=environ)
    (jars.folder / "kafka" / "a-1.jar").write_bytes(b"the j")
    with pytest.raises(JarDamaged, match=r"kafka/a-1\.jar"):
        ensure_jars(settings, environ=environ)
    ensure_jars(settings, environ=environ)
    assert (jars.folder / "kafka" / "a-1.jar").read_bytes() == GOOD["kafka/a-1.jar"]


def test_a_jar_of_the_right_size_is_compared_byte_by_byte_only_when_asked(settings, java, registry):
    environ = java(FETCHES)
    jars = ensure_jars(settings, environ=environ)
    (jars.folder / "spark" / "c-3.jar").write_bytes(b"THAT OF C")
    ensure_jars(settings, environ=environ)
    with pytest.raises(JarDamaged, match=r"spark/c-3\.jar"):
        ensure_jars(settings, verify=True, environ=environ)


def test_a_jar_that_was_not_asked_for_does_not_stay_on_a_class_path(settings, java, registry):
    environ = java(FETCHES)
    jars = ensure_jars(settings, environ=environ)
    (jars.folder / "kafka" / "stranger.jar").write_bytes(b"x")
    ensure_jars(settings, environ=environ)
    assert [path.name for path in (jars.folder / "kafka").iterdir()] == ["a-1.jar"]


def test_a_cache_that_cannot_be_written_is_named(settings, java, registry):
    settings.cache.parent.mkdir(exist_ok=True)
    settings.cache.write_text("a file where a folder should be")
    with pytest.raises(CacheNotWritable, match="set TIDEMARK_CACHE to another folder"):
        ensure_jars(settings, environ=java(FETCHES))


def test_a_killed_fetch_leaves_nothing_in_the_way(settings, java, registry, tmp_path):
    half = FETCHES.replace('cp "$JARS', 'echo $$ > "$CALLS.pid"; exec sleep 60; cp "$JARS')
    program = (
        "import os, sys; sys.path[:0] = ['tests']; from tidemark.embedded.jars import fetch\n"
        "from tidemark.embedded.jars.lock_file import Jar; from tidemark.settings import Settings\n"
        "fetch.locked_jars = lambda: (Jar('kafka', 'a-1.jar', '0', 1, 'org:a:1'),)\n"
        "fetch.ensure_jars(Settings.read(), environ=os.environ)"
    )
    environ = {**java(half), "TIDEMARK_CACHE": str(settings.cache), "HOME": str(tmp_path)}
    fetching = subprocess.Popen([sys.executable, "-c", program], env=environ)
    pid_file = tmp_path / "calls.pid"
    while not (pid_file.exists() and pid_file.read_text().endswith("\n")):
        assert fetching.poll() is None
        threading.Event().wait(0.01)
    fetching.send_signal(signal.SIGKILL)
    fetching.wait()
    os.kill(int(pid_file.read_text()), signal.SIGKILL)
    assert len(leftovers(settings)) == 1
    jars = ensure_jars(settings, environ=java(FETCHES))
    assert len(list(jars.folder.glob("*/*.jar"))) == 3
    assert leftovers(settings) == []


def test_two_who_need_the_jars_fetch_them_once(settings, java, registry):
    environ = java(FETCHES.replace("for last", 'while [ ! -e "$CALLS.go" ]; do sleep 0.01; done; for last'))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(ensure_jars, settings, environ=environ) for _ in range(2)]
        while calls(environ) == 0:
            threading.Event().wait(0.01)
        Path(environ["CALLS"] + ".go").touch()
        assert both[0].result() == both[1].result()
    assert calls(environ) == 1


def test_a_lock_keeps_the_second_waiting_and_tells_it(tmp_path):
    told, entered = threading.Event(), threading.Event()

    def second():
        with exclusive(tmp_path / "lock", told.set):
            entered.set()

    with exclusive(tmp_path / "lock"):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(5)
        assert not entered.is_set()
    thread.join()
    assert entered.is_set()
