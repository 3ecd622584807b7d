#include "tools/search_clusters.h"

#include <vector>

#include <nlohmann/json.hpp>

#include "tools/number_options.h"

namespace rehearse {
namespace {

// "dgx-h100:nodes=8,nics=4,dgx-b200" names two: what has a '=' but no ':' belongs to the one
// before.
std::vector<std::string> ClustersIn(const std::string& text) {
  std::vector<std::string> clusters;
  for (const std::string& part : SplitAtCommas(text)) {
    const bool goes_on = part.find('=') != std::string::npos && part.find(':') == std::string::npos;
    if (goes_on && !clusters.empty())
      clusters.back() += "," + part;
    else
      clusters.push_back(part);
  }
  return clusters;
}

}  // namespace

void SetClusters(const std::string& text, JsonDocument* document) {
  const Place place{"--clusters", 0, ""};
  nlohmann::json axes = nlohmann::json::array();
  axes.push_back({{"path", "cluster"}, {"values", ClustersIn(text)}});
  const nlohmann::json& scenario = document->value();
  if (scenario.contains("search") && scenario["search"].is_object() &&
      scenario["search"].contains("axes") && scenario["search"]["axes"].is_array())
    for (const nlohmann::json& axis : scenario["search"]["axes"])
      if (!axis.is_object() || axis.value("path", nlohmann::json()) != "cluster")
        axes.push_back(axis);
  document->Set("search.axes=" + axes.dump(), place);
  document->Set("search.per=cluster", place);
}

}  // namespace rehearse
