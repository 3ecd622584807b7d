"""The Python module, as its user meets it: python_module.py SOURCES PROGRAM."""

import concurrent.futures
import json
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy

import rehearse

SOURCES, PROGRAM = sys.argv[1:3]


def shipped(name):
    return f"{SOURCES}/scenarios/{name}.json"


def step_of(batch):
    return rehearse.simulate(
        rehearse.Scenario(shipped("strategy-megatron")).with_(f"training.batch={batch}")).step_seconds


class ModuleTest(unittest.TestCase):
    def test_a_python_without_numpy_is_told_so(self):
        code = "import sys; sys.modules['numpy'] = None; import rehearse"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("rehearse needs NumPy", done.stderr)

    def test_simulates_what_run_prints(self):
        run = rehearse.simulate(rehearse.Scenario(shipped("strategy-megatron")))
        printed = json.loads(subprocess.check_output(
            [PROGRAM, "run", shipped("strategy-megatron"), "--format", "json"]))
        cost = {"simulation", "seconds"}  # wall time and memory of the run itself
        self.assertEqual(printed.keys() - cost, run.result.keys() - cost)
        self.assertEqual(printed["timeline_hash"], run.hash)
        self.assertEqual(printed["step_seconds"], run.step_seconds)

    def test_weeks_and_costs_are_those_that_run_prints(self):
        changes = {"run": {"tokens": "1T", "checkpoint": {"storage_bandwidth": "10GBps"}, "seeds": 5},
                   "costs": {"gpu_hour": "2USD/h"}}
        scenario = rehearse.Scenario(shipped("strategy-megatron")).with_(**changes)
        sets = [f"--set={path}={json.dumps(value)}" for path, value in changes.items()]
        printed = json.loads(subprocess.check_output(
            [PROGRAM, "run", shipped("strategy-megatron"), "--format", "json", *sets]))
        result = rehearse.simulate(scenario).result
        self.assertEqual(printed["run"], result["run"])
        self.assertEqual(printed["costs"], result["costs"])
        self.assertGreater(result["costs"]["run"]["money"], 0)

    def test_spans_are_the_librarys_own_memory(self):
        run = rehearse.simulate(rehearse.Scenario(shipped("strategy-megatron")))
        spans = run.spans
        self.assertFalse(spans.flags.owndata)
        self.assertFalse(spans.flags.writeable)
        self.assertEqual(spans.ctypes.data, run.spans.ctypes.data)
        del run  # the array keeps what it looks at
        self.assertTrue((spans["ready"] <= spans["begin"]).all())
        self.assertTrue((spans["begin"] <= spans["end"]).all())
        self.assertEqual(spans.dtype["end"], numpy.dtype("int64"))

    def test_ops_and_links_are_columns(self):
        run = rehearse.simulate(rehearse.Scenario(shipped("strategy-megatron")))
        self.assertGreater(len(run.ops["name"]), run.spans["op"].max())
        self.assertIn("all-reduce", run.ops["kind"])
        self.assertEqual(len(run.links["bytes"]), len(run.links["name"]))

    def test_a_dict_is_a_scenario(self):
        scenario = rehearse.Scenario(shipped("strategy-megatron"))
        again = rehearse.Scenario(scenario.to_dict(), name=shipped("strategy-megatron"))
        self.assertEqual(rehearse.simulate(again).hash, rehearse.simulate(scenario).hash)

    def test_changes_are_values_of_python(self):
        scenario = rehearse.Scenario(shipped("strategy-megatron"))
        self.assertEqual(scenario.with_("training.batch=64").to_dict(),
                         scenario.with_(**{"training.batch": 64}).to_dict())

    def test_mistakes_have_file_and_pointer(self):
        with self.assertRaises(rehearse.Error) as caught:
            rehearse.simulate(
                rehearse.Scenario(shipped("strategy-megatron")).with_("strategy.kind=fourd"))
        self.assertEqual(caught.exception.pointer, "/strategy/kind")
        self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(rehearse.Error) as caught:
            rehearse.Scenario("/nowhere.json")
        self.assertIn("/nowhere.json", str(caught.exception))

    def test_a_plan_is_a_schedule(self):
        scenario = rehearse.Scenario(shipped("cpu-4d")).with_("cluster=switch:devices=4")
        schedule = rehearse.Scenario.of_schedule(rehearse.plan(scenario), "switch:devices=4")
        self.assertEqual(rehearse.simulate(schedule).hash, rehearse.simulate(scenario).hash)

    def test_scenarios_travel_to_other_processes(self):
        scenario = rehearse.Scenario(shipped("strategy-megatron")).with_("training.batch=16")
        there = pickle.loads(pickle.dumps(scenario))
        self.assertEqual(rehearse.simulate(there).hash, rehearse.simulate(scenario).hash)

    def test_workers_share_the_work(self):
        batches = [16, 32, 48]
        alone = [step_of(batch) for batch in batches]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual(list(pool.map(step_of, batches)), alone)
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            self.assertEqual(list(pool.map(step_of, batches)), alone)

    def test_dask_shares_the_work(self):
        try:
            import distributed
        except ImportError:
            self.skipTest("no python3-distributed")
        with tempfile.TemporaryDirectory() as folder, \
                distributed.Client(n_workers=2, threads_per_worker=1, processes=False,
                                   dashboard_address=None, local_directory=folder) as client:
            self.assertEqual(client.gather(client.map(step_of, [16, 32])), [step_of(16), step_of(32)])

    def test_a_sweep_is_columns(self):
        study = rehearse.Scenario({
            "name": "batches", "metric": "step_seconds", "base": "strategy-megatron.json",
            "grid": [{"path": "training.batch", "values": [16, 32]}]}, name=shipped("study"))
        columns = rehearse.sweep(study).columns
        self.assertEqual(list(columns["training.batch"]), [16, 32])
        self.assertEqual(list(columns["step_seconds"]), [step_of(16), step_of(32)])
        try:
            import pandas
        except ImportError:
            return
        self.assertEqual(len(pandas.DataFrame(columns)), 2)

    def test_a_search_finds_what_simulate_plays(self):
        scenario = rehearse.Scenario(shipped("strategy-megatron"))
        found = rehearse.search(scenario)
        best = numpy.nanmin(found.columns["step_seconds"])
        self.assertLessEqual(best, rehearse.simulate(scenario).step_seconds)

    def test_progress_is_told_and_can_stop(self):
        told = []

        def progress(what, fraction):
            told.append((what, fraction))
            return len(told) < 2

        with self.assertRaises(rehearse.Stopped):
            rehearse.search(rehearse.Scenario(shipped("search-gpt40b-perlmutter")), progress=progress)
        self.assertEqual(len(told), 2)

        def fails(what, fraction):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            rehearse.simulate(rehearse.Scenario(shipped("strategy-megatron")), progress=fails)

    def test_the_example_draws(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no python3-matplotlib")
        with tempfile.TemporaryDirectory() as folder:
            picture = f"{folder}/overlap.png"
            subprocess.check_call([sys.executable, f"{SOURCES}/tools/python/examples/overlap.py",
                                   shipped("strategy-megatron"), picture])
            with open(picture, "rb") as file:
                self.assertEqual(file.read(4), b"\x89PNG")

    def test_other_threads_go_on_meanwhile(self):
        ticks = []
        done = threading.Event()

        def tick():
            while not done.wait(0.001):
                ticks.append(time.monotonic())

        thread = threading.Thread(target=tick)
        thread.start()
        try:
            rehearse.search(rehearse.Scenario(shipped("strategy-megatron")))
        finally:
            done.set()
            thread.join()
        self.assertGreater(len(ticks), 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
