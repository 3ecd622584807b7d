#!/usr/bin/python3
"""What a call from Python takes beyond the same call from C++ (the library must be built, and the module):

    cmake --build build/release --target rehearse_shared rehearse_python
    tests/bench/python_calls.py build/release

The same calls by the same library, in turn: the medians of their CPU time, since machines are shared.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS, CALLS = 15, 100
SOURCES = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
SCHEDULE = '{"schema": "rehearse.schedule.v1", "ranks": 1, "ops": [{"name": "one", "duration": "1ms"}]}'

# Microseconds a call, one row a kind of call.
PROGRAM = r"""
#include <rehearse/rehearse.h>
#include <cstdio>
#include <ctime>
template <typename Call> void Time(const Call& call) {
  const std::clock_t begin = std::clock();
  for (int i = 0; i < CALLS; ++i) call();
  std::printf("%.3f\n", 1e6 * double(std::clock() - begin) / CLOCKS_PER_SEC / CALLS);
}
int main(int, char** arguments) {
  const auto tiny = rehearse::Scenario::FromSchedule(arguments[1], "switch:devices=1");
  const auto step = rehearse::Scenario::FromFile(arguments[2]);
  Time([&] { rehearse::Simulate(tiny); });
  Time([&] { rehearse::Simulate(step); });
  Time([&] { step.With({"training.batch=64"}); });
  Time([&] { rehearse::Scenario::FromFile(arguments[2]); });
}
"""


def in_cpp(program, step):
    return [float(row) for row in
            subprocess.check_output([program, SCHEDULE, step], text=True).split()]


def in_python(step_file):
    tiny = rehearse.Scenario.of_schedule(SCHEDULE, "switch:devices=1")
    step = rehearse.Scenario(step_file)
    calls = [lambda: rehearse.simulate(tiny), lambda: rehearse.simulate(step),
             lambda: step.with_("training.batch=64"), lambda: rehearse.Scenario(step_file)]
    run = rehearse.simulate(step)
    calls += [lambda: run.step_seconds, lambda: run.spans]
    times = []
    for call in calls:
        begin = time.process_time()
        for _ in range(CALLS):
            call()
        times.append(1e6 * (time.process_time() - begin) / CALLS)
    return times


sys.path.insert(0, str(BUILD / "python"))
import rehearse  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    headers = pathlib.Path(folder, "rehearse")
    headers.symlink_to(SOURCES / "scenarios/library")
    source, program = pathlib.Path(folder, "calls.cc"), pathlib.Path(folder, "calls")
    source.write_text(PROGRAM)
    subprocess.check_call(["c++", "-std=c++17", "-O2", f"-DCALLS={CALLS}", f"-I{folder}", source, f"-L{BUILD}",
                           "-lrehearse", f"-Wl,-rpath,{BUILD}", "-o", program])
    step = os.fspath(SOURCES / "scenarios/strategy-megatron.json")
    rounds = [(in_cpp(program, step), in_python(step)) for _ in range(ROUNDS)]

names = ["simulate, one op", "simulate, strategy-megatron", "with_", "Scenario(file)", "step_seconds", "spans"]
print(f"{'':28} {'C++':>10} {'Python':>10} {'more':>10}   us a call, medians of {ROUNDS} times {CALLS}")
for i, name in enumerate(names):
    python = statistics.median(row[1][i] for row in rounds)
    cpp = statistics.median(row[0][i] for row in rounds) if i < 4 else 0.0
    print(f"{name:28} {cpp:10.1f} {python:10.1f} {python - cpp:10.1f}")
