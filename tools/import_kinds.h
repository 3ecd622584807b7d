// What `rehearse import` reads: a row for each kind of file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

struct ImportRequest {
  std::vector<std::string> files;
  // It is "" where it is not given.
  std::string device;
  std::string node;
  std::string cluster;
  bool as_schedule = false;
  std::string model_config;
  bool dry_run = false;  // a script is run, with stubs of what it starts
  std::string communication;
  std::string step_name;
  std::string hosts;
  std::optional<int64_t> step;
  std::optional<uint32_t> extrapolate;  // to how many ranks
  std::vector<std::string> settings;    // NAME=VALUE, of --set
  JobWindow jobs;                       // of --first, --from and --to
  std::string output;                   // where the result is written

  const std::string& file() const { return files.front(); }
};

struct Imported {
  std::string text;                  // of the file that is written
  std::string what;                  // "a machine of 8 devices"
  std::vector<std::string> remarks;  // what the file leaves open, or what was not understood
};

struct ImportKind {
  const char* name;
  const char* what;
  const char* result;
  // Which options it has, and whether it takes several files.
  enum Options : uint16_t {
    kNone = 0,
    kDevice = 1,
    kNode = 2,
    kCluster = 4,
    kProfile = 8,
    kFiles = 16,
    kHosts = 32,
    kSettings = 64,
    kJobs = 128,
    kDryRun = 256,
    kModel = 512,
    kRun = 1024,  // becomes a scenario, which a log can be compared with
  };
  uint16_t options;
  Imported (*read)(const ImportRequest& request);

  bool Has(Options option) const { return (options & option) != 0; }
};

std::span<const ImportKind> ImportKinds();
// Null if none is called so.
const ImportKind* FindImportKind(const std::string& name);

}  // namespace rehearse
