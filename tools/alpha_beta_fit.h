// α and β of measured collectives, as AutoDDL fits them (workloads/cost_models/autoddl_model.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "real/calibration/calibration_fit.h"
#include "workloads/cost_models/autoddl_model.h"

namespace rehearse {

struct AlphaBetaFit {
  AlphaBeta network;
  ErrorSummary errors;  // of the samples that it was fitted to
};

// Fits one α and β to all rows of all tables whose kinds the model knows. Returns nothing where
// these do not determine both: rows of one size, for example.
std::optional<AlphaBetaFit> FitAlphaBeta(const std::vector<FitTable>& tables);

std::string ToText(const AlphaBetaFit& fit);  // one line, without its end
nlohmann::ordered_json ToJson(const AlphaBetaFit& fit);

}  // namespace rehearse
