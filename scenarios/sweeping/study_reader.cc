#include "scenarios/sweeping/study_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "scenarios/evaluating/axes.h"
#include "scenarios/sweeping/named_points.h"
#include "scenarios/sweeping/study_shapes.h"
#include "sim/base/error.h"
#include "sim/base/file_kind.h"
#include "sim/base/known_names.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

// A name in the file, resolved when all points are known.
struct NamedPoint {
  std::string name;
  Place place;
};

class StudyReader {
 public:
  explicit StudyReader(const JsonDocument& document)
      : root_(RootOf(document)), folder_(fs::path(document.name()).parent_path()) {
    reader_of_changes_ = [this](const std::string& path, const JsonReader& value) {
      return ValueOf(path, value);
    };
  }

  Study Read() {
    const bool grouped = root_.Has("groups");
    StudyFields().ReadInto(root_, &study_, grouped ? kWithGroups : kWithout);
    study_.base = ReadBase(root_.At("base"));
    if (root_.At("metric").IsObject() && root_.At("metric").Has("minus")) {
      const JsonReader minus = root_.At("metric").At("minus");
      study_.metric.minus = ReadChanges(minus);
      if (study_.metric.minus.empty()) minus.Expected("changes such as {\"model.layers\": 2}");
    }
    const Changes common = root_.Has("set") ? ReadChanges(root_.At("set")) : Changes();
    study_.common_changes = common.size();
    if (!grouped) {
      ReadGroup(root_, "", common);
    } else {
      std::set<std::string> names;
      for (const JsonReader& element : root_.At("groups").Elements()) {
        const JsonReader group = element.As(GroupFields().shape());
        const std::string name = GroupFields().Read(element).name;
        if (!names.insert(name).second)
          group.At("name").Fail(fmt::format("there are two groups \"{}\"", name));
        Changes changes = common;
        if (group.Has("set")) Append(changes, ReadChanges(group.At("set")));
        ReadGroup(group, name, changes);
      }
      if (root_.Has("calibration")) {
        const StudyCalibration calibration = ReadCalibration(root_.At("calibration"), "", 0);
        for (StudyGroup& group : study_.groups)
          if (!group.calibration) group.calibration = calibration;
      }
    }
    if (study_.points.empty() && study_.excluded > 0)
      root_.At("where").Fail(fmt::format("none of {} combinations meets it", study_.excluded));
    if (study_.points.empty()) root_.Fail("the study has no points");
    Resolve();
    return std::move(study_);
  }

 private:
  static JsonReader RootOf(const JsonDocument& document) {
    const JsonReader root = document.Root();
    RefuseOtherKinds(root, FileKind::kStudy);
    return root.As(StudyFields().shape(),
                   root.IsObject() && root.Has("groups") ? kWithGroups : kWithout);
  }

  JsonDocument ReadBase(const JsonReader& reader) const {
    if (reader.IsObject())
      return JsonDocument::FromText(reader.value().dump(), reader.place().file);
    if (!reader.IsString()) reader.Expected("a scenario or its path");
    return reader.Open(reader.String());
  }

  Changes ReadChanges(const JsonReader& reader) const {
    return rehearse::ReadChanges(reader, reader_of_changes_);
  }

  // The path of a cluster file is relative to the study's folder.
  nlohmann::json ValueOf(const std::string& path, const JsonReader& value) const {
    if (path == "cluster" && value.IsString() && IsClusterFile(value.String()))
      return fs::absolute(folder_ / value.String()).lexically_normal().string();
    return value.value();
  }

  static void Append(Changes& changes, const Changes& more) {
    changes.insert(changes.end(), more.begin(), more.end());
  }

  void ReadGroup(const JsonReader& reader, const std::string& name, const Changes& changes) {
    const size_t group = study_.groups.size();
    const size_t first = study_.points.size();
    study_.groups.push_back({name, std::nullopt});
    if (!reader.Has("points") && !reader.Has("grid"))
      reader.Fail("missing key \"points\" or \"grid\"");
    const std::vector<SpaceChoice> grid =
        reader.Has("grid") ? ReadGrid(reader.At("grid")) : std::vector<SpaceChoice>{{"", {}}};
    const std::string prefix = name.empty() ? "" : name + "/";

    StudyPoint start;
    start.group = group;
    start.changes = changes;
    start.changes_before_calibration = changes.size();
    start.may_fail = reader.Has("grid");
    if (!reader.Has("points")) {
      start.place = reader.At("grid").place();
      AddPoints(start, prefix, "", grid);
    } else {
      for (const JsonReader& point : reader.At("points").Elements())
        AddPoints(ReadPoint(point, start, prefix), prefix, point.At("name").String(), grid);
    }
    if (reader.Has("calibration"))
      study_.groups[group].calibration = ReadCalibration(reader.At("calibration"), prefix, first);
  }

  // Its point is one of those from `first` on, and its name begins with the prefix.
  StudyCalibration ReadCalibration(const JsonReader& object, const std::string& prefix,
                                   size_t first) {
    const JsonReader reader = object.As(StudyCalibrationFields().shape());
    StudyCalibration calibration;
    StudyCalibrationFields().ReadInto(reader, &calibration);
    calibration.changes = ReadChanges(reader.At("set"));
    const JsonReader point = reader.At("point");
    const std::string wanted = prefix + point.String();
    const auto found = positions_.find(wanted);
    if (found == positions_.end() || found->second < first)
      point.Fail(fmt::format("there is no point \"{}\" to calibrate with", wanted));
    calibration.point = found->second;
    if (!study_.points[calibration.point].published || relatives_.count(calibration.point) > 0)
      point.Fail(
          fmt::format("point \"{}\" has no published figure of its own to calibrate with", wanted));
    return calibration;
  }

  StudyPoint ReadPoint(const JsonReader& object, StudyPoint point, const std::string& prefix) {
    const JsonReader reader = object.As(PointFields().shape());
    const bool is_of_grid = point.may_fail;
    PointFields().ReadInto(reader, &point);
    point.may_fail |= is_of_grid;
    if (reader.Has("set")) Append(point.changes, ReadChanges(reader.At("set")));
    if (point.published && is_of_grid)
      reader.At("published").Fail("a point that a grid multiplies cannot have a published figure");
    if (reader.Has("relative_to")) {
      if (is_of_grid)
        reader.At("relative_to")
            .Fail("a point that a grid multiplies cannot be relative to another");
      const JsonReader other = reader.At("relative_to");
      relatives_[study_.points.size()] = {prefix + other.String(), other.place()};
    }
    return point;
  }

  // Every combination of the axes' choices, the last axis fastest.
  std::vector<SpaceChoice> ReadGrid(const JsonReader& reader) const {
    std::vector<SpaceChoice> combinations = {{"", {}}};
    for (const JsonReader& axis : reader.Elements()) {
      const std::vector<SpaceChoice> choices =
          ReadListedAxis(axis, '=', reader_of_changes_).choices;
      if (choices.empty()) axis.Fail("an axis of a grid needs values");
      if (choices.size() > kMostStudyPoints / combinations.size())
        axis.Fail(fmt::format("the grid has more than {} points", kMostStudyPoints));
      std::vector<SpaceChoice> longer;
      for (const SpaceChoice& combination : combinations)
        for (const SpaceChoice& choice : choices) {
          longer.push_back(combination);
          longer.back().name += (combination.name.empty() ? "" : "/") + choice.name;
          Append(longer.back().changes, choice.changes);
        }
      combinations = std::move(longer);
    }
    return combinations;
  }

  void AddPoints(const StudyPoint& start, const std::string& prefix, const std::string& name,
                 const std::vector<SpaceChoice>& grid) {
    for (const SpaceChoice& choice : grid) {
      StudyPoint point = start;
      point.name = prefix + name + (name.empty() || choice.name.empty() ? "" : "/") + choice.name;
      Append(point.changes, choice.changes);
      if (!Keeps(point, !choice.name.empty())) {
        ++study_.excluded;
        continue;
      }
      if (!positions_.emplace(point.name, study_.points.size()).second)
        throw Error(point.place, fmt::format("there are two points \"{}\"", point.name));
      if (study_.points.size() == kMostStudyPoints)
        throw Error(point.place,
                    fmt::format("the study has more than {} points", kMostStudyPoints));
      study_.points.push_back(std::move(point));
    }
  }

  // Combinations of a grid that break a constraint are left out; a single point must not break one.
  bool Keeps(const StudyPoint& point, bool is_of_grid) const {
    if (study_.constraints.empty()) return true;
    JsonDocument scenario = study_.base;
    for (const auto& [path, value] : point.changes) scenario.Set(path + "=" + value.dump());
    const auto broken = BrokenConstraint(study_.constraints, scenario.value());
    if (broken && !is_of_grid)
      throw Error(point.place,
                  fmt::format("point \"{}\" does not meet \"where\": {}", point.name, *broken));
    return !broken;
  }

  size_t Find(const NamedPoint& wanted) const {
    const auto found = positions_.find(wanted.name);
    if (found != positions_.end()) return found->second;
    std::vector<std::string> names;
    for (const StudyPoint& point : study_.points) names.push_back(point.name);
    throw Error(wanted.place, fmt::format("there is no point \"{}\"{}", wanted.name,
                                          KnownNames(wanted.name, names)));
  }

  void Resolve() {
    for (const auto& [point, other] : relatives_) study_.points[point].relative_to = Find(other);
    for (const auto& [point, other] : relatives_)
      if (study_.points[*study_.points[point].relative_to].relative_to)
        throw Error(other.place, fmt::format("point \"{}\" is itself relative to another",
                                             study_.points[point].name));
    for (const JsonReader& panel : root_.At("pictures").Elements())
      study_.panels.push_back(ReadPanel(panel));
    for (const JsonReader& order : root_.At("orders").Elements()) {
      std::vector<size_t>& rising = study_.orders.emplace_back();
      for (const JsonReader& name : order.Elements())
        rising.push_back(Find({name.String(), name.place()}));
      if (rising.size() < 2) order.Expected("at least two points");
    }
  }

  StudyPanel ReadPanel(const JsonReader& object) const {
    const JsonReader reader = object.As(PanelFields().shape());
    StudyPanel panel;
    PanelFields().ReadInto(reader, &panel);
    for (const JsonReader& element : reader.At("series").Elements())
      panel.series.push_back(ReadSeries(element, panel));
    if (panel.series.empty()) reader.At("series").Expected("at least one series");
    return panel;
  }

  PanelSeries ReadSeries(const JsonReader& object, StudyPanel& panel) const {
    const JsonReader reader = object.As(SeriesFields().shape());
    PanelSeries series;
    SeriesFields().ReadInto(reader, &series);
    series.points = PointsMeant(study_, reader.At("points"), reader_of_changes_);
    if (panel.x.empty()) panel.x = LabelsOf(study_, series.points);
    if (series.points.size() != panel.x.size())
      reader.At("points").Fail(fmt::format("found {}, expected {} points, one for each x",
                                           series.points.size(), panel.x.size()));
    if (!panel.ratios) return series;
    for (const size_t point : series.points)
      if (!IsInRatio(point))
        reader.At("points").Fail(
            fmt::format("\"{}\" is in no ratio: it is not relative to another "
                        "point, and none is relative to it",
                        study_.points[point].name));
    return series;
  }

  bool IsInRatio(size_t point) const {
    if (study_.points[point].relative_to) return true;
    return std::any_of(study_.points.begin(), study_.points.end(),
                       [&](const StudyPoint& other) { return other.relative_to == point; });
  }

  JsonReader root_;
  fs::path folder_;
  ChangeReader reader_of_changes_;
  Study study_;
  std::map<std::string, size_t> positions_;
  std::map<size_t, NamedPoint> relatives_;  // by point
};

}  // namespace

Study ReadStudy(const JsonDocument& document) { return StudyReader(document).Read(); }

}  // namespace rehearse
