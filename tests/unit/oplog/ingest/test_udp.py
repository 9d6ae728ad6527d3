"""The UDP socket: what it takes, and what the kernel says of it."""

import asyncio
import socket

import pytest

from tidemark.oplog.agent.ingest.udp import UdpListener, drops_of, udp_socket

pytestmark = pytest.mark.unit


@pytest.fixture
def bound():
    made = udp_socket("127.0.0.1", 0)
    yield made
    made.close()


def send(bound: socket.socket, *datagrams: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for datagram in datagrams:
            sender.sendto(datagram, bound.getsockname())


def test_datagrams_arrive_whole_with_the_time_of_their_receipt(bound):
    taken = []

    async def receive():
        both = asyncio.Event()

        def take(text: bytes, received: int) -> None:
            taken.append((text, received))
            if len(taken) == 3:
                both.set()

        listener = UdpListener(bound, take, clock=lambda: 17)
        listener.start(asyncio.get_running_loop())
        send(bound, b"a", b"", b"x" * 60_000)
        await asyncio.wait_for(both.wait(), 30)
        listener.close()

    asyncio.run(receive())
    assert taken == [(b"a", 17), (b"", 17), (b"x" * 60_000, 17)]


def test_what_the_kernel_has_is_taken_before_the_socket_is_closed(bound):
    taken = []

    async def close_at_once():
        listener = UdpListener(bound, lambda text, received: taken.append(text))
        listener.start(asyncio.get_running_loop())
        send(bound, *(b"%d" % number for number in range(300)))
        listener.close()

    asyncio.run(close_at_once())
    assert len(taken) == 300


def test_drops_of_the_kernel_are_known(bound):
    listener = UdpListener(bound, lambda text, received: None)

    async def flood():
        listener.start(asyncio.get_running_loop())
        for _ in range(300):
            send(bound, *[b"x" * 60_000] * 10)
            if listener.kernel_drops:
                break

    asyncio.run(flood())
    assert listener.kernel_drops > 0


def test_a_socket_is_found_by_its_inode(tmp_path):
    line = "  12: 0100007F:1F6A 00000000:0000 07 00000000:00000000 00:00000000 00000000  0 0 {} 2 00 {}\n"
    (tmp_path / "udp").write_text("  sl header\n" + line.format(111, 5))
    (tmp_path / "udp6").write_text("  sl header\n" + line.format(222, 7))
    assert [drops_of(inode, tmp_path) for inode in (111, 222, 333)] == [5, 7, None]


def test_a_system_without_these_figures_says_nothing(tmp_path):
    assert drops_of(1, tmp_path) is None
