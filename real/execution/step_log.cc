#include "real/execution/step_log.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr mode_t kReadableByAll = 0644;

[[noreturn]] void Fail(const std::string& path, int reason) {
  throw Error(fmt::format("cannot write {}: {}", path, std::strerror(reason)));
}

}  // namespace

StepLog::StepLog(std::string path, const std::string& scenario, uint32_t rank, uint32_t ranks)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
                 kReadableByAll)) {
  if (file_ < 0) Fail(path_, errno);
  const nlohmann::ordered_json header = {
      {"schema", "rehearse.steps.v1"}, {"scenario", scenario}, {"rank", rank}, {"ranks", ranks}};
  Append(header.dump() + "\n");
}

StepLog::~StepLog() {
  if (file_ >= 0) close(file_);
}

void StepLog::Write(const StepOfRank& step) {
  nlohmann::ordered_json line = {{"step", step.number}, {"warm_up", step.is_warm_up}};
  nlohmann::ordered_json& ops = line["ops"] = nlohmann::ordered_json::array();
  for (size_t op = 0; op < step.times.size(); ++op) {
    const OpTime& time = step.times[op];
    if (time.end != OpTime::kNever) ops.push_back({op, time.ready, time.end});
  }
  if (!step.failure.empty()) line["failure"] = step.failure;
  Append(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void StepLog::Append(const std::string& line) {
  if (file_ < 0) return;  // it failed before and said so
  const off_t before = lseek(file_, 0, SEEK_END);
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = write(file_, line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      written += static_cast<size_t>(n);
      continue;
    }
    const int reason = errno;
    // Nothing more can be done if that fails too (a pipe, a device).
    if (before >= 0 && ftruncate(file_, before) != 0) errno = reason;
    close(file_);
    file_ = -1;
    Fail(path_, reason);
  }
}

}  // namespace rehearse
