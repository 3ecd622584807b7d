"""The commands that are disturbed, what they read, and what they may leave."""
import dataclasses
import json
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
SCENARIOS = os.path.join(ROOT, "scenarios")

_SMALL = {
    "name": "small", "cluster": "perlmutter:nodes=2",
    "model": {"layers": 2, "hidden": 1024, "heads": 16, "vocabulary": 4096},
    "training": {"batch": 16, "sequence": 256, "recomputation": "full"},
    "strategy": {"kind": "4d", "column": 2, "row": 2, "depth": 2, "data": 1, "transpose_alternate_layers": True,
                 "overlap_all_reduce": True, "overlap_reduce_scatter": True, "overlap_all_gather": True,
                 "cached_layers": 1}}
_STUDY = {
    "name": "faults", "description": "", "base": "small.json", "metric": "step_seconds",
    "points": [{"name": "p", "set": {}}],
    "grid": [{"path": "training.batch", "values": [8, 16, 32, 64]},
             {"path": "model.layers", "values": list(range(2, 14))}]}
_TABLE = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-15\nGPU1\tNV12\t X \t0-15\n"
INPUTS = {"small.json": json.dumps(_SMALL), "study.json": json.dumps(_STUDY), "box.txt": _TABLE}

# How calibrate ends where other programs disturbed every step: it has measured all the same, and writes nothing.
BUSY = "left alone by other programs"


@dataclasses.dataclass
class Command:
    name: str
    arguments: list
    leaves: list              # files and folders that may be there at the end
    before: tuple = ()        # what it is started by

    def line(self, *program):
        return [*self.before, *program, *self.arguments]


def _calibrate_is_started_by():
    """As its message says where other programs disturb it, if this user may."""
    alone = ("chrt", "--fifo", "1")
    try:
        return alone if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode == 0 else ()
    except OSError:
        return ()


def all_commands():
    kept = ["out", "kept.sqlite"]
    return [
        Command("run", ["run", "small.json", "--out", "out"], ["out"]),
        Command("sweep", ["sweep", "study.json", "--out", "out", "--results", "kept.sqlite", "--threads", "2"], kept),
        Command("search", ["search", "small.json", "--decide", "simulation", "--out", "out",
                           "--results", "kept.sqlite"], kept),
        Command("execute", ["execute", os.path.join(SCENARIOS, "cpu-4d.json"), "--repeat", "3", "--out", "out"], ["out"]),
        Command("calibrate", ["calibrate", "--ranks", "2", "--kept", "1", "--patience", "0.02", "--networks", "1",
                              "--largest", "1", "-o", "calibration.json"], ["calibration.json"],
                _calibrate_is_started_by()),
        Command("import", ["import", "smi", "box.txt", "-o", "box.json"], ["box.json"]),
        Command("report", ["report", "small.json", "-o", "page.html"], ["page.html"]),
    ]


def fresh(folder):
    """The folder with the inputs and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, text in INPUTS.items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)


def start(line, folder, **how):
    return subprocess.Popen(line, **{"cwd": folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                     "stderr": subprocess.PIPE, "text": True, "errors": "replace", **how})
