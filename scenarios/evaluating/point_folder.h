// Finished points in a folder, a file "NAME.json" each (schema rehearse.point.v2: study, point,
// scenario_hash, calibrated, result or error, checksum), written when the point is done.
//
// A file whose checksum does not fit is said to be damaged; what is impossible is kept to be read,
// and tried again.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "scenarios/evaluating/engine.h"

namespace rehearse {

class PointFolder : public PointStore {
 public:
  // Makes the folder. `warn` is called under a lock, when a point is to be simulated again.
  PointFolder(std::string folder, std::function<void(const std::string& message)> warn);

  std::optional<Evaluation> Find(const EvaluationKey& key, const std::string& hash) override;
  void Keep(const EvaluationKey& key, const Evaluation& evaluation) override;

  // Throws Error where something else than a file is in the point's place: a folder could not be
  // replaced, and a pipe would be waited for.
  void Check(const std::string& point) const;

 private:
  std::string FileOf(const std::string& point) const;
  void SimulateAgain(const std::string& reason);

  const std::string folder_;
  const std::function<void(const std::string&)> warn_;
  std::mutex mutex_;  // of what is warned of
};

}  // namespace rehearse
