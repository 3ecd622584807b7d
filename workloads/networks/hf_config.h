// A config.json as Hugging Face's transformers write it, key by key.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_reader.h"

namespace rehearse {

inline constexpr int64_t kMostHfColumns = 1 << 24;
inline constexpr int64_t kMostHfLayers = 10000;

// Programs spell the same key in several ways; the first of the names that is there counts.
using HfNames = std::vector<const char*>;

// How many experts there are.
inline const HfNames kHfExpertNames = {"num_experts",      "num_local_experts",
                                       "n_routed_experts", "num_routed_experts",
                                       "moe_num_experts",  "n_experts"};

// A config.json, its keys ticked off as they are read.
class HfConfig {
 public:
  explicit HfConfig(const JsonReader& root);

  const JsonReader& root() const { return root_; }
  // Whether the key is there and not null.
  bool Has(const std::string& key) {
    read_.push_back(key);
    return root_.Has(key) && !root_.At(key).value().is_null();
  }
  bool HasOne(const HfNames& names) {
    bool has = false;
    for (const char* name : names) has = Has(name) || has;
    return has;
  }
  // A missing one is reported under its first name.
  JsonReader At(const HfNames& names) {
    for (const char* name : names) {
      if (Has(name)) return root_.At(name);
    }
    return root_.At(names.front());
  }
  int64_t Whole(const HfNames& names, int64_t least, int64_t most) {
    return OneOf(At(names)).Integer(least, most);
  }
  int64_t WholeOr(const HfNames& names, int64_t least, int64_t most, int64_t otherwise) {
    return HasOne(names) ? Whole(names, least, most) : otherwise;
  }
  bool BoolOr(const HfNames& names, bool otherwise) {
    return HasOne(names) ? At(names).Bool() : otherwise;
  }

  void Remark(std::string remark) { remarks_.push_back(std::move(remark)); }
  // Remarks that something is left out if a switch is on.
  void LeaveOut(const char* key, bool otherwise, const char* what) {
    if (BoolOr({key}, otherwise)) Remark(fmt::format("{}: {} left out", key, what));
  }

  // Refuses what would add other layers or experts under names that this kind is not known to have.
  void RefuseUnreadLayers();

  // Those that were made, and one that names the keys that nobody read.
  std::vector<std::string> Remarks();

 private:
  bool IsRead(const std::string& key) const {
    return std::find(read_.begin(), read_.end(), key) != read_.end();
  }
  // A value that may be written once for each layer, if it is the same for all.
  static JsonReader OneOf(const JsonReader& value);

  JsonReader root_;
  std::vector<std::string> read_;
  std::vector<std::string> remarks_;
};

}  // namespace rehearse
