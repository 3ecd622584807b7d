// A paper's formula over a search space, without a scenario for each point.
//
// Where points differ only in the sizes of their mesh (AxoNN's and ATP's axes, AutoDDL's placement
// of each product), the formula needs nothing else from them: one of them is read as a scenario,
// and its network, machine and constraints are kept for all. Points that differ in more (micro-
// batches, models, clusters) are taken apart first, and each such group has its own scenario. What
// it says of a point equals PaperModels::Predict() of the point's own scenario to the last bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/playing/paper_models.h"
#include "scenarios/readers/scenario.h"
#include "scenarios/searching/search_space.h"
#include "sim/base/json_document.h"

namespace rehearse {

class SpaceFormula {
 public:
  // The scenario is the one that the space changes. `models` must outlive it.
  SpaceFormula(const SearchSpace& space, PaperModel model, const JsonDocument& scenario,
               PaperModels* models);
  ~SpaceFormula();
  SpaceFormula(const SpaceFormula&) = delete;
  SpaceFormula& operator=(const SpaceFormula&) = delete;

  struct Found {
    std::optional<double> seconds;
    const SpaceConstraint* broken = nullptr;
  };
  // Nothing where the point has to be read as a scenario: the first of its group, those that may be
  // impossible, and all in spaces that change more of the strategy than sizes. May be called from
  // several threads, also while others learn.
  Found At(const SpacePoint& point) const;
  // Keeps what this scenario, of a point that the formula can be put to, says about its group.
  void Learn(const SpacePoint& point, const JsonDocument& document, const Scenario& scenario);

 private:
  class Group;
  struct Axis;

  // Returns how many groups there are, 0 if points differ in too much.
  size_t Compile(const SearchSpace& space, const JsonDocument& scenario);
  size_t GroupOf(const SpacePoint& point) const;
  void Place(const SpacePoint& point, uint32_t* values) const;
  // `known` is what another scenario said about the same group.
  std::unique_ptr<Group> Made(const JsonDocument& document, const Scenario& scenario,
                              const Group* known) const;
  std::vector<std::string> ProductsIn(const Network& network) const;

  const PaperModel model_;
  PaperModels& models_;
  const std::vector<SpaceConstraint>& constraints_;
  // What the formula is put to: the sizes of a mesh, or numbers of placements by product.
  std::vector<std::string> places_ = {};  // their paths
  std::vector<uint32_t> given_ = {};      // what the scenario itself has
  std::vector<SbpChoice> placements_ = {};
  std::vector<Axis> axes_;
  std::mutex mutex_;  // of those who learn
  std::vector<std::unique_ptr<const Group>> made_;
  std::vector<std::atomic<const Group*>> groups_;  // empty: nothing is compiled
};

}  // namespace rehearse
