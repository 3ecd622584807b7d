// `import rehearse`: the library (scenarios/library/rehearse.h) in Python.
//
// Results are dicts; spans and columns are NumPy arrays that view the library's own memory. Work
// releases the GIL; Ctrl-C stops it. The user's mistakes raise rehearse.Error, with file, line and
// pointer.
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <rehearse/rehearse.h>

namespace py = pybind11;

namespace {

py::object FromJson(const std::string& text) {
  return py::module_::import("json").attr("loads")(py::str(text));
}

// A dict, or a text of JSON.
std::string JsonText(const py::object& value) {
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  return py::module_::import("json").attr("dumps")(value).cast<std::string>();
}

// What With() takes: "PATH=VALUE", the value as JSON.
std::vector<std::string> ChangesOf(const py::args& assignments, const py::dict& values) {
  std::vector<std::string> changes;
  for (const py::handle& assignment : assignments)
    changes.push_back(assignment.cast<std::string>());
  for (const auto& [path, value] : values) {
    const auto json = py::module_::import("json").attr("dumps")(value).cast<std::string>();
    changes.push_back(path.cast<std::string>() + "=" + json);
  }
  return changes;
}

// Whether Python wants the work to stop; asked only when other work begins and a few times a
// second, since it takes the GIL.
class Watch {
 public:
  explicit Watch(std::optional<py::function> progress) : progress_(std::move(progress)) {}

  bool operator()(std::string_view what, double fraction) {
    constexpr auto kPause = std::chrono::milliseconds(100);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_ && what == what_) return true;
    next_ = now + kPause;
    what_ = what;
    const py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) {
      error_ = py::error_already_set();
      return false;
    }
    if (!progress_) return true;
    try {
      const py::object answer = (*progress_)(py::str(what.data(), what.size()),
                                             fraction < 0 ? py::none() : py::cast(fraction));
      return answer.is_none() || answer.cast<bool>();
    } catch (const py::error_already_set& error) {
      error_ = error;
      return false;
    }
  }

  void Rethrow() const {
    if (error_) throw py::error_already_set(*error_);
  }

 private:
  std::optional<py::function> progress_;
  std::optional<py::error_already_set> error_;
  std::chrono::steady_clock::time_point next_;
  std::string what_;
};

// Does the work without the GIL; an exception of the watch takes precedence over the library's.
template <typename Work>
auto Released(unsigned threads, std::optional<py::function> progress, bool fold, const Work& work) {
  Watch watch(std::move(progress));
  rehearse::RunOptions options;
  options.threads = threads;
  options.fold = fold;
  options.progress = [&watch](std::string_view what, double fraction) {
    return watch(what, fraction);
  };
  try {
    const py::gil_scoped_release release;
    return work(options);
  } catch (const rehearse::Stopped&) {
    watch.Rethrow();
    throw;
  }
}

template <typename Value>
py::array_t<Value> ViewOf(const std::vector<Value>& values, const py::object& owner) {
  py::array_t<Value> array(static_cast<py::ssize_t>(values.size()), values.data(), owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

py::dict ColumnsOf(const rehearse::Table& table, const py::object& owner) {
  py::dict columns;
  for (const rehearse::Column& column : table.columns) {
    const py::str name(column.name);
    if (column.kind == rehearse::Column::Kind::kNumber) {
      columns[name] = ViewOf(column.numbers, owner);
    } else if (column.kind == rehearse::Column::Kind::kTruth) {
      columns[name] = ViewOf(column.truths, owner).attr("view")("bool");
    } else {
      columns[name] = py::cast(column.texts);
    }
  }
  return columns;
}

// Columns of a list of structs, some of whose members are texts.
template <typename Struct, typename Member>
py::list ListOf(const std::vector<Struct>& values, Member Struct::*member) {
  py::list list;
  for (const Struct& value : values) list.append(py::cast(value.*member));
  return list;
}

py::dict OpsOf(const rehearse::Simulation& run) {
  py::dict columns;
  columns["name"] = ListOf(run.ops(), &rehearse::Op::name);
  columns["kind"] = ListOf(run.ops(), &rehearse::Op::kind);
  columns["axis"] = ListOf(run.ops(), &rehearse::Op::axis);
  columns["phase"] = ListOf(run.ops(), &rehearse::Op::phase);
  columns["layer"] = ListOf(run.ops(), &rehearse::Op::layer);
  return columns;
}

py::dict LinksOf(const rehearse::Simulation& run) {
  py::dict columns;
  columns["name"] = ListOf(run.links(), &rehearse::Link::name);
  columns["kind"] = ListOf(run.links(), &rehearse::Link::kind);
  columns["bytes"] = ListOf(run.links(), &rehearse::Link::bytes);
  columns["capacity"] = ListOf(run.links(), &rehearse::Link::capacity);
  columns["utilization"] = ListOf(run.links(), &rehearse::Link::utilization);
  columns["count"] = ListOf(run.links(), &rehearse::Link::count);
  return columns;
}

// rehearse.Error(message), with file, line and pointer; a ValueError, as Python's own readers
// raise.
void RegisterErrors(py::module_& module) {
  static PyObject* error_type = PyErr_NewExceptionWithDoc(
      "rehearse.Error",
      "A mistake in the input: file, line (0: not known) and the JSON pointer say where.",
      PyExc_ValueError, nullptr);
  static PyObject* stopped_type =
      PyErr_NewExceptionWithDoc("rehearse.Stopped", "Work was stopped by its progress function.",
                                PyExc_RuntimeError, nullptr);
  module.attr("Error") = py::handle(error_type);
  module.attr("Stopped") = py::handle(stopped_type);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const rehearse::Error& error) {
      const py::object value =
          py::reinterpret_steal<py::object>(PyObject_CallFunction(error_type, "s", error.what()));
      value.attr("file") = error.file();
      value.attr("line") = error.line();
      value.attr("pointer") = error.pointer();
      PyErr_SetObject(error_type, value.ptr());
    } catch (const rehearse::Stopped& stopped) {
      PyErr_SetString(stopped_type, stopped.what());
    }
  });
}

}  // namespace

PYBIND11_MODULE(_rehearse, module) {
  PYBIND11_NUMPY_DTYPE(rehearse::Span, rank, op, micro_batch, stream, ready, begin, end);
  RegisterErrors(module);
  module.attr("__version__") = rehearse::LibraryVersion();

  py::class_<rehearse::Scenario>(module, "Scenario", "A scenario, or a schedule on a cluster.")
      .def(py::init([](const py::object& file, const std::string& name) {
             if (py::isinstance<py::dict>(file))
               return rehearse::Scenario::FromText(JsonText(file), name);
             const auto path = py::module_::import("os").attr("fspath")(file).cast<std::string>();
             return rehearse::Scenario::FromFile(path);
           }),
           py::arg("file"), py::arg("name") = "scenario",
           "A file's path, or a dict. `name` stands for the dict in messages; paths in the dict "
           "are relative to it.")
      .def_static(
          "of_schedule",
          [](const py::object& schedule, const std::string& cluster, const std::string& name) {
            return rehearse::Scenario::FromSchedule(JsonText(schedule), cluster, name);
          },
          py::arg("schedule"), py::arg("cluster"), py::arg("name") = "schedule",
          "A schedule, a dict or its text, on a cluster: a preset such as "
          "\"perlmutter:nodes=4\", or a file.")
      .def(
          "with_",
          [](const rehearse::Scenario& scenario, const py::args& assignments,
             const py::kwargs& values) { return scenario.With(ChangesOf(assignments, values)); },
          "The same with changes: with_(\"strategy.row=4\", \"cluster.nodes=8\"), or "
          "with_(**{\"strategy.row\": 4}).")
      .def_property_readonly("name", &rehearse::Scenario::name)
      .def_property_readonly("ranks", &rehearse::Scenario::ranks)
      .def(
          "to_dict", [](const rehearse::Scenario& scenario) { return FromJson(scenario.Json()); },
          "The scenario as read, with all changes.")
      .def(py::pickle(  // for workers in other processes
          [](const rehearse::Scenario& scenario) {
            return py::make_tuple(scenario.Json(), scenario.cluster(), scenario.source());
          },
          [](const py::tuple& kept) {
            const auto json = kept[0].cast<std::string>();
            const auto cluster = kept[1].cast<std::string>();
            const auto source = kept[2].cast<std::string>();
            return cluster.empty() ? rehearse::Scenario::FromText(json, source)
                                   : rehearse::Scenario::FromSchedule(json, cluster, source);
          }));

  py::class_<rehearse::Simulation>(module, "Simulation", "One simulated step.")
      .def_property_readonly("step_seconds", &rehearse::Simulation::step_seconds)
      .def_property_readonly("hash", &rehearse::Simulation::hash,
                             "Hash of the timeline: the same on any machine.")
      .def_property_readonly("ranks", &rehearse::Simulation::ranks)
      .def_property_readonly(
          "result", [](const rehearse::Simulation& run) { return FromJson(run.Json()); },
          "What `rehearse run --format json` prints, as a dict.")
      .def_property_readonly("text", &rehearse::Simulation::Text)
      .def_property_readonly(
          "spans",
          [](const py::object& self) {
            return ViewOf(self.cast<const rehearse::Simulation&>().spans(), self);
          },
          "A NumPy array with the fields rank, op (in `ops`), micro_batch, stream, ready, begin "
          "and end (picoseconds). pandas.DataFrame(run.spans) is a table of it.")
      .def_property_readonly("ops", &OpsOf, "The ops that the spans belong to: columns, by `op`.")
      .def_property_readonly("links", &LinksOf, "What each link carried: columns.")
      .def("representative_of", &rehearse::Simulation::representative_of, py::arg("rank"),
           "The rank whose spans also stand for this one.");

  py::class_<rehearse::Points>(module, "Points", "The points of a study or a search.")
      .def_property_readonly("result",
                             [](const rehearse::Points& points) { return FromJson(points.Json()); })
      .def_property_readonly("text", &rehearse::Points::Text)
      .def_property_readonly(
          "columns",
          [](const py::object& self) {
            return ColumnsOf(self.cast<const rehearse::Points&>().table(), self);
          },
          "NumPy arrays and lists by name, with a value for each point: "
          "pandas.DataFrame(points.columns).");

  module.def(
      "simulate",
      [](const rehearse::Scenario& scenario, unsigned threads, bool fold,
         std::optional<py::function> progress) {
        return Released(threads, std::move(progress), fold,
                        [&](const rehearse::RunOptions& options) {
                          return rehearse::Simulate(scenario, options);
                        });
      },
      py::arg("scenario"), py::kw_only(), py::arg("threads") = 0, py::arg("fold") = true,
      py::arg("progress") = py::none(),
      "Simulates the step. progress(what, fraction) is called a few times a second; returning "
      "False stops it.");
  module.def(
      "sweep",
      [](const rehearse::Scenario& study, unsigned threads, std::optional<py::function> progress) {
        return Released(
            threads, std::move(progress), true,
            [&](const rehearse::RunOptions& options) { return rehearse::Sweep(study, options); });
      },
      py::arg("study"), py::kw_only(), py::arg("threads") = 0, py::arg("progress") = py::none(),
      "Simulates all points of a study: rehearse.Scenario(\"study.json\").");
  module.def(
      "search",
      [](const rehearse::Scenario& scenario, unsigned threads,
         std::optional<py::function> progress) {
        return Released(threads, std::move(progress), true,
                        [&](const rehearse::RunOptions& options) {
                          return rehearse::Search(scenario, options);
                        });
      },
      py::arg("scenario"), py::kw_only(), py::arg("threads") = 0, py::arg("progress") = py::none(),
      "The best configurations of a scenario, the best first.");
  module.def(
      "plan", [](const rehearse::Scenario& scenario) { return FromJson(rehearse::Plan(scenario)); },
      py::arg("scenario"), "The schedule that every rank follows, as a dict.");
}
