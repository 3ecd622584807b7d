"""Rehearse a training run on a cluster that you do not have yet.

    import rehearse
    run = rehearse.simulate(rehearse.Scenario("scenarios/axonn-gpt20b-perlmutter.json"))
    print(run.step_seconds, run.result["model_flops_utilization"])

Files and keys are those of the command `rehearse`; `rehearse schema scenario` prints them all.
"""

try:
    import numpy  # noqa: F401  spans and columns are its arrays
except ImportError as missing:
    raise ImportError("rehearse needs NumPy: pip install numpy, or Debian's python3-numpy") from missing

from ._rehearse import (Error, Points, Scenario, Simulation, Stopped, __version__, plan, search,
                        simulate, sweep)

__all__ = ["Error", "Points", "Scenario", "Simulation", "Stopped", "plan", "search", "simulate",
           "sweep"]
