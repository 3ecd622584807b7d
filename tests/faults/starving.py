"""Commands that lack something: memory, descriptors, threads, room on the disk, or one call of the system."""
import collections
import os
import random
import re
import resource
import shutil
import signal
import subprocess

from checks import Endings, damage, kept_points, litter
from commands import BUSY, fresh, start

SECONDS = 120   # within which every run must end
_USER = 61234   # whom nothing else belongs to: RLIMIT_NPROC counts all threads of a user


def _run(line, folder, endings, where, left_in=None, **how):
    """Judged by what is in `left_in`. If it failed, the command goes on there with all that it needs."""
    child = start(line, folder, **how)
    try:
        _, said = child.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        endings.hung(where, SECONDS)
        return
    left_in = left_in or folder
    endings.judge(where, child.returncode, said, left_in)
    if child.returncode != 0:
        _go_on(endings, where, left_in)


def _go_on(endings, where, folder):
    """Undisturbed, after it failed or was killed: nothing that was kept is lost, nothing lies about."""
    def complain(text):
        endings.report.finding(f"{endings.command.name}, {where}: {text}")

    before = kept_points(folder)
    child = start(endings.command.line(endings.program), folder)
    _, said = child.communicate()
    if child.returncode != 0 and BUSY not in said:
        complain(f"does not end well afterwards: {said[-300:]}")
    if not before <= kept_points(folder):
        complain("kept points are lost")
    if litter(folder, endings.command.leaves):
        complain(f"lie about: {litter(folder, endings.command.leaves)[:5]}")


# ---- limits -------------------------------------------------------------------------------------


def _limit(kind, value):
    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(kind, (value, value))
        if kind == resource.RLIMIT_NPROC:
            os.setgroups([])
            os.setgid(_USER)
            os.setuid(_USER)
    return apply


LIMITS = [("RLIMIT_AS", resource.RLIMIT_AS, [m << 20 for m in range(150, 1500, 50)]),
          ("RLIMIT_NOFILE", resource.RLIMIT_NOFILE, list(range(4, 24))),
          ("RLIMIT_FSIZE", resource.RLIMIT_FSIZE, [0, 1, 100, 4096, 10000, 50000, 200000]),
          # OpenBLAS has a thread for each core when it is loaded, and ends the program if it gets none.
          ("RLIMIT_NPROC", resource.RLIMIT_NPROC, [os.cpu_count() + more for more in range(7)])]


def limit_resources(commands, program, folder, report):
    for hazard, kind, values in LIMITS:
        another_user = kind == resource.RLIMIT_NPROC
        if another_user and os.geteuid() != 0:
            report.skipped("too few threads", "this may not become another user")
            continue
        for command in commands:
            endings = Endings(command, hazard, program, report)
            # Not as the only one on its cores (chrt): what hangs would take them from all.
            line = [program, *command.arguments]
            for value in values:
                fresh(folder)
                if another_user:
                    shutil.chown(folder, _USER, _USER)
                _run(line, folder, endings, f"{hazard} {value}", preexec_fn=_limit(kind, value))
            endings.print()


# ---- disks --------------------------------------------------------------------------------------

# What a shell of its own mount namespace does first; $1 is the folder, and the inputs lie beside it.
_FILL = ' none "$1" && cp "$1".inputs/* "$1"/'
MOUNTS = {
    "full disk": [f"mount -t tmpfs -o size={size}k" + _FILL for size in (16, 24, 40, 80, 160, 320, 1280, 5120)],
    "no more files": [f"mount -t tmpfs -o nr_inodes={files}" + _FILL for files in (4, 5, 6, 8, 10, 14)],
    "read-only disk": ["mount -t tmpfs" + _FILL + ' && mount -o remount,ro "$1"'],
    "no /dev/shm": ["mount -t tmpfs" + _FILL + " && mount -t tmpfs -o size=0,ro none /dev/shm"],
}
# Then it runs the command there, and takes out what it left.
_THEN = ' && cd "$1" || exit 99; after=$1.after; shift; "$@"; code=$?; cp -r . "$after"/; exit $code'


def spoil_disks(commands, program, folder, report):
    for command in commands:
        endings = Endings(command, "stdout on a full disk", program, report)
        fresh(folder)
        with open("/dev/full", "w") as full:
            _run(command.line(program), folder, endings, endings.hazard, stdout=full)
        endings.print()
    if subprocess.run(["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        report.skipped("full and read-only disks, no /dev/shm", "this may not mount")
        return
    fresh(folder + ".inputs")
    for command in commands:
        for hazard, mounts in MOUNTS.items():
            endings = Endings(command, hazard, program, report)
            for mount in mounts:
                fresh(folder)
                shutil.rmtree(folder + ".after", ignore_errors=True)
                os.makedirs(folder + ".after")
                _run(["unshare", "-m", "sh", "-c", mount + _THEN, "sh", folder, *command.line(program)],
                     folder, endings, f"{hazard} ({mount.split(' none')[0]})", left_in=folder + ".after")
            endings.print()


# ---- calls --------------------------------------------------------------------------------------

_NO_ROOM = ["ENOSPC", "EDQUOT", "EIO"]
CALLS = {"openat": _NO_ROOM + ["EROFS", "ENFILE"], "write": _NO_ROOM, "pwrite64": _NO_ROOM, "pread64": ["EIO"],
         "fsync": _NO_ROOM, "fdatasync": _NO_ROOM, "ftruncate": _NO_ROOM, "linkat": _NO_ROOM + ["EROFS"],
         "rename": _NO_ROOM + ["EROFS"], "mkdir": _NO_ROOM + ["EROFS"], "flock": ["ENOLCK"], "clone3": ["EAGAIN"]}
_STRACE = ["strace", "-f", "-qq", "-o"]
_LOADING = ["error while loading shared libraries", "OpenBLAS blas_thread_init"]
_CALL = re.compile(r"^(\d+) +([a-z0-9_]+)\(")


def _calls_of(command, program, folder, log):
    """How often the busiest thread makes each call, undisturbed."""
    fresh(folder)
    child = start(command.line(*_STRACE, log, "-e", "trace=" + ",".join(CALLS), program), folder)
    child.communicate()
    counts = collections.Counter()
    with open(log, errors="replace") as lines:
        for call in filter(None, map(_CALL.match, lines)):
            counts[call.groups()] += 1
    most = {}
    for (_, call), count in counts.items():
        most[call] = max(count, most.get(call, 0))
    return most


class _SpoiledCall:
    """A run in which a call fails or kills."""

    def __init__(self, command, program, call, effect, which, folder):
        self.where = f"{effect} at {call} {which}"
        self.is_kill = effect == "SIGKILL"
        log = folder + ".strace"
        what = "signal=SIGKILL" if self.is_kill else f"error={effect}"
        faster = [] if self.is_kill else ["--seccomp-bpf"]   # which ignores signals
        child = start(command.line(*_STRACE, log, *faster, "-e", f"trace={call}", "-e",
                                   f"inject={call}:{what}:when={which}", program), folder)
        try:
            _, self.said = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGTERM)
            child.communicate()
            self.said = None
        self.code = child.returncode
        with open(log, errors="replace") as lines:
            spoiled = [line for line in lines if "(INJECTED)" in line]
        self.was_reached = self.code == -signal.SIGKILL if self.is_kill else bool(spoiled)
        # Then it could not say why.
        self.is_dumb = any("write(2," in line for line in spoiled)
        # While it was being loaded: the loader's message, or OpenBLAS's, which starts a thread for each core then.
        self.is_too_early = self.said is not None and any(words in self.said for words in _LOADING)


def spoil_calls(commands, program, cases, chance, folder, report):
    if shutil.which("strace") is None:
        report.skipped("calls that fail", "there is no strace")
        return
    for command in commands:
        most = _calls_of(command, program, folder, folder + ".strace")
        fail = Endings(command, "a call fails", program, report)
        kill = Endings(command, "killed at a call", program, report)
        own = random.Random(chance.random())
        too_early = 0
        for _ in range(cases):
            call = own.choice(sorted(most))
            effect = own.choice(CALLS[call] + (["SIGKILL"] * 2 if call != "clone3" else []))
            fresh(folder)
            run = _SpoiledCall(command, program, call, effect, own.randint(1, most[call]), folder)
            too_early += run.is_too_early
            if not run.was_reached or run.is_too_early or run.is_dumb:
                continue
            if run.said is None:
                fail.hung(run.where, SECONDS)
            elif run.is_kill:
                kill.codes[run.code] += 1
                for wrong in damage(folder):
                    report.finding(f"{command.name}, {run.where}: damaged: {wrong}")
                _go_on(kill, run.where, folder)
            else:
                fail.judge(run.where, run.code, run.said, folder)
                _go_on(fail, run.where, folder)
        fail.print(f"; {too_early} times it failed before the program began" if too_early else "")
        kill.print()
