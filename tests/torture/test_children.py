"""Cases in child processes: what ends or blocks the child is counted, the rest go on."""

import os
import signal
import time

from torture.children import count_cases


def batch(argument, run):
    for number in range(4):
        run(f"{argument} {number}", lambda number=number: case(argument, number))


def case(argument, number):
    if number == 1 and argument == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2 and argument == "hang":
        time.sleep(1000)
    if number == 3 and argument == "fail":
        raise ValueError("in a case")
    return "odd" if number % 2 else "even"


def test_crashes_hangs_and_failures_are_counted_and_the_others_go_on():
    tally = count_cases(batch, ["sound", "crash", "hang", "fail"], seconds=3)
    assert tally.cases == 16
    assert [text.partition(":")[0] for text in tally.crashes] == ["crash 1"]
    assert tally.hangs == ["hang 2"]
    (failure,) = tally.failures
    assert failure.startswith("fail 3: ValueError at test_children.py:")
    assert failure.endswith("in a case")
    assert tally.endings == {"even": 7, "odd": 6}
