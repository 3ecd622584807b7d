// Stands in for what the page's simulator leaves out.
#include "scenarios/playing/calibrated.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/text_stream.h"

namespace rehearse {

bool IsGzip(std::string_view bytes) { return bytes.substr(0, 2) == "\x1f\x8b"; }

std::string Gzip(std::string_view) { throw Error("a page packs nothing"); }

std::string Gunzip(std::string_view, size_t) { throw Error("a page does not read gzip"); }

TextStream::TextStream(const std::string& path)
    : path_(path), file_(nullptr), at_(nullptr), end_(nullptr) {
  throw Error(path + ": a page reads no file");
}

TextStream::~TextStream() = default;

bool TextStream::Refill() { return false; }

// real/execution/execute.h decides how a machine runs a schedule that it has measured.
Schedule AsExecuted(Schedule schedule, const Cluster& cluster) {
  if (cluster.measured_collectives() && cluster.DeviceOf(0).host_cores > 0)
    throw Error(
        "a page cannot play a machine's calibration with measured collectives of its CPUs; "
        "`rehearse run` can");
  return schedule;
}

std::vector<std::string> CalibrationNotes(const Schedule&, const Cluster&) { return {}; }

Alike AlikeUnder(const Cluster& cluster) {
  return {.layers = !cluster.measured_collectives() && !cluster.calibration_origin()};
}

}  // namespace rehearse
