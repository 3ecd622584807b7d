#!/usr/bin/env python3
"""Measures engine and pipeline into a JSON file; prints the tables of sim/SPEED.md from it, draws its picture.

    cmake --preset bench && cmake --build build/bench
    tests/bench/report.py --measure build/bench/tests/rehearse_bench sim/speed.json
    tests/bench/report.py --svg sim/cost_against_size.svg sim/speed.json

Every benchmark is a process of its own, for its peak memory: the median CPU time of five repetitions (of the
CPU and not the wall, since machines are shared). Needs nothing but Python 3; the build does not need it.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys

# (what, benchmark, peers, wanted)
ENGINE_ROWS = [
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

# (what, benchmark, wanted)
PIPELINE_ROWS = [
    ("GPT-20B, 16 GPUs", "PlayShipped/gpt20b_16_gpus_folded", ""),
    ("the same, not folded", "PlayShipped/gpt20b_16_gpus", ""),
    ("GPT-80B, 1,024 GPUs", "PlayShipped/gpt80b_1024_gpus_folded", "0.1 s"),
    ("the same, not folded", "PlayShipped/gpt80b_1024_gpus", "10 s, 4 GiB"),
    ("like GPT-175B, 16,384 GPUs", "PlayGpt175b/folded/ranks:16384", ""),
    ("the same, edits on 3 nodes", "PlayGpt175b/edited/ranks:16384", "1 s"),
    ("like GPT-175B, 131,072 GPUs", "PlayGpt175b/folded/ranks:131072", "2 s, 2 GiB"),
    ("1,000 scenarios of a 64-GPU search space", "EvaluateSearchSpace", "5 s"),
]

# (name in the picture, benchmark, sizes, factor from size to ranks)
ENGINE_CURVES = [
    ("ring, NICs ± 15 %", "RingUnequalNics/nodes:{}/jump:0", [16, 64, 256, 1024], 1),
    ("ring, every step played", "Ring/nodes:{}/jump:0", [16, 64, 256, 1024, 4096], 1),
    ("8 rings × 8 NICs, played", "EightRingsEightNics/nodes:{}/jump:0", [16, 64, 256, 1024], 8),
    ("ring, periods jumped over", "Ring/nodes:{}/jump:1", [16, 64, 256, 1024, 4096], 1),
    ("8 rings × 8 NICs, jumped", "EightRingsEightNics/nodes:{}/jump:1", [16, 64, 256, 1024], 8),
]
PIPELINE_CURVES = [
    ("like GPT-175B, folded, scenario to result", "PlayGpt175b/folded/ranks:{}",
     [2**i for i in range(8, 18)], 1),
    ("the same, edits on 3 nodes", "PlayGpt175b/edited/ranks:{}", [1024, 4096, 16384], 1),
]
COLOURS = ["#b3541e", "#1f5fa8", "#2b8a4b", "#6fa3d8", "#7fc697", "#6b3fa0", "#c77dba"]


def measure(program, benchmark, repetitions):
    """Median CPU seconds and the counters."""
    command = [program, f"--benchmark_filter=^{benchmark}$", "--benchmark_format=json",
               f"--benchmark_repetitions={repetitions}", "--benchmark_min_time=0.1"]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if process.returncode != 0:
        sys.exit(f"{benchmark}: exit status {process.returncode}")
    runs = [run for run in json.loads(process.stdout)["benchmarks"] if run["run_type"] == "iteration"]
    unit = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[runs[0]["time_unit"]]
    counters = ("transfers", "events", "ranks", "classes", "peak_bytes")
    return {"seconds": statistics.median(run["cpu_time"] for run in runs) * unit,
            **{counter: runs[0][counter] for counter in counters if counter in runs[0]}}


def measure_all(program, repetitions, path):
    names = [row[1] for row in ENGINE_ROWS + PIPELINE_ROWS]
    names += [name.format(size) for _, name, sizes, _ in ENGINE_CURVES + PIPELINE_CURVES for size in sizes]
    loads = []
    results = {}
    for name in dict.fromkeys(names):
        results[name] = measure(program, name, repetitions)
        loads.append(os.getloadavg()[0])
        print(f"{name}: {in_words(results[name]['seconds'])}", file=sys.stderr, flush=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"date": str(datetime.date.today()), "processor": processor(), "cores": os.cpu_count(),
                   "load": round(statistics.median(loads), 1), "repetitions": repetitions,
                   "results": results}, file, indent=1)
        file.write("\n")


def in_words(seconds):
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def tables(measured):
    results = measured["results"]
    print(f"{measured['date']}, one core of {measured['processor']}, medians of "
          f"{measured['repetitions']} runs (CPU time; load {measured['load']} on {measured['cores']} cores)\n")
    print("| problem | transfers | time | transfers/s | peak memory | peers | wanted |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    for what, name, peers, wanted in ENGINE_ROWS:
        row = results[name]
        rate = row["transfers"] / row["seconds"] / 1e6
        print(f"| {what} | {row['transfers']:,.0f} | {in_words(row['seconds'])} "
              f"| {rate:,.{1 if rate < 10 else 0}f} M | {row['peak_bytes'] / 1e6:.0f} MB "
              f"| {peers or '–'} | {'≤ ' + wanted if wanted else '–'} |")
    print("\n| scenario | classes | events | time | peak memory | wanted |")
    print("| --- | ---: | ---: | ---: | ---: | --- |")
    for what, name, wanted in PIPELINE_ROWS:
        row = results[name]
        print(f"| {what} | {row['classes']:,.0f} | {row['events']:,.0f} | {in_words(row['seconds'])} "
              f"| {row['peak_bytes'] / 1e6:.0f} MB | {'≤ ' + wanted if wanted else '–'} |")


def panel(curves, title, left, x_range, y_range):
    """Curves are (points, colour)."""
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
    for points, colour in curves:
        coordinates = [(x(a), y(b)) for a, b in points]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in coordinates)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in coordinates]
    return out


def picture(measured, path):
    results = measured["results"]
    by_events, by_ranks = [], []
    for (_, name, sizes, factor), colour in zip(ENGINE_CURVES + PIPELINE_CURVES, COLOURS):
        rows = [(size * factor, results[name.format(size)]) for size in sizes]
        by_ranks.append(([(ranks, row["seconds"]) for ranks, row in rows], colour))
        if (name, sizes) in [curve[1:3] for curve in ENGINE_CURVES]:  # a pipeline does more than play
            by_events.append(([(row["events"], row["seconds"]) for _, row in rows], colour))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="860" height="470" '
           'font-family="sans-serif" font-size="12">',
           "<style>.grid{stroke:#ddd}</style>", '<rect width="860" height="470" fill="white"/>']
    out += panel(by_events, "time against events played", 70, (10, 1e8), (1e-5, 10))
    out += panel(by_ranks, "time against ranks", 490, (10, 1e6), (1e-5, 10))
    for i, ((name, *_), colour) in enumerate(zip(ENGINE_CURVES + PIPELINE_CURVES, COLOURS)):
        column, row = i % 3, i // 3
        out.append(f'<circle cx="{70 + 270 * column}" cy="{390 + 24 * row}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{80 + 270 * column}" y="{394 + 24 * row}">{name}</text>')
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
    parser.add_argument("results", help="the JSON file, e.g. sim/speed.json")
    parser.add_argument("--measure", metavar="PROGRAM", help="rehearse_bench: measure into the file first")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--svg", help="draw cost against size into this file")
    arguments = parser.parse_args()
    if arguments.measure:
        measure_all(arguments.measure, arguments.repetitions, arguments.results)
    with open(arguments.results, encoding="utf-8") as file:
        measured = json.load(file)
    tables(measured)
    if arguments.svg:
        picture(measured, arguments.svg)


main()
