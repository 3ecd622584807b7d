// The papers' own models of a scenario's communication, term by term, beside its simulation:
// AxoNN's for "4d" (workloads/cost_models/axonn_model.h), ATP's for "atp" and AutoDDL's for "sbp"
// by numbers.
//
// They need bandwidths, which their authors measured. Perlmutter's come from AxoNN's table; for any
// other machine they are measured on the simulated one as the authors did: AxoNN's in rings, all
// groups of a node, or of two nodes, at the same time; AutoDDL's in all-reduces of a node's ranks,
// and of all ranks of several nodes, as the scenario's library runs them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "topology/fabrics/communication_matrix.h"
#include "workloads/cost_models/atp_model.h"
#include "workloads/cost_models/autoddl_model.h"
#include "workloads/cost_models/axonn_model.h"

namespace rehearse {

enum class PaperModel : uint8_t { kAxonn, kAxonnAgnostic, kAutoddl, kAtp };
inline constexpr const char* kPaperModelNames[] = {"axonn", "axonn-agnostic", "autoddl", "atp"};

struct PaperPrediction {
  PaperModel model = PaperModel::kAxonn;
  std::vector<std::pair<std::string, Seconds>> terms;
  Seconds total;       // of the terms
  std::string source;  // equations, and where its bandwidths are from
};

// What a scenario says to a formula, but for the sizes of its mesh.
struct AxonnInput {
  std::vector<AxonnProduct> products;
  Training training;
  AxonnBandwidths bandwidths;
};
struct AtpInput {
  AtpWorkload whole;  // with the tokens of all replicas

  AtpWorkload Of(uint32_t data) const;
};
// A product's choice is that of its own name, or of "default"; a tied one has p1 and p2 exchanged.
struct AutoddlInput {
  struct Product {
    SbpProduct product;
    std::string name;
    bool is_tied = false;
  };
  std::vector<Product> chain;
  SbpNetwork network;
};

// [p0, p1, p2] of a product, each a number of machines or [machines, ranks of a machine].
SbpChoice ReadSbpChoice(const nlohmann::json& placement);

// What models of one machine have in common, kept between predictions. May be used from several
// threads.
class PaperModels {
 public:
  // Chooses for "auto" the model of the strategy's paper; returns nothing if there is none.
  static std::optional<PaperModel> ModelOf(const Scenario& scenario);

  // Throws Error if the model is not for this strategy, or says nothing about it.
  PaperPrediction Predict(PaperModel model, const Scenario& scenario);

  // These are for callers who put in many meshes. They throw as Predict() does.
  AxonnInput AxonnInputOf(const Scenario& scenario, bool is_aware);
  AtpInput AtpInputOf(const Scenario& scenario);
  const CommunicationMatrix& MatrixOf(const Scenario& scenario, uint32_t devices);
  AutoddlInput AutoddlInputOf(const Scenario& scenario);

 private:
  struct Machine {
    std::shared_ptr<const Cluster> cluster;  // kept, so that its address stays its own
    std::optional<AxonnBandwidths> axonn;
    std::map<uint32_t, CommunicationMatrix> matrices;  // by number of devices
    std::map<std::string, SbpNetwork> networks;        // by how all-reduces run
  };
  Machine& MachineOf(const Scenario& scenario);
  PaperPrediction Axonn(const Scenario& scenario, bool is_aware);
  PaperPrediction Atp(const Scenario& scenario);
  PaperPrediction Autoddl(const Scenario& scenario);

  std::mutex mutex_;
  std::map<const Cluster*, Machine> machines_;
};

std::string ToText(const PaperPrediction& prediction);  // ends with a newline
nlohmann::ordered_json ToJson(const PaperPrediction& prediction);

}  // namespace rehearse
