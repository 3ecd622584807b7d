#include "scenarios/evaluating/point_folder.h"

#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json_parse.h"
#include "sim/base/output_file.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kPointSchema = "rehearse.point.v2";

// Letters, digits and a few signs stand for themselves, a slash is ~, everything else is %XX; long
// names end in their hash.
std::string FileName(const std::string& point) {
  constexpr size_t kLongest = 150;
  std::string name;
  for (const char c : point) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-_=+,").find(c) != std::string_view::npos ||
                       (c == '.' && !name.empty());
    if (c == '/')
      name += '~';
    else
      name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (name.size() > kLongest) {
    Fnv1a hash;
    hash.Add(point);
    name = fmt::format("{}-{:016x}", name.substr(0, kLongest), hash.hash());
  }
  return name + ".json";
}

// Of everything but the checksum itself.
std::string ChecksumOf(json kept) {
  kept.erase("checksum");
  Fnv1a hash;
  hash.Add(kept.dump());
  return fmt::format("{:016x}", hash.hash());
}

}  // namespace

PointFolder::PointFolder(std::string folder, std::function<void(const std::string&)> warn)
    : folder_(std::move(folder)), warn_(std::move(warn)) {
  MakeFolder(folder_);
  RemoveAbandonedFiles(folder_);
}

std::string PointFolder::FileOf(const std::string& point) const {
  return folder_ + "/" + FileName(point);
}

void PointFolder::Check(const std::string& point) const {
  std::error_code missing;
  const fs::file_status status = fs::status(FileOf(point), missing);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw Error({FileOf(point), 0, ""},
                fmt::format("is not a regular file; expected the result of point \"{}\" or nothing",
                            point));
}

void PointFolder::Keep(const EvaluationKey& key, const Evaluation& evaluation) {
  nlohmann::ordered_json kept = {{"schema", kPointSchema},
                                 {"study", key.study},
                                 {"point", key.point},
                                 {"scenario_hash", evaluation.hash}};
  if (key.calibrated) kept["calibrated"] = *key.calibrated;
  if (evaluation.error.empty())
    kept["result"] = ResultJson(evaluation.results);
  else
    kept["error"] = evaluation.error;
  // Of what will be read again, which has its keys in the order of their names.
  kept["checksum"] = ChecksumOf(json::parse(kept.dump()));
  WriteFileAtomically(FileOf(key.point), kept.dump(2) + "\n");
}

// A finished point of exactly this scenario; others, and those of earlier versions, are out of
// date.
std::optional<Evaluation> PointFolder::Find(const EvaluationKey& key, const std::string& hash) {
  const std::string file = FileOf(key.point);
  std::error_code missing;
  if (!fs::exists(file, missing)) return std::nullopt;
  json kept;
  try {
    kept = ParseJson(ReadJsonText(file), file, JsonComments::kRefused).value;
  } catch (const Error& error) {
    SimulateAgain(error.what());
    return std::nullopt;
  }
  const auto text = [&](const char* name) {
    return kept.is_object() && kept.contains(name) && kept[name].is_string()
               ? kept[name].get<std::string>()
               : "";
  };
  if (text("schema").starts_with("rehearse.point.") && text("schema") != kPointSchema)
    return std::nullopt;
  if (text("checksum").empty() || text("checksum") != ChecksumOf(kept)) {
    SimulateAgain(file + ": the checksum does not match");
    return std::nullopt;
  }
  if (text("scenario_hash") != hash || !kept.contains("result")) return std::nullopt;
  Evaluation evaluation;
  evaluation.results = ResultsOf(kept["result"]);
  if (evaluation.results.empty()) {
    SimulateAgain(file + ": the result does not read");
    return std::nullopt;
  }
  return evaluation;
}

void PointFolder::SimulateAgain(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  warn_(reason + "; its point is simulated again");
}

}  // namespace rehearse
