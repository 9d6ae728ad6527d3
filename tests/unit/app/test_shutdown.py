"""A clean end: a signal is a question, and handlers are put back."""

import os
import signal
import threading

import pytest

from tidemark.app.shutdown import stop_requested

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_R22_a_signal_asks_and_kills_no_process(number):
    with stop_requested() as is_stopping:
        before = is_stopping()
        os.kill(os.getpid(), number)
        assert (before, is_stopping()) == (False, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_handler_from_before_is_put_back(number):
    before = signal.getsignal(number)
    with stop_requested():
        assert signal.getsignal(number) is not before
    assert signal.getsignal(number) is before


def test_the_handler_is_put_back_after_a_failure():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), stop_requested():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_the_main_thread_no_handler_is_installed():
    answers = []

    def work() -> None:
        with stop_requested() as is_stopping:
            answers.append(is_stopping())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert answers == [False]
