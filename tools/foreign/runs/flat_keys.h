// The keys of a run's file under dotted names, "fsdp_config.offload_params", as a JobConfig reads
// them, each in the line that it has in the file.
//
// What is null, in the file or in a setting, is not given; "${batch_size}" is what that key says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/base/json_document.h"
#include "tools/foreign/runs/run_settings.h"
#include "tools/foreign/runs/torchtitan/job_config.h"

namespace rehearse {

class FlatKeys {
 public:
  // `file` is what was read of the file; throws Error if it has no keys.
  FlatKeys(const JsonDocument& file, const RunSettings& settings, const std::string& expected);

  JobConfig& job() { return job_; }
  // Other values that mean true or false: "yes", "True", "auto" where it is said.
  bool Flag(JobConfig::Names names, bool otherwise, bool is_auto = true);
  // Text, number or truth as a text; "" if it is not given.
  std::string Word(JobConfig::Names names);
  bool Has(JobConfig::Names names) { return job_.Has(names) && Word(names) != "auto"; }
  // A whole number; "auto" is none.
  uint64_t WholeOr(JobConfig::Names names, int64_t least, int64_t most, uint64_t otherwise);
  Origin OriginOf(JobConfig::Names names) const { return job_.OriginOf(names); }
  [[noreturn]] void Fail(JobConfig::Names names, const std::string& message) {
    job_.Fail(names, message);
  }
  // Those that nobody asked about and that do not begin with one of these.
  std::vector<std::string> Unread(const std::vector<std::string>& quiet) const;

 private:
  // Readers point to them, and this may be moved.
  std::unique_ptr<const JsonDocument> file_;
  std::unique_ptr<const JsonDocument> overrides_;
  JobConfig job_;
};

}  // namespace rehearse
