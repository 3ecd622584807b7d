#!/usr/bin/env python3
"""Measures the engine and prints the table of sim/README.md; draws its picture.

    cmake --preset bench && cmake --build build/bench
    tests/bench/report.py build/bench/tests/rehearse_bench --svg sim/cost_against_size.svg

Every row is a process of its own, for its peak memory: the median CPU time of five repetitions.
Needs nothing but Python 3; the build does not need it.
"""

import argparse
import datetime
import json
import math
import platform
import statistics
import subprocess
import sys

# (what, benchmark, peers, wanted)
ROWS = [
    ("ring, 1,024 ranks on a switch, every step played", "Ring/nodes:1024/jump:0",
     "SimGrid 2.0 s, its kernel 0.85 s, ASTRA-sim 2.4 s / 363 MB", "0.2 s, 64 MB"),
    ("the same, periods jumped over", "Ring/nodes:1024/jump:1", "", "20 ms"),
    ("8 rings, 1,024 nodes × 8 GPUs, 8 NICs a node, played", "EightRingsEightNics/nodes:1024/jump:0",
     "51 s / 14.5 s", "2 s"),
    ("the same, jumped", "EightRingsEightNics/nodes:1024/jump:1", "", "20 ms"),
    ("8 rings that share one NIC a node, 1,024 nodes, played", "EightRingsOneNic/nodes:1024/jump:0", "", ""),
    ("the same, jumped", "EightRingsOneNic/nodes:1024/jump:1", "", "20 ms"),
    ("ring, 4,096 ranks, played", "Ring/nodes:4096/jump:0", "41 s / 15 s", "4 s"),
    ("the same, jumped", "Ring/nodes:4096/jump:1", "", "20 ms"),
    ("8 rings × 64 nodes, NICs ± 15 %", "EightRingsUnequalNics/nodes:64/jump:1", "0.13 s", "30 ms"),
    ("the same, a core link that never binds", "EightRingsUnequalNicsAndCore/nodes:64/jump:1/core:100",
     "130 × slower", "1.3 × slower"),
    ("the same, a core link that binds now and then (90 %)",
     "EightRingsUnequalNicsAndCore/nodes:64/jump:1/core:90", "", ""),
    ("the same, a core link that binds all the time (50 %)",
     "EightRingsUnequalNicsAndCore/nodes:64/jump:1/core:50", "", ""),
    ("ring, 1,024 ranks, NICs ± 15 %", "RingUnequalNics/nodes:1024/jump:1", "", "1 s (2 M transfers/s)"),
    ("128 random transfers at a time on 64 NICs, no symmetry", "RandomPairsAndCore/core:100", "", ""),
    ("the same, a core link that binds all the time (25 %)", "RandomPairsAndCore/core:25", "", ""),
]

# (name in the picture, benchmark, sizes)
CURVES = [
    ("ring, NICs ± 15 %", "RingUnequalNics/nodes:{}/jump:0", [16, 64, 256, 1024]),
    ("ring, every step played", "Ring/nodes:{}/jump:0", [16, 64, 256, 1024, 4096]),
    ("8 rings × 8 NICs, played", "EightRingsEightNics/nodes:{}/jump:0", [16, 64, 256, 1024]),
    ("ring, periods jumped over", "Ring/nodes:{}/jump:1", [16, 64, 256, 1024, 4096]),
    ("8 rings × 8 NICs, jumped", "EightRingsEightNics/nodes:{}/jump:1", [16, 64, 256, 1024]),
]
COLOURS = ["#b3541e", "#1f5fa8", "#2b8a4b", "#6fa3d8", "#7fc697"]


def measure(program, benchmark, repetitions):
    """Median CPU seconds, transfers, peak memory in bytes."""
    command = [program, f"--benchmark_filter=^{benchmark}$", "--benchmark_format=json",
               f"--benchmark_repetitions={repetitions}", "--benchmark_min_time=0.1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    output = process.stdout.read()
    if process.wait() != 0:
        sys.exit(f"{benchmark}: exit status {process.returncode}")
    runs = [run for run in json.loads(output)["benchmarks"] if run["run_type"] == "iteration"]
    unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[runs[0]["time_unit"]]
    seconds = statistics.median(run["cpu_time"] for run in runs) * unit
    return seconds, runs[0]["transfers"], runs[0]["peak_bytes"]


def in_words(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def table(program, repetitions):
    print("| problem | transfers | time | transfers/s | peak memory | peers | wanted |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    for what, benchmark, peers, wanted in ROWS:
        seconds, transfers, memory = measure(program, benchmark, repetitions)
        print(f"| {what} | {transfers:,.0f} | {in_words(seconds)} | {transfers / seconds / 1e6:,.{1 if transfers / seconds < 1e7 else 0}f} M "
              f"| {memory / 1e6:.0f} MB | {peers or '–'} | {'≤ ' + wanted if wanted else '–'} |",
              flush=True)


def panel(curves, x_of, title, left, x_range, y_range):
    width, height, top = 330, 300, 40

    def x(value):
        low, high = (math.log10(v) for v in x_range)
        return left + width * (math.log10(value) - low) / (high - low)

    def y(value):
        low, high = (math.log10(v) for v in y_range)
        return top + height * (1 - (math.log10(value) - low) / (high - low))

    out = [f'<text x="{left + width / 2}" y="24" text-anchor="middle">{title}</text>']
    for low, high, horizontal in ((*x_range, False), (*y_range, True)):
        for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
            value = 10.0 ** exponent
            if horizontal:
                out.append(f'<path class="grid" d="M{left} {y(value):.1f}h{width}"/>')
                label = f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"
                out.append(f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{label}</text>')
            else:
                out.append(f'<path class="grid" d="M{x(value):.1f} {top}v{height}"/>')
                out.append(f'<text x="{x(value):.1f}" y="{top + height + 18}" text-anchor="middle">'
                           f'10<tspan dy="-5" font-size="9">{exponent}</tspan></text>')
    for (name, points), colour in zip(curves, COLOURS):
        coordinates = [(x(x_of(point)), y(point[2])) for point in points]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in coordinates)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in coordinates]
    return out


def picture(program, repetitions, path):
    curves = []
    for name, benchmark, sizes in CURVES:
        points = []
        for size in sizes:
            seconds, transfers, _ = measure(program, benchmark.format(size), repetitions)
            ranks = size * (8 if name.startswith("8") else 1)
            points.append((transfers, ranks, seconds))
        curves.append((name, points))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="860" height="450" '
           'font-family="sans-serif" font-size="12">',
           "<style>.grid{stroke:#ddd}</style>", '<rect width="860" height="450" fill="white"/>']
    out += panel(curves, lambda p: p[0], "time against transfers", 70, (100, 1e8), (1e-5, 1))
    out += panel(curves, lambda p: p[1], "time against ranks", 490, (10, 1e4), (1e-5, 1))
    for i, ((name, _), colour) in enumerate(zip(curves, COLOURS)):
        column, row = i % 3, i // 3
        out.append(f'<circle cx="{90 + 270 * column}" cy="{390 + 24 * row}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{100 + 270 * column}" y="{394 + 24 * row}">{name}</text>')
    out.append("</svg>")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="rehearse_bench")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--svg", help="draw cost against size into this file")
    arguments = parser.parse_args()
    print(f"{datetime.date.today()}, one core of {processor()}, "
          f"medians of {arguments.repetitions} runs\n")
    table(arguments.program, arguments.repetitions)
    if arguments.svg:
        picture(arguments.program, arguments.repetitions, arguments.svg)


main()
