"""Ctrl-C ends a command also where CasADi's wrapper drops the exception."""

import subprocess
import sys

HEAD = """
import signal, threading, time
from mbcasadi.cli.interrupts import keep_interrupts, settle
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
keep_interrupts()
"""

SWALLOWED = """
def swallow():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass

try:
    swallow()
    time.sleep(20)
    print("lost")
except KeyboardInterrupt:
    settle()
    print("raised again")
try:
    time.sleep(0.2)  # a handled one is not raised again
    print("quiet")
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    settle()
    print("a second one too")
time.sleep(0.2)
"""

CASADI = """
import casadi as ca
x = ca.SX.sym("x", 3)
caught = 0
for trial in range(10):
    end = time.monotonic() + 5.0
    try:
        threading.Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()
        while time.monotonic() < end:
            x * 2.0
        break
    except KeyboardInterrupt:
        settle()
        caught += 1
print(caught)
"""


def output(program):
    command = [sys.executable, "-c", HEAD + program]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_an_interrupt_that_somebody_swallows_is_raised_again():
    assert output(SWALLOWED).splitlines() == ["raised again", "quiet", "a second one too"]


def test_casadi_loses_no_interrupt():
    assert output(CASADI) == "10\n"
