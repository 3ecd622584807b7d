// The result of each study, pinned: scenarios/validation/headlines.json has it, and the index in
// scenarios/README.md repeats it beside the published figure. A change that moves a figure, or its
// distance to the paper, is noticed here.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/engine.h"
#include "scenarios/sweeping/study_reader.h"
#include "scenarios/sweeping/sweep.h"
#include "sim/report/svg.h"
#include "tests/support/places.h"

namespace rehearse {
namespace headlines_test {

using nlohmann::json;

constexpr double kPinned = 0.02;  // relative: what a study's own figure may move by

const std::string& Scenarios() {
  static const std::string folder = SourceDir() + "/scenarios/";
  return folder;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

const json& Headlines() {
  static const json table = json::parse(TextOf(Scenarios() + "validation/headlines.json"));
  return table;
}

Study StudyNamed(const std::string& name) {
  return ReadStudy(JsonDocument::FromFile(Scenarios() + "studies/" + name + ".json"));
}

// Those of the folder. Called before any test runs, so nothing is read here that may be damaged.
std::vector<std::string> StudyNames() {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(Scenarios() + "studies", none)) {
    if (entry.path().extension() == ".json") names.insert(entry.path().stem().string());
  }
  return {names.begin(), names.end()};
}

size_t PositionOf(const Study& study, const std::string& name) {
  for (size_t i = 0; i < study.points.size(); ++i) {
    if (study.points[i].name == name) return i;
  }
  throw Error("headlines.json: " + study.name + " has no point " + name);
}

// The metric of points, played when they are asked for: all points of a study at once, or, if the
// table says that the study is long, each alone, with the calibrated value that the table gives.
class Metrics {
 public:
  explicit Metrics(const Study& study) : study_(study) {
    const json& long_ones = Headlines()["long"];
    if (!long_ones.contains(study.name)) {
      sweep_ = PlayStudy(study, {});
    } else if (const json& calibrated = long_ones[study.name]; !calibrated.is_null()) {
      calibrated_ = calibrated.get<double>();
    }
  }

  double Of(size_t position) {
    const StudyPoint& point = study_.points[position];
    const double value = Alone(position);
    return point.relative_to ? value / Alone(*point.relative_to) : value;
  }

  // What a picture shows of a point, of those that have been played.
  std::optional<double> Drawn(const StudyPanel& panel, size_t position) {
    const std::optional<size_t> other = study_.points[position].relative_to;
    if (!IsPlayed(position)) return std::nullopt;
    if (!panel.ratios) return Alone(position);
    if (!other) return 1;
    if (!IsPlayed(*other)) return std::nullopt;
    return Alone(position) / Alone(*other);
  }

 private:
  bool IsPlayed(size_t position) const { return sweep_ || played_.count(position) > 0; }

  double Alone(size_t position) {
    if (sweep_) return study_.metric.Of(sweep_->points[position].result).value();
    const auto [known, is_new] = played_.try_emplace(position, 0);
    if (is_new) {
      const Evaluation evaluation =
          engine_.EvaluateApart(ScenariosOf(study_, study_.points[position], calibrated_));
      if (!evaluation.error.empty()) throw Error(evaluation.error);
      known->second = study_.metric.Of(ResultJson(evaluation.results)).value();
    }
    return known->second;
  }

  const Study& study_;
  std::optional<double> calibrated_;
  std::optional<Sweep> sweep_;
  Engine engine_{EngineOptions{}};
  std::map<size_t, double> played_;
};

// The number that a picture says of a point when it is pointed at.
std::optional<double> SaidOf(const std::string& picture, const std::string& point) {
  const std::string begin = "<title>" + svg::Escape(point) + ": ";
  const size_t at = picture.find(begin);
  if (at == std::string::npos) return std::nullopt;
  return std::stod(picture.substr(at + begin.size()));
}

void ExpectPicture(const Study& study, Metrics& metrics) {
  const std::string path = "studies/pictures/" + study.name + ".svg";
  const std::string picture = TextOf(Scenarios() + path);
  for (const StudyPanel& panel : study.panels) {
    for (const PanelSeries& series : panel.series) {
      for (const size_t point : series.points) {
        const std::string& name = study.points[point].name;
        const std::optional<double> said = SaidOf(picture, name);
        ASSERT_TRUE(said.has_value())
            << path << " lacks " << name << ": tools/draw-pictures --studies";
        const std::optional<double> now = metrics.Drawn(panel, point);
        if (!now) continue;
        EXPECT_NEAR(*said, *now, kPinned * *now)
            << path << ", " << name << ": tools/draw-pictures --studies";
      }
    }
  }
}

class HeadlinesTest : public ::testing::TestWithParam<std::string> {};

TEST_P(HeadlinesTest, AStudyComesToWhatItsRowsSay) {
  const Study study = StudyNamed(GetParam());
  Metrics metrics(study);
  size_t rows = 0;
  for (const json& row : Headlines()["rows"]) {
    if (row["study"] != study.name) continue;
    ++rows;
    ASSERT_EQ(row["points"].size(), row["ours"].size()) << row["what"];
    for (size_t i = 0; i < row["points"].size(); ++i) {
      const auto name = row["points"][i].get<std::string>();
      const double pinned = row["ours"][i].get<double>();
      const size_t position = PositionOf(study, name);
      const double now = metrics.Of(position);
      EXPECT_NEAR(now, pinned, kPinned * std::abs(pinned)) << study.name << ": " << name;
      if (const auto published = study.points[position].published) {
        fmt::print("{}: {}: {:.4g}, published {:.4g}: {:+.1f} %\n", study.name, name, now,
                   *published, 100 * (now / *published - 1));
      }
    }
  }
  EXPECT_GT(rows, 0u) << "headlines.json has no row of " << study.name;
  ExpectPicture(study, metrics);
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Papers, HeadlinesTest, ::testing::ValuesIn(StudyNames()), NameOf);

// The table that README.md shows first, to the digit: each step, and how much shorter it is than
// the one before.
TEST(HeadlinesReadmeTest, TheFirstTableIsThatOfItsStudy) {
  const std::string readme = TextOf(SourceDir() + "/README.md");
  const Study study = StudyNamed("axonn-fig3");
  Metrics metrics(study);
  const double baseline = metrics.Of(PositionOf(study, "baseline"));
  EXPECT_THAT(readme, ::testing::HasSubstr(fmt::format("| baseline | | {:.4g} s | |", baseline)));
  double before = baseline;
  for (const char* name : {"A", "A, B", "A to C", "A to D", "A to E"}) {
    const double step = metrics.Of(PositionOf(study, name)) * baseline;
    EXPECT_THAT(readme, ::testing::HasSubstr(fmt::format("| −{:.2f} % (to {:.4g} s) |",
                                                         100 * (1 - step / before), step)));
    before = step;
  }
  EXPECT_THAT(readme, ::testing::HasSubstr(fmt::format("| all five | −53.5 % | −{:.1f} % |",
                                                       100 * (1 - before / baseline))));
}

// A row of the index: what is published, what we get and how far off that is, in the same order.
std::string IndexRow(const json& row) {
  const Study study = StudyNamed(row["study"].get<std::string>());
  std::vector<std::string> published;
  std::vector<std::string> ours;
  std::vector<std::string> errors;
  for (size_t i = 0; i < row["points"].size(); ++i) {
    const size_t position = PositionOf(study, row["points"][i].get<std::string>());
    const double value = row["ours"][i].get<double>();
    ours.push_back(fmt::format("{:.4g}", value));
    const auto figure = study.points[position].published;
    bool is_calibrated = false;
    for (const StudyGroup& group : study.groups) {
      is_calibrated = is_calibrated || (group.calibration && group.calibration->point == position);
    }
    if (!figure) {
      errors.emplace_back("–");
      continue;
    }
    published.push_back(fmt::format("{:.4g}", *figure));
    errors.push_back(is_calibrated ? "calibrated"
                                   : fmt::format("{:+.1f}", 100 * (value / *figure - 1)));
  }
  if (row.contains("published")) {
    published = {row["published"].get<std::string>()};
    errors = {row.value("error", std::string("–"))};
  }
  return fmt::format("| {} | [{}](studies/{}.json) | {} | {} | {} |",
                     row["what"].get<std::string>(), study.name, study.name,
                     fmt::join(published, ", "), fmt::join(ours, ", "), fmt::join(errors, ", "));
}

TEST(HeadlinesIndexTest, TheIndexHasEachRowOfTheTable) {
  const std::string index = TextOf(Scenarios() + "README.md");
  std::string missing;
  for (const json& row : Headlines()["rows"]) {
    const std::string line = IndexRow(row);
    if (index.find(line + "\n") == std::string::npos) missing += line + "\n";
  }
  EXPECT_EQ(missing, "") << "scenarios/README.md lacks these lines";
}

}  // namespace headlines_test
}  // namespace rehearse
