"""What must hold of the files after a disturbance, and of how a command ended."""
import collections
import json
import os
import re
import sqlite3

from commands import INPUTS


def _files_below(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            yield os.path.relpath(path, folder), path


def damage(folder):
    """What is wrong with the files there, as texts."""
    wrong = []
    for name, path in _files_below(folder):
        if name in INPUTS or name.endswith(("-wal", "-shm", "-journal")) or ".rehearse-" in name:
            continue
        try:
            if name.endswith(".sqlite"):
                with sqlite3.connect(path) as connection:
                    if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                        wrong.append(f"{name}: fails its integrity check")
                continue
            with open(path, "rb") as file:
                content = file.read()
            if name.endswith(".json"):
                json.loads(content)
            elif name.endswith(".jsonl"):   # a log: whole lines
                for line in content.splitlines():
                    json.loads(line)
            elif not content:
                wrong.append(f"{name}: is empty")
            elif name.endswith((".html", ".svg")) and not content.rstrip().endswith((b"</html>", b"</svg>")):
                wrong.append(f"{name}: does not end")
        except (ValueError, sqlite3.Error, OSError) as fault:
            wrong.append(f"{name}: {fault}")
    return wrong


def kept_points(folder):
    """Names of kept points, in files and in SQLite."""
    kept = set()
    for name, path in _files_below(folder):
        if name.endswith(".sqlite") and os.path.getsize(path):
            with sqlite3.connect(path) as connection:
                if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'points'").fetchone()[0]:
                    kept |= {("sqlite", *row) for row in connection.execute("SELECT study, point FROM points")}
        elif name.endswith(".json"):
            with open(path) as file:
                content = json.load(file)
            if isinstance(content, dict) and str(content.get("schema", "")).startswith("rehearse.point."):
                kept.add((name,))
    return kept


def temporary_files(folder):
    return [name for name, _ in _files_below(folder) if ".rehearse-" in name]


def litter(folder, expected):
    may_be = expected + [name + suffix for name in expected for suffix in ("-wal", "-shm")]
    return [name for name, _ in _files_below(folder)
            if name not in INPUTS and (".rehearse-" in name or name.split("/")[0] not in may_be)]


# "rehearse: executing: 3 of 5 steps, 17 s left; quickest 8.3 ms"
_PROGRESS = re.compile(r"rehearse: [a-z0-9 ]+: [0-9 ]+ of [0-9 ]+ \w+, [0-9a-z ]+ left\b")


class Report:
    """Rows and findings, printed as they come."""

    def __init__(self):
        self.findings = 0

    def finding(self, text):
        self.findings += 1
        print(f"  FINDING {text}", flush=True)

    @staticmethod
    def row(command, hazard, tries, what):
        print(f"{command:<10} {hazard:<24} {tries:>5} x  {what}", flush=True)

    @staticmethod
    def skipped(what, why):
        print(f"skipped: {what} ({why})", flush=True)


class Endings:
    """How the runs of one command ended that met one hazard."""

    def __init__(self, command, hazard, program, report):
        self.command, self.hazard, self.program, self.report = command, hazard, program, report
        self.codes = collections.Counter()

    def judge(self, where, code, said, folder):
        """It succeeded, or ended with one line and status 1; either way its files are whole."""
        name = f"{self.command.name}, {where}"
        self.codes[code] += 1
        if code not in (0, 1):
            self.report.finding(f"{name}: ended with {code}: {said[-300:]}")
        lines = [line for line in said.splitlines() if line.startswith("rehearse: ") and not _PROGRESS.match(line)]
        if code == 1 and len(lines) != 1:
            self.report.finding(f"{name}: expected one line: {said[-300:]!r}")
        for wrong in damage(folder):
            self.report.finding(f"{name}: damaged: {wrong}")
        for file in temporary_files(folder):
            self.report.finding(f"{name}: is left behind: {file}")

    def hung(self, where, seconds):
        self.codes["no end"] += 1
        self.report.finding(f"{self.command.name}, {where}: does not end within {seconds} s")

    def print(self, more=""):
        ended = ", ".join(f"{n} ended with {code}" for code, n in sorted(self.codes.items(), key=str))
        self.report.row(self.command.name, self.hazard, sum(self.codes.values()), ended + more)
