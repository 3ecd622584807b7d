"""Ranks that are processes of their own, one of which is killed, stopped, slowed down or cut off."""
import collections
import contextlib
import glob
import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import time

from checks import damage, kept_points, temporary_files
from commands import SCENARIOS, fresh

RANKS = 4
SECONDS = 45         # within which a run must end from which a rank was taken; TCP's have patience for 30
SLOW_SECONDS = 200   # ... in which a rank was only slowed down

_STUDY = {"name": "ranks", "description": "", "base": "small.json", "metric": "step_seconds",
          "grid": [{"path": "training.batch", "values": [8 * i for i in range(1, 51)]},
                   {"path": "model.layers", "values": list(range(2, 18))}]}
_EXECUTE = ["execute", os.path.join(SCENARIOS, "cpu-4d.json"), "--out", "out", "--repeat"]
# Says which process it becomes, and what mpirun calls the run.
_WRAPPER = """#!/bin/sh
echo "$PMIX_NAMESPACE" > "$CONTROL"/job
echo $$ > "$CONTROL"/pid."${RANK:-$OMPI_COMM_WORLD_RANK}"
if [ -n "$STUCK" ]; then export LD_PRELOAD="$STUCK"; fi
exec "$@"
"""
_FOREVER, _A_FEW = "100000", "4"


class _Run:
    """Processes in a folder of their own. A second one has what they print (out, err) and who they are."""

    def __init__(self, program, folder):
        self.program, self.folder, self.control = program, folder, folder + ".control"
        self.wrapper = os.path.join(self.control, "wrapper.sh")
        self.children = []
        self.abandoned = None   # a child that nobody ends
        fresh(folder)
        shutil.rmtree(self.control, ignore_errors=True)
        os.makedirs(self.control)
        with open(self.wrapper, "w") as file:
            file.write(_WRAPPER)
        os.chmod(self.wrapper, 0o755)
        with open(os.path.join(folder, "study.json"), "w") as file:
            json.dump(_STUDY, file)

    def _start(self, line, **variables):
        # In sessions of their own, since mpirun signals its group.
        with open(os.path.join(self.control, "out"), "a") as out, open(os.path.join(self.control, "err"), "a") as err:
            self.children.append(subprocess.Popen(
                line, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                env={**os.environ, "CONTROL": self.control, "TMPDIR": self.control, **variables}, start_new_session=True))

    def text(self, name):
        with open(os.path.join(self.control, name), errors="replace") as file:
            return file.read()

    def is_under_way(self):
        """A rank has logged a step, or kept points."""
        for log in glob.glob(self.folder + "/out/rank-*.jsonl"):
            with open(log, errors="replace") as file:
                if '"step"' in file.read():
                    return True
        return bool(glob.glob(self.folder + "/kept.sqlite.rank*"))

    def pid(self, rank):
        with contextlib.suppress(OSError, ValueError):
            return int(self.text(f"pid.{rank}"))
        return None

    def wait(self, seconds):
        """The worst exit status, or None if it does not end."""
        deadline = time.monotonic() + seconds
        while not self.ended() and time.monotonic() < deadline:
            time.sleep(0.02)
        codes = [child.returncode for child in self.children if child is not self.abandoned]
        return max(codes, key=abs) if self.ended() else None

    def ended(self):
        return all([child.poll() is not None for child in self.children if child is not self.abandoned])

    def clear(self):
        """Ends what is left; returns the ranks that were."""
        left = []
        for rank in range(RANKS):
            pid = self.pid(rank)
            if pid is not None and _is_alive(pid):
                left.append(rank)
                os.kill(pid, signal.SIGKILL)
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        return left

    def cut(self, rank):
        """Breaks the TCP connections between it and other ranks; how many there were."""
        owners = {}
        sockets = subprocess.run(["ss", "-tnpH"], capture_output=True, text=True).stdout
        for line in sockets.replace("[::ffff:", "").replace("]:", ":").splitlines():
            fields = line.split()
            pid = re.search(r"pid=(\d+)", line)
            if len(fields) >= 5 and pid:
                owners[fields[3], fields[4]] = int(pid.group(1))
        ranks = {self.pid(other) for other in range(RANKS)}
        mine = [ends for ends, pid in owners.items() if pid == self.pid(rank) and owners.get(ends[::-1]) in ranks]
        for here, there in mine:   # from whichever end it can be done
            for end, other in ((here, there), (there, here)):
                subprocess.run(["ss", "-K", "src", end, "dst", other], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return len(mine)


class _Mpirun(_Run):
    """A command under mpirun; endless ones never end on their own."""

    def __init__(self, program, folder, arguments, options=(), stuck=None):
        super().__init__(program, folder)
        self.start_again(arguments, options, stuck)

    @property
    def stuck(self):
        """What makes a rank stick inside MPI, compiled."""
        library = os.path.join(self.control, "stuck.so")
        if not os.path.exists(library):
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stuck_in_mpi.c")
            subprocess.run(["mpicc", "-shared", "-fPIC", "-o", library, source], check=True)
        return library

    def start_again(self, arguments, options=(), stuck=None):
        """stuck: which rank, in which call of MPI, after how many of them."""
        self.children = []
        variables = {}
        if stuck:
            variables = dict(zip(("STUCK_RANK", "STUCK_IN", "STUCK_AFTER"), map(str, stuck)), STUCK=self.stuck)
        self._start(["mpirun", "--allow-run-as-root", "--oversubscribe", *options, "-n", str(RANKS), self.wrapper,
                     self.program, *arguments], **variables)


class _Torchrun(_Run):
    """execute over TCP, on the doubles of GPUs (tests/doubles), each rank on a machine of its own, as it believes.

    A rank that is to be unplugged gets a network of its own, with one cable to the others."""

    def __init__(self, program, folder, arguments, unplugs=None):
        super().__init__(program, folder)
        double = _double(program)
        self.cable = f"rf{os.getpid() % 100000}"
        self.has_cable = unplugs is not None
        port = 20000 + 8 * (os.getpid() % 1500)
        address = ["127.0.0.1", "127.0.0.1"]
        if self.has_cable:
            address = ["10.213.77.1", "10.213.77.2"]
            for line in (f"netns add {self.cable}", f"link add {self.cable}a type veth peer name {self.cable}b",
                         f"link set {self.cable}b netns {self.cable}", f"addr add {address[0]}/30 dev {self.cable}a",
                         f"link set {self.cable}a up", f"-n {self.cable} addr add {address[1]}/30 dev {self.cable}b",
                         f"-n {self.cable} link set {self.cable}b up", f"-n {self.cable} link set lo up"):
                subprocess.run(["ip", *line.split()], check=True)
        secret = secrets.token_hex(16)
        for rank in range(RANKS):
            inside = ["ip", "netns", "exec", self.cable] if rank == unplugs else []
            self._start([*inside, self.wrapper, program, *arguments, "--backend", "cuda"], RANK=str(rank),
                        WORLD_SIZE=str(RANKS), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", TORCHELASTIC_RUN_ID="faults",
                        MASTER_ADDR=address[unplugs == 0], MASTER_PORT=str(port), REHEARSE_SECRET=secret,
                        REHEARSE_DOUBLE_PROCESSES="1", REHEARSE_DOUBLE_DEVICES="1",
                        **{"REHEARSE_" + name: double for name in ("CUDART", "CUBLAS", "NCCL", "NVML")})

    def unplug(self):
        subprocess.run(["ip", "link", "set", self.cable + "a", "down"], check=True)

    def clear(self):
        left = super().clear()
        if self.has_cable:
            subprocess.run(["ip", "link", "del", self.cable + "a"], stderr=subprocess.DEVNULL)
            subprocess.run(["ip", "netns", "del", self.cable])
        return left


def _double(program):
    path = os.path.join(os.path.dirname(program), "tests", "librehearse_gpu_double.so")
    return path if os.path.exists(path) else None


def _is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


# ---- what is done to a rank ---------------------------------------------------------------------


def _kill(run, victim, chance):
    os.kill(run.pid(victim), signal.SIGKILL)


def _stop(run, victim, chance):
    os.kill(run.pid(victim), signal.SIGSTOP)
    if isinstance(run, _Torchrun):   # mpirun ends a rank that is stopped, and these have no launcher
        run.abandoned = run.children[victim]


def _slow(run, victim, chance):
    """Stops it for up to 2 s, again and again until the run has ended."""
    deadline = time.monotonic() + SLOW_SECONDS
    while not run.ended() and time.monotonic() < deadline:
        with contextlib.suppress(ProcessLookupError):
            os.kill(run.pid(victim), signal.SIGSTOP)
            run.wait(chance.choice([0.01, 0.1, 0.5, 2.0]) * chance.random())
            os.kill(run.pid(victim), signal.SIGCONT)
        run.wait(0.2 * chance.random())


def _cut(run, victim, chance):
    deadline = time.monotonic() + SECONDS
    while not run.ended() and not run.cut(victim):   # ranks connect when they first have something to say
        if time.monotonic() > deadline:
            raise RuntimeError("there is nothing to cut between these ranks")
        time.sleep(0.05)


def _unplug(run, victim, chance):
    run.unplug()


def _wait(run, victim, chance):
    """It is stuck already, or will be."""


# Kind of run, hazard, what happens to the rank, how the run starts.
def _cases(names, chance=random):
    def execute(program, folder, victim):
        return _Mpirun(program, folder, [*_EXECUTE, _FOREVER])

    def execute_shortly(program, folder, victim):
        return _Mpirun(program, folder, [*_EXECUTE, _A_FEW])

    def execute_over_tcp(program, folder, victim):   # Open MPI may connect anew, and the run goes on
        return _Mpirun(program, folder, [*_EXECUTE, _A_FEW], ["--mca", "btl", "tcp,self"])

    def execute_stuck(program, folder, victim):
        call = chance.choice(["send", "test", "finalize"])
        after = 0 if call == "finalize" else chance.randrange(1000)
        return _Mpirun(program, folder, [*_EXECUTE, _A_FEW if call == "finalize" else _FOREVER],
                       stuck=(victim, call, after))

    def sharing(arguments):
        return lambda program, folder, victim: _Mpirun(program, folder, arguments)

    def torchrun(repeat, has_cable=False):
        return lambda program, folder, victim: _Torchrun(program, folder, [*_EXECUTE, repeat],
                                                         victim if has_cable else None)

    cases = [("mpi", "killed", _kill, execute), ("mpi", "stopped", _stop, execute),
             ("mpi", "slowed down", _slow, execute_shortly), ("mpi", "connections cut", _cut, execute_over_tcp),
             ("mpi", "stuck inside MPI", _wait, execute_stuck)]
    for name, arguments in SHARED.items():
        cases += [(name, hazard, what, sharing(arguments))
                  for hazard, what in (("killed", _kill), ("stopped", _stop), ("slowed down", _slow))]
    cases += [("tcp", "killed", _kill, torchrun(_FOREVER)), ("tcp", "stopped", _stop, torchrun(_FOREVER)),
              ("tcp", "slowed down", _slow, torchrun(_A_FEW)), ("tcp", "connections cut", _cut, torchrun(_FOREVER)),
              ("tcp", "unplugged", _unplug, torchrun(_FOREVER, has_cable=True))]
    return [case for case in cases if names is None or case[0] in names]


SHARED = {"sweep": ["sweep", "study.json", "--results", "kept.sqlite", "--threads", "1", "--format", "csv"],
          "search": ["search", "small.json", "--decide", "simulation", "--results", "kept.sqlite", "--threads", "1",
                     "--format", "csv"]}


# ---- what must have come of it ------------------------------------------------------------------


class _Judge:
    def __init__(self, kind, hazard, program, report):
        self.kind, self.hazard, self.program, self.report = kind, hazard, program, report
        self.endings = collections.Counter()
        self.slowest = 0.0
        self.undisturbed = None   # what sweep or search prints, and the points that it keeps

    def complain(self, victim, text):
        self.report.finding(f"{self.kind}, rank {victim} {self.hazard}: {text}")

    def judge(self, run, victim, code, seconds):
        if code is None:
            self.endings["no end"] += 1
            self.complain(victim, f"does not end: {run.text('err')[-700:]}")
            return
        self.slowest = max(self.slowest, seconds)
        said = run.text("err")
        if self.hazard == "slowed down":
            self.endings["went on and ended well" if code == 0 else "failed"] += 1
            if code != 0:
                self.complain(victim, f"ended with {code}: {said[-700:]}")
        elif code == 0:   # it had ended before, or got over it
            self.endings["went on and ended well"] += 1
        elif re.search(rf"rehearse: rank \d+\b.*\brank {victim}\b", said):
            self.endings["named by a rank"] += 1
        elif re.search(rf"rehearse: .*local rank [0-9, ]*\b{victim}\b[0-9, ]* of {RANKS} has not started", said):
            self.endings["named by a rank"] += 1
        elif re.search(rf"process rank {victim} ", said):
            self.endings["named by mpirun"] += 1
        else:
            self.endings["not named"] += 1
            self.complain(victim, f"is not named: {said[-700:]}")
        for wrong in damage(run.folder):
            self.complain(victim, f"damaged: {wrong}")

    def try_again(self, run, victim):
        """A sweep or search that goes on from what the ranks have kept comes to the same."""
        if self.undisturbed is None:
            alone = os.path.join(run.folder, "alone")
            fresh(alone)
            shutil.copy(os.path.join(run.folder, "study.json"), alone)
            out = subprocess.run([self.program, *SHARED[self.kind]], cwd=alone, capture_output=True, text=True).stdout
            self.undisturbed = out, kept_points(alone)
            shutil.rmtree(alone)
        os.truncate(os.path.join(run.control, "out"), 0)
        run.start_again(SHARED[self.kind])
        if run.wait(SLOW_SECONDS) != 0:
            self.complain(victim, f"does not go on: {run.text('err')[-500:]}")
        elif (run.text("out"), kept_points(run.folder)) != self.undisturbed:
            self.complain(victim, "going on, it comes to something else than undisturbed")
        if temporary_files(run.folder) or glob.glob(run.folder + "/kept.sqlite.rank*"):
            self.complain(victim, f"lie about: {os.listdir(run.folder)}")

    def print(self):
        how = ", ".join(f"{n} {ending}" for ending, n in sorted(self.endings.items()))
        self.report.row(self.kind, "a rank is " + self.hazard if self.hazard != "connections cut"
                        else "a rank is cut off", sum(self.endings.values()), f"{how}; at most {self.slowest:.1f} s")


def disturb(names, program, cases, chance, folder, report):
    if shutil.which("mpirun") is None:
        report.skipped("ranks of mpirun", "there is none")
    if _double(program) is None:
        report.skipped("ranks over TCP", "there is no tests/librehearse_gpu_double.so beside the program")
    may_cut = os.geteuid() == 0 and shutil.which("ss") is not None and shutil.which("ip") is not None
    if not may_cut:
        report.skipped("ranks that are cut off", "this takes root, ss and ip")
    if shutil.which("mpicc") is None:
        report.skipped("ranks that are stuck inside MPI", "there is no mpicc")
    for kind, hazard, what, start in _cases(names, chance):
        if (_double(program) if kind == "tcp" else shutil.which("mpirun")) is None:
            continue
        if what in (_cut, _unplug) and not may_cut or what is _wait and shutil.which("mpicc") is None:
            continue
        judge = _Judge(kind, hazard, program, report)
        for _ in range(cases):
            _disturb_once(judge, what, start, chance, folder)
        judge.print()


def _disturb_once(judge, what, start, chance, folder):
    # The double's NCCL lives in the process of rank 0, and others wait forever for one that is stopped.
    without_first = judge.kind == "tcp" and what is _stop
    victim = chance.randrange(1 if without_first else 0, RANKS)
    is_early = chance.random() < 1 / 3   # while the ranks start, which takes them a second or two
    moment = chance.uniform(0, 2 if is_early else 1)
    run = start(judge.program, folder, victim)
    try:
        begin = time.monotonic()
        while run.pid(victim) is None and not run.ended():
            time.sleep(0.005)
        while not is_early and not run.is_under_way() and not run.ended() and time.monotonic() < begin + SECONDS:
            time.sleep(0.02)
        run.wait(moment)
        begin = time.monotonic()
        if not run.ended():
            with contextlib.suppress(ProcessLookupError):
                what(run, victim, chance)
        may_go_on = judge.hazard in ("slowed down", "connections cut", "stuck inside MPI")   # or is stuck only later
        code = run.wait(SLOW_SECONDS if may_go_on else SECONDS)
        judge.judge(run, victim, code, time.monotonic() - begin)
    finally:
        left = [rank for rank in run.clear() if run.abandoned is None or rank != victim]
    if left:
        judge.complain(victim, f"ranks {left} are still there")
    if judge.kind in SHARED:
        judge.try_again(run, victim)
        run.clear()
    job = run.text("job").strip().replace("/", ".")
    for file in glob.glob(f"/dev/shm/rehearse-*{job}*") if job else []:
        judge.complain(victim, f"lies in memory: {file}")
        os.remove(file)
