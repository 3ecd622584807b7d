#!/usr/bin/env python3
"""Draws what rank 0 does, stream by stream: overlap.py SCENARIO PICTURE.png"""

import sys

import matplotlib
import numpy

import rehearse

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)


def main(scenario, picture):
    run = rehearse.simulate(rehearse.Scenario(scenario))
    spans = run.spans[run.spans["rank"] == 0]
    kinds = numpy.array(run.ops["kind"])[spans["op"]]
    figure, axes = plt.subplots(figsize=(12, 3))
    for color, kind in enumerate(sorted(set(kinds))):
        chosen = spans[kinds == kind]
        axes.barh(chosen["stream"], (chosen["end"] - chosen["begin"]) * 1e-9,
                  left=chosen["begin"] * 1e-9, color=f"C{color}", label=kind)
    axes.set(xlabel="ms", ylabel="stream of rank 0", title=run.result["scenario"])
    axes.legend(ncols=4, fontsize="small")
    figure.savefig(picture, bbox_inches="tight", dpi=120)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except rehearse.Error as error:
        sys.exit(str(error))
