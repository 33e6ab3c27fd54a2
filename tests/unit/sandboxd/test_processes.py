import asyncio
import os
import signal

import pytest

from bot.sandboxd.processes import Command, Ending, Event, Kind, Process, Subscriber

COMMAND = Command("/bin/true", (), {}, None, stdin=True)


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (0, Ending(0, exited=True, status="exit status 0", error=None)),
        (3, Ending(3, exited=True, status="exit status 3", error="exit status 3")),
        (-9, Ending(-1, exited=False, status="signal: killed", error="signal: killed")),
        (-signal.SIGTERM, Ending(-1, exited=False, status="signal: terminated", error="signal: terminated")),
    ],
)
def test_an_exit_code_is_told_in_the_words_of_e2b(code, ending):
    assert Ending.of(code) == ending


async def test_a_full_subscriber_holds_back_until_it_is_read():
    subscriber = Subscriber()
    for _ in range(64):
        await subscriber.put(Event(Kind.STDOUT, b"x"))
    blocked = asyncio.create_task(subscriber.put(Event(Kind.STDOUT, b"last")))
    await asyncio.sleep(0.01)
    assert not blocked.done()
    await subscriber.get(1)
    await blocked


async def test_a_closed_subscriber_lets_go_whoever_waits_for_room():
    subscriber = Subscriber()
    for _ in range(64):
        await subscriber.put(Event(Kind.STDOUT, b"x"))
    blocked = [asyncio.create_task(subscriber.put(Event(Kind.STDOUT, b"x"))) for _ in range(2)]
    await asyncio.sleep(0.01)
    subscriber.close()
    await asyncio.wait_for(asyncio.gather(*blocked), 1)
    await subscriber.put(Event(Kind.STDOUT, b"dropped"))


async def test_a_subscriber_with_nothing_to_tell_says_so_in_time():
    assert await Subscriber().get(0.01) is None


def piped() -> tuple[Process, int, int, int]:
    (out, out_in), (err, err_in), (stdin_out, stdin) = os.pipe(), os.pipe(), os.pipe()
    return Process(COMMAND, {Kind.STDOUT: out, Kind.STDERR: err}, stdin), out_in, err_in, stdin_out


async def collect(subscriber: Subscriber) -> list[Event]:
    events = []
    while True:
        event = await subscriber.get(5)
        assert event is not None
        events.append(event)
        if event.kind in {Kind.END, Kind.GONE}:
            return events


async def test_all_output_comes_before_the_end_and_both_streams_are_told_apart():
    process, out, err, stdin = piped()
    subscriber = process.subscribe()
    process.started(7)
    os.write(out, b"out")
    os.write(err, b"err")
    for fd in (out, err, stdin):
        os.close(fd)
    process.exit_code = 0
    await process.finish()
    events = await collect(subscriber)
    assert sorted(events[:-1], key=lambda event: event.kind) == [Event(Kind.STDERR, b"err"), Event(Kind.STDOUT, b"out")]
    assert process.ending == Ending.of(0)


async def test_an_output_that_a_survivor_holds_open_does_not_delay_the_end_for_ever():
    process, out, err, stdin = piped()
    subscriber = process.subscribe()
    process.started(7)
    os.write(out, b"last words")
    process.exit_code = 0
    await asyncio.wait_for(process.finish(), 5)
    assert [event.data for event in await collect(subscriber)] == [b"last words", b""]
    os.write(out, b"from the survivor")
    for fd in (out, err, stdin):
        os.close(fd)
    await asyncio.sleep(0.05)


async def test_a_lost_sandbox_is_told_as_gone_and_never_as_an_end():
    process, out, err, stdin = piped()
    subscriber = process.subscribe()
    process.started(7)
    await process.lose()
    assert [event.kind for event in await collect(subscriber)] == [Kind.GONE]
    assert process.ending is None
    for fd in (out, err, stdin):
        os.close(fd)
    await asyncio.sleep(0.01)


async def test_closing_the_input_wakes_a_write_that_waits_for_room():
    process, out, err, stdin = piped()
    process.started(7)
    writing = asyncio.create_task(process.write(b"x" * (1 << 20)))
    await asyncio.sleep(0.05)
    assert not writing.done()
    process.close_stdin()
    with pytest.raises(ValueError, match="not open"):
        await asyncio.wait_for(writing, 1)
    await process.lose()
    for fd in (out, err, stdin):
        os.close(fd)
    await asyncio.sleep(0.01)
