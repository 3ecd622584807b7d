"""Commands killed with signal 9, again and again in one folder, until they are let end."""
import subprocess
import time

from checks import damage, kept_points, litter
from commands import BUSY, fresh, start


class _Victim:
    def __init__(self, command, program, folder, report):
        self.command, self.folder, self.report = command, folder, report
        self.line = command.line(program)
        self.kills = self.ended = self.was_busy = 0
        self.seconds = 0.0        # that it takes undisturbed
        self.reference = set()    # the points that it keeps undisturbed

    def complain(self, text):
        self.report.finding(f"{self.command.name}: {text}")

    def ended_as_it_may(self, code, said):
        if code == 1 and BUSY in said:   # calibrate has measured, and writes nothing
            self.was_busy += 1
            return True
        return code == 0

    def try_undisturbed(self):
        fresh(self.folder)
        begin = time.monotonic()
        child = start(self.line, self.folder)
        _, said = child.communicate()
        self.seconds = time.monotonic() - begin
        self.reference = kept_points(self.folder)
        well = self.ended_as_it_may(child.returncode, said)
        if not well:
            self.complain(f"does not end well undisturbed: {said}")
        return well

    def kill_at_random(self, kills, chance):
        fresh(self.folder)
        before = set()
        while self.kills < kills and self.ended < 5 * kills + 20:
            child = start(self.line, self.folder)
            try:
                _, said = child.communicate(timeout=chance.uniform(0, 1.1 * self.seconds))
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                self.kills += 1
                before = self.check_files(before)
                continue
            self.ended += 1
            if not self.ended_as_it_may(child.returncode, said):
                self.complain(f"ended with {child.returncode} after a kill: {said}")
            fresh(self.folder)
            before = set()

    def check_files(self, before):
        """Returns the points that are kept now."""
        for wrong in damage(self.folder):
            self.complain(f"damaged: {wrong}")
        now = kept_points(self.folder)
        if not before <= now:
            self.complain(f"{len(before - now)} kept points are lost")
        return now

    def let_end(self):
        child = start(self.line, self.folder)
        _, said = child.communicate()
        if not self.ended_as_it_may(child.returncode, said):
            self.complain(f"does not end well after {self.kills} kills: {said}")
        left = litter(self.folder, self.command.leaves)
        if left:
            self.complain(f"lie about: {left[:5]}")
        if kept_points(self.folder) != self.reference:
            self.complain("the kept points are not those of an undisturbed run")


def kill_at_random(commands, program, kills, chance, folder, report):
    """`kills` of each command."""
    for command in commands:
        found = report.findings
        victim = _Victim(command, program, folder, report)
        if not victim.try_undisturbed():
            continue
        victim.kill_at_random(kills, chance)
        victim.let_end()
        busy = f", {victim.was_busy} times saying that the machine was busy" if victim.was_busy else ""
        report.row(command.name, "kill -9", victim.kills, f"and {victim.ended} times it ended on its own{busy}; "
                   f"{report.findings - found} findings")
