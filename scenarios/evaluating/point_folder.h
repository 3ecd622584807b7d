// Finished points in a folder, each in a file "NAME.json" (schema rehearse.point.v2: study, point,
// scenario_hash, calibrated, result or error, checksum), written when the point is done.
//
// A file whose checksum does not match is reported as damaged. Impossible points are kept for
// people to read, and are tried again.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "scenarios/evaluating/engine.h"

namespace rehearse {

class PointFolder : public PointStore {
 public:
  // Creates the folder. `warn` is called under a lock when a point has to be simulated again.
  PointFolder(std::string folder, std::function<void(const std::string& message)> warn);

  std::optional<Evaluation> Find(const EvaluationKey& key, const std::string& hash) override;
  void Keep(const EvaluationKey& key, const Evaluation& evaluation) override;

  // Throws Error if something other than a file is in the point's place: a folder could not be
  // replaced, and a pipe would be waited for.
  void Check(const std::string& point) const;

 private:
  std::string FileOf(const std::string& point) const;
  void SimulateAgain(const std::string& reason);

  const std::string folder_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mutex_;  // of warnings
};

}  // namespace rehearse
